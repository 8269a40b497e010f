// Serves firebase-functions-rate-limiter to the bench: one JSON command a line on stdin, one answer a line on stdout.
// {"prepare": shape} makes its users known; {"run": shape} makes its calls. The folder of its packages is argv[2].
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.argv[2]}/`);
const admin = require("firebase-admin");
const { FirebaseFunctionsRateLimiter } = require("firebase-functions-rate-limiter");

admin.initializeApp({ projectId: process.argv[3] });
const firestore = admin.firestore();

const limiterOf = (limit) =>
  FirebaseFunctionsRateLimiter.withFirestoreBackend(
    { name: "rate_limiter", periodSeconds: 86400, maxCalls: limit },
    firestore,
  );

async function prepare({ users, limit, known }) {
  const limiter = limiterOf(limit);
  if (known) for (const user of new Set(users)) await limiter.isQuotaExceededOrRecordUsage(user);
  return {};
}

async function run({ users, threads, limit }) {
  const limiter = limiterOf(limit);
  const latencies = [];
  let admitted = 0;
  let undecided = 0;
  async function caller(first) {
    for (let at = first; at < users.length; at += threads) {
      const began = performance.now();
      try {
        if (!(await limiter.isQuotaExceededOrRecordUsage(users[at]))) admitted += 1;
      } catch {
        undecided += 1;
      }
      latencies.push(performance.now() - began);
    }
  }
  const began = performance.now();
  await Promise.all(Array.from({ length: threads }, (_, first) => caller(first)));
  return { latencies_ms: latencies, seconds: (performance.now() - began) / 1000, admitted, undecided };
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const answer = command.prepare ? await prepare(command.prepare) : await run(command.run);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
