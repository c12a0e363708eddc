// @node-idempotency/core as published, with its Redis storage, its two calls placed around the work as
// its documentation says. Its errors are answered with the statuses that the Idempotency-Key draft asks for.
import { Idempotency, IdempotencyErrorCodes } from '@node-idempotency/core';
import { RedisStorageAdapter } from '@node-idempotency/storage-adapter-redis';
import { application, charge, serve } from './service.js';

const storage = new RedisStorageAdapter({ socket: { path: process.env.REDIS } });
await storage.connect();
const idempotency = new Idempotency(storage);
const statuses = {
  [IdempotencyErrorCodes.REQUEST_IN_PROGRESS]: 409,
  [IdempotencyErrorCodes.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: 422,
  [IdempotencyErrorCodes.IDEMPOTENCY_KEY_LEN_EXEEDED]: 400,
  [IdempotencyErrorCodes.IDEMPOTENCY_KEY_MISSING]: 400,
};
const app = application();

for (const path of ['/orders', '/payments']) {
  app.post(path, async (request, response) => {
    const described = {
      method: request.method, headers: request.headers, body: request.body, path: request.path,
    };
    let stored;
    try {
      stored = await idempotency.onRequest(described);
    } catch (error) {
      return response.status(statuses[error.code] ?? 500).json({ error: error.message });
    }
    if (stored) {
      if (stored.error) return response.status(stored.additional.status).json({ error: stored.error });
      return response.status(stored.additional.status).json(stored.body);
    }
    try {
      const { status, body } = await charge(request);
      await idempotency.onResponse(described, { body, additional: { status } });
      response.status(status).json(body);
    } catch (error) {
      await idempotency.onResponse(described, { error: error.message, additional: { status: 500 } });
      throw error;
    }
  });
}
serve(app);
