"""Requests in the model's own types."""

import re
import warnings
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from firebreak.gemini.contents import Inline, Part, Text
from firebreak.gemini.request import Request

if TYPE_CHECKING:
    from google.genai import types

# Where the SDK wants contents: those of the request are in its extra body, which replaces them. The SDK's types take
# 0.08 ms for each part of a conversation, and write a signature another way than it came.
EMPTY = ""
SDK = r"google\.genai"
_QUIET = ("ignore", None, Warning, re.compile(SDK), 0)


def generation(request: Request, deadline_s: float) -> "types.GenerateContentConfig":
    """A whole request, in the API's own JSON where a client had a hand in it; the SDK's contents are then EMPTY."""
    from google.genai import types

    _keep_quiet()
    body: dict[str, Any] = {"contents": contents(request)}
    if request.tools:
        body["tools"] = list(request.tools)
    if request.tool_config is not None:
        body["toolConfig"] = request.tool_config
    return types.GenerateContentConfig(
        system_instruction=request.system,
        max_output_tokens=request.max_output_tokens,
        temperature=request.temperature,
        candidate_count=request.candidates,
        response_mime_type=request.mime_type,
        response_json_schema=request.schema,
        thinking_config=_thinking(request),
        # Both fan one call out into several billed ones.
        automatic_continuation=False,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        # Milliseconds, for each read; no retry_options: exactly one attempt.
        http_options=types.HttpOptions(timeout=round(deadline_s * 1000), extra_body=body),
    )


def counting(request: Request, deadline_s: float) -> "types.CountTokensConfig":
    """What to count: the Developer API counts no system instruction, so it goes along as a turn."""
    from google.genai import types

    system = [] if request.system is None else [{"role": "user", "parts": [{"text": request.system}]}]
    body = {"contents": system + contents(request)}
    return types.CountTokensConfig(http_options=types.HttpOptions(timeout=round(deadline_s * 1000), extra_body=body))


def contents(request: Request) -> list[dict[str, Any]]:
    """The conversation in the API's JSON; signatures and parts stay as they came, in order."""
    return [{"role": turn.role, "parts": [_part(part) for part in turn.parts]} for turn in request.turns]


def _keep_quiet() -> None:
    """Let the SDK warn of nothing: its warnings quote what a client sent, and Python keeps each of them for ever."""
    # Asked for anew by each request: whoever filters warnings later would come first. A filter stays in place once.
    if warnings.filters[:1] != [_QUIET]:
        warnings.filterwarnings("ignore", module=SDK)


def _part(part: Part) -> dict[str, Any]:
    sent: dict[str, Any] = _content(part)
    if part.thought:
        sent["thought"] = True
    if part.signature is not None:
        sent["thoughtSignature"] = part.signature
    return sent


def _content(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Inline):
        return {"inlineData": {"mimeType": part.mime_type, "data": b64encode(part.data).decode()}}
    return {part.kind: part.value}


def _thinking(request: Request) -> "types.ThinkingConfig | None":
    from google.genai import types

    if request.thinking_level is None:
        return None
    # Not includeThoughts: they are billed anyway, and a client has no use for them.
    return types.ThinkingConfig(thinking_level=types.ThinkingLevel(request.thinking_level))
