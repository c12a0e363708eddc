import { IntentConflict, randomKey, resumeInterrupted, type Client } from "./client.js";
import type { Outcome } from "./verdict.js";

export interface GuardOptions {
  /**
   * Names the intent that a submission stands for: "checkout cart 17". Default: the form's
   * `data-intent`, else a name that belongs to this entry of the browser's history: it lives through
   * reload, back and forward, and coming to the page anew is a new intent.
   */
  intent?: string | (() => string);
  /** Told of each outcome; the form also dispatches it as the `detail` of an "einmal" event. */
  onOutcome?: (outcome: Outcome) => void;
}

export interface FormGuard {
  /** The next submission is a new intent (unless the application names it). Only once this one's outcome is known. */
  renew(): void;
  /** The form is a plain form again. */
  release(): void;
}

/**
 * Makes submissions of a plain `method=post` form happen once: however often it is submitted (double
 * click, Enter and click, again after back, after a reload, in two tabs), its intent is sent under one
 * key until the outcome is known. While that takes, the form is `aria-busy` and takes no submission. When
 * the form is guarded again, what a reload interrupted or left unknown is finished, and what is settled is
 * told again; what certainly was not done waits for the next submission.
 */
export function guardForm(form: HTMLFormElement, client: Client, options: GuardOptions = {}): FormGuard {
  const id = (form.id || form.getAttribute("action") || "form") + " ";
  const mint = () => {
    const name = id + randomKey();
    history.replaceState({ ...history.state, [id]: name }, "");
    return name;
  };
  const own = options.intent ?? form.dataset.intent;
  const intent = (): string => (typeof own === "function" ? own() : own) ?? history.state?.[id] ?? mint();

  const report = async (work: () => Promise<Outcome | undefined>) => {
    form.setAttribute("aria-busy", "true");
    try {
      const outcome = await work();
      if (!outcome) return;
      // It certainly did not happen: another try, perhaps with another card, is another intent.
      if (outcome.verdict === "refused" && outcome.why !== "rejected") {
        await client.forget(outcome.intent);
        mint();
      }
      options.onOutcome?.(outcome);
      form.dispatchEvent(new CustomEvent("einmal", { bubbles: true, detail: outcome }));
    } finally {
      form.removeAttribute("aria-busy");
    }
  };

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (submitting) return;
    submitting = true;
    const submitter = event.submitter as HTMLButtonElement | null;
    const data = new FormData(form, submitter);
    const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data as any);
    const url = submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href;
    const send = async () => {
      const name = intent();
      try {
        return await client.send(name, url, { body });
      } catch (error) {
        if (!(error instanceof IntentConflict)) throw error;
        // The form was changed while an earlier submission is in doubt: first learn what became of that.
        const earlier = await client.resume(name);
        if (!earlier || !/^(refused|not)/.test(earlier.verdict)) return earlier;
        await client.forget(name);
        return client.send(name, url, { body });
      }
    };
    const next = () => report(send);
    void ready.then(next, next).finally(() => (submitting = false));
  };
  let submitting = false;
  const ready = report(() => resumeInterrupted(client, intent()));
  form.addEventListener("submit", submit);
  return { renew: () => void mint(), release: () => form.removeEventListener("submit", submit) };
}
