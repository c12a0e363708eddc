// The demo page in Chromium: what people and networks do to a checkout. Effects are counted by the shop.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "@einmal/client";
import { memoryStore } from "@einmal/client/memory";
import { launch, openModule, openOrigin, openShop, startShop } from "./browser.mjs";

let browser, caching;
before(async () => void ([browser, caching] = await Promise.all([launch(), launch(true)])));
after(() => Promise.all([browser, caching].map((one) => one?.close())));

/** Runs `act` once for each panel and topology; the naive panel must show duplicates, the safe one a single order. */
function scenario(name, act, { on = () => browser, naive = (count) => count > 1 } = {}) {
  for (const topology of ["alone", "gateway"]) {
    for (const panel of ["naive", "safe"]) {
      test(`${name}, ${panel}, ${topology === "alone" ? "a shop that keeps keys" : "a gateway before the shop"}`, async (t) => {
        const shop = await startShop(t, topology);
        const context = await on().newContext();
        t.after(() => context.close());
        const open = () => openShop(context, shop.url, "b1", panel);
        const checkout = await open();
        const last = (await act({ ...shop, context, open, checkout, panel })) ?? checkout;
        await shop.cutter.quiet();
        const count = await shop.effects(`${panel} tea of basket b1`);
        if (panel === "safe") {
          assert.equal(count, 1);
          assert.match(await last.verdict(), /^(succeeded|replayed)$/);
          assert.match(await last.text("key"), /^[0-9a-f]{32}$/);
        } else assert.ok(naive(count), `${count} orders`);
        await last.tab.evaluate(() => dispatchEvent(new Event("focus")));
        await last.tab.waitForFunction(([where, wanted]) => document.querySelector(where).textContent === wanted, [`#${panel} .effects`, "" + count]);
      });
    }
  }
}

scenario("double click", async ({ checkout }) => {
  await checkout.fault("delay");
  await checkout.button.dblclick();
  await checkout.settled();
});

scenario("Enter and click", async ({ checkout }) => {
  await checkout.fault("delay");
  await checkout.note.press("Enter");
  await checkout.button.click();
  await checkout.settled();
});

scenario("reload while sending, then the click again", async ({ checkout }) => {
  await checkout.fault("delay");
  const sent = checkout.tab.waitForRequest((request) => request.method() === "POST");
  await checkout.button.click();
  await sent;
  await checkout.tab.reload();
  await checkout.fault("delay", false);
  await checkout.button.click();
  await checkout.settled();
});

test("reload while sending: the safe page finishes by itself, with the same key", async (t) => {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext();
  t.after(() => context.close());
  const checkout = await openShop(context, shop.url, "b1", "safe");
  await checkout.fault("delay");
  const sent = checkout.tab.waitForRequest((request) => request.method() === "POST");
  await checkout.button.click();
  const key = (await sent).headers()["idempotency-key"];
  await checkout.tab.reload();
  await checkout.settled();
  assert.deepEqual([await checkout.verdict(), await checkout.text("key"), await shop.effects()], ["replayed", key, 1]);
});

const backAndForward = async ({ checkout }, persisted) => {
  const { tab } = checkout;
  await tab.evaluate(() => addEventListener("pageshow", (event) => (window.restored = event.persisted)));
  await checkout.button.click();
  await checkout.says("succeeded");
  await checkout.next.click();
  await tab.waitForURL("**/receipt");
  const shown = tab.waitForURL("**/?basket=b1", { waitUntil: "commit" });
  await tab.evaluate(() => history.back());
  await shown;
  if (persisted) await tab.waitForFunction(() => window.restored === true);
  else assert.equal(await tab.evaluate(() => window.restored), undefined);
  await checkout.button.click();
  await checkout.tab.waitForFunction(() => !document.querySelector("[aria-busy]"));
  await checkout.says("succeeded", "replayed");
};
scenario("back to the page, from the back/forward cache, and once more", (world) => backAndForward(world, true), { on: () => caching });
scenario("back to the page, loaded anew, and once more", (world) => backAndForward(world, false));

scenario("two tabs of one basket", async ({ checkout, open }) => {
  const other = await open();
  for (const one of [checkout, other]) await one.fault("delay");
  await Promise.all([checkout.button.click(), other.button.click()]);
  await Promise.all([checkout.settled(), other.settled()]);
  return other;
});

