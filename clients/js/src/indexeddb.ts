import type { Store } from "./store.js";

/** IndexedDB: for large bodies, and in workers. Strict durability where the browser has it. */
export function indexedDb(database = "einmal", factory: IDBFactory = indexedDB): Store {
  const run = async <T>(work: (intents: IDBObjectStore) => IDBRequest<T> | void, write?: true): Promise<T> => {
    const db = await new Promise<IDBDatabase>((resolve, reject) => {
      const opening = factory.open(database, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("intents");
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = opening.onblocked = () => reject(opening.error);
    });
    try {
      return await new Promise<T>((resolve, reject) => {
        const transaction = db.transaction("intents", write ? "readwrite" : "readonly", { durability: "strict" });
        const request = work(transaction.objectStore("intents"));
        transaction.oncomplete = () => resolve((request as IDBRequest<T>)?.result);
        transaction.onabort = transaction.onerror = () => reject(transaction.error);
      });
    } finally {
      // An open connection would keep the page out of the back/forward cache.
      db.close();
    }
  };
  return {
    get: (name) => run<string | undefined>((intents) => intents.get(name)),
    async add(name, text) {
      let there: string | undefined;
      await run((intents) => {
        const found = intents.get(name);
        found.onsuccess = () => {
          there = found.result;
          if (there === undefined) intents.put(text, name);
        };
      }, true);
      return there ?? text;
    },
    put: async (name, text) => void (await run((intents) => intents.put(text, name), true)),
    delete: async (name) => void (await run((intents) => intents.delete(name), true)),
    names: async () => (await run((intents) => intents.getAllKeys())) as string[],
  };
}
