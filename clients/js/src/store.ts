/**
 * Where intents are kept. A call that has returned (or whose promise is fulfilled) has stored. A store
 * that cannot write throws: then nothing is sent.
 */
export interface Store {
  get(name: string): Value<string | undefined>;
  /** Stores unless there is something already; returns what is there now. Atomic between tabs. */
  add(name: string, text: string): Value<string>;
  put(name: string, text: string): Value<void>;
  delete(name: string): Value<void>;
  names(): Value<string[]>;
}
type Value<T> = T | Promise<T>;

/** localStorage: survives reload and restart, shared by the tabs of an origin, about 5 MB. */
export function webStorage(storage: Storage = localStorage, prefix = "einmal:"): Store {
  return {
    get: (name) => storage.getItem(prefix + name) ?? undefined,
    add(name, text) {
      const there = storage.getItem(prefix + name);
      if (there === null) storage.setItem(prefix + name, text);
      return there ?? text;
    },
    put: (name, text) => storage.setItem(prefix + name, text),
    delete: (name) => storage.removeItem(prefix + name),
    names: () =>
      Object.keys(storage).filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)),
  };
}
