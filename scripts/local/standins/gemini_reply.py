"""What the Gemini stand-in answers: deterministic text and usage, or what the script says instead."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scripts.local.standins import gemini_signature, tokens
from scripts.local.standins.script import Reply

_LONG = re.compile(r"\b(novel|story|stories|essay)\b", re.IGNORECASE)
_DEFAULT_LIMIT = 2048
_STREAM_CHUNKS = 5
_MEDIA_TOKENS = 258


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says of its own accord: the text of each candidate, and the thoughts before it."""

    texts: tuple[str, ...]
    thoughts: int
    finish_reason: str


def count(request: dict[str, Any]) -> int:
    """Prompt tokens of a parsed request: text by the tokenizer, media at a flat rate, anything else as its JSON."""
    contents = [*request["contents"], request.get("systemInstruction", {})]
    total = sum(_count_part(part) for content in contents for part in content.get("parts", ()))
    return total + (tokens.count(json.dumps(request["tools"])) if "tools" in request else 0)


def _count_part(part: dict[str, Any]) -> int:
    if "text" in part:
        return tokens.count(part["text"])
    return _MEDIA_TOKENS if {"inlineData", "fileData"} & part.keys() else tokens.count(json.dumps(part))


def think(request: dict[str, Any]) -> Answer:
    """A long answer to whoever asks for something long, else a short one; the same for the same request."""
    config = request.get("generationConfig", {})
    limit = config.get("maxOutputTokens", _DEFAULT_LIMIT)
    prompt = "\n".join(part.get("text", "") for content in request["contents"] for part in content["parts"])
    wanted, thoughts = 12 + tokens.percent(prompt) // 4, 0
    if _LONG.search(prompt):
        wanted = max(1, limit * (60 + tokens.percent(prompt) * 41 // 100) // 100)
        thoughts = wanted // 10
    length = min(wanted, limit) - thoughts
    texts = tuple(tokens.prose(f"{number} {prompt}", length) for number in range(config.get("candidateCount", 1)))
    return Answer(texts=texts, thoughts=thoughts, finish_reason="STOP" if wanted < limit else "MAX_TOKENS")


def chunks(request: dict[str, Any], reply: Reply, *, common: dict[str, Any], stream: bool) -> Iterator[dict[str, Any]]:
    """The bodies of an answer: one, or those of a stream with usage that grows.

    Args:
        request: the parsed request.
        reply: the script; what it leaves out is as the model says.
        common: fields of every chunk (`modelVersion`, `responseId`).
        stream: several chunks, or one body.
    """
    if "raw" in reply:
        yield from reply["raw"] if isinstance(reply["raw"], list) else [reply["raw"]]
        return
    answer = think(request)
    prompt_tokens = count(request)
    pieces = _pieces(answer, reply, stream=stream)
    done = 0
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        done += sum(_count_part(part | {"thoughtSignature": ""}) for parts in piece for part in parts)
        thoughts = 0 if {"text", "chunks", "calls"} & reply.keys() else answer.thoughts
        chunk = _said(piece, reply, answer.finish_reason if last else None, last=last)
        usage = _usage(prompt_tokens, 0 if "promptFeedback" in reply else done, thoughts)
        yield chunk | _override(usage, reply, number, last=last) | common
        if "candidates" in reply or "promptFeedback" in reply:
            return


def _pieces(answer: Answer, reply: Reply, *, stream: bool) -> list[list[list[dict[str, Any]]]]:
    """The parts of each candidate, piece by piece: texts, then what the script has the model add to the first."""
    pieces = [[[{"text": text}] for text in piece] for piece in zip(*_texts(answer, reply, stream=stream), strict=True)]
    added = _added(reply)
    if stream:
        return pieces + [[[part]] for part in added]
    if not pieces:
        return [[added]]
    pieces[0][0] += added
    return pieces


def _added(reply: Reply) -> list[dict[str, Any]]:
    calls = [{"functionCall": {"id": f"call-{at}"} | call} for at, call in enumerate(reply.get("calls", ()), start=1)]
    signed = ([{"text": ""}] if reply.get("signText") else []) + calls[:1]
    for part in signed:
        part["thoughtSignature"] = gemini_signature.sign(part)
    return [part for part in signed if "text" in part] + calls


def _texts(answer: Answer, reply: Reply, *, stream: bool) -> list[list[str]]:
    """For each candidate the pieces of its text, all of the same number."""
    if "chunks" in reply:
        return [reply["chunks"] if stream else ["".join(reply["chunks"])]]
    if "calls" in reply and "text" not in reply:
        return []
    texts = (reply["text"],) if "text" in reply else answer.texts
    return [tokens.split(text, _STREAM_CHUNKS) if stream else [text] for text in texts]


def _said(piece: list[list[dict[str, Any]]], reply: Reply, finish_reason: str | None, *, last: bool) -> dict[str, Any]:
    if "candidates" in reply or "promptFeedback" in reply:
        return {name: reply[name] for name in ("candidates", "promptFeedback") if name in reply}
    if last and "finishReason" in reply:
        finish_reason = reply["finishReason"]
    candidates = []
    for index, parts in enumerate(piece):
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": index}
        candidates.append(candidate | ({"finishReason": finish_reason} if finish_reason else {}))
    return {"candidates": candidates}


def _usage(prompt: int, candidates: int, thoughts: int) -> dict[str, Any]:
    usage: dict[str, Any] = {"promptTokenCount": prompt, "totalTokenCount": prompt + candidates + thoughts}
    usage["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": prompt}]
    if candidates:
        usage["candidatesTokenCount"] = candidates
        usage["candidatesTokensDetails"] = [{"modality": "TEXT", "tokenCount": candidates}]
    return usage | ({"thoughtsTokenCount": thoughts} if thoughts else {})


def _override(usage: dict[str, Any], reply: Reply, number: int, *, last: bool) -> dict[str, Any]:
    """The chunk's usage as a field, or no field: `usages` speaks for each chunk, `usage` for the whole answer."""
    said: dict[str, Any] | None = usage
    if "usages" in reply:
        said = reply["usages"][number] if number < len(reply["usages"]) else None
    elif "usage" in reply:
        said = reply["usage"] if last else None
    return {} if said is None else {"usageMetadata": said}
