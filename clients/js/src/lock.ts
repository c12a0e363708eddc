/** At most 11 days: no timer holds more than 2^31 ms. */
export const timeout = (ms: number): AbortSignal => AbortSignal.timeout(Math.max(0, Math.min(ms, 1e9)) | 0);

/** In one process: the last work on each intent of a store. */
const queues = new WeakMap<object, Map<string, Promise<unknown>>>();

/**
 * Runs `work` while nobody else works on the intent: by Web Locks, so between tabs, where there are
 * some, else within the process; `otherwise` when it was not free within `limit` ms. (Without Web Locks
 * two tabs may send at once; they send the same key.)
 */
export async function exclusively<T>(
  store: object, intent: string, limit: number, work: () => Promise<T>, otherwise: () => T,
): Promise<T> {
  // Node's would join the stores of a process.
  const locks = globalThis.location && navigator.locks;
  const signal = timeout(limit);
  let begun = false;
  const late = new Promise<T>((resolve) => (signal.onabort = () => begun || resolve(otherwise())));
  const begin = async () => {
    if (signal.aborted) return;
    begun = true;
    return work();
  };
  let given: Promise<T | undefined>;
  if (locks) {
    given = locks.request("einmal:" + intent, { signal }, begin).catch((error) => {
      if (begun) throw error;
      return late;
    }) as Promise<T | undefined>;
  } else {
    const queue = queues.get(store) ?? new Map<string, Promise<unknown>>();
    queues.set(store, queue);
    given = Promise.resolve(queue.get(intent)).then(begin, begin);
    queue.set(intent, given);
    const leave = () => queue.get(intent) === given && queue.delete(intent);
    given.then(leave, leave);
  }
  // Too late: `late` was first.
  return Promise.race([late, given as Promise<T>]);
}
