// What a browser's reCAPTCHA would give comes from the local issuer; each token is told to the test.

import { CustomProvider } from "real-firebase/app-check";

export * from "real-firebase/app-check";

async function getToken() {
  const reply = await fetch(process.env.MINT, { method: "POST" });
  const minted = await reply.json();
  console.log(JSON.stringify({ minted: minted.token }));
  return minted;
}

export class ReCaptchaEnterpriseProvider extends CustomProvider {
  constructor() {
    super({ getToken });
  }
}
