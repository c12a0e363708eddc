/**
 * Why an outcome is what it is. The names are those of clients/behaviour.json.
 *
 * refused: `failed` the server refused and keeps that result · `mismatch` the key belongs to another
 * request · `rejected` refused before execution, a corrected request may come under the same intent.
 * not_attempted: `unreachable` · `unavailable` the server said each time that nothing was done ·
 * `unauthorised` 401, 403, 407 · `journal` the intent could not be stored (also of unknown).
 * unknown: `no_answer` sent, and no whole answer came · `in_progress` the same key is still at work ·
 * `uncertain` the server itself does not know · `server_error` an answer that says nothing about the
 * effect · `expired` it was settled once, nobody remembers how · `too_old` not sent, for the server
 * may have forgotten the key.
 */
export type RefusedWhy = "failed" | "mismatch" | "rejected";
export type NotAttemptedWhy = "unreachable" | "unavailable" | "unauthorised" | "journal";
export type UnknownWhy =
  "no_answer" | "in_progress" | "uncertain" | "server_error" | "expired" | "too_old" | "journal";
export type Why = RefusedWhy | NotAttemptedWhy | UnknownWhy;

/** A whole answer, as it was received or stored. */
export interface Answer {
  status: number;
  headers: [name: string, value: string][];
  /** One character for each byte. `toResponse` makes a Response of it. */
  body: string;
  /** The body was too long to be stored. */
  cut?: true;
}

/** A closed set: each verdict has its own consequence for the user interface. */
export type Verdict =
  /** It was done, by this request. Show the result. */
  | { verdict: "succeeded"; why?: undefined; answer: Answer }
  /** It had been done before; this is the stored result. Show it like succeeded. */
  | { verdict: "replayed"; why?: undefined; answer: Answer }
  /** It will not be done. Show why; another try is another intent (or, when rejected, a corrected request). */
  | { verdict: "refused"; why: RefusedWhy; answer: Answer }
  /** Certainly nothing was done so far. The intent stays open: send it again, or give it up. */
  | { verdict: "not_attempted"; why: NotAttemptedWhy; answer?: Answer }
  /** It may have been done or not. The key is kept: the same intent finds out. Never offer a new one. */
  | { verdict: "unknown"; why: UnknownWhy; answer?: Answer };

/** What became of one call. */
export type Outcome = Verdict & {
  intent: string;
  key: string;
  /** Made by this call. */
  attempts: number;
  /** Settled by an earlier call; nothing was sent. */
  fromStore?: true;
  /** The verdict holds, but could not be stored. */
  storeError?: unknown;
};

/** The answer as the platform knows it: `await toResponse(outcome.answer).json()`. */
export const toResponse = ({ status, headers, body }: Answer): Response =>
  new Response(body ? toBytes(body) : null, { status, headers });

export const toBytes = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(text, (c) => c.charCodeAt(0));

export const fromBytes = (buffer: ArrayBuffer): string =>
  Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
