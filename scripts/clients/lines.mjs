// How a client's process is steered: its config (scripts/clients/client.py describes it) is one line of JSON on stdin,
// each event is one line of JSON on stdout. A further line `stop`, or the end of stdin, ends its loops after the calls in
// hand.

import { createInterface } from "node:readline";

// Stdout belongs to the events. The SDK's one note, on connecting to the Auth emulator, goes nowhere.
console.info = () => {};
console.log = console.error;

function say(event) {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

/** Runs `client(config, say, onStop)` to its end, and this process with it. */
export async function steered(client) {
  let stop = () => {};
  const lines = createInterface({ input: process.stdin });
  try {
    const config = await new Promise((resolve, reject) => {
      lines.once("line", (line) => {
        lines.on("line", (command) => { if (command === "stop") stop(); });
        resolve(JSON.parse(line));
      });
      lines.once("close", () => {
        reject(new Error("no config on stdin"));
        stop();
      });
    });
    await client(config, say, (then) => { stop = then; });
  } catch (error) {
    say({ event: "failed", at: Date.now(), message: String(error?.stack ?? error) });
    process.exitCode = 1;
  }
  // The SDK keeps timers and sockets open; wait for the last line to leave, then end.
  process.stdout.write("", () => process.exit());
}

/** What a device's attestation would give: a token from the local issuer, or the very string the config names. */
export async function attestation({ token, mint, claims }) {
  if (token !== undefined) return token;
  const reply = await fetch(mint, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(claims ?? {}),
  });
  if (!reply.ok) throw new Error(`the App Check issuer answered ${reply.status}`);
  return (await reply.json()).token;
}
