import { connectAuthEmulator, getAuth as realAuth } from "real-firebase/auth";

export * from "real-firebase/auth";

export function getAuth(app) {
  const auth = realAuth(app);
  if (!auth.emulatorConfig) connectAuthEmulator(auth, process.env.AUTH, { disableWarnings: true });
  return auth;
}
