"""What `firebase deploy` would do: the manifest that the CLI reads, and the packages that the cloud installs."""

import hashlib
import json
import os
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.local.deployed import FUNCTIONS
from scripts.local.dotenv import dotenv
from scripts.local.layout import ROOT

CALLABLES = ["generate", "mutate", "traverse", "usage"]
BUDGET = "01D4EE-079462-DFD6EC/11111111-2222-3333-4444-555555555555: 50%=record"
# The script that the CLI runs, and what it reads from it.
MANIFEST = "from firebase_functions.private import serving; print(serving.functions_as_yaml(serving.get_functions()))"


@cache
def manifest(**knobs: str) -> dict[str, Any]:
    """With what functions/.env holds beside the defaults: the CLI gives it to the script."""
    env = {"PATH": os.environ["PATH"], "GCLOUD_PROJECT": "my-app", "FIREBASE_CONFIG": '{"projectId":"my-app"}'} | knobs
    command = [sys.executable, "-c", MANIFEST]
    done = subprocess.run(command, cwd=FUNCTIONS, env=env, check=True, capture_output=True, text=True)
    read: dict[str, Any] = yaml.safe_load(done.stdout)
    return read


def test_every_function_is_deployed_under_its_own_name() -> None:
    endpoints = manifest(GRAPH="true", BUDGET_POLICIES=BUDGET, WATCH_CAPS="true")["endpoints"]

    assert sorted(endpoints) == sorted([*CALLABLES, "on_budget_alert", "watch_caps"])
    assert all(endpoint["entryPoint"] == name for name, endpoint in endpoints.items())


@pytest.mark.parametrize("off", [{}, {"GRAPH": "false", "BUDGET_POLICIES": "", "WATCH_CAPS": "false"}])
def test_what_no_setting_asks_for_is_not_deployed(off: dict[str, str]) -> None:
    assert sorted(manifest(**off)["endpoints"]) == ["generate", "usage"]


@pytest.mark.parametrize(
    ("knobs", "names"),
    [({"GRAPH": "true"}, {"mutate", "traverse"}), ({"BUDGET_POLICIES": BUDGET}, {"on_budget_alert"})],
)
def test_a_setting_deploys_what_it_asks_for(knobs: dict[str, str], names: set[str]) -> None:
    assert set(manifest(**knobs)["endpoints"]) == {"generate", "usage"} | names


def test_the_local_stack_runs_all_of_it() -> None:
    local = dotenv(FUNCTIONS, "demo-firebreak")

    assert local["GRAPH"] == "true"
    assert local["BUDGET_POLICIES"]


@pytest.mark.parametrize("name", CALLABLES)
def test_every_function_states_what_it_runs_on(name: str) -> None:
    endpoint = manifest(GRAPH="true")["endpoints"][name]

    assert endpoint["callableTrigger"] == {}
    assert endpoint["region"] == ["us-central1"]
    assert endpoint["availableMemoryMb"] == 512
    assert endpoint["cpu"] == 1
    assert (endpoint["minInstances"], endpoint["maxInstances"]) == (0, 10)
    assert endpoint["concurrency"] == "{{ params.THREADS }}"
    assert endpoint["timeoutSeconds"] == 120
    assert endpoint["serviceAccountEmail"] == "firebreak-functions@"


def test_only_the_function_that_calls_the_model_gets_its_key() -> None:
    secrets = {
        name: e["secretEnvironmentVariables"]
        for name, e in manifest(GRAPH="true", BUDGET_POLICIES=BUDGET)["endpoints"].items()
    }

    assert {name for name, bound in secrets.items() if bound} == {"generate"}
    assert secrets["generate"] == [{"key": "GEMINI_API_KEY"}]


def test_the_budgets_function_is_retried_and_runs_as_an_account_of_its_own() -> None:
    endpoint = manifest(BUDGET_POLICIES=BUDGET)["endpoints"]["on_budget_alert"]

    assert endpoint["eventTrigger"]["eventFilters"] == {"topic": "budget-alerts"}
    assert endpoint["eventTrigger"]["retry"] is True
    assert endpoint["serviceAccountEmail"] == "firebreak-alerts@"
    assert endpoint["maxInstances"] == 2


def test_the_webhooks_secret_is_asked_for_only_where_there_is_one() -> None:
    endpoint = manifest(BUDGET_WEBHOOK="true", BUDGET_POLICIES=BUDGET)["endpoints"]["on_budget_alert"]

    assert endpoint["secretEnvironmentVariables"] == [{"key": "BUDGET_WEBHOOK_URL"}]
    assert [param["name"] for param in manifest()["params"]] == ["GEMINI_API_KEY", "THREADS"]


def test_the_watch_over_caps_is_deployed_only_where_it_is_wanted() -> None:
    endpoint = manifest(WATCH_CAPS="true")["endpoints"]["watch_caps"]

    assert endpoint["scheduleTrigger"]["schedule"] == "*/5 * * * *"
    assert endpoint["serviceAccountEmail"] == "firebreak-caps@{{ params.PROJECT_ID }}.iam.gserviceaccount.com"
    assert endpoint["maxInstances"] == 1
    assert {api["api"] for api in manifest().get("requiredAPIs", [])} & {"cloudscheduler.googleapis.com"} == set()


def test_concurrency_is_the_number_of_threads() -> None:
    params = {param["name"]: param for param in manifest()["params"]}

    assert params["THREADS"]["type"] == "int"
    assert dotenv(FUNCTIONS, "my-app")["THREADS"] == str(params["THREADS"]["default"])


def test_what_is_uploaded_holds_no_secret_and_no_leftovers() -> None:
    (codebase,) = json.loads((ROOT / "firebase.json").read_text())["functions"]

    assert codebase["codebase"] == "firebreak"
    assert codebase["runtime"] == "python313"
    assert {"venv", "**/__pycache__/**", "*.local"} <= set(codebase["ignore"])
    assert "GEMINI_API_KEY" not in dotenv(FUNCTIONS, "my-app")


def test_main_is_imported_with_what_the_cloud_installs_alone_and_without_the_model_client() -> None:
    python = cloud_python()
    code = "import main, sys; print('google.genai' in sys.modules, main.generate.__name__)"
    env = {"PATH": os.environ["PATH"], "GCLOUD_PROJECT": "my-app"}

    done = subprocess.run([python, "-c", code], cwd=FUNCTIONS, env=env, check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["False", "generate"]
    assert (python.parent / "functions-framework").exists()


def cloud_python() -> Path:
    """The Python of a venv made from functions/requirements.txt alone, made anew when that file changes."""
    requirements = FUNCTIONS / "requirements.txt"
    folder = ROOT / ".local" / f"cloud-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    done = folder / "done"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(requirements)]
        subprocess.run(command, check=True)
        done.touch()
    return python
