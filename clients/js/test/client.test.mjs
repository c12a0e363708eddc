import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient, fileStore, IntentConflict, toResponse, webStorage } from "@einmal/client";
import { memoryStore } from "@einmal/client/memory";
import { bundle, target } from "../page.mjs";
import { size } from "../size.mjs";
import { nobody, scriptedServer, virtualTime } from "./server.mjs";

const created = { answer: { status: 201, headers: { "Content-Type": "application/json" }, body: '{"id":"o1"}' } };
const keyOf = (request) => request.headers.find(([name]) => name === "idempotency-key")[1];

/** A server that keeps its keys, with `faults` for the first attempts; counts effects. */
async function shop(faults = []) {
  const results = new Map();
  const requests = [];
  const server = await scriptedServer((request) => {
    // How long it keeps results is asked before an intent is resumed; it does not say.
    if (request.method === "GET") return { answer: { status: 404 } };
    const index = requests.push(request) - 1;
    const key = keyOf(request);
    const known = results.get(key);
    if (!known) results.set(key, request.body);
    const fault = faults[index];
    if (fault) return fault;
    if (known !== undefined && known !== request.body) return { answer: { status: 422, headers: { "Idempotency-Status": "mismatch" } } };
    return { answer: { ...created.answer, headers: { ...created.answer.headers, ...(known === undefined ? {} : { "Idempotency-Status": "replayed" }) } } };
  });
  return Object.assign(server, { requests, effects: () => results.size });
}

