import { createServer } from "node:net";
import { once } from "node:events";

/**
 * A server over raw sockets: `answer(request, index)` gives one step of clients/behaviour.json for each
 * request ({answer}, {truncated}, {raw}, {lost}, {reset}, {stall}). Counts what it read.
 */
export async function scriptedServer(answer) {
  const requests = [];
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    let bytes = "";
    socket.setEncoding("latin1").on("data", (data) => {
      bytes += data;
      const end = bytes.indexOf("\r\n\r\n");
      if (end < 0) return;
      const [first, ...lines] = bytes.slice(0, end).split("\r\n");
      const headers = lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]);
      const length = +(headers.find(([name]) => name === "content-length")?.[1] ?? 0);
      if (bytes.length < end + 4 + length) return;
      const [method, target] = first.split(" ");
      const request = { method, target, headers, body: bytes.slice(end + 4, end + 4 + length), socket };
      bytes = bytes.slice(end + 4 + length);
      requests.push(request);
      play(socket, answer(request, requests.length - 1));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    header: (request, name) => request.headers.filter(([n]) => n === name).map(([, value]) => value),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function play(socket, step) {
  if (step.lost) return socket.end();
  if (step.reset) return socket.resetAndDestroy();
  if (step.stall) return;
  if (step.raw !== undefined) return socket.end(Buffer.from(step.raw, "latin1"));
  if (step.delay_ms) return setTimeout(() => play(socket, { ...step, delay_ms: 0 }), step.delay_ms);
  const { status, headers = {}, body = "" } = step.answer ?? step.truncated;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = `HTTP/1.1 ${status} X\r\n${lines}` + (status === 204 ? "" : `Content-Length: ${body.length}\r\n`) + "\r\n";
  if (step.truncated) return socket.end(head + body.slice(0, body.length >> 1), "latin1");
  socket.write(head + body, "latin1");
}

/** A port of this machine where nothing listens. */
export async function nobody() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
}

/** Virtual time: moved only by the client's own waits, which it notes. */
export function virtualTime(start = Date.UTC(2024, 0, 1)) {
  let passed = 0;
  const waits = [];
  return {
    waits,
    advance: (ms) => void (passed += ms),
    time: {
      now: () => start + passed,
      elapsed: () => passed,
      sleep: async (ms) => {
        waits.push(ms);
        passed += ms;
      },
    },
  };
}
