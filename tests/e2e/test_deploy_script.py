"""`scripts/deploy`: what it hands to the Firebase CLI, and how it reads what a project has."""

import json
import os
import pty
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.local.environment import scrubbed
from scripts.local.layout import HOST, ROOT

NODE = shutil.which("node")
URLS = ("FIREBASE_RULES_URL", "FIRESTORE_URL", "FIREBASE_RESOURCEMANAGER_URL", "FIREBASE_TOKEN_URL")
FUNCTIONS = "deploy --only functions:firebreak --project shop"
UNASKED = f"{FUNCTIONS} --non-interactive --force"
FIRESTORE = "deploy --only firestore:rules,firestore:indexes --project shop"
THEIR_RULES = "service cloud.firestore { match /databases/{d}/documents { match /shop/{id} { allow read; } } }\n"
THEIR_INDEX = {
    "name": "projects/shop/databases/(default)/collectionGroups/orders/indexes/1",
    "queryScope": "COLLECTION",
    "state": "READY",
    "fields": [{"fieldPath": "day", "order": "ASCENDING"}, {"fieldPath": "sum", "order": "DESCENDING"}],
}
THEIR_RELEASE = {
    "name": "projects/shop/releases/cloud.firestore",
    "rulesetName": "projects/shop/rulesets/7",
    "createTime": "2026-01-01T00:00:00Z",
}
API = {
    "/v1/projects/shop:testIamPermissions": {"permissions": ["datastore.indexes.list", "firebase.projects.get"]},
    "/v1/projects/shop/databases/(default)/collectionGroups/-/indexes": {"indexes": [THEIR_INDEX]},
    "/v1/projects/shop/databases/(default)/collectionGroups/-/fields": {"fields": []},
    "/v1/projects/shop/releases": {"releases": [THEIR_RELEASE]},
    "/oauth2/v3/token": {"access_token": "a", "expires_in": 3600},
    "/v1/projects/shop/rulesets/7": {"source": {"files": [{"name": "firestore.rules", "content": THEIR_RULES}]}},
}


class Google(BaseHTTPRequestHandler):
    """As much of Google's APIs as it takes to read a project's rules and indexes."""

    def do_GET(self) -> None:
        body = json.dumps(API[self.path.split("?")[0]]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def google() -> Iterator[str]:
    server = ThreadingHTTPServer((HOST, 0), Google)
    threading.Thread(target=server.serve_forever).start()
    yield f"http://{HOST}:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose Firebase CLI writes down what it was asked; `node` reads rules that differ from ours."""
    for name in ("scripts/deploy", "firestore.rules", "firestore.indexes.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "scripts/__init__.py").write_bytes((ROOT / "scripts/__init__.py").read_bytes())
    (tmp_path / "scripts/local").symlink_to(ROOT / "scripts/local")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/.env").write_bytes((ROOT / "functions/.env").read_bytes())
    for name in ("venv", "firebreak"):
        (tmp_path / "functions" / name).symlink_to(ROOT / "functions" / name)
    for name, text in {
        "node_modules/.bin/firebase": 'echo "$@" >> asked',
        "bin/node": f'case "$1" in *dotenv.cjs) exec "{NODE}" "$@";; esac; '
        'mkdir -p "$3/ours" "$3/theirs"; echo ours > "$3/ours/firestore.rules"; '
        'echo "${THEIRS:-theirs}" > "$3/theirs/firestore.rules"',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def deploy(tree: Path, *arguments: str, typed: str | None = None, **env: str) -> tuple[int, Sequence[str]]:
    """Exit status, and what the CLI was asked; with `typed` it runs in a terminal where that is typed."""
    env = {**os.environ, "PATH": f"{tree / 'bin'}:{os.environ['PATH']}", **env}
    command = [str(tree / "scripts/deploy"), *arguments]
    ours, its = pty.openpty()
    os.write(ours, f"{typed}\n".encode())
    stdin = subprocess.DEVNULL if typed is None else its
    status = subprocess.run(command, env=env, stdin=stdin, capture_output=True, check=False)
    os.close(ours)
    os.close(its)
    asked = tree / "asked"
    return status.returncode, asked.read_text().splitlines() if asked.exists() else []


def test_it_deploys_the_functions_of_this_codebase_and_nothing_else(tree: Path) -> None:
    assert deploy(tree, "shop", typed="") == (0, [FUNCTIONS])


def test_without_a_terminal_it_wants_to_be_told_that_nobody_is_asked(tree: Path) -> None:
    assert deploy(tree, "shop") == (1, [])
    assert deploy(tree, "shop", "", "1") == (0, [UNASKED])


@pytest.mark.parametrize("line", ['MAX_DAILY_TOKENS="100000"', "export MAX_DAILY_TOKENS=100000 # a day"])
def test_settings_may_be_written_as_the_cli_reads_them(tree: Path, line: str) -> None:
    (tree / "functions/.env.shop").write_text(f"{line}\n")

    assert deploy(tree, "shop", "", "1") == (0, [UNASKED])


def test_it_deploys_nothing_that_would_refuse_every_call(tree: Path) -> None:
    (tree / "functions/.env.shop").write_text("MAX_DAILY_TOKENS=many\n")

    assert deploy(tree, "shop", "", "1") == (1, [])


@pytest.mark.parametrize("project", ["", "demo-firebreak", "local"])
def test_it_needs_a_project_in_the_cloud(tree: Path, project: str) -> None:
    (tree / ".firebaserc").write_text(json.dumps({"projects": {"local": "demo-shop"}}))

    assert deploy(tree, project, "", "1") == (1, [])


def test_rules_are_replaced_only_after_a_yes_in_a_terminal(tree: Path) -> None:
    assert deploy(tree, "shop", "1", "1") == (1, [])
    assert deploy(tree, "shop", "1", typed="y") == (1, [])
    assert deploy(tree, "shop", "1", typed="yes") == (0, [FIRESTORE, FUNCTIONS])


def test_rules_that_are_there_already_need_no_question(tree: Path) -> None:
    assert deploy(tree, "shop", "1", "1", THEIRS="ours") == (0, [UNASKED])


def test_a_projects_own_rules_and_indexes_are_read(google: str, tmp_path: Path) -> None:
    env = scrubbed(os.environ) | {
        "FIREBASE_TOKEN": "of-nobody",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        **dict.fromkeys(URLS, google),
    }
    read = ["node", "scripts/deployed.cjs", "shop", str(tmp_path)]

    subprocess.run(read, cwd=ROOT, env=env, check=True, timeout=60)

    assert (tmp_path / "theirs/firestore.rules").read_text() == THEIR_RULES
    assert (tmp_path / "ours/firestore.rules").read_text() == (ROOT / "firestore.rules").read_text()
    theirs = [json.loads(line) for line in (tmp_path / "theirs/indexes").read_text().splitlines()]
    assert theirs == [{"collectionGroup": "orders", "queryScope": "COLLECTION", "fields": THEIR_INDEX["fields"]}]
    assert len((tmp_path / "ours/indexes").read_text().splitlines()) > len(theirs)
