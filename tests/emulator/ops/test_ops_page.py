"""docs/operating.md, tried: its blocks are run in order, as they stand there, on a day on which it burns."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.switch.watch import Switch
from scripts.local.layout import PROJECT, ROOT
from tests.emulator.books import books
from tests.emulator.ops.conftest import run

PAGE = (ROOT / "docs" / "operating.md").read_text()
BLOCK = re.compile(r"<!-- block: (\S+) -->\n```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS: Mapping[str, str] = {match[1]: match[2] for match in BLOCK.finditer(PAGE)}
STORY = ("stop", "top", "look", "block", "on")
REST = ("budgets", "half", "user", "forget", "looking")

type Try = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def tried(firestore_host: str, switch: firestore.DocumentReference, uid: str) -> Try:
    """Runs a block of the page about this user."""

    def tried(name: str) -> subprocess.CompletedProcess[str]:
        steps = f"{BLOCKS['ops']}\n{BLOCKS[name]}".replace("my-app", PROJECT).replace("UID", uid)
        env = os.environ | {"FIRESTORE_EMULATOR_HOST": firestore_host}
        command = ["sh", "-ec", steps]
        return subprocess.run(command, check=False, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)

    return tried


def spend(client: firestore.Client, uid: str, tokens: int) -> None:
    ledger = Ledger(client)
    hold = ledger.reserve(uid, "burnt", Ask(estimate=tokens, limit=100_000, model="m"))
    ledger.settle(hold, actual=tokens, counters={"calls": 1, "charged": tokens})


def reserve(client: firestore.Client, uid: str, request_id: str) -> None:
    Ledger(client).reserve(uid, request_id, Ask(estimate=1, limit=100_000, model="m"))


def test_every_command_of_the_page_is_in_a_block() -> None:
    fences = re.findall(r"^```", PAGE, re.MULTILINE)

    assert len(fences) == 2 * len(BLOCKS)
    assert set(BLOCKS) == {"ops", *STORY, *REST}


def test_it_burns_and_five_commands_stop_it(tried: Try, direct: firestore.Client, uid: str) -> None:
    spend(direct, uid, 90_000)
    switch = {}

    for name in STORY:
        ran = tried(name)
        assert ran.returncode == 0, ran.stderr
        switch[name] = is_on(direct)
        if name in {"top", "look"}:
            assert uid in ran.stdout
    with pytest.raises(errors.Blocked):
        reserve(direct, uid, "after")
    reserve(direct, uid + "x", "after")

    assert switch == {"stop": False, "top": False, "look": False, "block": False, "on": True}


def is_on(client: firestore.Client) -> bool:
    try:
        Switch(client, ttl_s=15).check({"gemini"})
    except errors.SwitchedOff:
        return False
    return True


def test_the_budgets_blocks_take_back_what_a_budget_did(
    tried: Try, direct: firestore.Client, switch: firestore.DocumentReference
) -> None:
    held: dict[str, Any] = {"budget": {"reason": "budget", "by": "budget", "at": datetime.now(UTC)}}
    tightened = {"budget": held["budget"] | {"percent": 25}}
    switch.set({"version": 1, "trips": {"gemini": held}, "tightened": tightened})

    for name in ("budgets", "half"):
        assert tried(name).returncode == 0

    left = switch.get().to_dict() or {}
    assert (left["trips"], left["tightened"]) == ({}, {})


def test_the_users_blocks_do_what_they_say(tried: Try, direct: firestore.Client, uid: str) -> None:
    spend(direct, uid, 90_000)

    user = tried("user")
    after = books(direct, uid).bucket or {}
    spend(direct, uid + "x", 90_000)
    forgotten = tried("forget")

    assert (user.returncode, user.stderr.count("wrote 2")) == (0, 4)
    assert (after["tokens"], after.get("override")) == (100_000, None)
    assert forgotten.returncode == 0
    assert (books(direct, uid).bucket, books(direct, uid).calls) == (None, {})
    assert len(books(direct, uid + "x").calls) == 1


def test_what_only_looks_writes_nothing(tried: Try) -> None:
    ran = tried("looking")

    assert ran.returncode == 0
    assert ran.stderr.count("wrote 0") == 3


def test_the_commands_that_the_text_names_exist() -> None:
    named = set(re.findall(r"`ops (\w+ \w+)", PAGE))

    assert [run(*words.split(), "--help", env={}).status for words in named] == [0] * len(named)
    assert named == {"switch show", "user show", "pool show", "calls held"}
