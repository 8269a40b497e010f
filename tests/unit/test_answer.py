"""What counts as an answer of the model, decided on the bytes that came; and the turn that goes back as it came."""

import json
from typing import Any

import pytest

from firebreak.gemini import answer
from firebreak.gemini.answer import Chunk, NotAnAnswer, ToldError
from firebreak.gemini.prices import NOT_A_COUNT, Usage

SIGNED = {"functionCall": {"name": "look", "args": {"x": 1}, "id": "c1"}, "thoughtSignature": "c2ln"}


def body(*parts: object, finish: object = None, **more: object) -> bytes:
    """An answer with these parts."""
    candidate: dict[str, object] = {"content": {"role": "model", "parts": list(parts)}}
    return json.dumps(
        {"candidates": [candidate | ({"finishReason": finish} if finish is not None else {})], **more}
    ).encode()


def read(*parts: object, finish: object = None, **more: object) -> Chunk:
    return answer.parse(body(*parts, finish=finish, **more))


def test_a_turn_is_kept_as_it_came() -> None:
    parts = [{"text": "", "thoughtSignature": "a"}, {"text": ""}, {"text": "hi", "new": {"k": 1}}, SIGNED]

    chunk = read(*parts, finish="STOP")

    assert answer.content([chunk]) == {"role": "model", "parts": parts}
    assert (chunk.text, chunk.finish_reason, chunk.done) == ("hi", "STOP", True)


def test_of_a_stream_plain_texts_are_joined_and_signatures_survive() -> None:
    pieces: list[list[object]] = [
        [{"text": "one "}],
        [{"text": "two"}, {"text": "why", "thought": True}],
        [{"text": "because", "thought": True}],
        [SIGNED],
        [{"text": ""}],
        [{"text": "", "thoughtSignature": "end"}],
        [{"text": "three"}],
    ]

    assert answer.content([read(*parts) for parts in pieces]) == {
        "role": "model",
        "parts": [
            {"text": "one two"},
            {"text": "why", "thought": True},
            {"text": "because", "thought": True},
            SIGNED,
            {"text": "", "thoughtSignature": "end"},
            {"text": "three"},
        ],
    }


def test_unknown_keys_of_a_turn_are_kept_and_a_missing_role_is_the_models() -> None:
    first = Chunk(content={"parts": [{"text": "a"}], "new": 1})
    second = Chunk(content={"parts": [{"text": "b"}], "role": None})

    assert answer.content([first]) == {"role": "model", "new": 1, "parts": [{"text": "a"}]}
    assert answer.content([first, second]) == {"role": "model", "new": 1, "parts": [{"text": "ab"}]}


@pytest.mark.parametrize("chunks", [[], [Chunk()], [Chunk(content={"role": "model"})], [Chunk(content={"parts": []})]])
def test_a_turn_without_parts_is_none(chunks: list[Chunk]) -> None:
    assert answer.content(chunks) is None


def test_thoughts_are_no_text_but_stay_in_the_turn() -> None:
    chunk = read({"text": "hm", "thought": True}, {"text": "yes"}, {"text": None})

    assert chunk.text == "yes"
    assert len(chunk.parts) == 3


@pytest.mark.parametrize(
    ("part", "call"),
    [
        (SIGNED, {"name": "look", "args": {"x": 1}, "id": "c1", "thoughtSignature": "c2ln"}),
        ({"functionCall": {"name": "look"}}, {"name": "look", "args": {}}),
        ({"functionCall": {"name": "look", "args": None, "id": None}}, {"name": "look", "args": {}}),
        (
            {"functionCall": {"id": ""}, "thoughtSignature": ""},
            {"name": "", "args": {}, "id": "", "thoughtSignature": ""},
        ),
    ],
)
def test_a_call_tells_what_must_be_sent_back_with_it(part: dict[str, Any], call: dict[str, Any]) -> None:
    assert read({"text": "a"}, part).calls == [call]


def test_an_image_stays_in_the_turn() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "A" * 5_000_000}}

    chunk = read({"text": "here"}, image, finish="STOP")

    assert chunk.text == "here"
    assert answer.content([chunk]) == {"role": "model", "parts": [{"text": "here"}, image]}


def nested(depth: int) -> bytes:
    return b'{"candidates":' + b"[" * depth + b"]" * depth + b"}"


