// express-idempotency as published, with its Redis adapter, set up as its documentation says.
import package_ from 'express-idempotency';
import adapter_ from 'express-idempotency-redis-adapter';
import { application, charge, serve } from './service.js';

const { idempotency, getSharedIdempotencyService } = package_;
const adapter = new adapter_.default({
  connectionConfig: { socket: { path: process.env.REDIS } },
});
await adapter.connect();
const app = application();
app.use(idempotency({ dataAdapter: adapter }));

for (const path of ['/orders', '/payments']) {
  app.post(path, async (request, response) => {
    const service = getSharedIdempotencyService();
    if (service.isHit(request)) return;
    try {
      const { status, body } = await charge(request);
      response.status(status).send(body);
    } catch (error) {
      await service.reportError(request);
      throw error;
    }
  });
}
serve(app);