const cases = (faults, run, options = {}) => async (t) => {
  const server = await shop(faults);
  t.after(() => server.close());
  const { time } = virtualTime();
  const store = memoryStore();
  const make = (more) => createClient({ store, time, maxAttempts: 3, ...options, ...more });
  await run({ server, store, make, client: make(), orders: server.url + "/orders" });
};
const directory = (t) => {
  const path = mkdtempSync(join(tmpdir(), "einmal-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
};

test("the package for browsers is smaller than 5 kB, minified and gzipped", () => {
  assert.ok(size("index") < 5000, `index: ${size("index")} bytes`);
  assert.ok(size("react") < 500, `react: ${size("react")} bytes`);
  assert.ok(size("indexeddb") < 600, `indexeddb: ${size("indexeddb")} bytes`);
});

test("the bundle of the shop's page is that of its sources", () => {
  assert.equal(readFileSync(target, "utf8"), bundle(), "run `npm run page` in clients/js and commit shop/page/page.js");
});

test("an intent is stored before the first byte leaves", cases([], async ({ store, make, orders }) => {
  let stored;
  const client = make({ fetch: (url, init) => ((stored = JSON.parse(store.get("order 1"))), fetch(url, init)) });
  const { key } = await client.send("order 1", orders, { json: { item: "tea" } });
  assert.deepEqual([stored.key, stored.doubt, stored.body], [key, "no_answer", '{"item":"tea"}']);
}));

test("the same intent twice at once is sent once", cases([], async ({ server, client, make, orders }) => {
  const both = await Promise.all([client.send("order 1", orders, { body: "a" }), make().send("order 1", orders, { body: "a" })]);
  assert.equal(both[0].key, both[1].key);
  assert.deepEqual(both.map((outcome) => !!outcome.fromStore), [false, true]);
  assert.equal(server.requests.length, 1);
}));

test("two intents have two keys", cases([], async ({ server, client, orders }) => {
  await Promise.all(["a", "b"].map((name) => client.send(name, orders, { body: "x" })));
  assert.equal(server.effects(), 2);
}));

test("a client made anew, as after a reload, resumes with the same key and bytes", cases(
  [{ lost: true }, { lost: true }, { lost: true }],
  async ({ server, client, make, orders }) => {
    const before = await client.send("order 1", orders, { json: { item: "tea" }, headers: { "X-Currency": "eur" } });
    assert.deepEqual([before.verdict, before.why], ["unknown", "no_answer"]);
    const [{ intent, open }] = await make().list();
    assert.deepEqual([intent, open], ["order 1", true]);
    const after = await make().resume(intent);
    assert.deepEqual([after.verdict, after.key, server.effects()], ["replayed", before.key, 1]);
    const [first, ...others] = server.requests;
    for (const { headers, body } of others) assert.deepEqual({ headers, body }, { headers: first.headers, body: first.body });
    assert.deepEqual((await make().list()).map((one) => one.open), [false]);
  }));

test("the name of an intent in doubt does not take another request", cases(
  [{ lost: true }, { lost: true }, { lost: true }],
  async ({ server, client, orders }) => {
    await client.send("order 1", orders, { body: "a" });
    await assert.rejects(client.send("order 1", orders, { body: "b" }), IntentConflict);
    await assert.rejects(client.send("order 1", orders + "?x", { body: "a" }), IntentConflict);
    assert.equal(server.requests.length, 3);
  }));

test("nor does the name of a settled intent", cases([], async ({ client, orders }) => {
  await client.send("order 1", orders, { body: "a" });
  await assert.rejects(client.send("order 1", orders, { body: "b" }), IntentConflict);
}));

test("a request refused before execution may be corrected under the same name, with a key of its own", cases(
  [{ answer: { status: 400 } }],
  async ({ client, orders }) => {
    const wrong = await client.send("order 1", orders, { body: "wrong" });
    const right = await client.send("order 1", orders, { body: "right" });
    assert.deepEqual([wrong.why, right.verdict], ["rejected", "succeeded"]);
    assert.notEqual(wrong.key, right.key);
  }));

test("what was never attempted may be changed", cases([], async ({ server, make, orders }) => {
  const closed = await nobody();
  const away = make({ fetch: (url, init) => fetch(closed, init) });
  assert.equal((await away.send("order 1", orders, { body: "a" })).why, "unreachable");
  assert.equal((await make().send("order 1", orders, { body: "b" })).verdict, "succeeded");
  assert.equal(server.effects(), 1);
}));

test("credentials are sent and never stored", cases([{ lost: true }], async ({ server, store, make, orders }) => {
  let token = "Bearer 1";
  const client = make({ credentials: async () => ({ "X-Session": token }), fetch: (url, init) => ((token = "Bearer 2"), fetch(url, init)) });
  await client.send("order 1", orders, { body: "a", headers: { Authorization: "Basic secret", "X-Api-Key": "secret" } });
  assert.deepEqual(server.requests.map((request) => server.header(request, "authorization")), [["Basic secret"], ["Basic secret"]]);
  assert.deepEqual(server.requests.map((request) => server.header(request, "x-session")), [["Bearer 1"], ["Bearer 2"]]);
  assert.doesNotMatch(store.get("order 1"), /secret|Bearer/);
}));

test("every kind of body goes out as it was given", cases([], async ({ server, client, orders }) => {
  const form = new FormData();
  form.set("file", new Blob([new Uint8Array([0, 255, 128])]), "f.bin");
  const bodies = [["text/plain;charset=UTF-8", "ä€"], ["application/x-www-form-urlencoded;charset=UTF-8", new URLSearchParams({ a: "ä" })],
                  [undefined, new Uint8Array([0, 255, 10])]];
  for (const [type, body] of bodies) {
    await client.send("of type " + type, orders, { body });
    const request = server.requests.at(-1);
    assert.equal(server.header(request, "content-type")[0], type);
    assert.equal(request.body, Buffer.from(await new Response(body).arrayBuffer()).toString("latin1"));
  }
  await client.send("form", orders, { body: form });
  assert.match(server.requests.at(-1).body, /filename="f.bin"[^]*\x00\xff\x80/);
  assert.ok((await client.send("form", orders, { body: form })).fromStore, "another boundary is not another request");
}));

test("the application's own key is used, and one only", cases([], async ({ server, client, orders }) => {
  await client.send("a", orders, { key: "mine", body: "x" });
  await client.send("b", orders, { headers: { "Idempotency-Key": "yours" }, body: "y" });
  assert.deepEqual(server.requests.map(keyOf), ["mine", "yours"]);
  await assert.rejects(client.send("a", orders, { key: "other", body: "x" }), IntentConflict);
  for (const key of ["", "a b", 'a"', "a,b", "ä", "x".repeat(256)]) await assert.rejects(client.send("c", orders, { key }), TypeError, key);
}));

test("no credential takes the place of the key", cases([], async ({ server, client, orders }) => {
  const { key } = await client.send("a", orders);
  assert.deepEqual([server.requests.length, keyOf(server.requests[0])], [1, key]);
}, { credentials: () => ({ "Idempotency-Key": crypto.randomUUID(), "X-Token": "t" }) }));

test("a key header that is none is refused at once", async () => {
  for (const keyHeader of ["", "a b", "Key:"])
    await assert.rejects(createClient({ store: memoryStore(), keyHeader }).send("a", "http://127.0.0.1:1/"), TypeError, keyHeader);
});

test("a quoted key is an RFC 8941 String", cases([], async ({ server, client, orders }) => {
  await client.send("a", orders, { key: "k1" });
  assert.deepEqual(server.requests.map(keyOf), ['"k1"']);
}, { quoted: true }));

test("what cannot be sent under a key is refused at once", cases([], async ({ server, client, orders }) => {
  for (const method of ["GET", "head", "OPTIONS"]) await assert.rejects(client.send("a", orders, { method }), TypeError);
  for (const user of ["user:password", "user", ":password"])
    await assert.rejects(client.send("a", `http://${user}@127.0.0.1/`), TypeError);
  await assert.rejects(client.send("a", "/orders"), TypeError);
  assert.equal(server.requests.length, 0);
  assert.deepEqual(await client.list(), []);
}));

test("resuming what was rejected tells the verdict and sends nothing: nobody asked for it again", cases(
  [{ answer: { status: 400 } }],
  async ({ server, client, make, orders }) => {
    await client.send("order 1", orders, { body: "wrong" });
    const resumed = await make().resume("order 1");
    assert.deepEqual([resumed.verdict, resumed.why, resumed.fromStore, server.requests.length], ["refused", "rejected", true, 1]);
    assert.deepEqual((await client.list())[0].verdict, "refused");
    assert.equal((await client.send("order 1", orders, { body: "wrong" })).attempts, 1);
  }));

test("an intent in doubt for nobody knows how long is too old to be sent", cases([], async ({ server, store, client, orders }) => {
  store.put("order 1", JSON.stringify({ v: 1, key: "k", keyHeader: "Idempotency-Key", method: "POST", url: orders, headers: [], doubt: "no_answer" }));
  const outcome = await client.resume("order 1");
  assert.deepEqual([outcome.verdict, outcome.why, server.requests.length], ["unknown", "too_old", 0]);
}));

test("headers that cannot be had mean that nothing was sent", cases([], async ({ server, make, orders }) => {
  for (const credentials of [async () => { throw new Error("login over"); }, { "X-Token": "a\nb" }]) {
    const outcome = await make({ credentials }).send("order 1", orders, { body: "a" });
    assert.deepEqual([outcome.verdict, outcome.why], ["not_attempted", "unreachable"]);
  }
  assert.equal(server.requests.length, 0);
}));

for (const deadline of [Infinity, 2 ** 31, 2 ** 40])
  test(`a deadline of ${deadline} ms is one, and no mistake`, cases([], async ({ make, orders }) => {
    assert.equal((await make({ deadline, attemptTimeout: deadline }).send("order 1", orders, { body: "a" })).verdict, "succeeded");
  }));

test("nothing is sent when the intent cannot be stored", cases([], async ({ server, make, orders }) => {
  for (const store of [{ ...memoryStore(), add: () => { throw new Error("full"); } }, { ...memoryStore(), put: async () => { throw new Error("full"); } }]) {
    const outcome = await make({ store }).send("order 1", orders, { body: "a" });
    assert.deepEqual([outcome.verdict, outcome.why, outcome.attempts], ["not_attempted", "journal", 0]);
  }
  assert.equal(server.requests.length, 0);
}));

test("a verdict that cannot be stored holds all the same, and the key is kept", cases([], async ({ store, make, orders }) => {
  let puts = 0;
  const failing = { ...store, put: (...args) => { if (++puts > 1) throw new Error("full"); store.put(...args); } };
  const outcome = await make({ store: failing }).send("order 1", orders, { body: "a" });
  assert.deepEqual([outcome.verdict, outcome.storeError.message], ["succeeded", "full"]);
  const again = await make().resume("order 1");
  assert.deepEqual([again.verdict, again.key], ["replayed", outcome.key]);
}));

test("a stored intent that cannot be read is never replaced by a new key", cases([], async ({ server, store, client, orders }) => {
  for (const text of ["", "{", '{"v":1}', '{"v":2,"key":"k"}', "null"]) {
    store.put("order 1", text);
    for (const outcome of [await client.send("order 1", orders, { body: "a" }), await client.resume("order 1")])
      assert.deepEqual([outcome.verdict, outcome.why], ["unknown", "journal"], text);
    assert.equal(store.get("order 1"), text);
  }
  assert.deepEqual((await client.list()).map((one) => one.open), [true]);
  assert.equal(server.requests.length, 0);
}));

test("a store that cannot even be read means unknown", cases([], async ({ server, make, orders }) => {
  const broken = () => { throw new Error("gone"); };
  const outcome = await make({ store: { get: broken, add: broken, put: broken } }).send("order 1", orders);
  assert.deepEqual([outcome.verdict, outcome.why, server.requests.length], ["unknown", "journal", 0]);
}));

test("an intent that is busy elsewhere beyond the deadline is unknown, not sent again", cases([{ delay_ms: 400, ...created }], async ({ server, make, client, orders }) => {
  const first = client.send("order 1", orders, { body: "a" });
  const second = await make({ deadline: 50 }).send("order 1", orders, { body: "a" });
  assert.deepEqual([second.verdict, second.why], ["unknown", "in_progress"]);
  assert.equal((await first).verdict, "succeeded");
  assert.equal(server.requests.length, 1);
}));

test("forgotten means a new key; resuming what is not there gives nothing", cases([], async ({ client, orders }) => {
  const { key } = await client.send("order 1", orders, { body: "a" });
  await client.forget("order 1");
  assert.equal(await client.resume("order 1"), undefined);
  assert.notEqual((await client.send("order 1", orders, { body: "a" })).key, key);
}));

test("answers too long to store are marked as cut", cases([], async ({ client, orders }) => {
  const first = await client.send("order 1", orders, { body: "a" });
  const again = await client.send("order 1", orders, { body: "a" });
  assert.deepEqual([first.answer.body, again.answer.body, again.answer.cut, again.verdict], ['{"id":"o1"}', "", true, "succeeded"]);
}, { largestStoredAnswer: 5 }));

test("an answer is handed out as a Response, bytes unchanged", cases(
  [{ answer: { status: 200, headers: { "Content-Type": "text/plain" }, body: Buffer.from("€").toString("latin1") } }, { answer: { status: 204 } }],
  async ({ client, orders }) => {
    assert.equal(await toResponse((await client.send("a", orders)).answer).text(), "€");
    assert.equal(toResponse((await client.send("b", orders)).answer).status, 204);
  }));

// Field report C20: what a connection did before says nothing about this request.
for (const [name, step] of Object.entries({
  "resets without an answer": { reset: true },
  "ends after the status line": { raw: "HTTP/1.1 201 Created\r\n" },
  "ends without an answer": { lost: true },
  "answers 408 and closes": { raw: "HTTP/1.1 408 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" },
})) {
  test(`on a warmed connection the server reads all and ${name}: one request for each attempt`, cases(
    [null, step],
    async ({ server, client, orders }) => {
      await client.send("warm", orders, { body: "warm" });
      const outcome = await client.send("order 1", orders, { body: "a" });
      assert.deepEqual([outcome.verdict, outcome.attempts, server.requests.length, server.effects()], ["replayed", 2, 3, 2]);
      assert.equal(keyOf(server.requests[1]), keyOf(server.requests[2]));
    }));
}

test("the retry budget is shared by the requests of a client", cases(
  Array(20).fill({ answer: { status: 503 } }),
  async ({ server, client, orders }) => {
    for (const name of ["a", "b", "c"]) await client.send(name, orders, { body: name });
    // Two retries in all, and three tenths given back.
    assert.equal(server.requests.length, 5);
  }, { retryBudget: 2 }));

test("what the browser knows cannot leave is not attempted over the network", cases([], async ({ server, client, orders }) => {
  const navigator = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { onLine: false }, configurable: true });
  try {
    const outcome = await client.send("order 1", orders, { body: "a" });
    assert.deepEqual([outcome.verdict, outcome.why, server.requests.length], ["not_attempted", "unreachable", 0]);
  } finally {
    if (navigator) Object.defineProperty(globalThis, "navigator", navigator);
    else delete globalThis.navigator;
  }
  assert.equal((await client.send("order 1", orders, { body: "a" })).verdict, "succeeded");
}));

