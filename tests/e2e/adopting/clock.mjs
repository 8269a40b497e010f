// Ten times as fast, so that a test need not wait for `retryAfterSeconds`.

const { setTimeout: real } = globalThis;
globalThis.setTimeout = (run, ms, ...rest) => real(run, ms / 10, ...rest);
