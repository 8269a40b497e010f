"""Runs last: after the whole suite, no log of a function holds a prompt, a token, a key or a raw uid."""

import re
from collections.abc import Iterator
from pathlib import Path

from scripts.local import wire
from scripts.local.deployed import LOGS, Deployed
from scripts.local.layout import Layout
from scripts.local.stack import Stack
from tests.conftest import StandIn
from tests.e2e.conftest import Headers
from tests.e2e.test_clients import HELLO
from tests.e2e.test_edge import PROMPT
from tests.e2e.test_hostile import MARK

# A JSON Web Token of any kind, whole or cut off.
TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{20,}")
KEYS = ("local-stand-in", "x-goog-api-key")
PROMPTS = (MARK, str(HELLO["prompt"]), PROMPT["prompt"])


def logs() -> Iterator[tuple[Path, str]]:
    """What the functions printed: under the emulator, and as deployed."""
    for path in [Layout().firebase_log, *LOGS]:
        if path.exists():
            yield path, path.read_text(errors="replace")


def uids(stack: Stack) -> list[str]:
    url = f"http://{stack.auth_host}/identitytoolkit.googleapis.com/v1/projects/{stack.project}/accounts:query"
    answer = wire.call("POST", url, {}, headers={"Authorization": "Bearer owner"}).json
    return [user["localId"] for user in answer.get("userInfo", [])]


def test_no_log_holds_a_prompt_a_token_a_key_or_a_uid(
    stack: Stack, generate: Deployed, headers: Headers, gemini: StandIn
) -> None:
    """Run alone it looks at the one call that it makes."""
    answer = wire.call("POST", generate.url, {"data": HELLO}, headers=headers)
    assert answer.status == 200, answer.body

    users = uids(stack)
    seen = [(path, log) for path, log in logs() if "firebreak.request" in log]
    assert generate.log_file in [path for path, _ in seen]
    assert users
    for path, log in seen:
        assert not TOKEN.search(log), path
        assert "past the meters" not in log, path
        assert [secret for secret in (*users, *KEYS, *PROMPTS) if secret in log] == [], path