const storage = () => {
  const items = {};
  return Object.defineProperties(items, {
    getItem: { value: (name) => items[name] ?? null }, setItem: { value: (name, text) => void (items[name] = text) },
    removeItem: { value: (name) => void delete items[name] },
  });
};
for (const [name, make] of Object.entries({
  memoryStore: () => memoryStore(), webStorage: () => webStorage(storage()), fileStore: (t) => fileStore(join(directory(t), "intents")),
})) {
  test(`${name} keeps its promises`, async (t) => {
    const store = make(t);
    assert.equal(await store.get("a"), undefined);
    assert.deepEqual(await store.names(), []);
    assert.equal(await store.add("a", "1"), "1");
    assert.equal(await store.add("a", "2"), "1");
    await store.put("a", "3");
    await store.put("b/ä .", "4");
    assert.deepEqual([await store.get("a"), await store.get("b/ä .")], ["3", "4"]);
    assert.deepEqual((await store.names()).sort(), ["a", "b/ä ."]);
    await store.delete("a");
    await store.delete("a");
    assert.deepEqual([await store.get("a"), await store.names()], [undefined, ["b/ä ."]]);
    const added = await Promise.all(["x", "y", "z"].map((text) => store.add("race", text)));
    assert.equal(new Set(added).size, 1);
  });
}