scenario("offline while the order is on its way, then online and the click again", async ({ checkout, context, panel, cutter }) => {
  await checkout.fault("delay");
  const sent = checkout.tab.waitForRequest((request) => request.method() === "POST");
  await checkout.button.click();
  await sent;
  while (cutter.open === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await context.setOffline(true);
  if (panel === "naive") await checkout.settled();
  await cutter.quiet();
  await context.setOffline(false);
  await checkout.fault("delay", false);
  await checkout.button.click();
  await checkout.settled();
});

scenario("the answer is lost on the wire", async ({ checkout, cutter }) => {
  cutter.armed = 1;
  await checkout.button.click();
  await checkout.settled();
  assert.equal(cutter.cut, 1);
});

for (const [name, wanted] of [["naive", 2], ["safe", 1]]) {
  test(`the page's own switch loses the answer: ${wanted} for the ${name} panel`, async (t) => {
    const shop = await startShop(t, "alone");
    const context = await browser.newContext();
    t.after(() => context.close());
    const checkout = await openShop(context, shop.url, "b1", name);
    await checkout.fault("lose");
    await checkout.button.click();
    await checkout.says("succeeded", "replayed");
    const count = await shop.effects();
    assert.ok(name === "safe" ? count === 1 : count >= 2, `${count} orders`);
  });
}

test("an answer lost between gateway and shop is unknown, the key is kept, and no click orders again", async (t) => {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext();
  t.after(() => context.close());
  const checkout = await openShop(context, shop.url, "b1", "safe");
  await checkout.fault("lose");
  await checkout.button.click();
  await checkout.says("unknown");
  const key = await checkout.text("key");
  await checkout.fault("lose", false);
  await checkout.button.click();
  await checkout.says("sending");
  await checkout.says("unknown");
  assert.deepEqual([await checkout.text("key"), await shop.effects()], [key, 1]);
});

test("a declined card is refused; with another card the order is another intent", async (t) => {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext();
  t.after(() => context.close());
  const checkout = await openShop(context, shop.url, "b1", "safe");
  await checkout.fault("decline");
  await checkout.button.click();
  await checkout.says("refused");
  const key = await checkout.text("key");
  assert.match(await checkout.text("verdict"), /declined/);
  await checkout.fault("decline", false);
  await checkout.button.click();
  await checkout.says("succeeded");
  assert.notEqual(await checkout.text("key"), key);
  assert.equal(await shop.effects(), 1);
});

test("a form that was changed while it is in doubt first learns what became of it", async (t) => {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext();
  t.after(() => context.close());
  const checkout = await openShop(context, shop.url, "b1", "safe");
  shop.cutter.armed = 1e6;
  await checkout.button.click();
  await checkout.says("unknown");
  shop.cutter.armed = 0;
  await checkout.note.fill("with milk");
  await checkout.button.click();
  await checkout.says("replayed");
  assert.equal(await shop.effects(), 1);
});

test("without a name a form's intent is its history entry's: reload, back and forward keep it, coming anew makes a new one", async (t) => {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext();
  t.after(() => context.close());
  const tab = await openModule(context, shop.url, `
    import { createClient, guardForm } from "./index.js";
    document.body.insertAdjacentHTML("beforeend", '<form id="f" method="post" action="/orders"><input name="item" value="tea"><input name="amount" value="1"><button>Buy</button></form>');
    const form = document.querySelector("form");
    form.addEventListener("einmal", ({ detail }) => (form.dataset.told = detail.verdict + (detail.fromStore ? " stored" : "")));
    guardForm(form, createClient());`);
  const told = (what) => tab.waitForFunction((wanted) => document.querySelector("form")?.dataset.told === wanted, what);
  await tab.click("button");
  await told("succeeded");
  await tab.reload();
  await told("succeeded stored");
  await tab.click("button");
  await tab.waitForFunction(() => !document.querySelector("[aria-busy]"));
  assert.equal(await shop.effects(), 1);
  await tab.goto(shop.url + "/receipt");
  await tab.goto(shop.url + "/module");
  await tab.click("button");
  await told("succeeded");
  assert.equal(await shop.effects(), 2);
  await tab.evaluate(() => history.go(-2));
  await told("succeeded stored");
  await tab.click("button");
  await tab.waitForFunction(() => !document.querySelector("[aria-busy]"));
  assert.equal(await shop.effects(), 2);
});

test("the React hook sends once under StrictMode, and finishes what a reload left open", async (t) => {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext();
  t.after(() => context.close());
  const tab = await openModule(context, shop.url, `
    import { StrictMode, useEffect, useState } from "react";
    import { createRoot } from "react-dom/client";
    import { createClient } from "./index.js";
    import { useIntent } from "./react.js";
    const client = createClient({ backoffBase: 100 });
    window.renders = window.mounts = 0;
    function Checkout({ basket }) {
      const { send, sending, outcome, error } = useIntent(client, "basket " + basket);
      window.renders++;
      useEffect(() => void window.mounts++, []);
      const buy = () => void send("/orders", { json: { item: basket, amount: 1 }, headers: { "X-Demo-Delay": sessionStorage.delay ?? "0s" } }).catch(() => {});
      return <button onClick={buy} data-state={sending ? "sending" : error ? error.name : outcome?.verdict ?? "idle"} data-key={outcome?.key}>{basket}</button>;
    }
    function App() {
      const [shown, show] = useState("one");
      window.show = show;
      return shown && <><Checkout basket={shown} /><Checkout basket={shown} /></>;
    }
    createRoot(document.querySelector("#root")).render(<StrictMode><App /></StrictMode>);`);
  const state = (...wanted) => tab.waitForFunction((all) => JSON.stringify([...document.querySelectorAll("button")].map((b) => b.dataset.state)) === all, JSON.stringify(wanted));
  await state("idle", "idle");
  assert.ok((await tab.evaluate(() => window.mounts)) === 4, "StrictMode mounts twice");
  // Two components of one intent, each clicked twice.
  await tab.evaluate(() => document.querySelectorAll("button").forEach((button) => (button.click(), button.click())));
  await state("succeeded", "succeeded");
  const keys = await tab.evaluate(() => [...document.querySelectorAll("button")].map((b) => b.dataset.key));
  assert.equal(new Set(keys).size, 1);
  assert.equal(await shop.effects(), 1);
  // Taken away and shown again: known.
  await tab.evaluate(() => window.show(""));
  await tab.evaluate(() => window.show("one"));
  await state("succeeded", "succeeded");
  // Another name is another intent, and shows nothing of the first.
  await tab.evaluate(() => window.show("two"));
  await state("idle", "idle");
  await tab.evaluate(() => (sessionStorage.delay = "1s"));
  const sent = tab.waitForRequest((request) => request.method() === "POST");
  await tab.locator("button").first().click();
  await sent;
  await tab.reload();
  await state("succeeded", "succeeded");
  await tab.evaluate(() => window.show("two"));
  await state("replayed", "replayed");
  assert.equal(await shop.effects("two"), 1);
});

test("IndexedDB keeps what a store must keep, between tabs too, and does not hold the page", async (t) => {
  const shop = await startShop(t, "alone");
  const context = await browser.newContext();
  t.after(() => context.close());
  const source = `import { indexedDb } from "./indexeddb.js"; import { createClient, webStorage } from "./index.js"; Object.assign(window, { indexedDb, createClient, webStorage });`;
  const [tab, other] = [await openModule(context, shop.url, source), await openModule(context, shop.url, source)];
  assert.deepEqual(await tab.evaluate(async () => {
    const store = indexedDb();
    const seen = [await store.get("a"), await store.names(), await store.add("a", "1"), await store.add("a", "2")];
    await store.put("a", "3");
    await store.put("b/ä", "4");
    seen.push(await store.get("a"), await store.names());
    await store.delete("a");
    return [...seen, await store.names()];
  }), [undefined, [], "1", "1", "3", ["a", "b/ä"], ["b/ä"]].map((value) => value ?? undefined));
  const add = (page) => page.evaluate(async () => Promise.all(Array.from({ length: 20 }, (_, i) => indexedDb().add("race " + i, crypto.randomUUID()))));
  const [first, second] = await Promise.all([add(tab), add(other)]);
  assert.deepEqual(first, second);
  const send = (page) => page.evaluate(() => createClient({ store: indexedDb() }).send("order", "/orders", { json: { item: "x", amount: 1 } }));
  const outcomes = await Promise.all([send(tab), send(other)]);
  assert.equal(outcomes[0].key, outcomes[1].key);
  assert.equal(outcomes.filter((outcome) => outcome.fromStore).length, 1, "Web Locks let one tab send");
  assert.equal(await shop.effects(), 1);
});

test("a tab that does not get the intent within its deadline says unknown and sends nothing", async (t) => {
  const shop = await startShop(t, "alone");
  const context = await browser.newContext();
  t.after(() => context.close());
  const source = `import { createClient } from "./index.js"; Object.assign(window, { createClient });`;
  const [tab, other] = [await openModule(context, shop.url, source), await openModule(context, shop.url, source)];
  const send = (page, options) => page.evaluate(
    (given) => createClient(given).send("order", "/orders", { json: { item: "x", amount: 1 }, headers: { "X-Demo-Delay": "1s" } }), options);
  const sent = tab.waitForRequest((request) => request.method() === "POST");
  const first = send(tab);
  await sent;
  const second = await send(other, { deadline: 100 });
  assert.deepEqual([second.verdict, second.why, second.attempts], ["unknown", "in_progress", 0]);
  assert.equal((await first).verdict, "succeeded");
});

/** A page of another origin, with the client and a plain fetch. */
async function openPage(t) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const { origin, tab } = await openOrigin(t, context, `
    import { createClient } from "./index.js";
    const readable = async (response) => ({ status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() });
    window.send = (url, name, item, init) => createClient({ maxAttempts: 2, backoffBase: 50 }).send(name, url, { json: { item, amount: 1 }, ...init });
    window.post = (url, key, headers) => fetch(url, { method: "POST", body: '{"item":"x","amount":1}', headers: { "Content-Type": "application/json", "Idempotency-Key": key, ...headers } }).then(readable, (error) => error.name);`);
  const call = (name) => (...given) => tab.evaluate(([what, all]) => window[what](...all), [name, given]);
  return { origin, send: call("send"), post: call("post") };
}

