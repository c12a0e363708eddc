// The examples of README.md and docs/clients.md compile against the package's own types.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const around = `
import type { Answer, Client, Outcome } from "@einmal/client";
declare global {
  const client: Client;
  function show(value: unknown): void; function explain(...all: unknown[]): void;
  function offerAgain(outcome: Outcome): void; function pending(outcome: Outcome): void; function token(): string;
}
`;

for (const page of ["../README.md", "../../../docs/clients.md"]) {
  test(`the examples of ${page.split("/").at(-1)} compile`, (t) => {
    const root = fileURLToPath(new URL("..", import.meta.url));
    const directory = mkdtempSync(join(root, "examples-"));
    t.after(() => rmSync(directory, { recursive: true }));
    const text = readFileSync(new URL(page, import.meta.url), "utf8");
    const blocks = [...text.matchAll(/^```(ts|tsx|js)\n(.*?)^```/gms)];
    assert.ok(blocks.length >= 1, "there are examples");
    writeFileSync(join(directory, "around.d.ts"), around);
    const files = blocks.map(([, kind, code], index) => {
      const file = join(directory, `example${index}.${kind === "js" ? "ts" : kind}`);
      // Inside a function: an example may end by \`return\`.
      const imports = code.match(/^import .*$/gm) ?? [];
      writeFileSync(file, `${imports.join("\n")}\nexport async function example() {\n${code.replace(/^import .*$/gm, "")}\n}\n`);
      return file;
    });
    const program = ts.createProgram([join(directory, "around.d.ts"), ...files], {
      noEmit: true, strict: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext, jsx: ts.JsxEmit.ReactJSX, types: ["node", "react"],
      lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"], skipLibCheck: true,
    });
    const said = ts.getPreEmitDiagnostics(program).map((one) =>
      `${one.file?.fileName.split("/").at(-1)}:${one.file && one.file.getLineAndCharacterOfPosition(one.start).line + 1} ${ts.flattenDiagnosticMessageText(one.messageText, " ")}`);
    assert.deepEqual(said, []);
  });
}
