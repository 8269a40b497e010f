"""The real `firebase_admin.app_check` against the stand-in, redirected the way the local functions are."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts.local.layout import ROOT, Layout
from scripts.local.stack import Stack
from tests.conftest import StandIn

VERIFY = """
import json, sys
import firebase_admin
from firebase_admin import app_check

app = firebase_admin.initialize_app(options={"projectId": "demo-firebreak", "httpTimeout": 5})
for name, token, consume in json.load(sys.stdin):
    try:
        claims = app_check.verify_token(token, app, consume=consume)
        print(json.dumps([name, claims["app_id"], claims.get("already_consumed")]))
    except Exception as error:
        print(json.dumps([name, type(error).__name__, str(error)]))
"""
CALL = """from google.cloud import firestore

client = firestore.Client(project="demo-firebreak")
try:
    client.document("users/u").{call}
except Exception as error:
    print(type(error).__name__)
"""
WHERE = "from firebase_admin.app_check import _AppCheckService as s; print(s._JWKS_URL, s._VERIFY_URL_FORMAT)"


def python(code: str, env: Mapping[str, str], stdin: str = "") -> str:
    """Run code in a Python that starts as the local functions do, with `env` on top."""
    inject = {"PYTHONPATH": str(ROOT / "scripts/local/inject"), **env}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **inject},
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def call_firestore(file: Path, call: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The error that a call of the SDK's own client in `file` meets, and what the function's log says."""
    file.write_text(CALL.format(call=call))
    local = {"PYTHONPATH": str(ROOT / "scripts/local/inject"), "FIRESTORE_EMULATOR_HOST": "127.0.0.1:9", **env}
    done = subprocess.run(
        [sys.executable, file], env={**os.environ, **local}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), done.stderr


def verify(stack: Stack, *tokens: tuple[str, str, bool]) -> dict[str, list[Any]]:
    """Verify each (name, token, consume) with the real library; app id and replay, or the error's type and text."""
    env = {
        "FUNCTIONS_EMULATOR": "true",
        "FIREBREAK_STANDINS": stack.standins_url,
        "GOOGLE_APPLICATION_CREDENTIALS": str(Layout().service_account),
    }
    lines = python(VERIFY, env, json.dumps(tokens)).splitlines()
    return {name: rest for name, *rest in map(json.loads, lines)}


def test_the_real_library_takes_good_tokens_and_no_others(stack: Stack, mint: Callable[..., str]) -> None:
    results = verify(
        stack,
        ("good", mint(), False),
        ("other app", mint(appId="1:123456789012:ios:abc"), False),
        ("forged", mint(badSignature=True), False),
        ("expired", mint(ttlSeconds=-5), False),
        ("other project", mint(projectId="demo-other"), False),
    )

    assert results["good"][0].startswith("1:123456789012:web:")
    assert results["other app"][0] == "1:123456789012:ios:abc"
    assert "invalid signature" in results["forged"][1]
    assert "expired" in results["expired"][1]
    assert "audience" in results["other project"][1]


def test_a_token_is_consumed_once(stack: Stack, appcheck: StandIn, mint: Callable[..., str]) -> None:
    token = mint(limitedUse=True)

    results = verify(stack, ("first", token, True), ("second", token, True), ("another", mint(limitedUse=True), True))

    assert [results[name][1] for name in ("first", "second", "another")] == [False, True, False]
    assert len(appcheck.log("verify")) == 3


def test_an_outage_of_app_check_can_be_scripted(stack: Stack, appcheck: StandIn, mint: Callable[..., str]) -> None:
    appcheck.script({"for": "jwks", "status": 503})

    results = verify(stack, ("during", mint(), False))

    assert results["during"][0] == "PyJWKClientConnectionError"


def test_nothing_is_redirected_outside_an_emulated_function() -> None:
    env = {"FIREBREAK_STANDINS": "http://127.0.0.1:1"}

    assert "127.0.0.1" not in python(WHERE, env)
    assert python(WHERE, env | {"FUNCTIONS_EMULATOR": "true"}).count("http://127.0.0.1:1/") == 2


def test_the_real_key_reaches_only_functions_that_were_given_one() -> None:
    code = "import os; print(os.environ.get('GEMINI_API_KEY'))"
    env = {"FUNCTIONS_EMULATOR": "true", "FIREBREAK_STANDINS": "http://127.0.0.1:1", "GEMINI_API_KEY": "stand-in"}

    assert python(code, env).strip() == "stand-in"
    assert python(code, env | {"FIREBREAK_REAL_GEMINI_API_KEY": "real"}).strip() == "real"


LOCAL = {"FUNCTIONS_EMULATOR": "true", "FIREBREAK_STANDINS": "http://127.0.0.1:1"}


@pytest.mark.parametrize("call", ["get()", "set({})", "update({'n': 1})", "delete()", "collection('c').get()"])
def test_a_function_that_calls_firestore_past_the_meters_fails_by_file_and_line(call: str, tmp_path: Path) -> None:
    file = tmp_path / "handler.py"

    error, log = call_firestore(file, call, LOCAL | {"FIREBREAK_METERED_ONLY": "true"})

    assert error == "RawFirestore"
    assert log.startswith(f"{file}:5: a Firestore call")
    assert "wiring.store()" in log


@pytest.mark.parametrize(
    "env", [{}, LOCAL, {"FIREBREAK_METERED_ONLY": "true"}], ids=["outside", "not asked for", "deployed"]
)
def test_elsewhere_the_sdks_own_client_is_as_ever(env: dict[str, str], tmp_path: Path) -> None:
    error, log = call_firestore(tmp_path / "handler.py", "get(retry=None, timeout=5)", env)

    assert error == "ServiceUnavailable"
    assert "Firestore call" not in log
