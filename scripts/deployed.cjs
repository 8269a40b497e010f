// Writes what a project's Firestore has now, and what this tree would put there, into two folders for a diff.
// Usage: node scripts/deployed.cjs PROJECT FOLDER; signs in as the Firebase CLI does.

const fs = require("node:fs");
const path = require("node:path");
const firebase = require("firebase-tools");
const { getLatestRulesetName, getRulesetContent, listAllReleases } = require("firebase-tools/lib/gcp/rules");

const [project, folder] = process.argv.slice(2);

/** The same indexes in the same order, one a line; what the API adds to every one of them is left out. */
function lines({ indexes = [], fieldOverrides = [] }) {
  const plain = (item) => {
    const { density, ttl, ...rest } = item;
    return JSON.stringify(ttl ? { ...rest, ttl } : rest, (_, value) =>
      value && value.constructor === Object ? Object.fromEntries(Object.entries(value).sort()) : value);
  };
  return [...indexes.map(plain), ...fieldOverrides.map(plain)].sort().map((line) => `${line}\n`).join("");
}

function write(name, rules, indexes) {
  fs.mkdirSync(path.join(folder, name), { recursive: true });
  fs.writeFileSync(path.join(folder, name, "firestore.rules"), rules);
  fs.writeFileSync(path.join(folder, name, "indexes"), lines(indexes));
}

async function main() {
  const indexes = await firebase.firestore.indexes({ project });
  const name = await getLatestRulesetName(project, "cloud.firestore", await listAllReleases(project));
  const files = name ? await getRulesetContent(name) : [];
  write("theirs", files.map((file) => file.content).join("\n"), indexes);
  write("ours", fs.readFileSync("firestore.rules"), JSON.parse(fs.readFileSync("firestore.indexes.json")));
}

main().catch((error) => {
  process.stderr.write(`deploy: the rules and indexes of ${project} cannot be read: ${error.message ?? error}\n`);
  process.exitCode = 1;
});
