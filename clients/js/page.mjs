// Bundles shop/page/page.ts to shop/page/page.js, which is committed: who builds the shop needs no Node.js.
import { buildSync } from "esbuild";
import { fileURLToPath } from "node:url";

const path = (name) => fileURLToPath(new URL("../../shop/page/" + name, import.meta.url));
export const target = path("page.js");
export function bundle() {
  const { outputFiles } = buildSync({
    entryPoints: [path("page.ts")], bundle: true, minify: true, format: "esm", target: "es2022", charset: "ascii", write: false,
    banner: { js: "// Made from page.ts by `npm run page` in clients/js." },
  });
  return outputFiles[0].text;
}
if (process.argv[1] === fileURLToPath(import.meta.url)) (await import("node:fs")).writeFileSync(target, bundle());