test("across origins: with [cors] pages of the origins named read every answer of the gateway, others none", async (t) => {
  const [ours, theirs] = [await openPage(t), await openPage(t)];
  const { url, cutter, effects } = await startShop(t, "gateway", [ours.origin]);
  const orders = url + "/orders";

  // The preflight lets the key through; what the client must read is exposed.
  cutter.armed = 1;
  const outcome = await ours.send(orders, "order 1", "tea");
  // Chromium itself sends again on a connection that it had kept: the verdict is the same.
  assert.deepEqual([outcome.verdict, cutter.cut, await effects()], ["replayed", 1, 1]);
  const names = outcome.answer.headers.map(([name]) => name);
  for (const name of ["idempotency-status", "idempotent-replayed", "idempotency-expires", "location"]) assert.ok(names.includes(name), name);

  // What einmal says itself: executed, replay, mismatch, missing key, uncertain.
  assert.equal((await ours.post(orders, "k1")).headers["idempotency-status"], "executed");
  const again = await ours.post(orders, "k1");
  assert.deepEqual([again.status, again.headers["idempotent-replayed"]], [201, "true"]);
  const mismatch = await ours.send(orders, "order 2", "coffee", { key: "k1" });
  assert.deepEqual([mismatch.verdict, mismatch.why, mismatch.answer.status], ["refused", "mismatch", 422]);
  const invalid = await ours.post(orders, "two words, one comma");
  assert.deepEqual([invalid.status, JSON.parse(invalid.body).reason], [400, "key-invalid"]);
  const lost = await ours.post(orders, "k2", { "X-Demo-Fault": "drop-after-commit" });
  assert.deepEqual([lost.status, lost.headers["idempotency-status"]], [504, "uncertain"]);

  // Another origin: the key is not let through, so nothing is executed, and no stored answer is readable.
  const before = await effects();
  assert.equal(await theirs.post(orders, "k3"), "TypeError");
  assert.equal(await theirs.post(orders, "k1"), "TypeError");
  assert.equal((await theirs.send(orders, "order 3", "tea")).verdict, "unknown");
  assert.equal(await effects(), before);
});

