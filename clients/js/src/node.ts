import { createHash, randomUUID, webcrypto } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "./store.js";

export * from "./index.js";

// Node 18 has it, but not under its global name.
globalThis.crypto ??= webcrypto as Crypto;

/**
 * A file for each intent in a directory of its own, for programs on Node: what is stored survives a
 * power cut (file and directory are flushed), and processes may share it. A file that was torn or
 * changed is unreadable as an intent, so nothing is sent in its place.
 */
export function fileStore(directory: string): Store {
  const file = (name: string) => join(directory, createHash("sha256").update(name).digest("hex") + ".json");
  const flush = async (path: string, text?: string) => {
    const handle = await open(path, text === undefined ? "r" : "wx");
    try {
      if (text !== undefined) await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  };
  /** Writes beside the place and moves it there in one step; `move` fails when it may not replace. */
  const write = async (name: string, text: string, move: typeof rename) => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const beside = join(directory, randomUUID() + ".tmp");
    const digest = createHash("sha256").update(name + "\0" + text).digest("hex");
    try {
      await flush(beside, JSON.stringify({ name, digest, text }));
      await move(beside, file(name));
    } finally {
      await unlink(beside).catch(() => {});
    }
    await flush(directory);
  };
  const read = async (path: string): Promise<{ name: string; text: string } | undefined> => {
    const bytes = await readFile(path, "utf8").catch((error) => {
      if (error.code !== "ENOENT") throw error;
    });
    if (bytes === undefined) return;
    const { name, digest, text } = JSON.parse(bytes);
    if (createHash("sha256").update(name + "\0" + text).digest("hex") !== digest) throw new Error(`${path}: damaged`);
    return { name, text };
  };
  const get = async (name: string) => (await read(file(name)))?.text;
  return {
    get,
    async add(name, text) {
      try {
        await write(name, text, link);
        return text;
      } catch (error: any) {
        if (error.code !== "EEXIST") throw error;
        return (await get(name))!;
      }
    },
    put: (name, text) => write(name, text, rename),
    async delete(name) {
      await unlink(file(name)).catch((error) => {
        if (error.code !== "ENOENT") throw error;
      });
    },
    async names() {
      const files = await readdir(directory).catch(() => []);
      const found = files.filter((f) => f.endsWith(".json")).map((f) => read(join(directory, f)).catch(() => ({ name: f })));
      return (await Promise.all(found)).flatMap((entry) => (entry ? [entry.name] : []));
    },
  };
}
