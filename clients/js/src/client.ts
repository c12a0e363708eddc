import { exclusively } from "./lock.js";
import { finish, type Entry } from "./run.js";
import { webStorage, type Store } from "./store.js";
import { fromBytes, type Outcome, type Verdict } from "./verdict.js";

type Headers_ = HeadersInit | (() => HeadersInit | Promise<HeadersInit>);

export interface Options {
  /** Default: localStorage, an error where there is none: keys that nobody keeps protect nothing. */
  store?: Store;
  /** Default: the platform's. Must not send again by itself. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Sent with every attempt and never stored: credentials that may change while the intent is open. */
  credentials?: Headers_;
  /** Default: `Idempotency-Key`. */
  keyHeader?: string;
  /** The key as an RFC 8941 String, in quotes. */
  quoted?: boolean;
  /** Failed attempts of one call. Default 6. */
  maxAttempts?: number;
  /** The n-th wait is uniform in [0, min(cap, base * 2^(n-1))] ms, after what the server asks for. Default 500 and 30000. */
  backoffBase?: number;
  backoffCap?: number;
  /** Of a whole call, ms. Default two minutes. */
  deadline?: number;
  /** Of one attempt, ms. Default 70 s: a gateway's own limit is 60 s. */
  attemptTimeout?: number;
  /** Retries that all calls of this client share; each first attempt gives a tenth back. Default 10. */
  retryBudget?: number;
  /** How long a server that publishes nothing is assumed to keep results, ms. Default 24 hours. */
  assumedWindow?: number;
  /** Send keys that are older than the server's window all the same: it may be done twice. */
  sendTooOld?: boolean;
  /** Longer answers are not stored (characters). Default 100000. */
  largestStoredAnswer?: number;
  /** Seams for tests. `now` is wall time, `elapsed` monotonic, both in ms. */
  time?: Time;
  random?: () => number;
}

export interface Time {
  now(): number;
  elapsed(): number;
  sleep(ms: number): Promise<void>;
}

export interface SendInit {
  /** Default POST. */
  method?: string;
  /** Authorization, Cookie and X-Api-Key are sent, but not stored. */
  headers?: HeadersInit;
  body?: BodyInit | null;
  /** Instead of `body`: sent as application/json. */
  json?: unknown;
  /** As of fetch; default same-origin. */
  credentials?: RequestCredentials;
  /** The application's own key; else one is drawn. */
  key?: string;
}

/** The name of an intent stands for another request, which was or may have been executed. */
export class IntentConflict extends Error {
  override name = "IntentConflict";
}

/**
 * Sends requests under intents that survive it: one intent ("refund order 4711"), one key and one
 * request for its whole life, stored before the first byte leaves. Several clients, tabs and workers
 * may share a store.
 */
export interface Client {
  /**
   * Sends the request under the intent of that name until its outcome is known or patience ends. The
   * same name is the same key, in this and every later call: of a settled intent (but a `rejected`
   * one) the stored verdict is returned and nothing is sent.
   *
   * Throws IntentConflict when the name stands for another request that was or may have been
   * executed, TypeError when the request cannot be sent. Network and storage failures are verdicts.
   */
  send(intent: string, url: string | URL, init?: SendInit): Promise<Outcome>;
  /**
   * Finishes an open intent from what is stored; `undefined`: there is none of that name. Of a settled one
   * (also a `rejected` one: nobody asked for it again) the stored verdict is returned and nothing is sent.
   */
  resume(intent: string, credentials?: HeadersInit): Promise<Outcome | undefined>;
  /**
   * What is stored: which intents are open (one that cannot be read is), since when they exist, and the last
   * verdict. An open one without a verdict was interrupted.
   */
  list(): Promise<{ intent: string; open: boolean; created?: number; verdict?: Verdict["verdict"] }[]>;
  /** Removes what is stored of an intent. While it is open this gives up its key: it may be done twice. */
  forget(intent: string): Promise<void>;
}

const secret = /^(authorization|cookie|x-api-key)$/;

const realTime: Time = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: (ms) =>
    new Promise<any>((resolve) => {
      setTimeout(resolve, ms);
      // Back online: what waits for a failed attempt need not wait longer.
      globalThis.addEventListener?.("online", resolve, { once: true });
    }),
};

const defaults = {
  keyHeader: "Idempotency-Key",
  maxAttempts: 6,
  backoffBase: 500,
  backoffCap: 30000,
  deadline: 120000,
  attemptTimeout: 70000,
  retryBudget: 10,
  assumedWindow: 86400000,
  largestStoredAnswer: 100000,
  time: realTime,
  random: Math.random,
};
export type Settings = Options & typeof defaults;

