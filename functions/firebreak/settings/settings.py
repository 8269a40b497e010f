"""Every knob: its name, type, range and default; read from the environment, checked all at once, never guessed."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from firebase_functions.params import SecretParam

from firebreak.errors import Misconfigured
from firebreak.events import Event, Severity, emit
from firebreak.settings import knobs, policies
from firebreak.settings.policies import Budget
from firebreak.settings.weights import Price

GEMINI_API_KEY = SecretParam("GEMINI_API_KEY")

# Of each function, in seconds. What is left of it after the model's deadline is for tokens, requests, pool, count,
# reserve and settle.
TIMEOUT_S = 120

FIRESTORE_HOST = "FIRESTORE_EMULATOR_HOST"
# Projects that exist on this machine alone, as the Firebase CLI has them.
DEMO = "demo-"
EMULATOR_HOSTS = (
    FIRESTORE_HOST,
    "FIREBASE_AUTH_EMULATOR_HOST",
    "PUBSUB_EMULATOR_HOST",
    "GEMINI_EMULATOR_HOST",
    "BILLING_EMULATOR_HOST",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All knobs, checked. `project` and `emulated` come from the platform, the rest from `functions/.env`."""

    project: str
    emulated: frozenset[str]
    gemini_host: str | None
    billing_host: str | None

    enforce: str = knobs.knob(
        "ENFORCE",
        knobs.one_of("enforce", "shadow"),
        "enforce or shadow",
        "`shadow` admits what the limits would refuse, and logs it; App Check, sign-in and fields are enforced anyway.",
        "enforce",
    )
    max_daily_tokens: int = knobs.number(
        "MAX_DAILY_TOKENS", 1, knobs.MOST_TOKENS, "Tokens a user may spend in a day, refilled continuously.", None
    )
    anonymous_daily_tokens: int = knobs.number(
        "ANONYMOUS_DAILY_TOKENS",
        0,
        knobs.MOST_TOKENS,
        "The same for a user who signed in anonymously; 0 blocks them.",
        10_000,
    )
    tiers: Mapping[str, int] = knobs.knob(
        "TIERS",
        knobs.tiers,
        "name=tokens, …",
        "Tokens a day by the custom claim `tier`, as `free=20000,pro=500000`; another or no claim: the two above.",
        "",
    )
    read_requests_per_hour: Mapping[str, int] = knobs.knob(
        "READ_REQUESTS_PER_HOUR",
        knobs.per_tier(0, knobs.MOST_REQUESTS),
        "number, tier=number, …",
        "Requests that only read (`usage`, `traverse`) a user may send in an hour; by tier, `anonymous` among them.",
        "1200,anonymous=300",
    )
    write_requests_per_hour: Mapping[str, int] = knobs.knob(
        "WRITE_REQUESTS_PER_HOUR",
        knobs.per_tier(0, knobs.MOST_REQUESTS),
        "number, tier=number, …",
        "The same for requests that write or ask the model (`generate`, `mutate`).",
        "600,anonymous=120",
    )
    pool_tokens_per_hour: int = knobs.number(
        "POOL_TOKENS_PER_HOUR",
        0,
        knobs.MOST_TOKENS,
        "Tokens that all users together may spend in an hour, refilled continuously; 0: no such limit.",
        2_000_000,
    )
    pool_shares: Mapping[str, int] = knobs.knob(
        "POOL_SHARES",
        knobs.shares,
        "tier=percent, …",
        "Percent of the pool kept for a tier (`anonymous` and `default` too); the rest is first come, first served.",
        "anonymous=10,default=50",
    )
    max_request_reads: int = knobs.number(
        "MAX_REQUEST_READS",
        0,
        1_000_000,
        "Firestore documents one request may read, if its callable sets no number.",
        100,
    )
    max_request_writes: int = knobs.number(
        "MAX_REQUEST_WRITES",
        0,
        1_000_000,
        "Firestore documents one request may write, if its callable sets no number.",
        100,
    )
    kill_switch: frozenset[str] = knobs.knob(
        "KILL_SWITCH",
        knobs.some_of("gemini", "firestore", "all"),
        "gemini, firestore, all",
        "Scopes switched off by a deploy, without any external call. `python -m scripts.ops switch` needs no deploy.",
        "",
    )
    switch_ttl_s: int = knobs.number("SWITCH_TTL_S", 1, 300, "Seconds for which an instance caches the switch.", 15)
    budget_policies: Mapping[str, Budget] = knobs.knob(
        "BUDGET_POLICIES",
        policies.parse,
        "account/budget: 50%=record …; …",
        "What a budget's notices trigger, once a period: `record`, `tighten(percent)`, `trip(scope)`, each at `50%` or "
        "`forecast 120%` of it; a budget that is not named triggers nothing. A budget that is not monthly has "
        "`quarter`, `year` or its two days, as `2026-01-15..2026-06-30`, before the colon. "
        "Empty: `on_budget_alert` is not deployed.",
        "",
    )
    watch_caps: bool = knobs.knob(
        "WATCH_CAPS",
        knobs.yes_or_no,
        "true or false",
        "Deploy `watch_caps`: every 5 minutes it reads the spend caps on record; it trips the switch while one is "
        "enforced.",
        "false",
    )
    graph: bool = knobs.knob(
        "GRAPH",
        knobs.yes_or_no,
        "true or false",
        "Deploy the sample graph, `mutate` and `traverse`.",
        "false",
    )
    budget_webhook: bool = knobs.knob(
        "BUDGET_WEBHOOK",
        knobs.yes_or_no,
        "true or false",
        "Report what budgets trigger to a webhook; its https URL is the secret BUDGET_WEBHOOK_URL.",
        "false",
    )
    allowed_origins: tuple[str, ...] = knobs.knob(
        "ALLOWED_ORIGINS",
        knobs.origins,
        "origins or *",
        "Web origins that may call, as `https://app.example`; calls from any other origin are refused before they run.",
        "*",
    )
    allowed_app_ids: tuple[str, ...] = knobs.knob(
        "ALLOWED_APP_IDS",
        knobs.app_ids,
        "app ids",
        "Firebase app ids whose App Check tokens are taken; empty: every app of the project.",
        "",
    )
    allowed_tenants: tuple[str, ...] = knobs.knob(
        "ALLOWED_TENANTS",
        knobs.tenants,
        "tenant ids",
        "Tenants of Identity Platform whose users may call, beside users without a tenant; each tenant's users are "
        "kept apart.",
        "",
    )
    check_revoked: bool = knobs.knob(
        "CHECK_REVOKED",
        knobs.yes_or_no,
        "true or false",
        "Refuse disabled users and revoked sessions at once, for one Auth request a call; else within the hour.",
        "false",
    )
    models: tuple[str, ...] = knobs.knob(
        "MODELS",
        knobs.models,
        "names",
        "Models a client may ask for, comma-separated; the first is the default.",
        "gemini-3.8-flash,gemini-3.5-flash-lite",
    )
    system_instruction: str = knobs.knob(
        "SYSTEM_INSTRUCTION", knobs.text, "text", "System text of every call, charged like the prompt.", ""
    )
    allow_client_system: bool = knobs.knob(
        "ALLOW_CLIENT_SYSTEM",
        knobs.yes_or_no,
        "true or false",
        "Let a client send its own `system`, which is added after yours.",
        "false",
    )
    max_output_tokens: int = knobs.number(
        "MAX_OUTPUT_TOKENS", 1, 1_000_000, "Most output tokens, thoughts included, that one call may ask for.", 4096
    )
    default_output_tokens: int = knobs.number(
        "DEFAULT_OUTPUT_TOKENS", 1, 1_000_000, "Output tokens of a call that does not set `maxOutputTokens`.", 1024
    )
    max_prompt_bytes: int = knobs.number(
        "MAX_PROMPT_BYTES",
        1,
        10_000_000,
        "Most UTF-8 bytes of prompt, history, signatures, system text, tools and schema in one call.",
        200_000,
    )
    max_body_bytes: int = knobs.number(
        "MAX_BODY_BYTES", 1024, 10_000_000, "Most bytes of a request's JSON body.", 1_048_576
    )
    max_turns: int = knobs.number("MAX_TURNS", 1, 1000, "Most turns of a conversation in one call.", 64)
    max_inline_bytes: int = knobs.number(
        "MAX_INLINE_BYTES",
        0,
        10_000_000,
        "Most bytes of media, decoded, in one call; MAX_BODY_BYTES bounds it too.",
        700_000,
    )
    allowed_mime_types: tuple[str, ...] = knobs.knob(
        "ALLOWED_MIME_TYPES",
        knobs.names,
        "MIME types",
        "Media that a client may send; `none` for none.",
        "image/png,image/jpeg,image/webp",
    )
    allowed_tools: tuple[str, ...] = knobs.knob(
        "ALLOWED_TOOLS",
        knobs.names,
        "field names",
        "Kinds of tool that a client may use; others, as `googleSearch`, have fees besides tokens; `none` for none.",
        "functionDeclarations",
    )
    weights: Mapping[str, Price] = knobs.knob(
        "WEIGHTS",
        knobs.prices,
        "model kind=weight …",
        "What a token costs the bucket, by model and kind; what is not named costs 1.",
        "",
    )
    gemini_backend: str = knobs.knob(
        "GEMINI_BACKEND",
        knobs.one_of("developer", "vertex"),
        "developer or vertex",
        "The Gemini Developer API with the secret key, or Vertex AI as the functions' service account.",
        "developer",
    )
    gemini_api_version: str = knobs.knob(
        "GEMINI_API_VERSION",
        knobs.one_of("v1", "v1beta"),
        "v1 or v1beta",
        "Version of the Gemini API; `v1beta` (on Vertex AI `v1beta1`) if the log says that `v1` does not know a field.",
        "v1",
    )
    vertex_location: str = knobs.knob("VERTEX_LOCATION", knobs.location, "location", "Location of Vertex AI.", "global")
    gemini_deadline_s: int = knobs.number(
        "GEMINI_DEADLINE_S", 1, TIMEOUT_S - 42, "Seconds until an unanswered model call is abandoned and charged.", 60
    )
    threads: int = knobs.number(
        "THREADS", 1, 1000, "Calls one instance runs at once: the server's threads and the functions' concurrency.", 8
    )
    user_threads_percent: int = knobs.number(
        "USER_THREADS_PERCENT",
        1,
        100,
        "Percent of THREADS that one user may hold at once with calls that write or ask the model, at least one; 100: "
        "no such limit.",
        50,
    )


