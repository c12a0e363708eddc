// Sends one intent and kills its own process at the point given: URL DIRECTORY POINT.
import { createClient, fileStore } from "@einmal/client";

const [url, directory, point] = process.argv.slice(2);
const at = (name) => {
  if (name === point) process.kill(process.pid, "SIGKILL");
};
const store = fileStore(directory);
let puts = 0;
const client = createClient({
  store: {
    ...store,
    add: (...args) => (at("before-storing"), store.add(...args)),
    put: (...args) => (++puts === 2 && at("before-verdict"), store.put(...args)),
  },
  async fetch(target, init) {
    at("before-sending");
    const response = await fetch(target, init);
    at("after-sending");
    return response;
  },
});
console.log(JSON.stringify(await client.send("order 1", url + "/orders", { json: { item: "tea" } })));
