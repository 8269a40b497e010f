// One client of the backend, on the official Firebase JS SDK.
//
// Reads its config (scripts/clients/client.py describes it) as one line of JSON from stdin, calls the backend, and
// prints one line of JSON per event: signed-in, started, waiting, answered, refused, done, or failed.
// A further line `stop` ends its loops after the calls in hand.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { initializeApp } from "firebase/app";
import { CustomProvider, initializeAppCheck } from "firebase/app-check";
import { connectAuthEmulator, createUserWithEmailAndPassword, getAuth, signInAnonymously } from "firebase/auth";
import { FunctionsError, connectFunctionsEmulator, getFunctions, httpsCallable } from "firebase/functions";

const HOUR_MS = 3_600_000;
const MOST_WAITS = 10;
const SAME_ID_AGAIN = new Set(["contention", "store", "attestation"]);

// Stdout belongs to the events. The SDK's one note, on connecting to the Auth emulator, goes nowhere.
console.info = () => {};
console.log = console.error;

let stopped = false;
const lines = createInterface({ input: process.stdin });
const config = await new Promise((resolve, reject) => {
  lines.once("line", (line) => {
    lines.on("line", (command) => { stopped ||= command === "stop"; });
    resolve(JSON.parse(line));
  });
  lines.once("close", () => reject(new Error("no config on stdin")));
});

function say(event, fields = {}) {
  process.stdout.write(`${JSON.stringify({ event, at: Date.now(), ...fields })}\n`);
}

/** What a device's attestation would give: a token from the local issuer, or the very string the config names. */
async function attestation() {
  if (config.attest.token !== undefined) {
    return { token: config.attest.token, expireTimeMillis: Date.now() + HOUR_MS };
  }
  const reply = await fetch(config.attest.mint, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(config.attest.claims ?? {}),
  });
  if (!reply.ok) throw new Error(`the App Check issuer answered ${reply.status}`);
  const { token } = await reply.json();
  // An expired token must still be sent, as a bot would, so the SDK is not told when it ends.
  return { token, expireTimeMillis: Date.now() + HOUR_MS };
}

async function connect() {
  const app = initializeApp({ projectId: config.project, apiKey: "local", appId: config.appId });
  if (config.attest) {
    initializeAppCheck(app, {
      provider: new CustomProvider({ getToken: attestation }),
      isTokenAutoRefreshEnabled: false,
    });
  }
  if (config.signIn) {
    const auth = getAuth(app);
    connectAuthEmulator(auth, config.auth, { disableWarnings: true });
    const { user } = config.signIn === "anonymous"
      ? await signInAnonymously(auth)
      : await createUserWithEmailAndPassword(auth, `${randomUUID()}@example.com`, randomUUID());
    say("signed-in", { uid: user.uid });
  }
  const functions = getFunctions(app, config.region);
  const { hostname, port } = new URL(config.emulator);
  connectFunctionsEmulator(functions, hostname, Number(port));
  const options = { timeout: config.timeoutMs, limitedUseAppCheckTokens: config.limitedUse };
  return config.functions.map((name) => httpsCallable(functions, name, options));
}

/** How long to wait before the same requestId is sent again, where the refusal says that this is safe; else null. */
function waitOf(error, waits) {
  const { reason, retryAfterSeconds } = error.details ?? {};
  if (!config.patient || waits >= MOST_WAITS || !SAME_ID_AGAIN.has(reason)) return null;
  return Number.isFinite(retryAfterSeconds) ? retryAfterSeconds * 1000 * Math.random() : null;
}

let calls = 0;

async function callOnce(callables, worker) {
  const call = calls++;
  const data = config.data[call % config.data.length];
  const callable = callables[call % callables.length];
  const body = config.requestIds ? { requestId: randomUUID(), ...data } : data;
  const ids = { call, worker };
  const began = performance.now();
  const elapsed = () => Math.round(performance.now() - began);
  say("started", { ...ids, requestId: body?.requestId });
  for (let waits = 0; ; waits += 1) {
    try {
      const { data: result } = await callable(body);
      say("answered", { ...ids, ms: elapsed(), result });
      return;
    } catch (error) {
      if (!(error instanceof FunctionsError)) throw error;
      const waitMs = waitOf(error, waits);
      if (waitMs === null) {
        const code = error.code.replace(/^functions\//, "");
        say("refused", { ...ids, ms: elapsed(), code, message: error.message, details: error.details ?? null });
        return;
      }
      say("waiting", { ...ids, waitMs: Math.round(waitMs), reason: error.details.reason });
      await sleep(waitMs);
    }
  }
}

async function work(callables, worker) {
  while (!stopped && (config.calls === null || calls < config.calls)) {
    await callOnce(callables, worker);
    if (config.pauseMs > 0) await sleep(config.pauseMs);
  }
}

try {
  const callables = await connect();
  const workers = Array.from({ length: config.workers }, (_, worker) => worker);
  if (config.openTogether) await Promise.all(workers.map((worker) => callOnce(callables, worker)));
  await Promise.all(workers.map((worker) => work(callables, worker)));
  say("done", { calls });
} catch (error) {
  say("failed", { message: String(error?.stack ?? error) });
  process.exitCode = 1;
}
// The SDK keeps timers and sockets open; wait for the last line to leave, then end.
process.stdout.write("", () => process.exit());
