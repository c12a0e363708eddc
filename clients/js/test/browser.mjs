import { buildSync } from "esbuild";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const binary = process.env.EINMAL_BINARY ?? fileURLToPath(new URL("../../../build-dev/bin/einmal", import.meta.url));
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** `bfcache`: with the back/forward cache, which playwright switches off. */
export const launch = (bfcache = false) =>
  chromium.launch({
    executablePath,
    // Runs as root in a container, and speaks with this machine only.
    args: ["--no-sandbox", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    ignoreDefaultArgs: bfcache ? ["--disable-back-forward-cache"] : [],
  });

/** Starts `einmal ...args`; resolves to its address. Ended with the test. */
async function start(t, args) {
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  let out = "";
  for await (const bytes of child.stdout) {
    const found = /listening on (http:\S+)/.exec((out += bytes));
    if (found) return found[1];
  }
  throw new Error(`einmal ${args.join(" ")} did not start: ${out}`);
}

/** The shop: "alone" with keys of its own, "plain" without any, or behind a "gateway", with `[cors]` for `origins`. */
export async function startShop(t, topology, origins) {
  const directory = mkdtempSync(join(tmpdir(), "einmal-page-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const shop = await start(t, ["shop", "--listen", "127.0.0.1:0", "--ledger", join(directory, "ledger.db"), ...(topology === "alone" ? ["--idempotent", "--key", "optional"] : [])]);
  const config = join(directory, "gateway.toml");
  writeFileSync(config, `
    [gateway]
    listen = "127.0.0.1:0"
    upstream = "${shop}"
    [store]
    url = "sqlite:${directory}/einmal.db"
    [caller]
    source = "fixed:visitor"
    ${origins ? `[cors]\norigins = ${JSON.stringify(origins)}\nheaders = ["X-Demo-Fault"]` : ""}
    [[operation]]
    name = "create-order"
    match = "POST /orders"
    key = "optional"
    in_flight = "wait"`);
  const front = topology !== "gateway" ? shop : await start(t, ["gateway", "--config", config]);
  const cutter = await startCutter(t, +new URL(front).port);
  const effects = async (item = "") => (await (await fetch(`${shop}/effects?item=${encodeURIComponent(item)}`)).json()).count;
  return { url: cutter.url, cutter, effects };
}

/**
 * A wire that cuts the answer to the next POST or PUT when it is told to: the server did it, nobody hears. What
 * a browser has given up is carried on to its end; `quiet` waits for that.
 */
async function startCutter(t, port) {
  const cutter = { armed: 0, cut: 0, open: 0 };
  const sockets = new Set();
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    let posting = false;
    const answered = () => {
      if (posting) cutter.open--;
      posting = false;
    };
    for (const socket of [client, upstream]) sockets.add(socket.on("error", () => {}));
    client.on("close", () => (sockets.delete(client), posting || upstream.destroy()));
    upstream.on("close", () => (sockets.delete(upstream), answered(), client.destroy()));
    client.on("data", (bytes) => {
      if (/^P(OS|U)T /.test(bytes.subarray(0, 5).toString("latin1"))) {
        posting = true;
        cutter.open++;
      }
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (posting && cutter.armed > 0) {
        cutter.armed--;
        cutter.cut++;
        client.destroy();
      } else if (!client.destroyed) client.write(bytes);
      answered();
      if (client.destroyed) upstream.destroy();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  cutter.quiet = async () => {
    while (cutter.open > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  cutter.url = `http://127.0.0.1:${server.address().port}`;
  return cutter;
}

/** The demo page in one tab, and what one does with a panel of it. */
export async function openShop(context, url, basket, panel) {
  const tab = await context.newPage();
  await tab.goto(`${url}/?basket=${basket}`);
  return over(tab, panel);
}
export const over = (tab, panel) => ({
  tab,
  button: tab.locator(`#${panel} button`),
  note: tab.locator(`#${panel} [name=note]`),
  next: tab.locator(`#${panel} a`),
  fault: (name, on = true) => tab.locator(`#faults [name=${name}]`).setChecked(on),
  text: (part) => tab.locator(`#${panel} .${part}`).textContent(),
  verdict: () => tab.locator(`#${panel} .verdict`).getAttribute("data-verdict"),
  /** Until it says one of these. */
  says: (...verdicts) =>
    tab.waitForFunction(([where, wanted]) => wanted.includes(document.querySelector(where).dataset.verdict), [`#${panel} .verdict`, verdicts]),
  settled() {
    return this.says("succeeded", "replayed", "refused", "unknown", "not_attempted");
  },
});

const host = `<!doctype html><div id="root"></div><script type="module" src="/module.js"></script>`;
const bundled = (source) =>
  buildSync({
    stdin: { contents: source, resolveDir: fileURLToPath(new URL("../src", import.meta.url)), loader: "tsx" },
    bundle: true, write: false, format: "esm", jsx: "automatic", define: { "process.env.NODE_ENV": '"development"' },
    nodePaths: [fileURLToPath(new URL("../node_modules", import.meta.url))],
  }).outputFiles[0].text;

/** A module in a page of an origin of its own, from source text. Nothing is routed: preflights are Chromium's. */
export async function openOrigin(t, context, source) {
  const module = bundled(source);
  const server = createHttpServer((request, response) => {
    const isModule = request.url === "/module.js";
    response.writeHead(200, { "Content-Type": isModule ? "text/javascript" : "text/html", Connection: "close" });
    response.end(isModule ? module : host);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const origin = `http://127.0.0.1:${server.address().port}`;
  const tab = await context.newPage();
  await tab.goto(origin, { waitUntil: "load" });
  return { origin, tab };
}

/** A module in a page of the origin of `url`, from source text. */
export async function openModule(context, url, source) {
  const module = bundled(source);
  const tab = await context.newPage();
  await tab.route("**/module", (route) => route.fulfill({ contentType: "text/html", body: host }));
  await tab.route("**/module.js", (route) => route.fulfill({ contentType: "text/javascript", body: module }));
  tab.on("pageerror", (error) => console.error("in the page:", error));
  await tab.goto(url + "/module");
  return tab;
}
