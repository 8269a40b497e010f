// Calls what the web client of docs/adopting.md exports, and prints one line of JSON per event.
// Usage: node run.mjs '[["ask", "…"], …]'; `writeNote` first writes a note of the user's, as the app would have.

import "./clock.mjs";
import { getApp } from "firebase/app";
import { getAuth } from "firebase/auth";
import { ask, explain, summarizeNote } from "./backend.js";

const exported = { ask, summarizeNote };

function say(event) {
  console.log(JSON.stringify(event));
}

/** As the owner of the emulator, whom no rules bind. */
async function writeNote(name, text) {
  const { uid } = getAuth(getApp()).currentUser;
  const reply = await fetch(`${process.env.DOCUMENTS}/users/${uid}/notes/${name}`, {
    method: "PATCH",
    headers: { Authorization: "Bearer owner", "Content-Type": "application/json" },
    body: JSON.stringify({ fields: { text: { stringValue: text } } }),
  });
  if (!reply.ok) throw new Error(await reply.text());
}

for (const [name, ...given] of JSON.parse(process.argv[2])) {
  if (name === "writeNote") {
    await writeNote(...given);
    continue;
  }
  try {
    say({ answered: await exported[name](...given) });
  } catch (error) {
    say({ refused: error.details?.reason ?? error.code, told: explain(error) });
  }
}
// The SDK keeps timers and sockets open.
process.stdout.write("", () => process.exit());
