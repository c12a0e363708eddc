import { buildSync } from "esbuild";
import { gzipSync } from "node:zlib";

/** Bytes of an entry point, bundled, minified and gzipped. */
export function size(entry) {
  const { outputFiles } = buildSync({
    entryPoints: [new URL(`src/${entry}.ts`, import.meta.url).pathname],
    bundle: true, minify: true, format: "esm", target: "es2022", external: ["react"], write: false,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}
if (process.argv[1] === new URL(import.meta.url).pathname) console.log(size("index"), size("react"));
