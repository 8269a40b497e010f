// What a client does, in Node and in a browser alike: it signs in, calls the backend as its config says, and tells of
// each event: signed-in, started, message, waiting, answered, refused, done.

import { initializeApp } from "firebase/app";
import { CustomProvider, initializeAppCheck } from "firebase/app-check";
import { connectAuthEmulator, createUserWithEmailAndPassword, getAuth, signInAnonymously } from "firebase/auth";
import { FunctionsError, connectFunctionsEmulator, getFunctions, httpsCallable } from "firebase/functions";

const HOUR_MS = 3_600_000;
const MOST_WAITS = 10;
const SAME_ID_AGAIN = new Set(["contention", "store", "attestation"]);

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Connects and calls. `host` says events, attests, and tells whether to stop. */
export async function run(config, host) {
  const client = new Client(config, host, await connect(config, host));
  const workers = Array.from({ length: config.workers }, (_, worker) => worker);
  if (config.openTogether) await Promise.all(workers.map((worker) => client.callOnce(worker)));
  await Promise.all(workers.map((worker) => client.work(worker)));
  await say(host, "done", { calls: client.calls });
}

function say(host, event, fields = {}) {
  return host.say({ event, at: Date.now(), ...fields });
}

async function connect(config, host) {
  const app = initializeApp({ projectId: config.project, apiKey: "local", appId: config.appId });
  if (config.attest) {
    // An expired token must still be sent, as a bot would, so the SDK is not told when it ends.
    const getToken = async () => ({ token: await host.attest(), expireTimeMillis: Date.now() + HOUR_MS });
    initializeAppCheck(app, { provider: new CustomProvider({ getToken }), isTokenAutoRefreshEnabled: false });
  }
  if (config.signIn) {
    const auth = getAuth(app);
    connectAuthEmulator(auth, config.auth, { disableWarnings: true });
    const { user } = config.signIn === "anonymous"
      ? await signInAnonymously(auth)
      : await createUserWithEmailAndPassword(auth, `${crypto.randomUUID()}@example.com`, crypto.randomUUID());
    say(host, "signed-in", { uid: user.uid });
  }
  const functions = getFunctions(app, config.region);
  const { hostname, port } = new URL(config.emulator);
  connectFunctionsEmulator(functions, hostname, Number(port));
  const options = { timeout: config.timeoutMs, limitedUseAppCheckTokens: config.limitedUse };
  return config.functions.map((name) => httpsCallable(functions, name, options));
}

/** What an app sends next in a tool conversation: the model's turn as it came, and a response to each of its calls. */
function answered(data, result, responses) {
  if (!responses || !result?.functionCalls) return undefined;
  const parts = result.functionCalls.map(({ id, name }) => ({
    functionResponse: { id, name, response: responses[name] },
  }));
  return { ...data, contents: [...data.contents, result.content, { role: "user", parts }] };
}

class Client {
  calls = 0;

  constructor(config, host, callables) {
    Object.assign(this, { config, host, callables });
  }

  async work(worker) {
    const { calls, pauseMs } = this.config;
    while (!this.host.stopped() && (calls === null || this.calls < calls)) {
      await this.callOnce(worker);
      if (pauseMs > 0) await sleep(pauseMs);
    }
  }

  async callOnce(worker) {
    const { config, callables } = this;
    const call = this.calls++;
    const callable = callables[call % callables.length];
    let data = config.data[call % config.data.length];
    while (data !== undefined) data = answered(data, await this.ask(worker, call, callable, data), config.responses);
  }

  /** One call, and again where it is refused for a while: its result, or undefined if it stays refused. */
  async ask(worker, call, callable, data) {
    const { config, host } = this;
    const body = config.requestIds ? { requestId: crypto.randomUUID(), ...data } : data;
    const began = performance.now();
    const tell = (event, fields) =>
      say(host, event, { call, worker, ms: Math.round(performance.now() - began), ...fields });
    tell("started", { requestId: body?.requestId });
    for (let waits = 0; ; waits += 1) {
      try {
        const result = await this.answer(callable, body, tell);
        tell("answered", { result });
        return result;
      } catch (error) {
        if (!(error instanceof FunctionsError)) throw error;
        const waitMs = this.waitOf(error, waits);
        if (waitMs === null) {
          const code = error.code.replace(/^functions\//, "");
          tell("refused", { code, message: error.message, details: error.details ?? null });
          return undefined;
        }
        tell("waiting", { waitMs: Math.round(waitMs), reason: error.details.reason });
        await sleep(waitMs);
      }
    }
  }

  async answer(callable, body, tell) {
    const { stream: streams, abortAfter, limitedUse } = this.config;
    if (!streams) return (await callable(body)).data;
    const abort = new AbortController();
    const options = { signal: abort.signal, limitedUseAppCheckTokens: limitedUse };
    const { stream, data } = await callable.stream(body, options);
    // What breaks the stream rejects this too; unheard, it would end a Node process.
    data.catch(() => {});
    let messages = 0;
    try {
      for await (const message of stream) {
        tell("message", { message });
        messages += 1;
        if (messages === abortAfter) abort.abort();
      }
    } catch (error) {
      // The SDK calls an aborted iteration `internal`; `data` tells it as what it is.
      if (!abort.signal.aborted) throw error;
    }
    return await data;
  }

  /** How long to wait before the same requestId is sent again, where the refusal says that this is safe; else null. */
  waitOf(error, waits) {
    const { reason, retryAfterSeconds } = error.details ?? {};
    if (!this.config.patient || waits >= MOST_WAITS || !SAME_ID_AGAIN.has(reason)) return null;
    return Number.isFinite(retryAfterSeconds) ? retryAfterSeconds * 1000 * Math.random() : null;
  }
}
