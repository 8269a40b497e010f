"""The tool never changes another project than the one that is meant, and says what it lacks in one line."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.api_core.exceptions import FailedPrecondition, RetryError, ServiceUnavailable
from google.auth.exceptions import RefreshError

from scripts.local.layout import PROJECT, ROOT
from scripts.ops.failure import told
from scripts.ops.target import Target
from tests.emulator.ops.conftest import Ops, ops_at, run
from tests.fault_proxy import Fault, FaultProxy, Way

SHOW = ("switch", "show", "--json")
CHANGE = ("user", "limit", "ann", "0", "--reason", "abuse")


@pytest.mark.parametrize(
    ("project", "host"), [("demo-shop", None), ("demo-shop", ""), ("my-app", "127.0.0.1:8080"), ("my-app", "")]
)
def test_a_project_that_does_not_fit_the_environment_is_refused(project: str, host: str | None) -> None:
    ran = run(*SHOW, "--project", project, env={"FIRESTORE_EMULATOR_HOST": host})

    assert (ran.status, ran.out, ran.said.count("\n")) == (2, "", 1)
    assert "FIRESTORE_EMULATOR_HOST" in ran.said


def test_no_project_is_guessed() -> None:
    ran = run(*SHOW, env={"GCLOUD_PROJECT": "my-app", "GOOGLE_CLOUD_PROJECT": "my-app"})

    assert (ran.status, ran.out) == (2, "")
    assert "--project" in ran.said


def test_the_target_is_named_first(ops: Ops, firestore_host: str) -> None:
    assert ops(*SHOW).said.startswith(f"project {PROJECT} on the emulator at {firestore_host}\n")


def cloud(folder: Path, *, credentials: bool) -> dict[str, str]:
    """An environment in which the cloud is meant, and in which there is no network to be asked for credentials."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "CLOUDSDK_CONFIG": str(folder), "NO_GCE_CHECK": "true"}
    if not credentials:
        return env
    account = folder / "account.json"
    parts = {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}
    account.write_text(json.dumps(parts))
    return env | {"GOOGLE_APPLICATION_CREDENTIALS": str(account)}


def real(*words: str, env: dict[str, str], stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    """The real command, for a project in the cloud."""
    command = [sys.executable, "-m", "scripts.ops", *words, "--project", "my-app"]
    return subprocess.run(
        command, check=False, cwd=ROOT, env=env, stdin=stdin, capture_output=True, text=True, timeout=60
    )


def test_missing_credentials_are_one_line_with_the_way_out(tmp_path: Path) -> None:
    ran = real(*SHOW, env=cloud(tmp_path, credentials=False))

    target, failure = ran.stderr.splitlines()
    assert (ran.returncode, ran.stdout) == (1, "")
    assert target == "project my-app (production)"
    assert "gcloud auth application-default login" in failure


def test_a_change_to_production_asks_and_without_a_terminal_is_refused(tmp_path: Path) -> None:
    ran = real(*CHANGE, env=cloud(tmp_path, credentials=True))

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--yes" in ran.stderr
    assert "read 0, wrote 0" in ran.stderr


def test_a_no_changes_nothing(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")

    ran = real(*CHANGE, env=cloud(tmp_path, credentials=True), stdin=theirs)

    os.close(ours)
    os.close(theirs)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "set the daily limit of ann to 0 in project my-app (production)?" in ran.stderr
    assert ran.stderr.endswith("read 0, wrote 0\nnothing was changed\n")


def test_an_interruption_ends_it_in_one_line() -> None:
    command = [sys.executable, "-m", "scripts.ops", *SHOW, "--project", "demo-shop"]
    # Nobody listens there, and a read is tried for seconds.
    env = os.environ | {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:9"}
    ran = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert ran.stderr is not None
    ran.stderr.readline()

    ran.send_signal(signal.SIGINT)

    out, said = ran.communicate(timeout=30)
    assert (ran.returncode, out) == (130, "")
    assert said.endswith("interrupted; what was done stays done\n")


@pytest.mark.parametrize(
    ("status", "way_out"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, "roles/datastore.user"),
        (grpc.StatusCode.UNAUTHENTICATED, "gcloud auth application-default login"),
        (grpc.StatusCode.NOT_FOUND, "no database (default)"),
    ],
)
def test_an_error_of_the_store_is_one_line_with_the_way_out(
    proxy: FaultProxy, faults: FaultProxy, status: grpc.StatusCode, way_out: str
) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, status))

    ran = ops_at(proxy.address)("user", "show", "ann", "--json")

    assert (ran.status, ran.out) == (1, "")
    assert way_out in ran.said.splitlines()[-1]
    assert "Traceback" not in ran.said


def refused(kind: type[Exception], *words: object) -> Exception:
    return kind(*words)


PLUGIN = refused(ServiceUnavailable, "Getting metadata from plugin failed with error: Reauthentication is needed")


@pytest.mark.parametrize(
    ("error", "way_out"),
    [
        (refused(RefreshError, "invalid_grant"), "gcloud auth application-default login"),
        (PLUGIN, "gcloud auth application-default login"),
        (refused(RetryError, "Timeout of 15.0s exceeded", PLUGIN), "gcloud auth application-default login"),
        (refused(ServiceUnavailable, "no route to host"), "did not answer"),
        (refused(FailedPrecondition, "The query requires an index."), "firestore.indexes.json"),
    ],
)
def test_what_no_emulator_says_is_told_too(error: Exception, way_out: str) -> None:
    assert way_out in told(error, Target(project="my-app", emulator=None))
