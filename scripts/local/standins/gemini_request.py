"""The Gemini requests the stand-in takes: as strict as the real service, worded like it."""

import re
from typing import Any

from scripts.local.standins.google import GoogleError

# An object lists its fields, a list holds its items' shape, None takes anything.
_PART = dict.fromkeys(
    "fileData executableCode codeExecutionResult thought videoMetadata mediaResolution partMetadata toolCall "
    "toolResponse".split()
) | {
    "text": str,
    "thoughtSignature": str,
    "inlineData": {"mimeType": str, "data": str, "displayName": str},
    "functionCall": {"id": str, "name": str, "args": None},
    "functionResponse": dict.fromkeys("id name response parts willContinue scheduling".split()),
}
_CONTENT = {"role": str, "parts": [_PART]}
_CONFIG = dict.fromkeys(
    "topP topK seed stopSequences responseMimeType responseSchema responseJsonSchema presencePenalty frequencyPenalty "
    "responseLogprobs logprobs enableEnhancedCivicAnswers responseModalities speechConfig imageConfig "
    "mediaResolution audioTimestamp audioTranscriptionConfig continuationToken routingConfig modelConfig".split()
) | {
    "temperature": float,
    "candidateCount": int,
    "maxOutputTokens": int,
    "thinkingConfig": {"thinkingLevel": str, "thinkingBudget": int, "includeThoughts": None},
}
_TOOL = dict.fromkeys(
    "functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext computerUse fileSearch "
    "googleMaps mcpServers retrieval enterpriseWebSearch".split()
)
_GENERATE = {
    "contents": [_CONTENT],
    "systemInstruction": _CONTENT,
    "generationConfig": _CONFIG,
    "safetySettings": [dict.fromkeys(["category", "threshold", "method"])],
    "tools": [_TOOL],
    "toolConfig": {
        "functionCallingConfig": {"mode": str, "allowedFunctionNames": [str]},
        "retrievalConfig": None,
        "includeServerSideToolInvocations": None,
    },
    "cachedContent": str,
    "serviceTier": str,
    "store": None,
    "labels": None,
    "model": str,
}
_COUNT = {name: _GENERATE[name] for name in ("contents", "model")} | {"generateContentRequest": _GENERATE}
_COUNT_ON_VERTEX = _COUNT | {name: _GENERATE[name] for name in ("systemInstruction", "tools", "generationConfig")}
_TYPES = {str: "TYPE_STRING", int: "TYPE_INT32", float: "TYPE_FLOAT"}


def parse_generate(body: object) -> dict[str, Any]:
    """A valid request in lower camel case without nulls.

    Raises:
        GoogleError: 400, in the service's words.
    """
    request: dict[str, Any] = _parse(body, _GENERATE, "")
    config = request.get("generationConfig", {})
    _contents(request, "GenerateContentRequest")
    _calls(request["contents"])
    _range(config, "temperature", 0, 2, "temperature must be in the range [0.0, 2.0].")
    _range(config, "candidateCount", 1, 8, "candidate_count must be in the range [1, 8].")
    _range(config, "maxOutputTokens", 1, 2**31 - 1, "max_output_tokens must be positive.")
    return request


def refuse(body: object, names: list[str]) -> None:
    """Play a version of the API that does not know these fields.

    Raises:
        GoogleError: 400, in the service's words: the body holds one of them.
    """
    request: dict[str, Any] = _parse(body, _GENERATE, "")
    for where, fields in (("", request), (" at 'generation_config'", request.get("generationConfig", {}))):
        for name in names:
            if name in fields:
                raise _invalid(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def parse_count(body: object, *, vertex: bool) -> dict[str, Any]:
    """The same for a request to count tokens."""
    request: dict[str, Any] = _parse(body, _COUNT_ON_VERTEX if vertex else _COUNT, "")
    request = request.get("generateContentRequest", request)
    _contents(request, "CountTokensRequest")
    return request


def _parse(value: Any, shape: Any, path: str) -> Any:  # noqa: ANN401
    if shape is None:
        return value
    if isinstance(shape, dict):
        return _parse_object(value, shape, path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _invalid(f"Invalid value at '{path}', Starting an object on a scalar or list field")
        return [_parse(item, shape[0], f"{path}[{number}]") for number, item in enumerate(value)]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = isinstance(value, str) if shape is str else number and (shape is float or value == int(value))
    if not fits:
        raise _invalid(f"Invalid value at '{path}' ({_TYPES[shape]}), {value!r}")
    return shape(value)


def _parse_object(value: object, shape: dict[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"Invalid value at '{path}', Root element must be a message.")
    parsed = {}
    for given, item in value.items():
        name = re.sub(r"_([a-z])", lambda match: match[1].upper(), given)
        if name not in shape:
            where = f" at '{path}'" if path else ""
            raise _invalid(f'Invalid JSON payload received. Unknown name "{given}"{where}: Cannot find field.')
        if item is not None:
            parsed[name] = _parse(item, shape[name], f"{path}.{_snake(name)}" if path else _snake(name))
    return parsed


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def _contents(request: dict[str, Any], message: str) -> None:
    if not request.get("contents"):
        raise _invalid(f"* {message}.contents: contents is not specified\n")
    for number, content in enumerate(request["contents"]):
        if not content.get("parts"):
            raise _invalid(f"* {message}.contents[{number}].parts: contents.parts must not be empty.\n")
        if content.get("role", "user") not in {"user", "model", "function"}:
            raise _invalid("Please use a valid role: user, model.")


def _calls(contents: list[dict[str, Any]]) -> None:
    """Each turn with calls is followed by one with as many responses, and no response stands elsewhere."""
    due = 0
    for content in contents:
        given = _number("functionResponse", content)
        if given != due:
            raise _invalid(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        due = _number("functionCall", content)
    if due:
        raise _invalid("Please ensure that function response turn comes immediately after a function call turn.")


def _number(kind: str, content: dict[str, Any]) -> int:
    return sum(kind in part for part in content["parts"])


def _range(config: dict[str, Any], name: str, lowest: float, highest: float, words: str) -> None:
    if name in config and not lowest <= config[name] <= highest:
        raise _invalid(f"* GenerateContentRequest.generation_config.{_snake(name)}: {words}\n")


def _invalid(message: str) -> GoogleError:
    return GoogleError(400, message)
