"""docs/ci.md: the workflow can run what it names, with the versions that this tree needs."""

import json
import re
from typing import Any

import yaml

from scripts.local.layout import ROOT

PAGE = (ROOT / "docs" / "ci.md").read_text()


def workflow() -> dict[str, Any]:
    (block,) = re.findall(r"<!-- block: workflow -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    read: dict[str, Any] = yaml.safe_load(block)
    return read


def test_the_workflow_signs_in_without_a_key_and_asks_nothing() -> None:
    job = workflow()["jobs"]["deploy"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    (auth,) = [step["with"] for step in job["steps"] if "google-github-actions/auth" in step.get("uses", "")]

    assert commands == ["make deploy PROJECT=my-app YES=1"]
    assert set(auth) == {"workload_identity_provider", "service_account"}
    assert workflow()["permissions"]["id-token"] == "write"


def test_its_versions_are_those_that_this_tree_needs() -> None:
    given = {k: v for step in workflow()["jobs"]["deploy"]["steps"] for k, v in step.get("with", {}).items()}
    node = json.loads((ROOT / "package.json").read_text())["engines"]["node"]

    assert given["python-version"] == (ROOT / ".python-version").read_text().strip()
    assert int(given["node-version"]) >= int(node.removeprefix(">="))


def test_every_argument_of_make_that_the_page_names_is_one() -> None:
    deploy = re.search(r"^deploy:.*\n\t(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert deploy is not None
    for name in set(re.findall(r"\b([A-Z]+)=1\b", PAGE)):
        assert f"$({name})" in deploy[1]
