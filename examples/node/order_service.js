// An order service whose POST /orders happens once per caller and Idempotency-Key: the claim, the order and
// the stored answer commit in one PostgreSQL transaction, so there is no state in between.
//
//   einmal migrate --store "$DATABASE_URL"; psql "$DATABASE_URL" -f ../orders.sql
//   DATABASE_URL=postgresql://... PORT=8080 node order_service.js

import http from 'node:http';
import { createHash } from 'node:crypto';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const operation = 'create-order';

/** Equal for equal orders, whatever the order of their members. */
function fingerprint(order) {
  const members = Object.keys(order).sort().map((name) => [name, order[name]]);
  return createHash('sha256').update(JSON.stringify(members)).digest();
}

/**
 * Runs `work(client)` in one transaction with its claim and its outcome. It returns `{ status, body }`; a
 * `refused` one is kept like a success, with everything it wrote undone. Answers what einmal.claim decided.
 */
async function once(caller, key, order, work) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query('begin');
    const claimed = await client.query('select * from einmal.claim($1, $2, $3, $4)', [
      caller, operation, key, fingerprint(order)]);
    const claim = claimed.rows[0];
    if (claim.decision !== 'execute') {
      await client.query('rollback');
      return claim;
    }
    await client.query('savepoint work');
    const answer = await work(client);
    if (answer.refused) await client.query('rollback to savepoint work');
    const settle = answer.refused ? 'einmal.fail' : 'einmal.complete';
    await client.query(`select einmal.must(${settle}($1, $2, $3, $4, $5, $6, $7))`, [
      caller, operation, key, claim.generation, claim.owner, answer.status, Buffer.from(answer.body)]);
    const committed = await client.query('commit');
    if (committed.command !== 'COMMIT') throw new Error('the database rolled back');
    return { decision: 'execute', status: answer.status, body: Buffer.from(answer.body) };
  } catch (error) {
    broken = await client.query('rollback').then(() => undefined, (lost) => lost);
    throw error;
  } finally {
    client.release(broken);
  }
}

/** What the service itself does. */
async function createOrder(client, caller, order) {
  if (order.card === 'declined') {
    return { refused: true, status: 402, body: JSON.stringify({ error: 'card declined' }) };
  }
  const inserted = await client.query(
    'insert into orders (caller, item, amount) values ($1, $2, $3) returning id', [caller, order.item, order.amount]);
  return { status: 201, body: JSON.stringify({ id: Number(inserted.rows[0].id), ...order }) };
}

function answerTo(outcome) {
  switch (outcome.decision) {
    case 'execute':
    case 'replay':
      return { status: outcome.status, body: outcome.body, replayed: outcome.decision === 'replay' };
    case 'mismatch':
    case 'other_profile':
      return { status: 422, body: '{"reason":"key-reused"}' };
    case 'in_progress':
      return { status: 409, body: '{"reason":"in-progress"}', retry: 1 };
    default: // gone, uncertain: this service makes neither
      return { status: 410, body: '{"reason":"key-expired"}' };
  }
}

async function handle(request) {
  // In a real service the caller is who the request has been authenticated as, never what it says.
  const caller = request.headers['x-caller'];
  const key = request.headers['idempotency-key'];
  if (request.method !== 'POST' || request.url !== '/orders') return { status: 404, body: '' };
  if (!caller) return { status: 401, body: '{"reason":"caller-missing"}' };
  if (!key || !/^[\x21-\x7e]{1,255}$/.test(key)) return { status: 400, body: '{"reason":"key-invalid"}' };
  let text = '';
  for await (const part of request) text += part;
  let order;
  try {
    order = JSON.parse(text);
  } catch {
    return { status: 400, body: '{"reason":"body-unusable"}' };
  }
  return answerTo(await once(caller, key, order, (client) => createOrder(client, caller, order)));
}

const server = http.createServer(async (request, response) => {
  let answer;
  try {
    answer = await handle(request);
  } catch (error) {
    // Nothing was committed, or it is not known: the same key tells.
    console.error(error.message);
    answer = { status: 503, body: '{"reason":"store-unavailable"}', retry: 1 };
  }
  response.statusCode = answer.status;
  response.setHeader('Content-Type', 'application/json');
  if (answer.replayed) response.setHeader('Idempotent-Replayed', 'true');
  if (answer.retry) response.setHeader('Retry-After', answer.retry);
  response.end(answer.body);
});

server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
