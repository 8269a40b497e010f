// One client of the backend, on the official Firebase JS SDK in Node.

import { run } from "./calls.mjs";
import { attestation, steered } from "./lines.mjs";

await steered(async (config, say, onStop) => {
  let stopped = false;
  onStop(() => { stopped = true; });
  await run(config, { say, stopped: () => stopped, attest: () => attestation(config.attest) });
});
