"""What `--non-interactive --force` means in the Firebase CLI that is pinned, for a codebase of its own."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts.local.deployed import FUNCTIONS
from scripts.local.dotenv import dotenv
from scripts.local.layout import ROOT
from tests.e2e.test_deploy import manifest

HARNESS = Path(__file__).with_name("deploy_force.cjs")
ONLY = "functions:firebreak"
# What the project has already: ours, ours of an earlier version, and theirs.
OURS = {"id": "generate", "codebase": "firebreak"}
OLD = {"id": "an_old_one_of_ours", "codebase": "firebreak"}
THEIRS = [{"id": "checkout", "codebase": "default"}, {"id": "by_hand"}, {"id": "old_cli", "codebase": "orders"}]


BUDGET = "01D4EE-079462-DFD6EC/11111111-2222-3333-4444-555555555555: 100%=trip(all)"
RETRIED = {
    "id": "on_budget_alert",
    "codebase": "firebreak",
    "eventTrigger": {
        "eventType": "google.cloud.pubsub.topic.v1.messagePublished",
        "eventFilters": {"topic": "budget-alerts"},
        "retry": True,
    },
}


def ask(*have: dict[str, Any], force: bool) -> dict[str, Any]:
    """What the CLI would do to a project that has these functions."""
    asked = {
        "manifest": manifest(BUDGET_POLICIES=BUDGET),
        "envs": dict(dotenv(FUNCTIONS, "shop")),
        "force": force,
        "have": have,
    }
    done = subprocess.run(
        ["node", str(HARNESS), ONLY], cwd=ROOT, input=json.dumps(asked), check=True, stdout=subprocess.PIPE, text=True
    )
    answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index('{"codebases"') :])
    return answer


@pytest.fixture(scope="module")
def forced() -> dict[str, Any]:
    """A project that has all sorts of functions."""
    return ask(OURS, OLD, *THEIRS, force=True)


@pytest.fixture(scope="module")
def unforced() -> dict[str, Any]:
    return ask(OURS, OLD, *THEIRS, force=False)


def test_without_force_the_cli_stops_for_each_question(unforced: dict[str, Any]) -> None:
    assert "failure policy" in unforced["retries"]["stopped"]
    assert "deletion cannot proceed" in unforced["deletion"]["stopped"]
    assert "cleanup policy" in unforced["cleanup"]["stopped"]


def test_with_force_it_goes_on(forced: dict[str, Any]) -> None:
    assert [forced[step] for step in ("retries", "bill", "deletion")] == [{"ok": True}] * 3
    assert forced["cleanup"] == {"ok": 1}


def test_all_that_it_deletes_is_of_this_codebase(forced: dict[str, Any]) -> None:
    assert forced["codebases"] == ["firebreak"]
    assert forced["deletes"] == ["an_old_one_of_ours"]


def test_a_clean_up_policy_is_set_only_where_there_is_none_and_nobody_opted_out(forced: dict[str, Any]) -> None:
    assert forced["setsUp"] == [True, False, False]


def test_no_setting_is_left_to_ask_for(forced: dict[str, Any]) -> None:
    assert "THREADS" in forced["params"]["ok"]


def test_the_bill_for_instances_that_wait_does_not_grow_by_itself(unforced: dict[str, Any]) -> None:
    assert unforced["bill"] == {"ok": True}


def test_a_function_that_is_retried_already_is_not_asked_about_again() -> None:
    """So that a first deploy in a terminal is a way too, until the code wants something new."""
    assert ask(RETRIED, force=False)["retries"] == {"ok": True}