test("across origins: with [cors] for everybody a replay is readable for the origin that asks, not for the first one only", async (t) => {
  const [one, other] = [await openPage(t), await openPage(t)];
  for (const origins of [[one.origin, other.origin], ["*"]]) {
    const { url } = await startShop(t, "gateway", origins);
    assert.equal((await one.post(url + "/orders", "k1")).headers["idempotency-status"], "executed");
    assert.equal((await other.post(url + "/orders", "k1")).headers["idempotency-status"], "replayed");
  }
});

test("across origins: without [cors] nothing is executed and nothing is readable", async (t) => {
  const page = await openPage(t);
  const { url, effects } = await startShop(t, "gateway");
  assert.equal(await page.post(url + "/orders", "k1"), "TypeError");
  assert.equal(await effects(), 0);
});

test("a form sends nothing when it is loaded anew after it could not send: that takes a click", async (t) => {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext();
  t.after(() => context.close());
  const checkout = await openShop(context, shop.url, "b1", "safe");
  await context.setOffline(true);
  await checkout.button.click();
  await checkout.says("not_attempted");
  await context.setOffline(false);
  await checkout.tab.reload();
  await checkout.tab.waitForFunction(() => !document.querySelector("[aria-busy]"));
  assert.equal(await shop.effects(), 0);
  await checkout.button.click();
  await checkout.says("succeeded");
  assert.equal(await shop.effects(), 1);
});

test("PUT to a name that the client made needs no server that keeps keys", async (t) => {
  const shop = await startShop(t, "plain");
  shop.cutter.armed = 1;
  const order = `${shop.url}/orders/${crypto.randomUUID()}`;
  const outcome = await createClient({ store: memoryStore(), backoffBase: 10 }).send("order", order, { method: "PUT", json: { item: "x", amount: 1 } });
  assert.deepEqual([outcome.verdict, outcome.answer.status, shop.cutter.cut, await shop.effects()], ["succeeded", 200, 1, 1]);
});
