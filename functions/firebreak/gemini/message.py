"""Requests in the model's own types."""

import re
import warnings
from typing import TYPE_CHECKING, Any

from firebreak.errors import InvalidField
from firebreak.gemini.contents import Called, Inline, Part, Text
from firebreak.gemini.request import Request

if TYPE_CHECKING:
    from google.genai import types

# What the API's own types raise where a client's JSON is not one; some look at a value before they check its type.
NOT_ONE = (ValueError, AttributeError, TypeError)
SDK = r"google\.genai"
_QUIET = ("ignore", None, Warning, re.compile(SDK), 0)


def check(request: Request) -> None:
    """Refuse, before anything is charged, what the API's own types do not take.

    Raises:
        InvalidField: a tool, or a part of a tool conversation, is not one.
    """
    if request.tools or any(isinstance(part, Called) for turn in request.turns for part in turn.parts):
        generation(request, 1.0)
        contents(request)


def generation(request: Request, deadline_s: float) -> "types.GenerateContentConfig":
    """Everything of a request but its contents.

    Raises:
        InvalidField: a tool is not one that the API knows.
    """
    from google.genai import types

    _keep_quiet()
    try:
        tools: Any = [types.Tool.model_validate(tool) for tool in request.tools] or None
    except NOT_ONE:
        raise InvalidField("tools must hold functionDeclarations as the Gemini API takes them") from None
    return types.GenerateContentConfig(
        system_instruction=request.system,
        max_output_tokens=request.max_output_tokens,
        temperature=request.temperature,
        candidate_count=request.candidates,
        response_mime_type=request.mime_type,
        response_json_schema=request.schema,
        tools=tools,
        # Both fan one call out into several billed ones.
        automatic_continuation=False,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        # Milliseconds, for each read; no retry_options: exactly one attempt.
        http_options=types.HttpOptions(timeout=round(deadline_s * 1000)),
    )


def contents(request: Request) -> "list[types.Content]":
    """The conversation.

    Raises:
        InvalidField: a functionCall or functionResponse is not one.
    """
    from google.genai import types

    _keep_quiet()
    try:
        return [types.Content(role=turn.role, parts=[_part(part) for part in turn.parts]) for turn in request.turns]
    except NOT_ONE:
        raise InvalidField("contents must hold parts as the Gemini API takes them") from None


def counted_contents(request: Request) -> "list[types.Content]":
    """The conversation with its system text as a turn: the Developer API does not count a system instruction."""
    from google.genai import types

    if request.system is None:
        return contents(request)
    return [types.Content(role="user", parts=[types.Part(text=request.system)]), *contents(request)]


def _keep_quiet() -> None:
    """Let the SDK warn of nothing: its warnings quote what a client sent, and Python keeps each of them for ever."""
    # Asked for anew by each request: whoever filters warnings later would come first. A filter stays in place once.
    if warnings.filters[:1] != [_QUIET]:
        warnings.filterwarnings("ignore", module=SDK)


def _part(part: Part) -> "types.Part":
    from google.genai import types

    if isinstance(part, Text):
        return types.Part(text=part.text)
    if isinstance(part, Inline):
        return types.Part(inline_data=types.Blob(mime_type=part.mime_type, data=part.data))
    return types.Part.model_validate({part.kind: part.value})
