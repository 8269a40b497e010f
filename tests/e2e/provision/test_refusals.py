"""What provisioning refuses before it changes anything, and what it tells of the project."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from scripts.local.layout import PROJECT, ROOT
from scripts.local.standins.admin.service_usage import SERVICES as APIS
from scripts.local.wire import call
from scripts.provision.running import INTERRUPTED
from tests.e2e.budgets import ACCOUNT
from tests.e2e.provision.world import CAPS, DONE, FIRESTORE, MONEY, NOTHING, SERVICES, TO_DO, WRONG, World

ID = ACCOUNT.removeprefix("billingAccounts/")
OTHER = "0A0A0A-0B0B0B-0C0C0C"
ROLE_OF_ANOTHER = {"role": "roles/viewer", "members": ["user:somebody@app.example"]}
CONDITIONAL = {
    "role": "roles/datastore.user",
    "members": ["user:somebody@app.example"],
    "condition": {"title": "until", "expression": 'request.time < timestamp("2030-01-01T00:00:00Z")'},
}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"reseller": True}, "reseller accounts no spend caps", id="reseller"),
        pytest.param({"currency": "EUR"}, "the billing account is in EUR", id="currency"),
        pytest.param({"open": False}, "is closed", id="closed"),
    ],
)
def test_an_unfit_billing_account_is_refused(world: World, fields: Mapping[str, object], words: str) -> None:
    world.tell("account", account=ID, **fields)

    assert world.run("plan") == WRONG
    assert world.apply() == WRONG

    assert words in world.told()
    assert world.changes() == {}


def test_a_resellers_account_may_have_alerts(world: World) -> None:
    world.tell("account", account=ID, reseller=True)
    world.write({})

    assert world.apply() == DONE

    assert len(world.budgets()) == 1


def test_an_account_that_does_not_pay_for_the_project_is_refused(world: World) -> None:
    world.tell("account", account=OTHER)
    world.tell("project", project=PROJECT, account=OTHER)

    assert world.run("plan") == WRONG

    assert f"but billingAccounts/{OTHER} pays for {PROJECT}" in world.told()


def test_a_project_without_billing_is_refused(world: World) -> None:
    world.tell("project", project=PROJECT, account="")

    assert world.run("plan") == WRONG

    assert "gcloud billing projects link" in world.told()


def test_a_service_that_the_catalog_calls_otherwise_is_refused_until_its_id_is_confirmed(world: World) -> None:
    world.tell("catalog", service=SERVICES["gemini"], displayName="Something else")

    assert world.run("plan") == WRONG
    assert "the catalog calls AEFD-7695-64FA 'Something else'" in world.told()

    world.write(more=f'[services]\ngemini = "{SERVICES["gemini"]}"')
    assert world.run("plan") == TO_DO


@pytest.mark.parametrize("service", [SERVICES["functions"], FIRESTORE])
def test_a_service_that_the_catalog_does_not_have_is_refused(world: World, service: str) -> None:
    world.tell("catalog", service=service, drop=True)

    assert world.run("plan") == WRONG

    assert f"the catalog has no service {service}" in world.told()


def test_a_catalog_in_pages_is_read_to_its_end(world: World) -> None:
    world.tell("catalog", most=3)

    assert world.run("plan") == TO_DO


@pytest.mark.parametrize(
    ("caps", "words"),
    [({"firestore": "1 USD"}, "Firestore has no spend cap"), ({"maps": "1 USD"}, "is no service known here")],
)
def test_a_file_that_is_wrong_is_refused_before_any_request(world: World, caps: Mapping[str, str], words: str) -> None:
    world.write(caps)

    assert world.apply() == WRONG

    assert words in world.told()
    assert call("GET", f"{world.standins}/_log/admin").json == []


def test_a_real_project_is_never_provisioned_against_an_emulator(world: World) -> None:
    world.file.write_text(world.file.read_text().replace(PROJECT, "my-app"))

    assert world.run("plan") == WRONG

    assert "my-app is a real project: unset FIREBREAK_STANDINS and FIRESTORE_EMULATOR_HOST" in world.told()


def test_missing_permissions_are_listed_and_nothing_is_begun(world: World) -> None:
    missing = ["billing.budgets.configureSpendCap", "billing.resourcebudgets.configureSpendCap"]
    world.tell("deny", permissions=missing)

    assert world.run("plan") == TO_DO
    assert world.apply() == WRONG

    told = world.told()
    assert "billing.budgets.configureSpendCap on the billing account or" in told
    assert "Billing Account Administrator" in told
    assert world.changes() == {}


def test_the_right_on_the_project_will_do_in_place_of_that_on_the_account(world: World) -> None:
    world.tell("deny", permissions=["billing.budgets.update"])

    _, answer = world.json("plan")

    assert answer["lacks"] == []


def test_what_is_there_already_needs_no_permission_to_be_kept(world: World) -> None:
    world.apply()
    world.tell("deny", permissions=["billing.budgets.create", "billing.resourcebudgets.write"])

    assert world.apply() == NOTHING


def test_who_may_not_grant_on_the_account_is_told_who_can_and_the_rest_is_done(world: World) -> None:
    world.tell("deny", permissions=["billing.accounts.setIamPolicy", "billing.accounts.getIamPolicy"])

    assert world.run("apply", "--yes") == DONE

    assert "gcloud billing accounts add-iam-policy-binding" in world.told()
    assert world.run("plan") == NOTHING


def test_a_part_that_may_not_be_read_is_refused_and_can_be_left_out(world: World) -> None:
    world.tell("deny", permissions=["datastore.indexes.get"])

    assert world.run("plan") == WRONG
    assert "leave this part out with --only" in world.told()
    assert world.apply() == DONE


def test_an_api_that_is_not_enabled_is_named(world: World) -> None:
    enabled = call("GET", f"{world.standins}/_health")
    assert enabled.status == 200
    assert call("POST", f"{world.standins}/_admin/state", {"enabled": ["cloudbilling.googleapis.com"]}).status == 200

    assert world.run("plan") == WRONG

    assert "gcloud services enable cloudresourcemanager.googleapis.com" in world.told()


def test_existing_bindings_stay_as_they_are(world: World) -> None:
    policy = {"bindings": [ROLE_OF_ANOTHER, CONDITIONAL]}
    world.ask("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:setIamPolicy", {"policy": policy})

    assert world.run("apply", "--yes") == DONE

    after = world.ask("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:getIamPolicy")["bindings"]
    assert [binding for binding in after if binding in (ROLE_OF_ANOTHER, CONDITIONAL)] == [ROLE_OF_ANOTHER, CONDITIONAL]
    (ours,) = (b for b in after if b["role"] == "roles/datastore.user" and "condition" not in b)
    assert sorted(member.partition("@")[0] for member in ours["members"]) == [
        "serviceAccount:firebreak-alerts",
        "serviceAccount:firebreak-caps",
        "serviceAccount:firebreak-functions",
    ]


def test_a_policy_that_somebody_changes_meanwhile_is_read_again(world: World) -> None:
    world.script("admin", {"for": "projects.setIamPolicy", "status": 409})

    assert world.run("apply", "--yes") == DONE
    assert world.run("plan") == NOTHING
    assert all(entry["body"]["policy"]["etag"] for entry in world.log("projects.setIamPolicy", "admin"))


def test_the_rights_follow_what_the_file_says_of_the_functions(world: World) -> None:
    world.write(more="[rights]\nvertex = true\ncheck_revoked = true\nreplay_protection = true")

    world.run("apply", "--yes")

    after = world.ask("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:getIamPolicy")["bindings"]
    member = f"serviceAccount:firebreak-functions@{PROJECT}.iam.gserviceaccount.com"
    assert {binding["role"] for binding in after if member in binding["members"]} == {
        "roles/datastore.user",
        "roles/aiplatform.user",
        "roles/firebaseauth.viewer",
        "roles/firebaseappcheck.tokenVerifier",
    }


SERVICE = f"projects/{PROJECT}/locations/us-central1/services/on-budget-alert"
ALERTS = f"serviceAccount:firebreak-alerts@{PROJECT}.iam.gserviceaccount.com"


def test_the_alerts_account_may_invoke_its_one_service_and_no_other(world: World) -> None:
    world.run("apply", "--yes")

    on_service = world.ask("GET", f"run/v2/{SERVICE}:getIamPolicy")["bindings"]
    on_project = world.ask("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:getIamPolicy")["bindings"]
    assert on_service == [{"role": "roles/run.invoker", "members": [ALERTS]}]
    assert "roles/run.invoker" not in {binding["role"] for binding in on_project}


@pytest.mark.parametrize("state", [{"services": []}, {"enabled": sorted(APIS - {"run.googleapis.com"})}])
def test_before_the_first_deploy_it_says_what_comes_after_it(world: World, state: dict[str, object]) -> None:
    assert call("POST", f"{world.standins}/_admin/state", state).status == 200

    assert world.run("apply", "--yes") == DONE
    assert world.run("plan") == NOTHING
    assert "run `make deploy`, then `apply` again" in world.told()

    deployed = {"services": ["us-central1/on-budget-alert"], "enabled": sorted(APIS)}
    assert call("POST", f"{world.standins}/_admin/state", deployed).status == 200
    assert world.run("plan") == TO_DO
    assert world.run("apply", "--yes") == DONE
    assert world.ask("GET", f"run/v2/{SERVICE}:getIamPolicy")["bindings"]
    assert world.run("plan") == NOTHING


def test_the_plan_says_what_a_day_can_cost_and_what_a_budget_counts(world: World) -> None:
    _, answer = world.json("plan")

    told = "\n".join(answer["report"])
    assert "all users together can spend at most $" in told
    assert "budgets.firestore counts all that is spent" in told


def test_app_check_and_open_keys_are_told_and_not_changed(world: World) -> None:
    keys = [
        {"displayName": "open", "name": "projects/1/locations/global/keys/1"},
        {"displayName": "anywhere", "restrictions": {"apiTargets": [{"service": "maps"}]}},
        {
            "displayName": "closed",
            "restrictions": {
                "apiTargets": [{"service": "maps"}],
                "browserKeyRestrictions": {"allowedReferrers": ["x"]},
            },
        },
    ]
    state = {"apiKeys": keys, "appCheck": {"firestore.googleapis.com": "ENFORCED", "storage": "UNENFORCED"}}
    assert call("POST", f"{world.standins}/_admin/state", state).status == 200

    _, answer = world.json("plan")

    told = "\n".join(answer["report"])
    assert "App Check is UNENFORCED for storage" in told
    assert "firestore.googleapis.com" not in told
    assert "API key 'open' may call every API" in told
    assert "API key 'anywhere' may be used from anywhere" in told
    assert "closed" not in told


def test_wrong_use_is_not_mistaken_for_something_to_do(world: World) -> None:
    assert world.run("aply") == WRONG
    assert world.run("rearm", "gemini", "--amount", "40") == WRONG
    assert world.run("plan", "--only", "money") == WRONG


@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("status",), ("destroy", "--yes")])
def test_every_command_answers_in_json_alone(world: World, command: tuple[str, ...]) -> None:
    status, answer = world.json(*command)

    assert status == (TO_DO if command == ("plan",) else DONE)
    assert answer["target"]["project"] == PROJECT


def press_ctrl_c(process: subprocess.Popen[bytes], _: int) -> None:
    process.send_signal(signal.SIGINT)


def end_the_input(_: subprocess.Popen[bytes], keyboard: int) -> None:
    os.write(keyboard, b"\x04")


@pytest.mark.parametrize("break_off", [press_ctrl_c, end_the_input])
def test_who_breaks_off_at_the_question_gets_json_too(
    world: World, break_off: Callable[[subprocess.Popen[bytes], int], None]
) -> None:
    """At a terminal of its own, as only there anything is asked."""
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "scripts.provision", "apply", *MONEY, "--json", "--file", str(world.file)]
    env = os.environ | {"FIREBREAK_STANDINS": world.standins, "FIRESTORE_EMULATOR_HOST": world.firestore_host}
    env |= {"PYTHONPATH": f"{ROOT / 'functions'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = b""
    while b"Do this?" not in said and (some := os.read(process.stderr.fileno(), 4096)):
        said += some
    break_off(process, keyboard)
    out, _ = process.communicate(timeout=110)
    os.close(keyboard)
    os.close(terminal)

    assert process.returncode == INTERRUPTED
    assert json.loads(out)["errors"]
    assert world.changes() == {}


def test_what_was_not_looked_at_is_not_suggested_to_be_done_without(world: World) -> None:
    world.apply()

    _, topic = world.json("apply", "--yes", "--only", "topic")
    _, caps = world.json("apply", "--yes", "--only", "caps")

    assert topic["env"] == []
    assert [line.partition("=")[0] for line in caps["env"]] == ["BUDGET_POLICIES", "WATCH_CAPS"]


def test_an_error_is_json_too(world: World) -> None:
    world.tell("account", account=ID, currency="EUR")

    status, answer = world.json("plan")

    assert status == WRONG
    assert "write them in EUR" in answer["errors"][0]


def test_the_target_is_told_first(world: World) -> None:
    world.run("plan", *MONEY)

    assert world.capsys.readouterr().err.startswith(f"project {PROJECT}, billing account {ID}, stand-ins at ")


def test_only_one_of_run_and_functions_is_questioned(world: World) -> None:
    _, answer = world.json("plan")
    world.write(CAPS | {"run": "5 USD"})
    _, both = world.json("plan")

    assert [note for note in answer["notes"] if "cap run and functions" in note]
    assert not [note for note in both["notes"] if "cap run and functions" in note]