export function createClient(options: Options = {}): Client {
  const settings: Settings = { ...defaults, ...options };
  const { keyHeader, time, deadline, retryBudget } = settings;
  const store = settings.store ?? webStorage();
  let tokens = retryBudget;
  /** One more request: the first of a call, or a retry if the budget allows it. */
  const spend = (first?: boolean): boolean => {
    if (!first && tokens < 1) return false;
    tokens = first ? Math.min(retryBudget, tokens + 0.1) : tokens - 1;
    return true;
  };

  const read = async (intent: string): Promise<Entry | undefined> => {
    const text = await store.get(intent);
    return text === undefined ? text : parse(text);
  };

  /** Finishes what `begin` gives while no other tab or call works on the intent. */
  const under = async (
    intent: string, credentials: HeadersInit, isOver: (entry: Entry) => boolean, begin: () => Promise<Entry | undefined>,
  ): Promise<Outcome | undefined> => {
    const end = time.elapsed() + deadline;
    const plain = (verdict: Verdict, more?: object) => ({ ...verdict, intent, key: "", attempts: 0, ...more });
    const work = async (): Promise<Outcome | undefined> => {
      let entry;
      try {
        entry = await begin();
      } catch (error) {
        if (error instanceof IntentConflict) throw error;
        // What is there but unreadable may have been sent; what could not be written was not.
        const sent = await (async () => store.get(intent))().catch(() => "");
        const verdict = sent === undefined ? "not_attempted" : "unknown";
        return plain({ verdict, why: "journal" }, { storeError: error });
      }
      if (!entry) return;
      if (isOver(entry)) return plain(entry.last!, { key: entry.key, fromStore: true });
      return finish({ settings, store, spend, intent, entry, end, credentials });
    };
    return exclusively(store, intent, deadline, work, () => plain({ verdict: "unknown", why: "in_progress" }));
  };

  const draft = async (url: string | URL, init: SendInit, headers: Headers): Promise<Entry> => {
    const method = (init.method ?? "POST").toUpperCase();
    const target = new URL(url, globalThis.document?.baseURI);
    const key = init.key ?? headers.get(keyHeader) ?? randomKey();
    if (/^(GET|HEAD|OPTIONS|TRACE|CONNECT)$/.test(method)) throw new TypeError(method + " takes no key");
    if (target.username + target.password) throw new TypeError("credentials in URL");
    if (!/^[!#-+\--:<-[\]-~]{1,255}$/.test(key)) throw new TypeError("unusable key");
    target.hash = "";
    headers.delete(keyHeader);
    // The platform's own serialisation of every kind of body, with its Content-Type.
    const body = init.json === undefined ? init.body : new Blob([JSON.stringify(init.json)], { type: "application/json" });
    const whole = body == null ? undefined : new Response(body);
    const type = whole?.headers.get("content-type");
    if (type && !headers.has("content-type")) headers.set("content-type", type);
    return {
      v: 1, key, keyHeader, quoted: settings.quoted, method, url: target.href,
      headers: [...headers].filter(([name]) => !secret.test(name)),
      body: whole && fromBytes(await whole.arrayBuffer()),
      credentials: init.credentials, created: time.now(), attempts: 0,
    };
  };

  return {
    async send(intent, url, init = {}) {
      const headers = new Headers(init.headers);
      const wanted = await draft(url, init, headers);
      const begin = async () => {
        let there = await read(intent);
        if (there && !isSameRequest(there, wanted)) {
          if (there.doubt || isFinal(there))
            throw new IntentConflict(intent + ": another request");
          await store.delete(intent);
          there = undefined;
        }
        there ??= parse(await store.add(intent, JSON.stringify(wanted)));
        if (init.key && there.key !== init.key) throw new IntentConflict(intent + ": another key");
        return there;
      };
      return (await under(intent, [...headers].filter(([name]) => secret.test(name)), isFinal, begin))!;
    },
    resume: (intent, credentials = []) => under(intent, credentials, isSettled, () => read(intent)),
    list: async () =>
      Promise.all((await store.names()).map(async (intent) => {
        const entry = await read(intent).catch(() => {});
        return { intent, open: !isSettled(entry), created: entry?.created, verdict: entry?.last?.verdict };
      })),
    forget: async (intent) => store.delete(intent),
  };
}

const isSettled = (entry?: void | Entry) => /^[sr]/.test(entry?.last?.verdict!);
/** A `rejected` intent may be sent again. */
const isFinal = (entry: Entry) => isSettled(entry) && entry.last!.why !== "rejected";

/** 128 random bits. (crypto.randomUUID is missing on pages that are served by plain http.) */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => (byte + 256).toString(16).slice(1)).join("");

/** What may happen without a person asking again: nothing that certainly was not done is sent. */
export const resumeInterrupted = async (client: Client, name: string): Promise<Outcome | undefined> =>
  (await client.list()).some(({ intent, verdict }) => intent === name && verdict !== "not_attempted") ? client.resume(name) : undefined;

function parse(text: string): Entry {
  const entry = JSON.parse(text);
  if (entry.v !== 1 || !(entry.key && entry.method && entry.url && entry.headers))
    throw new Error("damaged");
  return entry;
}

const isSameRequest = (...pair: [Entry, Entry]): boolean => {
  // Each serialisation of a FormData draws a new boundary.
  const [a, b] = pair.map(({ method, url, headers, body }) => {
    const text = JSON.stringify([method, url, headers, body]);
    const boundary = /boundary=([\w-]+)/.exec(text);
    return boundary ? text.replaceAll(boundary[1]!, "") : text;
  });
  return a === b;
};
