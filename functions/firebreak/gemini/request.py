"""What a client may ask of `generate`: its fields, checked and made plain."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from firebreak.errors import InvalidField
from firebreak.gemini import contents
from firebreak.gemini.contents import NO_MEDIA, Inline, Media, Text, Turn, as_text, text, turns

REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
RESERVED_ID = re.compile(r"__.*__")
THINKING_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
MIME_TYPES = ("text/plain", "application/json")
# The kinds of tool that an owner can allow, by their field's name.
FUNCTIONS = "functionDeclarations"
FIELDS = frozenset(
    {
        "prompt",
        "contents",
        "model",
        "system",
        "maxOutputTokens",
        "temperature",
        "thinkingLevel",
        "responseMimeType",
        "responseSchema",
        "tools",
        "toolConfig",
        "requestId",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A checked request; all of it is sent to the model. `schema` is JSON Schema, `tools` as the API takes them."""

    model: str
    turns: tuple[Turn, ...]
    system: str | None
    max_output_tokens: int
    temperature: float | None
    mime_type: str | None = None
    schema: Mapping[str, Any] | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_config: Mapping[str, Any] | None = None
    thinking_level: str | None = None
    candidates: int = 1

    @property
    def has_media(self) -> bool:
        """Whether a part is not text, so that only the model can count it."""
        return any(isinstance(part, Inline) for turn in self.turns for part in turn.parts)

    @property
    def paid_tools(self) -> tuple[str, ...]:
        """Kinds of tool that the service runs itself: they have quotas, fees and refusals of their own."""
        return tuple(sorted({kind for tool in self.tools for kind in tool} - {FUNCTIONS}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the owner of the backend allows and adds; of `models` the first is the default."""

    models: tuple[str, ...]
    max_output_tokens: int
    default_output_tokens: int
    max_prompt_bytes: int
    max_turns: int = 64
    media: Media = NO_MEDIA
    tools: tuple[str, ...] = (FUNCTIONS,)
    system: str = ""
    allow_client_system: bool = False


def parse(data: object, bounds: Bounds) -> Request:
    """Check the `data` of a call.

    Raises:
        InvalidField: a field is unknown, missing, of the wrong type or out of range; the message names it.
    """
    if not isinstance(data, dict):
        raise InvalidField("data must be an object")
    unknown = sorted(str(key)[:40] for key in data.keys() - FIELDS)
    if unknown:
        raise InvalidField(f"unknown field: {unknown[0]}")
    schema = _schema(data.get("responseSchema"))
    tools = _tools(data.get("tools"), schema, bounds)
    request = Request(
        model=_model(data.get("model"), bounds),
        turns=_turns(data, bounds),
        system=_system(data.get("system"), bounds),
        max_output_tokens=_max_output_tokens(data.get("maxOutputTokens"), bounds),
        temperature=_temperature(data.get("temperature")),
        mime_type=_mime_type(data.get("responseMimeType"), schema),
        schema=schema,
        tools=tools,
        tool_config=_tool_config(data.get("toolConfig"), tools),
        thinking_level=_thinking_level(data.get("thinkingLevel")),
    )
    if sum(len(each.encode()) for each in texts(request) + declared(request)) > bounds.max_prompt_bytes:
        raise InvalidField(
            "prompt, contents with their signatures, system, tools, toolConfig and responseSchema must be at most "
            f"{bounds.max_prompt_bytes} bytes together"
        )
    return request


def request_id(data: object) -> str | None:
    """The client's idempotency key, if it sent one; its form is checked.

    Raises:
        InvalidField: it is not 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`, or is a name of Firestore's own.
    """
    value = data.get("requestId") if isinstance(data, Mapping) else None
    if value is None:
        return None
    # Firestore keeps names between double underscores to itself.
    if not isinstance(value, str) or not REQUEST_ID.fullmatch(value) or RESERVED_ID.fullmatch(value):
        raise InvalidField(
            "requestId must be 1-64 letters, digits, _ or -, and must not start and end with a double underscore"
        )
    return value


def texts(request: Request) -> list[str]:
    """Everything that the model reads as text, and counts if it is asked to."""
    return [as_text(part) for turn in request.turns for part in turn.parts] + [request.system or ""]


def signatures(request: Request) -> list[str]:
    """The model's notes to itself: whether its own count of a prompt holds them is not documented."""
    return [part.signature for turn in request.turns for part in turn.parts if part.signature is not None]


def declared(request: Request) -> list[str]:
    """Tools, their config and schema as they are sent, which the model's own count of a prompt leaves out."""
    sent = [*request.tools, request.tool_config, request.schema]
    return [json.dumps(value, ensure_ascii=False) for value in sent if value is not None]


def _model(value: object, bounds: Bounds) -> str:
    if value is None:
        return bounds.models[0]
    if not isinstance(value, str) or value not in bounds.models:
        raise InvalidField(f"model must be one of: {', '.join(bounds.models)}")
    return value


def _turns(data: Mapping[str, object], bounds: Bounds) -> tuple[Turn, ...]:
    prompt, contents = data.get("prompt"), data.get("contents")
    if (prompt is None) == (contents is None):
        raise InvalidField("exactly one of prompt and contents must be given")
    if contents is None:
        return (Turn(role="user", parts=(Text(text=text(prompt, "prompt")),)),)
    return turns(contents, most=bounds.max_turns, media=bounds.media)


def _system(value: object, bounds: Bounds) -> str | None:
    if value is None:
        return bounds.system or None
    if not bounds.allow_client_system:
        raise InvalidField("system may not be sent: the owner of the backend sets it")
    return "\n\n".join(each for each in (bounds.system, text(value, "system")) if each)


def _max_output_tokens(value: object, bounds: Bounds) -> int:
    if value is None:
        return bounds.default_output_tokens
    if isinstance(value, float) and isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= bounds.max_output_tokens:
        raise InvalidField(f"maxOutputTokens must be a whole number from 1 to {bounds.max_output_tokens}")
    return value


def _temperature(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise InvalidField("temperature must be a number from 0 to 2")
    return float(value)


def _schema(value: object) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise InvalidField("responseSchema must be an object")
    return value or None


def _mime_type(value: object, schema: Mapping[str, Any] | None) -> str | None:
    if value is None:
        return None if schema is None else "application/json"
    if value not in MIME_TYPES:
        raise InvalidField(f"responseMimeType must be one of: {', '.join(MIME_TYPES)}")
    if schema is not None and value != "application/json":
        raise InvalidField("responseMimeType must be application/json where there is a responseSchema")
    return str(value)


def _tools(value: object, schema: object, bounds: Bounds) -> tuple[Mapping[str, Any], ...]:
    if contents.values([value, schema]) > contents.MAX_VALUES:
        raise InvalidField(f"tools and responseSchema must hold at most {contents.MAX_VALUES} values together")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidField("tools must be a list")
    return tuple(_tool(tool, f"tools[{index}]", bounds) for index, tool in enumerate(value))


def _tool(tool: object, name: str, bounds: Bounds) -> Mapping[str, Any]:
    # Search and the like have fees of their own, which no token count shows.
    if not isinstance(tool, dict) or not tool or not tool.keys() <= set(bounds.tools):
        raise InvalidField(f"{name} must be an object with only: {', '.join(bounds.tools) or 'nothing'}")
    return {kind: _tool_of(kind, value, f"{name}.{kind}") for kind, value in tool.items()}


def _tool_of(kind: str, value: object, name: str) -> object:
    if kind == FUNCTIONS:
        return contents.parse(value, name)
    if not isinstance(value, dict):
        raise InvalidField(f"{name} must be an object")
    return value


def _tool_config(value: object, tools: tuple[Mapping[str, Any], ...]) -> Mapping[str, Any] | None:
    if value is None:
        return None
    return contents.config(value, [each["name"] for tool in tools for each in tool.get(FUNCTIONS, ())])


def _thinking_level(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.isascii() or value.upper() not in THINKING_LEVELS:
        raise InvalidField(f"thinkingLevel must be one of: {', '.join(THINKING_LEVELS)}")
    return value.upper()
