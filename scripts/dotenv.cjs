// Prints, as JSON, the settings that the Firebase CLI takes for a project, read by the CLI's own code.
// Usage: node scripts/dotenv.cjs FUNCTIONS PROJECT; PROJECT may be an alias of .firebaserc.

const fs = require("node:fs");
const path = require("node:path");
const { loadUserEnvs, parse } = require("firebase-tools/lib/functions/env");
const { loadRC } = require("firebase-tools/lib/rc");

const [functions, asked] = process.argv.slice(2);
const tree = path.dirname(path.resolve(functions));

/** Lines whose value ends at a `#` outside quotes; `values` are those of the whole file, for a line may be inside quotes. */
function cuts(file) {
  const data = fs.readFileSync(path.join(functions, file), "utf8");
  const values = parse(data).envs;
  return data.split(/\r\n?|\n/).flatMap((text, index) => {
    const [entry] = Object.entries(parse(text).envs);
    if (!entry || values[entry[0]] !== entry[1]) return [];
    const [name, value] = entry;
    const raw = text.slice(text.indexOf("=") + 1).trim();
    return raw.startsWith(value) && raw.slice(value.length).trim().startsWith("#") ? [{ file, line: index + 1, name }] : [];
  });
}

/** What is wrong, without the CLI's headline: each name or line on its own. */
function faults(error) {
  return error.children?.length ? error.children.map((child) => `${error.message} ${child.message}`) : [error.message];
}

function main() {
  const rc = loadRC({ cwd: tree });
  const alias = rc.hasProjectAlias(asked) ? asked : undefined;
  const project = rc.resolveAlias(asked);
  const isEmulator = project.startsWith("demo-");
  const files = [".env", `.env.${project}`, ...(alias ? [`.env.${alias}`] : []), ...(isEmulator ? [".env.local"] : [])];
  const found = { project, values: {}, cuts: [], faults: [] };
  try {
    found.values = loadUserEnvs({ functionsSource: functions, projectDir: tree, projectId: project, projectAlias: alias, isEmulator });
    found.cuts = files.filter((file) => fs.existsSync(path.join(functions, file))).flatMap(cuts);
  } catch (error) {
    found.faults = faults(error);
  }
  process.stdout.write(`${JSON.stringify(found)}\n`);
}

main();