NOT_ANSWERS: dict[str, bytes] = {
    "empty": b"",
    "html": b"<html>",
    "null": b"null",
    "a list": b"[]",
    "a text": b'"hi"',
    "a number": b"1",
    "cut off": body({"text": "hi"})[:-1],
    "not UTF-8": b'{"candidates": "\xff"}',
    "NaN": b'{"usageMetadata": {"totalTokenCount": NaN}}',
    "infinite": b'{"candidates": [{"content": {"parts": [{"functionCall": {"args": {"x": 1e999}}}]}}]}',
    "infinite, below": b'{"candidates": [{"content": {"parts": [{"functionCall": {"args": {"x": -1e999}}}]}}]}',
    "many digits": b'{"usageMetadata": {"totalTokenCount": ' + b"1" * 21 + b"}}",
    "deep": nested(answer.MAX_DEPTH),
    "very deep": nested(200_000),
    "many values": b'{"candidates":[' + b"1," * answer.MAX_VALUES + b"1]}",
    "large": b'{"x": "' + b"a" * (answer.MAX_BYTES - 8) + b'"}',
    "candidates an object": b'{"candidates": {}}',
    "a candidate a text": b'{"candidates": ["hi"]}',
    "content a list": b'{"candidates": [{"content": []}]}',
    "role a number": b'{"candidates": [{"content": {"role": 1}}]}',
    "parts an object": b'{"candidates": [{"content": {"parts": {}}}]}',
    "a part a text": body("hi"),
    "text a number": body({"text": 1}),
    "a signature a number": body({"text": "a", "thoughtSignature": 1}),
    "a call a list": body({"functionCall": []}),
    "its name a number": body({"functionCall": {"name": 1}}),
    "its id a number": body({"functionCall": {"name": "f", "id": 1}}),
    "its args a list": body({"functionCall": {"name": "f", "args": []}}),
    "finish a number": body(finish=1),
    "feedback a text": b'{"promptFeedback": "SAFETY"}',
    "block a number": b'{"promptFeedback": {"blockReason": 1}}',
    "usage a list": b'{"usageMetadata": [1]}',
    "model a number": b'{"modelVersion": 1, "candidates": []}',
}


@pytest.mark.parametrize("name", NOT_ANSWERS)
def test_what_is_no_answer_is_told_apart(name: str) -> None:
    with pytest.raises(NotAnAnswer):
        answer.parse(NOT_ANSWERS[name])


def test_the_bounds_themselves_are_within() -> None:
    assert answer.value(b'"' + b"a" * (answer.MAX_BYTES - 2) + b'"') == "a" * (answer.MAX_BYTES - 2)
    assert answer.value(b"[" * answer.MAX_DEPTH + b"]" * answer.MAX_DEPTH)
    assert len(answer.value(b"[" + b"1," * (answer.MAX_VALUES - 3) + b"1]")) == answer.MAX_VALUES - 2
    assert answer.value(b"1" * 20) == int("1" * 20)


@pytest.mark.parametrize(
    ("told", "code"), [({"code": 503}, 503), ({}, 0), ("no", 0), ({"code": "503"}, 0), ({"code": True}, 0)]
)
def test_an_error_in_an_answer_is_an_error(told: object, code: int) -> None:
    with pytest.raises(ToldError) as caught:
        read({"text": "a"}, finish="STOP", error=told)

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("sent", "nothing"),
    [
        (b"{}", True),
        (b'{"hello": 1}', True),
        (b'{"error": null}', True),
        (b'{"candidates": [], "promptFeedback": {}, "usageMetadata": {}}', True),
        (b'{"candidates": null, "promptFeedback": null, "usageMetadata": null}', True),
        (b'{"candidates": [{"content": {"role": "model"}, "index": 0}], "modelVersion": "m"}', True),
        (b'{"promptFeedback": {"blockReason": ""}}', True),
        (b'{"candidates": [{"finishReason": "FINISH_REASON_UNSPECIFIED"}]}', True),
        (b'{"candidates": [{"finishReason": "STOP"}]}', False),
        (b'{"promptFeedback": {"blockReason": "SAFETY"}}', False),
        (b'{"usageMetadata": {"promptTokenCount": 0}}', False),
        (body({"text": ""}), False),
    ],
)
def test_an_answer_that_says_nothing_is_known(sent: bytes, nothing: bool) -> None:
    assert answer.parse(sent).says_nothing is nothing


