// The demo page: the same checkout in a naive and in a safe way. clients/js/page.mjs bundles it to page.js.
import { createClient, guardForm, toResponse } from "../../clients/js/src/index.js";

type Panel = "naive" | "safe";
const panels: Panel[] = ["naive", "safe"];
const part = <T extends HTMLElement>(panel: Panel, selector: string) =>
  document.querySelector<T>(`#${panel} ${selector}`)!;
const say = (panel: Panel, verdict: string, words: string) => {
  const place = part(panel, ".verdict");
  place.dataset.verdict = verdict;
  place.textContent = words;
};

// A basket is one address: its reload, its copies in other tabs and what one comes back to are the same basket.
const query = new URLSearchParams(location.search);
const basket = query.get("basket") ?? Math.random().toString(36).slice(2, 10);
if (!query.has("basket")) history.replaceState(history.state, "", "?basket=" + basket);
document.querySelector("#basket")!.textContent = basket;
const item = (panel: Panel) => `${panel} tea of basket ${basket}`;
for (const panel of panels) part<HTMLInputElement>(panel, "[name=item]").value = item(panel);

// The switches outlive a reload of this tab.
const isOn = (name: string) => document.querySelector<HTMLInputElement>(`#faults [name=${name}]`)!.checked;
const setCards = () => {
  for (const panel of panels) part<HTMLInputElement>(panel, "[name=card]").value = isOn("decline") ? "declined" : "4242";
};
for (const one of document.querySelectorAll<HTMLInputElement>("#faults input")) {
  one.checked = sessionStorage.getItem(one.name) === "on";
  one.addEventListener("change", () => {
    sessionStorage.setItem(one.name, one.checked ? "on" : "off");
    setCards();
  });
}
setCards();
/** What the shop is asked to do wrong. */
const faults = (): Record<string, string> => ({
  ...(isOn("lose") && { "X-Demo-Fault": "drop-after-commit" }),
  ...(isOn("delay") && { "X-Demo-Delay": "2s" }),
});

/** How many orders of this basket the shop has booked. */
async function count() {
  for (const panel of panels) {
    const answer = await fetch("/effects?item=" + encodeURIComponent(item(panel))).catch(() => undefined);
    if (!answer?.ok) continue; // Offline: the number stays as it was.
    const { count } = await answer.json();
    const place = part(panel, ".effects");
    place.textContent = count;
    place.className = "effects " + (count > 1 ? "twice" : count ? "once" : "");
  }
}
const show = async (panel: Panel, verdict: string, words: string) => {
  await count();
  say(panel, verdict, words);
  part(panel, "a").hidden = !/^(succeeded|replayed)$/.test(verdict);
};
const attempted = (panel: Panel) => {
  const place = part(panel, ".attempts");
  place.textContent = "" + (Number(place.textContent) + 1);
  say(panel, "sending", "sending");
};

// Naive: what most pages do.
const naive = part<HTMLFormElement>("naive", "form");
naive.addEventListener("submit", async (event) => {
  event.preventDefault();
  let headers = faults();
  const body = new URLSearchParams(new FormData(naive) as any);
  for (let tries = 1; tries <= 3; ++tries) {
    attempted("naive");
    try {
      const response = await fetch("/orders", { method: "POST", body, headers });
      if (response.status < 500) {
        const answer = await response.json();
        return show("naive", response.ok ? "succeeded" : "refused", response.ok ? "order " + answer.id.slice(0, 8) : answer.error);
      }
    } catch {
      // No answer: it "failed", so once more.
    }
    headers = {};
  }
  return show("naive", "unknown", "it did not work, please try again");
});

// Safe: the same form, guarded.
const safe = part<HTMLFormElement>("safe", "form");
let next: Record<string, string> = {};
safe.addEventListener("submit", () => {
  if (!safe.hasAttribute("aria-busy")) next = faults();
});
const client = createClient({
  backoffBase: 200,
  backoffCap: 2000,
  fetch(url, init) {
    const headers = new Headers(init.headers);
    if (init.method !== "GET") {
      attempted("safe");
      part("safe", ".key").textContent = headers.get("Idempotency-Key");
      for (const [name, value] of Object.entries(next)) headers.set(name, value);
      next = {};
    }
    return fetch(url, { ...init, headers });
  },
});
guardForm(safe, client, {
  intent: "checkout of basket " + basket,
  async onOutcome(outcome) {
    const body = outcome.answer && (await toResponse(outcome.answer).json().catch(() => undefined));
    part("safe", ".key").textContent = outcome.key;
    const words = {
      succeeded: "order " + body?.id?.slice(0, 8),
      replayed: "order " + body?.id?.slice(0, 8),
      refused: body?.error ?? outcome.why,
      not_attempted: "not sent yet: it is safe to try again",
      unknown: "still finding out: another click asks again and never orders twice",
    };
    const how = outcome.fromStore ? "known already" : outcome.verdict.replace("_", " ");
    await show("safe", outcome.verdict, `${how}: ${words[outcome.verdict]}`);
  },
});

addEventListener("pageshow", count);
addEventListener("focus", count);
