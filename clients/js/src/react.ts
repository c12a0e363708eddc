import { useCallback, useEffect, useRef, useState } from "react";
import type { Client, SendInit } from "./client.js";
import type { Outcome } from "./verdict.js";

export interface IntentState {
  /** Sends the intent; while it is being sent, what is being sent. Never rejects for network reasons. */
  send: (url: string | URL, init?: SendInit) => Promise<Outcome>;
  sending: boolean;
  outcome: Outcome | undefined;
  /** Why the last `send` threw (IntentConflict, TypeError). */
  error: unknown;
}

/**
 * One intent in a component. Its key is drawn when it is first sent, never while rendering, and belongs
 * to the name, not to the component: StrictMode's second rendering, a remount and a second component
 * with the same name share it. An intent that a reload interrupted or left unknown is finished on mount; what
 * certainly was not done waits for `send`.
 */
export function useIntent(client: Client, intent: string): IntentState {
  const [state, setState] = useState<{ of: string; sending: boolean; outcome?: Outcome; error?: unknown }>({ of: intent, sending: false });
  const running = useRef<{ of: string; promise: Promise<Outcome | undefined> }>();

  const run = useCallback((work: () => Promise<Outcome | undefined>) => {
    if (running.current?.of === intent) return running.current.promise;
    setState({ of: intent, sending: true });
    const promise = work();
    const mine = (running.current = { of: intent, promise });
    const done = (result: { outcome?: Outcome; error?: unknown }) => {
      if (running.current !== mine) return; // Another intent is shown by now.
      running.current = undefined;
      setState({ of: intent, sending: false, ...result });
    };
    promise.then((outcome) => done({ outcome }), (error) => done({ error }));
    return promise;
  }, [intent]);

  useEffect(() => {
    let left = false;
    // Of an intent that is not stored nothing is shown, not even that it is being looked for.
    void client.list().then((all) => {
      if (!left && all.some((one) => one.intent === intent && one.verdict !== "not_attempted")) void run(() => client.resume(intent)).catch(() => {});
    }, () => {});
    return () => void (left = true);
  }, [client, intent, run]);

  const send = useCallback(
    (url: string | URL, init?: SendInit) => run(() => client.send(intent, url, init)) as Promise<Outcome>,
    [client, intent, run]);
  const shown = state.of === intent ? state : { sending: false, outcome: undefined, error: undefined };
  return { send, sending: shown.sending, outcome: shown.outcome, error: shown.error };
}
