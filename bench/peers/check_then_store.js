// Express and Redis, check then store: look the key up, do the work, store the answer for a day. The
// pattern of many articles on idempotency keys.
import Redis from 'ioredis';
import { application, charge, serve } from './service.js';

const redis = new Redis({ path: process.env.REDIS });
const app = application();

for (const path of ['/orders', '/payments']) {
  app.post(path, async (request, response) => {
    const key = request.headers['idempotency-key'];
    const stored = key && (await redis.get(`order:${key}`));
    if (stored) {
      const { status, body } = JSON.parse(stored);
      return response.status(status).json(body);
    }
    const { status, body } = await charge(request);
    if (key) await redis.set(`order:${key}`, JSON.stringify({ status, body }), 'EX', 86400);
    response.status(status).json(body);
  });
}
serve(app);
