"""Every knob: its name, type, range and default; read from the environment, checked all at once, never guessed."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from firebase_functions.params import SecretParam

from firebreak.errors import Misconfigured
from firebreak.events import Event, Severity, emit

GEMINI_API_KEY = SecretParam("GEMINI_API_KEY")

# Of each function, in seconds. What is left of it after the model's deadline is for reserve and settle.
TIMEOUT_S = 120

EMULATOR_HOSTS = (
    "FIRESTORE_EMULATOR_HOST",
    "FIREBASE_AUTH_EMULATOR_HOST",
    "PUBSUB_EMULATOR_HOST",
    "GEMINI_EMULATOR_HOST",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting as an owner sees it; `default` None means that it must be set."""

    name: str
    parse: Callable[[str], Any]
    range: str
    doc: str
    default: str | None


def _whole(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit():
            raise ValueError(f"must be a whole number, not {text!r}")
        if len(text) > len(str(highest)) or int(text) > highest:
            raise ValueError(f"must be at most {highest}, not {text[:20]}")
        if int(text) < lowest:
            raise ValueError(f"must be at least {lowest}, not {text}")
        return int(text)

    return parse


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("must name at least one")
    return names


def _number(name: str, lowest: int, highest: int, doc: str, default: int | None) -> Any:  # noqa: ANN401
    default_text = None if default is None else str(default)
    return _knob(name, _whole(lowest, highest), f"{lowest} to {highest}", doc, default_text)


def _knob(name: str, parse: Callable[[str], Any], range_: str, doc: str, default: str | None) -> Any:  # noqa: ANN401
    return field(metadata={"knob": Knob(name=name, parse=parse, range=range_, doc=doc, default=default)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All knobs, checked. `project` and `emulated` come from the platform, the rest from `functions/.env`."""

    project: str
    emulated: frozenset[str]
    gemini_host: str | None

    max_daily_tokens: int = _number(
        "MAX_DAILY_TOKENS", 1, 10**12, "Tokens a user may spend in a day, refilled continuously.", None
    )
    models: tuple[str, ...] = _knob(
        "MODELS",
        _names,
        "names",
        "Models a client may ask for, comma-separated; the first is the default.",
        "gemini-3.8-flash,gemini-3.5-flash-lite",
    )
    max_output_tokens: int = _number(
        "MAX_OUTPUT_TOKENS", 1, 1_000_000, "Most output tokens, thoughts included, that one call may ask for.", 4096
    )
    default_output_tokens: int = _number(
        "DEFAULT_OUTPUT_TOKENS", 1, 1_000_000, "Output tokens where a call names none.", 1024
    )
    max_prompt_bytes: int = _number(
        "MAX_PROMPT_BYTES", 1, 10_000_000, "Most UTF-8 bytes of prompt, history and system text in one call.", 200_000
    )
    max_body_bytes: int = _number("MAX_BODY_BYTES", 1024, 10_000_000, "Most bytes of a request's JSON body.", 1_048_576)
    gemini_deadline_s: int = _number(
        "GEMINI_DEADLINE_S", 1, TIMEOUT_S - 20, "Seconds until an unanswered model call is given up, and charged.", 60
    )
    threads: int = _number(
        "THREADS", 1, 1000, "Calls one instance runs at once: the server's threads and the functions' concurrency.", 8
    )


KNOBS: tuple[Knob, ...] = tuple(f.metadata["knob"] for f in fields(Settings) if "knob" in f.metadata)


@cache
def settings() -> Settings:
    """The settings of this process, read once; a bad knob is read again by each call, and refuses each.

    Raises:
        Misconfigured: a knob is missing or wrong; the log's event names each of them.
    """
    return load(os.environ)


def load(env: Mapping[str, str]) -> Settings:
    """Check every knob in `env`; one that is wrong refuses, and the event names it.

    Raises:
        Misconfigured: at least one knob is wrong.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for f in fields(Settings):
        knob: Knob | None = f.metadata.get("knob")
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
    project = _project(env)
    emulated = frozenset(name for name in EMULATOR_HOSTS if env.get(name))
    wrong += _contradictions(values, project, emulated)
    if wrong:
        emit(Event.SETTINGS, severity=Severity.ERROR, wrong=wrong)
        raise Misconfigured
    return Settings(project=project, emulated=emulated, gemini_host=env.get("GEMINI_EMULATOR_HOST"), **values)


def _contradictions(values: Mapping[str, Any], project: str, emulated: frozenset[str]) -> list[str]:
    wrong = []
    if not project:
        wrong.append("GCLOUD_PROJECT must be set; the platform sets it")
    if not project.startswith("demo-"):
        wrong += [f"{name} is accepted only in a demo- project" for name in sorted(emulated)]
    if values.get("default_output_tokens", 0) > values.get("max_output_tokens", 0) > 0:
        wrong.append("DEFAULT_OUTPUT_TOKENS must be at most MAX_OUTPUT_TOKENS")
    return wrong


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
