// Asks the pinned Firebase CLI's own code what a deploy of `{manifest, envs, force, have}`, read from stdin, would do.

const fs = require("node:fs");
const cli = (name) => require(`firebase-tools/lib/${name}`);
const { buildFromV1Alpha1 } = cli("deploy/functions/runtimes/discovery/v1alpha1");
const { toBackend } = cli("deploy/functions/build");
const { ParamValue, resolveParams } = cli("deploy/functions/params");
const artifacts = cli("functions/artifacts");
const backend = cli("deploy/functions/backend");
const helper = cli("deploy/functions/functionsDeployHelper");
const planner = cli("deploy/functions/release/planner");
const prompts = cli("deploy/functions/prompts");

const asked = JSON.parse(fs.readFileSync(0, "utf8"));
const CONFIG = [{ source: "functions", codebase: "firebreak" }];

/** What the CLI answers, or the words with which it stops. */
async function outcome(step) {
  try {
    return { ok: (await step()) ?? true };
  } catch (error) {
    return { stopped: error.message };
  }
}

async function main() {
  const options = { nonInteractive: true, force: asked.force };
  const only = process.argv[2];
  const filters = helper.getEndpointFilters({ only }, CONFIG);
  const build = buildFromV1Alpha1(asked.manifest, "shop", "us-central1", "python313");
  const plain = build.params.filter((param) => param.type !== "secret");
  const params = await outcome(async () => Object.keys((await resolveParams({
    params: plain, firebaseConfig: { projectId: "shop" }, codebase: "firebreak", nonInteractive: true,
    userEnvs: Object.fromEntries(Object.entries(asked.envs).map(([name, value]) =>
      [name, new ParamValue(value, false, { string: true, number: true, boolean: false })])),
  })).paramValues));
  const values = { THREADS: new ParamValue(asked.envs.THREADS ?? "8", false, { string: true, number: true }) };
  values.PROJECT_ID = new ParamValue("shop", true, { string: true });
  const want = toBackend(build, values);
  for (const endpoint of backend.allEndpoints(want)) endpoint.codebase = "firebreak";
  const existing = asked.have.map((endpoint) => ({
    project: "shop", region: "us-central1", platform: "gcfv2", runtime: "python313",
    labels: { "deployment-tool": "cli-firebase" }, ...(endpoint.eventTrigger ? {} : { httpsTrigger: {} }), ...endpoint,
  }));
  const have = helper.groupEndpointsByCodebase({ firebreak: want }, existing).firebreak;
  const plan = await planner.createDeploymentPlan({
    codebase: "firebreak", wantBackend: want, haveBackend: have, projectId: "shop", filters,
  });
  const deleted = Object.values(plan.regionalChangesets).flatMap((changes) => changes.endpointsToDelete);
  process.stdout.write(JSON.stringify({
    codebases: helper.targetCodebases(CONFIG.concat({ source: "theirs", codebase: "default" }), filters),
    params,
    retries: await outcome(() => prompts.promptForFailurePolicies(options, want, have)),
    bill: await outcome(() => prompts.promptForMinInstances(options, want, have)),
    deletes: deleted.map((endpoint) => endpoint.id).sort(),
    deletion: await outcome(() => prompts.promptForFunctionDeletion(deleted, options)),
    cleanup: await outcome(() => prompts.promptForCleanupPolicyDays(options, ["us-central1"])),
    setsUp: await policies([{}, { cleanupPolicies: { ours: {} } }, { labels: { [artifacts.OPT_OUT_LABEL_KEY]: "true" } }]),
  }));
}

/** For repositories in these states, whether a deploy would set a clean-up policy. */
async function policies(repositories) {
  const found = [];
  for (const [index, repository] of repositories.entries()) {
    artifacts.getRepoCache.set(artifacts.makeRepoPath("shop", `region-${index}`), repository);
    const { locationsToSetup } = await artifacts.checkCleanupPolicy("shop", [`region-${index}`]);
    found.push(locationsToSetup.length > 0);
  }
  return found;
}

main();
