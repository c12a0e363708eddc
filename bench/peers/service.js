// What the peers share: the business of an order service, and how it is served. None of this knows
// of idempotency keys.
import express from 'express';

const processor = process.env.PROCESSOR;

/// One charge for the order in `request`: status and body of the answer. Without a processor nothing is charged.
export async function charge(request) {
  if (!processor) return { status: 201, body: { id: 4711, amount: request.body.amount } };
  if (request.body.card === 'declined') return { status: 402, body: { error: 'declined' } };
  const headers = { 'Content-Type': 'application/json' };
  for (const name of ['x-slow', 'x-fault']) {
    if (request.headers[name]) headers[name] = request.headers[name];
  }
  const answer = await fetch(`${processor}/charge`, {
    method: 'POST', headers, body: JSON.stringify({ amount: request.body.amount }),
  });
  const { id } = await answer.json();
  return { status: 201, body: { id, amount: request.body.amount } };
}

export function application() {
  const app = express();
  app.use(express.json());
  app.get('/effects', async (request, response) => {
    response.json(await (await fetch(`${processor}/effects`)).json());
  });
  return app;
}

export function serve(app) {
  const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () =>
    console.log(`listening on http://127.0.0.1:${server.address().port}`));
}
