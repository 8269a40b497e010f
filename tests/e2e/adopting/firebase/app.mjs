export * from "real-firebase/app";
