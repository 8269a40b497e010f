// The same client in a page of a real browser: another origin than the backend, and the SDK's own build for browsers.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

import { chromium } from "playwright-core";

import { attestation, steered } from "./lines.mjs";

const SDK = new URL("../../node_modules/firebase/", import.meta.url);
const { version } = JSON.parse(await readFile(new URL("package.json", SDK)));
// These builds import one another from where they are published; this page has no way there.
const IMPORTS = {
  ...Object.fromEntries(["app", "app-check", "auth", "functions"].map((name) => [`firebase/${name}`, `/firebase-${name}.js`])),
  [`https://www.gstatic.com/firebasejs/${version}/`]: "/",
};
const PAGE = `<!doctype html><script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>`;

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-proxy-server",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** Serves the page, its code and the SDK; the address it is at. */
async function served(port) {
  const server = createServer(async ({ url }, response) => {
    const script = /^\/(calls\.mjs|firebase-[a-z-]+\.js)$/.exec(url)?.[1];
    if (script) {
      const file = new URL(script, script === "calls.mjs" ? import.meta.url : SDK);
      response.setHeader("Content-Type", "text/javascript").end(await readFile(file));
    } else {
      response.writeHead(url === "/" ? 200 : 404, { "Content-Type": "text/html" }).end(url === "/" ? PAGE : "");
    }
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}/`;
}

await steered(async (config, say, onStop) => {
  const browser = await chromium.launch({ executablePath: config.browser, args: FLAGS });
  try {
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.error(error));
    await page.exposeFunction("say", say);
    await page.exposeFunction("attest", () => attestation(config.attest));
    await page.goto(await served(config.pagePort));
    // Told when the page is gone already, it has nothing to stop.
    onStop(() => page.evaluate(() => { globalThis.stopped = true; }).catch(() => {}));
    await page.evaluate(async (config) => {
      const { run } = await import("/calls.mjs");
      await run(config, { say: globalThis.say, attest: globalThis.attest, stopped: () => globalThis.stopped });
    }, config);
  } finally {
    await browser.close();
  }
});
