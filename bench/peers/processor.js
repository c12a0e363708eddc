// The payment processor that every peer charges through: a process of its own, so that effects are
// counted outside the service under test and survive its crash. It books a charge at once and answers
// after its latency, as a processor far away does.
//
//   POST /charge              {"amount"}; X-Slow: MS adds latency, X-Fault: drop closes the connection
//                             after the booking, without an answer
//   GET  /effects             {"count"}
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';

const latency = Number(process.env.LATENCY_MS ?? 20);
let count = 0;

const server = createServer(async (request, response) => {
  for await (const _ of request);
  const answer = (body) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(body));
  };
  if (request.method === 'GET') return answer({ count });
  ++count;
  if (request.headers['x-fault'] === 'drop') return request.socket.destroy();
  setTimeout(() => answer({ id: randomUUID() }), latency + Number(request.headers['x-slow'] ?? 0));
});
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () =>
  console.log(`listening on http://127.0.0.1:${server.address().port}`));
