// Runs clients/behaviour.json, which is also the C++ client's, over real sockets; only waits are virtual.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { createClient, toResponse } from "@einmal/client";
import { memoryStore } from "@einmal/client/memory";
import { nobody, scriptedServer, virtualTime } from "./server.mjs";

const file = JSON.parse(readFileSync(new URL("../../behaviour.json", import.meta.url)));
const settled = (verdict) => ["succeeded", "replayed", "refused"].includes(verdict);

test("the vectors are there and of the format that this test reads", () => {
  assert.equal(file.format, 1);
  assert.equal(file.clock, "2024-01-01T00:00:00Z");
  assert.ok(file.cases.length >= 100);
});

let passed = 0;
for (const one of file.cases) test(one.name, async () => (await run(one), ++passed));
after(() => console.log(`behaviour cases passed: ${passed} of ${file.cases.length}`));

async function run({ server: steps, polls = [], expect, before, discovery, ...one }) {
  const at = (list, index) => list[Math.min(index, list.length - 1)];
  let attempts = 0;
  const targets = [];
  const server = await scriptedServer((request) => {
    if (request.method !== "GET") return at(steps, attempts - 1);
    if (request.target === "/.well-known/idempotency")
      return { answer: discovery ? { status: 200, headers: { "Content-Type": "application/json" }, body: JSON.stringify(discovery) } : { status: 404 } };
    targets.push(request.target);
    return polls.length ? at(polls, targets.length - 1) : { answer: { status: 500 } };
  });
  const closed = await nobody();
  const virtual = virtualTime(Date.parse(file.clock));
  const { time } = virtual;
  const s = { ...file.settings, ...one.settings };
  const store = memoryStore();
  const client = createClient({
    store, time,
    maxAttempts: s.max_attempts, backoffBase: s.backoff_base_ms, backoffCap: s.backoff_cap_ms,
    deadline: s.deadline_ms, attemptTimeout: s.attempt_timeout_ms, retryBudget: s.retry_budget,
    fetch(url, init) {
      const refused = init.method !== "GET" && at(steps, attempts++).refused;
      return fetch(refused ? closed + url.slice(server.url.length) : url, init);
    },
  });
  const { method, path, headers, body } = file.request;
  const send = () => client.send("order 1", server.url + path, { method, headers, body });
  try {
    const key = before && "11111111-2222-4333-8444-555555555555";
    if (before)
      store.put("order 1", JSON.stringify({
        v: 1, key, keyHeader: "Idempotency-Key", method, url: server.url + path,
        headers: Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]), body,
        created: time.now() - (before.created_ago_s ?? 0) * 1000, attempts: before.attempts,
        doubt: before.in_doubt ? "no_answer" : undefined,
        firstSent: before.first_sent_ago_s === undefined ? undefined : time.now() - before.first_sent_ago_s * 1000,
      }));
    const outcome = await send();

    assert.equal(outcome.verdict, expect.verdict);
    if (expect.why) assert.equal(outcome.why, expect.why);
    if (expect.attempts !== undefined) assert.deepEqual([outcome.attempts, attempts], [expect.attempts, expect.attempts]);
    if (expect.status !== undefined) assert.equal(outcome.answer.status, expect.status);
    if (key) assert.equal(outcome.key, key);
    if (expect.waits) {
      assert.equal(virtual.waits.length, expect.waits.length);
      virtual.waits.forEach((ms, i) => assert.ok(ms >= expect.waits[i][0] && ms <= expect.waits[i][1], `wait ${i}: ${ms}`));
    }
    if (expect.polls !== undefined) assert.equal(targets.length, expect.polls);
    if (expect.poll_targets) assert.deepEqual(targets, expect.poll_targets);

    // On the wire: one key, once, the same bytes, as many requests as were reported.
    const sent = server.requests.filter((request) => request.method !== "GET");
    assert.equal(sent.length, expect.requests ?? expect.attempts ?? sent.length);
    for (const request of sent) {
      assert.deepEqual(server.header(request, "idempotency-key"), [outcome.key]);
      assert.equal(request.body, body);
      assert.deepEqual(request.headers, sent[0].headers);
    }

    // In the store: what is settled is not sent again, and the key is the same for ever.
    const entry = JSON.parse(store.get("order 1"));
    assert.equal(entry.key, outcome.key);
    assert.equal(entry.last.verdict, outcome.verdict);
    assert.equal(entry.doubt !== undefined, outcome.verdict === "unknown");
    if (!settled(outcome.verdict) || outcome.why === "rejected") return;
    const total = attempts;
    const again = await send();
    assert.deepEqual([again.verdict, again.key, again.fromStore, attempts], [outcome.verdict, outcome.key, true, total]);
    assert.equal(await toResponse(again.answer).text(), await toResponse(outcome.answer).text());
  } finally {
    await server.close();
  }
}
