// Takes docs/images/shop.png: both panels of the demo page after a double click.
import { fileURLToPath } from "node:url";
import { launch, openShop, over, startShop } from "./test/browser.mjs";

const ends = [];
const t = { after: (end) => ends.unshift(end) };
const browser = await launch();
t.after(() => browser.close());
try {
  const shop = await startShop(t, "gateway");
  const context = await browser.newContext({ viewport: { width: 1000, height: 560 }, deviceScaleFactor: 1.5 });
  const naive = await openShop(context, shop.url, "7kq2m4xa", "naive");
  const safe = over(naive.tab, "safe");
  await naive.fault("delay");
  for (const panel of [naive, safe]) await panel.button.dblclick();
  for (const panel of [naive, safe]) await panel.settled();
  await shop.cutter.quiet();
  await naive.tab.evaluate(() => dispatchEvent(new Event("focus")));
  await naive.tab.waitForFunction(() => document.querySelector("#naive .effects").textContent === "2");
  await naive.tab.screenshot({ fullPage: true, path: fileURLToPath(new URL("../../docs/images/shop.png", import.meta.url)) });
} finally {
  for (const end of ends) await end();
}
