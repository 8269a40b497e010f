"""Every knob is checked, and an error names it."""

import json

import pytest

from firebreak.errors import Misconfigured
from firebreak.settings.knobs import Knob
from firebreak.settings.settings import KNOBS, faults, load
from firebreak.settings.tiers import daily_limit

GOOD = {"GCLOUD_PROJECT": "my-app", "MAX_DAILY_TOKENS": "1000"}
DEMO = GOOD | {"GCLOUD_PROJECT": "demo-x", "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1"}


def wrong(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(Misconfigured):
        load(env)
    event = json.loads(capsys.readouterr().out)
    assert event["message"] == "firebreak.settings"
    named: list[str] = event["wrong"]
    return named


def test_defaults_fill_what_is_not_set() -> None:
    settings = load(GOOD)

    assert settings.max_daily_tokens == 1000
    assert settings.threads == 8


def test_a_missing_limit_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert wrong({"GCLOUD_PROJECT": "my-app"}, capsys) == ["MAX_DAILY_TOKENS must be set"]


@pytest.mark.parametrize("text", ["0", "-1", "1e5", "1_000", "ten", "NaN", "inf", "1.5", "٣", "9" * 400, "0x10"])
def test_a_malformed_limit_refuses_and_is_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = wrong(GOOD | {"MAX_DAILY_TOKENS": text}, capsys)

    assert message.startswith("MAX_DAILY_TOKENS must be ")


# Any text is a system instruction.
FREE = {"SYSTEM_INSTRUCTION"}


@pytest.mark.parametrize("knob", [knob for knob in KNOBS if knob.name not in FREE], ids=lambda knob: knob.name)
def test_every_knob_is_checked_and_named(knob: Knob, capsys: pytest.CaptureFixture[str]) -> None:
    assert any(message.startswith(knob.name) for message in wrong(GOOD | {knob.name: " ,/ "}, capsys))


@pytest.mark.parametrize("knob", [knob for knob in KNOBS if knob.default is not None], ids=lambda knob: knob.name)
def test_every_default_is_good(knob: Knob) -> None:
    assert load(GOOD | {knob.name: knob.default or ""})


def test_weights_of_a_model_that_nobody_may_ask_are_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = wrong(GOOD | {"WEIGHTS": "gemini-3.8-flahs output=5"}, capsys)

    assert message == "WEIGHTS must name models of MODELS, not 'gemini-3.8-flahs'"


@pytest.mark.parametrize(
    "text",
    [
        "gemini-3.8-flash prompt=0 output=0",
        "gemini-3.8-flash prompt=1 output=5 | 1000 prompt=0 output=0",
        "gemini-3.8-flash prompt=0 output=1 | 1000 output=0",
    ],
)
def test_a_model_is_never_free_neither_with_short_prompts_nor_with_long(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (message,) = wrong(GOOD | {"WEIGHTS": text}, capsys)

    assert message.startswith("WEIGHTS must not make both prompt and output of gemini-3.8-flash free")


@pytest.mark.parametrize(("name", "knob"), [("anonymous", "ANONYMOUS_DAILY_TOKENS"), ("default", "MAX_DAILY_TOKENS")])
def test_a_tier_that_no_claim_can_choose_is_refused_and_the_right_knob_named(
    name: str, knob: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wrong(GOOD | {"TIERS": f"pro=9000,{name}=0"}, capsys) == [f"TIERS must not name {name!r}: that is {knob}"]


@pytest.mark.parametrize(
    "text", ["https://(", "https://[a", "https://*", "https://*.app.example", "https://a?", "https://"]
)
def test_an_origin_that_cors_would_take_as_a_pattern_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = wrong(GOOD | {"ALLOWED_ORIGINS": text}, capsys)

    assert message.startswith("ALLOWED_ORIGINS must be origins")


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "https://app.example",
        "http://localhost:5000",
        "capacitor://localhost",
        "chrome-extension://abc",
        "https://a,https://b",
    ],
)
def test_an_origin_as_browsers_send_it_is_taken(text: str) -> None:
    assert load(GOOD | {"ALLOWED_ORIGINS": text}).allowed_origins == tuple(text.split(","))


@pytest.mark.parametrize("text", ["pro", "pro=", "=5", "pro=5,pro=6", "pro=x", "pro=-1"])
def test_a_malformed_tier_refuses(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = wrong(GOOD | {"TIERS": text}, capsys)

    assert message.startswith("TIERS must be ")


@pytest.mark.parametrize(
    ("tier", "anonymous", "limit"),
    [
        (None, False, 1_000),
        (None, True, 50),
        ("pro", False, 9_000),
        ("pro", True, 9_000),
        ("banned", False, 0),
        ("unknown", False, 1_000),
        (["pro"], False, 1_000),
        (7, True, 50),
    ],
)
def test_a_tier_chooses_the_limit(tier: object, anonymous: bool, limit: int) -> None:
    knobs = load(GOOD | {"ANONYMOUS_DAILY_TOKENS": "50", "TIERS": "pro=9000, banned=0"})

    assert daily_limit(knobs, tier=tier, anonymous=anonymous) == limit


BUDGET = "01D4EE-079462-DFD6EC/11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("my-budget: 50%=record", "my-budget"),
        (f"{BUDGET}: 50%=tighten(0)", "tighten(0)"),
        (f"{BUDGET}: 100%=trip(billing)", "trip(billing)"),
        (f"{BUDGET}: half=record", "half"),
        (f"{BUDGET} daily: 50%", "daily"),
        (f"{BUDGET}: 50%; {BUDGET}: 60%", "twice"),
    ],
)
def test_a_malformed_policy_refuses_and_says_where(text: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = wrong(GOOD | {"BUDGET_POLICIES": text}, capsys)

    assert message.startswith("BUDGET_POLICIES must ")
    assert named in message


def test_policies_are_found_by_their_budget() -> None:
    settings = load(GOOD | {"BUDGET_POLICIES": f"{BUDGET}: 50%=tighten(50) forecast 120%=trip(gemini)"})

    (policies,) = settings.budget_policies.values()
    assert [str(policy.threshold) for policy in policies.policies] == ["actual 50%", "forecast 120%"]


def test_all_wrong_knobs_are_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    messages = wrong(GOOD | {"MAX_DAILY_TOKENS": "x", "THREADS": "0", "MODELS": ","}, capsys)

    assert [message.split()[0] for message in messages] == ["MAX_DAILY_TOKENS", "MODELS", "THREADS"]


@pytest.mark.parametrize(
    "host",
    [
        "FIRESTORE_EMULATOR_HOST",
        "FIREBASE_AUTH_EMULATOR_HOST",
        "PUBSUB_EMULATOR_HOST",
        "GEMINI_EMULATOR_HOST",
        "BILLING_EMULATOR_HOST",
    ],
)
def test_an_emulator_is_refused_outside_a_demo_project(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    # An empty one too: the Firestore SDK takes it for an emulator's.
    for address in ("127.0.0.1:1", ""):
        (message,) = wrong(GOOD | {host: address}, capsys)

        assert message == f"{host} is accepted only in a demo- project"


def test_an_emulator_is_accepted_in_a_demo_project() -> None:
    assert load(DEMO | {"GEMINI_EMULATOR_HOST": "127.0.0.1:1"}).gemini_host == "127.0.0.1:1"


@pytest.mark.parametrize("host", [{}, {"FIRESTORE_EMULATOR_HOST": ""}, {"FIREBASE_AUTH_EMULATOR_HOST": "127.0.0.1:1"}])
def test_a_demo_project_never_uses_the_real_firestore(host: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = wrong(GOOD | {"GCLOUD_PROJECT": "demo-x"} | host, capsys)

    assert message.startswith("FIRESTORE_EMULATOR_HOST must be set in a demo- project")
    assert "start the local stack" in message


def test_the_files_of_a_demo_project_name_no_emulator() -> None:
    assert faults(GOOD | {"GCLOUD_PROJECT": "demo-x"}) == []


def test_the_project_comes_from_the_platform() -> None:
    config = {"FIREBASE_CONFIG": '{"projectId": "my-app"}', "MAX_DAILY_TOKENS": "5"}

    assert load(config).project == "my-app"


def test_the_default_output_fits_the_largest(capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = wrong(GOOD | {"MAX_OUTPUT_TOKENS": "10"}, capsys)

    assert message == "DEFAULT_OUTPUT_TOKENS must be at most MAX_OUTPUT_TOKENS"


@pytest.mark.parametrize("knob", ["READ_REQUESTS_PER_HOUR", "WRITE_REQUESTS_PER_HOUR", "POOL_SHARES"])
def test_a_tier_that_is_none_is_named(knob: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt one would keep tokens for nobody, or bound nobody."""
    text = "pr=10" if knob == "POOL_SHARES" else "5,pr=10"
    good = GOOD | {"TIERS": "pro=9000"}

    assert wrong(good | {knob: text}, capsys) == [f"{knob} must name tiers of TIERS, anonymous or default, not 'pr'"]
    assert load(good | {knob: text.replace("pr", "pro")})