KNOBS: tuple[knobs.Knob, ...] = tuple(f.metadata["knob"] for f in fields(Settings) if "knob" in f.metadata)


@cache
def settings() -> Settings:
    """The settings of this process, read once; a bad knob is read again by each call, and refuses each.

    Raises:
        Misconfigured: a knob is missing or wrong; the log's event names each of them.
    """
    return load(os.environ)


def readable_from() -> tuple[str, ...]:
    """The web origins that may read an answer; every one while the knob itself is wrong, so that they read of it."""
    try:
        return knobs.origins(os.environ.get("ALLOWED_ORIGINS") or "*")
    except ValueError:
        return ("*",)


def load(env: Mapping[str, str], *, connects: bool = True) -> Settings:
    """Check every knob in `env`; one that is wrong refuses, and the event names it.

    `connects` False: only to look at, by a tool that has an address of its own for Firestore.

    Raises:
        Misconfigured: at least one knob is wrong.
    """
    values, wrong = _read(env)
    project = _project(env)
    if connects and project.startswith(DEMO) and not env.get(FIRESTORE_HOST):
        wrong.append(
            f"{FIRESTORE_HOST} must be set in a demo- project, else it would use the real Firestore: start the "
            "local stack, or deploy to a project whose id does not begin with demo-"
        )
    if wrong:
        emit(Event.SETTINGS, severity=Severity.ERROR, wrong=wrong)
        raise Misconfigured
    return Settings(
        project=project,
        emulated=_emulated(env),
        gemini_host=env.get("GEMINI_EMULATOR_HOST"),
        billing_host=env.get("BILLING_EMULATOR_HOST"),
        **values,
    )


