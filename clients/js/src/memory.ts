import type { Store } from "./store.js";

/** For tests, and for intents that need not outlive the page or process. A key that is lost with it protects nothing. */
export function memoryStore(): Store {
  const map = new Map<string, string>();
  return {
    get: (name) => map.get(name),
    add: (name, text) => map.get(name) ?? (map.set(name, text), text),
    put: (name, text) => void map.set(name, text),
    delete: (name) => void map.delete(name),
    names: () => [...map.keys()],
  };
}
