import type { Settings } from "./client.js";
import { judge, json, retryAfter } from "./judge.js";
import { timeout } from "./lock.js";
import type { Store } from "./store.js";
import { fromBytes, toBytes, type Answer, type NotAttemptedWhy, type Outcome, type UnknownWhy, type Verdict } from "./verdict.js";
import { publishedRetention } from "./window.js";

/** What is stored of an intent. The format has the version `v`. */
export interface Entry {
  v: 1;
  key: string;
  keyHeader: string;
  quoted?: boolean;
  method: string;
  url: string;
  headers: [string, string][];
  body?: string;
  credentials?: RequestCredentials;
  created: number;
  attempts: number;
  /** Why an attempt is in doubt: it may have been executed, and no whole answer came. */
  doubt?: UnknownWhy;
  firstSent?: number;
  last?: Verdict;
}

export interface Call {
  settings: Settings;
  store: Store;
  spend: (first?: boolean) => boolean;
  intent: string;
  entry: Entry;
  /** When patience ends, by `settings.time.elapsed`. */
  end: number;
  credentials: HeadersInit;
}

/** Nothing decided: wait, as long as the server asks; `idle`: that was no failed attempt. */
type Next = Verdict | { wait?: number; idle?: boolean };

/** Sends an open intent until its outcome is known or patience ends. */
export async function finish({ settings, store, spend, intent, entry, end, credentials }: Call): Promise<Outcome> {
  const { time } = settings;
  let attempts = 0;
  let last: NotAttemptedWhy = "unreachable";
  let lastAnswer: Answer | undefined;

  const save = async () => store.put(intent, JSON.stringify(entry));

  const outOfPatience = (): Verdict =>
    entry.doubt
      ? { verdict: "unknown", why: entry.doubt, answer: lastAnswer }
      : { verdict: "not_attempted", why: last, answer: lastAnswer };

  /** False: it would not end before the deadline, and was not begun. */
  const wait = async (repetition: number, asked = 0): Promise<boolean> => {
    const ms = asked + settings.random() * Math.min(settings.backoffCap, settings.backoffBase * 2 ** (repetition - 1));
    if (time.elapsed() + ms >= end) return false;
    await time.sleep(ms);
    return true;
  };

  /** The whole answer; null: no connection was made; undefined: sent, and no whole answer came. */
  const exchange = async (url: string, isPoll?: boolean, limit = settings.attemptTimeout): Promise<Answer | null | undefined> => {
    const headers = new Headers(entry.headers.filter(([name]) => !isPoll || !/^(content-|if-|prefer$)/.test(name)));
    let isOut;
    try {
      const given = settings.credentials;
      const fresh = new Headers(typeof given === "function" ? await given() : given);
      for (const [name, value] of [...new Headers(credentials), ...fresh]) headers.set(name, value);
      // Last: no credential takes its place.
      if (!isPoll) headers.set(entry.keyHeader, entry.quoted ? `"${entry.key}"` : entry.key);
      // The browser knows that nothing can leave.
      if (globalThis.navigator?.onLine === false) return null;
      isOut = true;
      const response = await (settings.fetch ?? fetch)(url, {
        method: isPoll ? "GET" : entry.method,
        headers,
        body: isPoll || entry.body === undefined ? undefined : toBytes(entry.body),
        credentials: entry.credentials,
        redirect: "manual",
        cache: "no-store",
        signal: timeout(Math.min(limit, end - time.elapsed())),
      });
      return { status: response.status, headers: [...response.headers], body: fromBytes(await response.arrayBuffer()) };
    } catch (error) {
      // Node says so; browsers tell nobody whether a connection was made.
      const code = (error as any)?.cause?.code;
      return !isOut || /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/.test(code) ? null : undefined;
    }
  };

  const isTooOld = async (): Promise<boolean> => {
    // A clock that was set back proves nothing either: the difference counts, whichever way.
    const age = Math.abs(time.now() - entry.firstSent!);
    if (!entry.doubt || settings.sendTooOld) return false;
    const { origin, pathname } = new URL(entry.url);
    const answer = await exchange(origin + "/.well-known/idempotency", true, 5000);
    const window = answer?.status === 200 ? publishedRetention(json(answer), entry.method, pathname) : Infinity;
    // An intent in doubt for nobody knows how long is too old as well.
    return !(age < (window < Infinity ? window : settings.assumedWindow));
  };

  const poll = async (url: string, asked: number): Promise<Next> => {
    entry.doubt = "in_progress";
    for (let polls = 1; await wait(polls, asked); ++polls) {
      const answer = await exchange(url, true);
      asked = retryAfter(answer, time.now());
      const status = answer?.status;
      if (status === 404) return { idle: true, wait: asked };
      if (status === 410) return { verdict: "unknown", why: "expired", answer: lastAnswer };
      const state = status === 200 && json(answer!).state;
      if (state === "completed" || state === "failed") {
        const result = await exchange(url + "/result", true);
        const judged = result && result.status !== 404 && judge(result, entry.doubt, entry.url);
        if (judged && "verdict" in judged) return judged;
      } else if (state) {
        entry.doubt = state === "uncertain" ? state : "in_progress";
      }
    }
    return outOfPatience();
  };

  const attempt = async (): Promise<Next> => {
    const before = entry.doubt;
    entry.attempts++;
    delete entry.last;
    if (!before) {
      entry.doubt = "no_answer";
      entry.firstSent = time.now();
    }
    try {
      await save();
    } catch {
      entry.doubt = before;
      return { verdict: before ? "unknown" : "not_attempted", why: "journal" };
    }
    attempts++;
    const got = await exchange(entry.url);
    entry.doubt = got === undefined ? "no_answer" : before;
    if (got === null) last = "unreachable";
    if (!got) return {};
    lastAnswer = got;
    const judged = judge(got, before, entry.url);
    if ("verdict" in judged) return judged;
    const asked = retryAfter(got, time.now());
    if ("poll" in judged) return poll(judged.poll, asked);
    if (judged.doubt) entry.doubt = judged.doubt;
    else last = "unavailable";
    return { idle: judged.doubt === "in_progress", wait: asked };
  };

  const decide = async (): Promise<Verdict> => {
    if (await isTooOld()) return { verdict: "unknown", why: "too_old" };
    spend(true);
    for (let waits = 1, failures = 0; ; ++waits) {
      const next = await attempt();
      if ("verdict" in next) return next;
      if (!next.idle && ++failures >= settings.maxAttempts) break;
      if (!(await wait(waits, next.wait)) || (!next.idle && !spend())) break;
    }
    return outOfPatience();
  };

  const verdict = await decide();
  const { why, answer } = verdict;
  if (verdict.verdict !== "unknown") delete entry.doubt;
  else if (!/^(too|j)/.test(why!)) entry.doubt = why as UnknownWhy;
  entry.last = verdict;
  if (answer && answer.body.length > settings.largestStoredAnswer) entry.last = { ...verdict, answer: { ...answer, body: "", cut: true } } as Verdict;
  const outcome: Outcome = { ...verdict, intent, key: entry.key, attempts };
  try {
    await save();
  } catch (error) {
    outcome.storeError = error;
  }
  return outcome;
}