test("webStorage leaves what is not its own", () => {
  const items = storage();
  items.setItem("other", "1");
  assert.deepEqual(webStorage(items).names(), []);
});

// Field report C24: the key file after a power cut.
test("a file that was cut, zeroed or changed anywhere is never replaced by a new key", async (t) => {
  const server = await shop();
  t.after(() => server.close());
  const path = directory(t);
  const client = createClient({ store: fileStore(path) });
  await client.send("order 1", server.url + "/orders", { body: "a" });
  const file = join(path, readdirSync(path)[0]);
  const whole = readFileSync(file);
  const damages = [];
  for (let i = 0; i < whole.length; i += 7) {
    damages.push(whole.subarray(0, i));
    damages.push(Buffer.concat([whole.subarray(0, i), Buffer.alloc(whole.length - i)]));
    damages.push(Buffer.from(whole.map((byte, j) => (i === j ? byte ^ 1 : byte))));
  }
  for (const damaged of damages) {
    writeFileSync(file, damaged);
    const outcome = await client.send("order 1", server.url + "/orders", { body: "a" });
    assert.deepEqual([outcome.verdict, outcome.why, outcome.attempts], ["unknown", "journal", 0], JSON.stringify(damaged.toString()));
    assert.deepEqual((await client.list()).map((one) => one.open), [true]);
  }
  writeFileSync(join(path, "left-over.tmp"), "");
  writeFileSync(file, whole);
  assert.ok((await client.send("order 1", server.url + "/orders", { body: "a" })).fromStore);
  assert.equal(server.requests.length, 1);
});

for (const point of ["before-storing", "before-sending", "after-sending", "before-verdict"]) {
  test(`a process killed ${point.replace("-", " ")} and started anew makes one effect under one key`, async (t) => {
    const server = await shop();
    t.after(() => server.close());
    const path = directory(t);
    const start = (at) => spawn(process.execPath, [new URL("killable.mjs", import.meta.url).pathname, server.url, path, at], { stdio: ["ignore", "pipe", "inherit"] });
    const [, signal] = await once(start(point), "exit");
    assert.equal(signal, "SIGKILL");
    const sent = { "before-storing": 0, "before-sending": 0, "after-sending": 1, "before-verdict": 1 }[point];
    assert.equal(server.requests.length, sent);
    const second = start("never");
    const out = await second.stdout.toArray();
    const { verdict } = JSON.parse(Buffer.concat(out));
    assert.equal(verdict, sent ? "replayed" : "succeeded");
    assert.equal(server.effects(), 1);
  });
}
