import type { Answer, Verdict, UnknownWhy } from "./verdict.js";

/** What follows from one attempt's answer (the table in clients/README.md, row by row). */
export type Judged =
  | Verdict
  | { poll: string }
  /** Again; `doubt`: it may have been executed. in_progress: another request is at work, no failure. */
  | { doubt?: UnknownWhy };

/** Statuses that say of themselves that this attempt did nothing. */
const nothing =
  /^(307|308|40[013-7]|41[1-7]|42[12356]|428|429|431|451|501)$/;

export const header = (answer: Answer, name: string): string | undefined =>
  answer.headers.find(([n]) => n.toLowerCase() === name)?.[1];

/** The members of a JSON object, or none. Undecoded: what is looked for in them is ASCII. */
export const json = (answer: Answer): Record<string, any> => {
  try {
    if (/json/i.test(header(answer, "content-type")!)) return Object(JSON.parse(answer.body));
  } catch {}
  return {};
};

/** `doubt`: why earlier attempts are in doubt, if they are. */
export function judge(answer: Answer, doubt: UnknownWhy | undefined, url: string): Judged {
  const { status } = answer;
  const lower = (name: string) => header(answer, name)?.toLowerCase();
  const mark = lower("idempotency-status");
  const shouldRetry = lower("stripe-should-retry");
  const problem = status < 400 ? {} : json(answer);
  const error = Object(problem.error);
  const { reason, recorded_status: recorded } = error.reason ? error : problem;

  const refused = (why: "failed" | "mismatch" | "rejected"): Judged =>
    ({ verdict: "refused", why, answer });
  const unknown = (why: UnknownWhy): Judged => ({ verdict: "unknown", why, answer });
  const done = (verdict: "succeeded" | "replayed"): Judged => ({ verdict, answer });

  if (status === 202) {
    const operation = operationUrl(url, header(answer, "location"));
    if (operation) return { poll: operation };
  }
  if (mark === "mismatch" || reason === "key-reused" ||
      (error.type === "idempotency_error" && (status === 400 || status === 422)))
    return refused("mismatch");
  if (mark === "in-progress" || (status === 409 && error.code === "idempotency_key_in_use")) return { doubt: "in_progress" };
  if (reason === "result-not-kept" || reason === "not-acceptable")
    return !(recorded >= 100) ? unknown("uncertain") : recorded < 400 ? done("replayed") : refused("failed");
  if (reason === "ownership-lost") return unknown("uncertain");
  if (mark === "uncertain") return { doubt: "uncertain" };
  if (mark === "expired") return unknown("expired");
  if (mark === "replayed" || mark === "resolved" || lower("idempotent-replayed") === "true") {
    if (lower("idempotency-effect") === "unknown") return unknown("server_error");
    if (status < 400) return done("replayed");
    // Only einmal tells a stored refusal with 5xx from a stored accident.
    return status < 500 || mark ? refused("failed") : unknown("server_error");
  }

  const isNothing = nothing.test("" + status);
  const nothingHappened = (): Judged => {
    // Speaks of this attempt only: what earlier ones did stays open.
    const later = /^(408|42[59]|5..)$/.test("" + status) && status !== 501;
    if (later && shouldRetry !== "false") return {};
    if (doubt) return unknown(doubt);
    if (later || /^40[137]$/.test("" + status))
      return { verdict: "not_attempted", why: later ? "unavailable" : "unauthorised", answer };
    return refused("rejected");
  };
  if (mark === "released" || mark === "rejected") return nothingHappened();
  if (status >= 200 && status < 400 && !isNothing) return done("succeeded");
  if (shouldRetry === "true") return { doubt: isNothing ? undefined : "server_error" };
  const clientError = status >= 400 && status < 500;
  if (clientError && mark) return refused("failed");
  if (status === 409 && shouldRetry !== "false" && (doubt || header(answer, "retry-after") !== undefined))
    return { doubt: "in_progress" };
  if (isNothing) return nothingHappened();
  if (clientError && status !== 408) return refused("failed");
  return shouldRetry === "false" ? unknown("server_error") : { doubt: "server_error" };
}

/** The operation resource that `location` names, if it is einmal's and of the request's own origin. */
function operationUrl(url: string, location?: string): string | undefined {
  try {
    const { href } = new URL(location!, url);
    const ours = new URL("/.well-known/einmal/operations/", url).href;
    if (href.startsWith(ours) && !/[?#]/.test(href)) return href;
  } catch {}
}

/** Milliseconds that the server asks to wait; nonsense counts as absent. */
export function retryAfter(answer: Answer | null | undefined, now: number): number {
  const value = (answer && header(answer, "retry-after")) ?? "";
  if (/^\d+$/.test(value)) return +value * 1000;
  if (!/^[A-Z][a-z]{2}/.test(value)) return 0;
  return Math.max(0, Date.parse(value.endsWith("GMT") ? value : value + " GMT") - now) || 0;
}
