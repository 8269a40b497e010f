import { connectFunctionsEmulator, getFunctions as realFunctions } from "real-firebase/functions";

export * from "real-firebase/functions";

export function getFunctions(app, region) {
  const functions = realFunctions(app, region);
  const { hostname, port } = new URL(process.env.FUNCTIONS);
  connectFunctionsEmulator(functions, hostname, Number(port));
  return functions;
}