def faults(env: Mapping[str, str]) -> list[str]:
    """What is wrong with the knobs in `env`, each named; for tools that look before they start or deploy anything."""
    return _read(env)[1]


def _read(env: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for f in fields(Settings):
        knob: knobs.Knob | None = f.metadata.get("knob")
        if knob is None:
            continue
        text = env.get(knob.name, "").strip() or knob.default
        if text is None:
            wrong.append(f"{knob.name} must be set")
            continue
        try:
            values[f.name] = knob.parse(text)
        except ValueError as error:
            wrong.append(f"{knob.name} {error}")
    return values, wrong + _contradictions(values, _project(env), _emulated(env))


def _contradictions(values: Mapping[str, Any], project: str, emulated: frozenset[str]) -> list[str]:
    wrong = []
    if not project:
        wrong.append("GCLOUD_PROJECT must be set; the platform sets it")
    if not project.startswith(DEMO):
        wrong += [f"{name} is accepted only in a demo- project" for name in sorted(emulated)]
    tiers = {"anonymous", "default", *values.get("tiers", ())}
    for knob in ("read_requests_per_hour", "write_requests_per_hour", "pool_shares"):
        for name in values.get(knob, {}).keys() - tiers:
            wrong.append(f"{knob.upper()} must name tiers of TIERS, anonymous or default, not {name!r}")
    for name, knob in {"anonymous": "ANONYMOUS_DAILY_TOKENS", "default": "MAX_DAILY_TOKENS"}.items():
        if name in values.get("tiers", ()):
            wrong.append(f"TIERS must not name {name!r}: that is {knob}")
    for model in values.get("weights", {}).keys() - set(values.get("models", ())):
        wrong.append(f"WEIGHTS must name models of MODELS, not {model!r}")
    if values.get("default_output_tokens", 0) > values.get("max_output_tokens", 0) > 0:
        wrong.append("DEFAULT_OUTPUT_TOKENS must be at most MAX_OUTPUT_TOKENS")
    return wrong


def _emulated(env: Mapping[str, str]) -> frozenset[str]:
    # Also an empty one: the Firestore SDK goes by it.
    return frozenset(name for name in EMULATOR_HOSTS if name in env)


def _project(env: Mapping[str, str]) -> str:
    named = env.get("GCLOUD_PROJECT") or env.get("GOOGLE_CLOUD_PROJECT")
    if named:
        return named
    try:
        config = json.loads(env.get("FIREBASE_CONFIG") or "{}")
    except ValueError:
        return ""
    project = config.get("projectId") if isinstance(config, dict) else None
    return project if isinstance(project, str) else ""