@pytest.mark.parametrize("reason", ["", "FINISH_REASON_UNSPECIFIED"])
def test_an_unspecified_reason_ends_nothing(reason: str) -> None:
    chunk = read({"text": "a"}, finish=reason)

    assert (chunk.finish_reason, chunk.done) == (None, False)


@pytest.mark.parametrize("reason", ["", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"])
def test_an_unspecified_block_is_none(reason: str) -> None:
    assert not answer.chunk({"promptFeedback": {"blockReason": reason}}).done


def test_a_blocked_prompt_says_why() -> None:
    chunk = answer.chunk({"promptFeedback": {"blockReason": "SAFETY"}})

    assert (chunk.block_reason, chunk.finish_reason, chunk.done, chunk.content) == ("SAFETY", None, True, None)


def test_counts_are_read_by_their_names() -> None:
    told = {name: number for number, name in enumerate(answer.COUNTS.values(), start=1)}

    assert answer.chunk({"usageMetadata": told, "modelVersion": "m-1"}) == Chunk(
        usage=Usage(prompt=1, output=2, thought=3, cached=4, tool=5, total=6), model="m-1"
    )


@pytest.mark.parametrize("count", [True, False, "8", "1_000", 8.0, 8.5, [], {}])
def test_what_is_no_whole_number_is_no_count(count: object) -> None:
    usage = answer.chunk({"usageMetadata": {"promptTokenCount": 3, "totalTokenCount": count}}).usage

    assert usage == Usage(prompt=3, total=NOT_A_COUNT)
    assert not usage.believable


def test_lone_surrogates_can_be_encoded_and_pairs_stay() -> None:
    chunk = answer.parse(rb'{"candidates": [{"content": {"parts": [{"text": "a\ud800b\ude00 \ud83d\ude00\u00e9"}]}}]}')

    assert chunk.text == "a\ufffdb\ufffd \U0001f600\u00e9"


@pytest.mark.parametrize(("sent", "count"), [(b'{"totalTokens": 1}', 1), (b'{"totalTokens": 31, "x": []}', 31)])
def test_a_count_is_read(sent: bytes, count: int) -> None:
    assert answer.counted(sent) == count


@pytest.mark.parametrize(
    "sent", [b"", b"{}", b"[]", b'{"totalTokens": 0}', b'{"totalTokens": "3"}', b'{"totalTokens": true}', b"3"]
)
def test_what_is_no_count_is_refused(sent: bytes) -> None:
    with pytest.raises(NotAnAnswer):
        answer.counted(sent)


def test_a_stream_has_no_more_events_than_an_answer_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MAX_EVENTS", 3)

    assert len(events(b"data: x\n\n" * 2)) == 2
    with pytest.raises(NotAnAnswer):
        events(b"data: x\n\n" * 3)


def events(*pieces: bytes) -> list[bytes]:
    return list(answer.events(pieces))


STREAM = b": hello\r\nevent: x\r\nid: 1\r\nretry: 5\r\ndata: {\r\ndata:}\r\n\r\n\r\n\r\ndata: two\n\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_events_are_found_however_they_are_cut(size: int) -> None:
    assert events(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == [b" {\n}", b" two"]


def test_the_last_event_needs_no_blank_line() -> None:
    assert events(b"data: one\n\ndata: two") == [b" one", b" two"]
    assert events() == events(b"\n\n") == []


@pytest.mark.parametrize("line", [b"[]", b"{}", b'{"error": {}}', b"<html>", b"dat: a", b" data: a"])
def test_what_is_no_event_is_no_stream(line: bytes) -> None:
    with pytest.raises(NotAnAnswer):
        events(b"data: one\n\n", line)


def test_a_body_is_bounded_in_all() -> None:
    half = b"a" * (answer.MAX_BYTES // 2)

    assert sum(map(len, answer.bounded([half, half]))) == answer.MAX_BYTES
    with pytest.raises(NotAnAnswer):
        list(answer.bounded([half, half, b"a"]))


def test_an_escape_that_is_whole_stays_what_it_says() -> None:
    assert answer.value(rb'{"a": ["\u00e9", 1.5, null]}') == {"a": ["\u00e9", 1.5, None]}
