// Loaded into the Firebase CLI. Its agent keeps connections to a function's process for 5 s, and the process closes them
// after 2 s: a request that is sent at that moment fails, and the CLI ends the process.
const http = require("node:http");

http.globalAgent = new http.Agent({ keepAlive: false });
