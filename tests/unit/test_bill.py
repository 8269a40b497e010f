"""What is charged, and what the client gets for it, at every end of a call: with fakes for the edges."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from firebreak.bucket.settle import Settled
from firebreak.errors import (
    BucketEmpty,
    DeadlineExceeded,
    Internal,
    ModelInput,
    ModelPaused,
    ModelUnavailable,
    Refused,
    TooLarge,
)
from firebreak.gemini import failure, generate
from firebreak.gemini.admit import Account
from firebreak.gemini.answer import Chunk, chunk
from firebreak.gemini.client import Gemini
from firebreak.gemini.contents import Media
from firebreak.gemini.failure import ModelFailure, Window
from firebreak.gemini.request import Bounds, Request, parse
from firebreak.limits.pool import Draw, Pool
from firebreak.settings.weights import FLAT, Price, Weights
from firebreak.waiting import DONE, Done

MODEL = "gemini-3.8-flash"
BOUNDS = Bounds(
    models=(MODEL,),
    max_output_tokens=1_000,
    default_output_tokens=100,
    max_prompt_bytes=10_000,
    media=Media(types=("image/png",), most_bytes=1_000),
)
HI = parse({"prompt": "hi"}, BOUNDS)
LONG = parse({"prompt": "four score and " * 80}, BOUNDS)
IMAGE = parse({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]}]}, BOUNDS)
ESTIMATE = 2 + 24 + 100
LIMIT = 10_000


@dataclass
class Book:
    """A ledger in memory: what was asked of it, and what was settled."""

    level: int = LIMIT
    asked: list[int] = field(default_factory=list)
    checked: list[int] = field(default_factory=list)
    settled: list[tuple[int, dict[str, int]]] = field(default_factory=list)

    def reservation(self, user_key: str, request_id: str, ask: Ask) -> "Reserving":
        return Reserving(
            self, Hold(user_key=user_key, request_id=request_id, estimated=ask.estimate, limit=ask.limit, held_at=NOW)
        )

    def check(self, uid: str, request_id: str, ask: Ask) -> None:
        self.checked.append(ask.estimate)
        self.reservation(uid, request_id, ask).look()

    def settle(self, hold: Hold, *, actual: int, counters: dict[str, int]) -> Settled:
        self.settled.append((actual, counters))
        self.level += hold.estimated - actual
        return Settled(booked=True, remaining=self.level)


NOW = datetime(2026, 12, 1, tzinfo=UTC)


@dataclass
class Reserving:
    book: Book
    hold: Hold

    def look(self) -> None:
        if self.hold.estimated > self.book.level:
            raise BucketEmpty(retry_after_s=9_999, remaining=self.book.level)

    def run(self) -> Hold:
        self.look()
        self.book.asked.append(self.hold.estimated)
        self.book.level -= self.hold.estimated
        return self.hold


@dataclass
class Tank:
    """A pool in memory."""

    drawn: int = 0

    def take(self, share: str, tokens: int) -> Draw:
        self.drawn += tokens
        return Draw(share=share, lots=())

    def give_back(self, _draw: Draw, tokens: int) -> None:
        self.drawn -= tokens


type Step = Chunk | Exception | None


@dataclass
class Model:
    """A model that answers with `steps`; None is a wait."""

    steps: Sequence[Step] = ()
    known: ModelFailure | None = None
    count_is: int | ModelFailure = 50
    asked: list[str] = field(default_factory=list)
    left: int = 0

    def look(self, _request: Request) -> None:
        if self.known:
            raise self.known

    def count(self, *_: object, **__: object) -> int:
        self.asked.append("count")
        if isinstance(self.count_is, ModelFailure):
            raise self.count_is
        return self.count_is

    def generate(self, *_: object, **__: object) -> Chunk:
        self.asked.append("generate")
        (step,) = self.steps
        return cast("Chunk", _told(step))

    def stream(self, *_: object, **__: object) -> "Model":
        self.asked.append("stream")
        self._rest: Iterator[Step] = iter(self.steps)
        return self

    def take(self, *, wait_s: float) -> Chunk | Done | None:
        step = next(self._rest, DONE)
        if step is None:
            self._rest = iter([None, *self._rest])
            time.sleep(min(wait_s, 0.05))
            return None
        return cast("Chunk | Done", _told(step))

    def leave(self) -> None:
        self.left += 1


def _told(step: object) -> object:
    if isinstance(step, Exception):
        raise step
    return step


@dataclass
class Scene:
    book: Book = field(default_factory=Book)
    tank: Tank = field(default_factory=Tank)

    def ask(
        self,
        model: Model,
        request: Request = HI,
        *,
        streamed: bool = False,
        price: Price = FLAT,
        deadline_s: float = 30.0,
        shadow: bool = False,
        messages: list[Any] | None = None,
    ) -> dict[str, Any]:
        payer = Account(user_key="u", limit=LIMIT, share="default", price=price, shadow=shadow)
        edges: dict[str, Any] = {"ledger": cast("Ledger", self.book), "gemini": cast("Gemini", model)}
        edges |= {"pool": cast("Pool", self.tank), "deadline_s": deadline_s}
        if not streamed:
            return generate.generate(request, "r", payer, **edges)
        steps = generate.stream(request, "r", payer, **edges)
        try:
            while True:
                message = next(steps)
                if messages is not None:
                    messages.append(message)
        except StopIteration as end:
            return cast("dict[str, Any]", end.value)


def said(text: str | None = None, finish: str | None = None, used: int | None = None, **usage: object) -> Chunk:
    """A piece of an answer; `used` tokens in all."""
    candidate: dict[str, Any] = {"finishReason": finish} if finish else {}
    if text is not None:
        candidate["content"] = {"role": "model", "parts": [{"text": text}]}
    told = usage if used is None else {"totalTokenCount": used, **usage}
    return chunk({"candidates": [candidate], "usageMetadata": told})


def blocked(used: int | None = None) -> Chunk:
    return chunk({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"totalTokenCount": used}})


# What came, whole or in pieces: what is charged, and the end that the client sees.
ENDS: dict[str, tuple[list[Step], int, str | type[Refused] | None]] = {
    "an answer": ([said("hi", "STOP", 20)], 20, "STOP"),
    "above the estimate": ([said("hi", "STOP", 900)], 900, "STOP"),
    "without usage": ([said("hi", "STOP")], ESTIMATE, "STOP"),
    "without a finish": ([said("hi", None, 20)], ESTIMATE, None),
    "without a finish, above": ([said("hi", None, 500)], 500, None),
    "an unspecified finish": ([said("hi", "FINISH_REASON_UNSPECIFIED", 20)], ESTIMATE, None),
    "a blocked prompt": ([blocked(3)], 3, "SAFETY"),
    "a blocked prompt without usage": ([blocked()], ESTIMATE, "SAFETY"),
    "usage alone": ([said(None, None, 20)], ESTIMATE, None),
    "counts that are none": ([said("hi", "STOP", totalTokenCount="8")], ESTIMATE, "STOP"),
    "a count above any window": ([said("hi", "STOP", 10**8)], ESTIMATE, "STOP"),
    "nothing": ([chunk({})], ESTIMATE, ModelUnavailable),
    "refused": ([failure.status(429, b"")], 0, ModelUnavailable),
    "refused for its input": ([failure.status(400, b"")], 0, ModelInput),
    "refused for money": ([failure.status(402, b"")], 0, ModelPaused),
    "down": ([failure.status(503, b"")], ESTIMATE, ModelUnavailable),
    "late": ([failure.late()], ESTIMATE, DeadlineExceeded),
    "dropped": ([failure.broken()], ESTIMATE, ModelUnavailable),
    "a fault of our own": ([KeyError("secret")], ESTIMATE, Internal),
}
IN_PIECES: dict[str, tuple[list[Step], int, str | type[Refused] | None]] = {
    "no event": ([], ESTIMATE, ModelUnavailable),
    "the last usage": ([said("a", None, 90), said("b", "STOP", 20)], 20, "STOP"),
    "usage after the finish": ([said("a", "STOP"), said(None, None, 20)], 20, "STOP"),
    "empty events between": ([said("a"), chunk({}), said("b", "STOP", 20), chunk({})], 20, "STOP"),
    "dropped": ([said("a", None, 20), failure.broken()], ESTIMATE, ModelUnavailable),
    "dropped above the estimate": ([said("a", None, 500), failure.broken()], 500, ModelUnavailable),
    "dropped after the finish": ([said("a", "STOP", 20), failure.broken()], ESTIMATE, "STOP"),
    "dropped after the finish, above": ([said("a", None, 700), said("a", "STOP", 20), failure.broken()], 700, "STOP"),
    "an error after the finish": ([said("a", "STOP", 20), failure.told(500)], ESTIMATE, "STOP"),
    "free after a piece": ([said("a"), failure.status(429, b"")], ESTIMATE, ModelUnavailable),
    "a fault of our own": ([said("a", None, 500), ValueError("secret")], 500, Internal),
}
CASES = [(name, False, *case) for name, case in ENDS.items()] + [
    (name, True, *case) for name, case in (ENDS | IN_PIECES).items()
]


@pytest.mark.parametrize(("name", "streamed", "steps", "charged", "end"), CASES, ids=lambda value: str(value)[:40])
def test_every_end_is_settled_once_and_told(
    name: str, streamed: bool, steps: list[Step], charged: int, end: str | type[Refused] | None
) -> None:
    scene, model = Scene(), Model(steps)

    if isinstance(end, type):
        with pytest.raises(end) as refused:
            scene.ask(model, streamed=streamed)
        assert refused.value.details["charged"] == charged
    else:
        result = scene.ask(model, streamed=streamed)
        assert (result["charged"], result["finishReason"]) == (charged, end)
        assert result["remaining"] == LIMIT - charged

    assert [actual for actual, _ in scene.book.settled] == [charged]
    assert scene.book.settled[0][1]["calls"] == 1
    assert scene.book.settled[0][1]["charged"] == charged
    assert scene.book.asked == [ESTIMATE]
    assert scene.tank.drawn == charged
    assert model.left == streamed


def test_a_result_is_the_whole_answer() -> None:
    call = {"functionCall": {"name": "look"}, "thoughtSignature": "c2ln"}
    parts = [said("one "), said("two"), chunk({"candidates": [{"content": {"parts": [call]}}], "modelVersion": "m-2"})]
    messages: list[Any] = []

    result = Scene().ask(Model([*parts, said(None, "STOP", 20, promptTokenCount=5)]), streamed=True, messages=messages)

    assert messages == [{"text": "one "}, {"text": "two"}]
    assert result == {
        "text": "one two",
        "functionCalls": [{"name": "look", "args": {}, "thoughtSignature": "c2ln"}],
        "content": {"role": "model", "parts": [{"text": "one two"}, call]},
        "finishReason": "STOP",
        "model": "m-2",
        "usage": {
            "promptTokens": 5,
            "outputTokens": 0,
            "thoughtTokens": 0,
            "cachedTokens": 0,
            "toolTokens": 0,
            "totalTokens": 20,
        },
        "charged": 20,
        "remaining": LIMIT - 20,
        "requestId": "r",
    }


def test_a_blocked_prompt_says_that_and_why() -> None:
    result = Scene().ask(Model([blocked(3)]))

    assert (result["blockReason"], result["finishReason"], result["text"]) == ("SAFETY", "SAFETY", "")
    assert (result["model"], "content" in result, "thoughtsOnly" in result) == (MODEL, False, False)


THOUGHT = {"text": "hm", "thought": True}
SIGNATURE = {"text": "", "thoughtSignature": "a"}


@pytest.mark.parametrize(
    ("parts", "thoughts", "alone"),
    [
        ([], 30, True),
        ([], 0, False),
        ([{"text": ""}], 30, True),
        ([SIGNATURE], 30, True),
        ([THOUGHT], 0, True),
        ([THOUGHT, {"text": "yes"}], 30, False),
        ([{"text": "yes"}], 30, False),
        ([{"functionCall": {"name": "f"}}], 30, False),
        ([{"inlineData": {"mimeType": "image/png", "data": ""}}], 30, False),
    ],
)
def test_an_answer_that_is_all_thought_says_so(parts: list[Any], thoughts: int, alone: bool) -> None:
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "MAX_TOKENS"}
    told = chunk({"candidates": [candidate], "usageMetadata": {"thoughtsTokenCount": thoughts}})

    assert Scene().ask(Model([told])).get("thoughtsOnly", False) is alone


def test_a_complete_answer_does_not_wait_for_a_stream_that_stays_open() -> None:
    scene = Scene()

    result = scene.ask(Model([said("hi", "STOP", 20), None]), streamed=True, deadline_s=3_600.0)

    assert (result["text"], result["charged"]) == ("hi", ESTIMATE)


def test_at_the_deadline_a_complete_answer_is_given_and_another_refused() -> None:
    result = Scene().ask(Model([said("hi", "STOP", 20), None]), streamed=True, deadline_s=0.1)
    assert (result["text"], result["charged"]) == ("hi", ESTIMATE)

    with pytest.raises(DeadlineExceeded) as refused:
        Scene().ask(Model([said("hi", None, 20), None]), streamed=True, deadline_s=0.1)
    assert refused.value.details["charged"] == ESTIMATE


def test_a_client_that_leaves_pays_the_estimate_even_after_the_finish() -> None:
    scene, model = Scene(), Model([said("hi", "STOP", 20), None])
    payer = Account(user_key="u", limit=LIMIT, share="default")
    edges: dict[str, Any] = {"ledger": scene.book, "gemini": model, "pool": scene.tank}
    steps = generate.stream(HI, "r", payer, deadline_s=30.0, **edges)

    assert next(steps) == {"text": "hi"}
    steps.close()

    assert [actual for actual, _ in scene.book.settled] == [ESTIMATE]
    assert model.left == 1


def test_what_is_weighed_is_held_and_charged_weighed() -> None:
    scene = Scene()

    result = scene.ask(
        Model([said("hi", "STOP", promptTokenCount=10, candidatesTokenCount=7)]),
        price=Price(short=Weights(output=5_000)),
    )

    assert (result["charged"], scene.book.asked) == (10 + 35, [26 + 500])


def test_a_window_that_is_known_refuses_before_anything_is_held() -> None:
    for shadow in (False, True):
        scene = Scene()
        known = ModelFailure(ModelPaused, may_be_billed=False, retry_after_s=17, window=Window.ACCOUNT)

        with pytest.raises(ModelPaused) as refused:
            scene.ask(Model(known=known), IMAGE, shadow=shadow)

        assert refused.value.details == {"reason": "model-paused", "retryAfterSeconds": 17, "charged": 0}
        assert (scene.book.asked, scene.book.checked, scene.tank.drawn) == ([], [], 0)


UNCOUNTED: dict[str, tuple[ModelFailure, type[Refused], int | None]] = {
    "a limit": (failure.status(429, b""), ModelUnavailable, 2),
    "down": (failure.status(503, b""), ModelUnavailable, 2),
    "late": (failure.late(), ModelUnavailable, 2),
    "late at the front": (failure.status(504, b""), ModelUnavailable, 2),
    "dropped": (failure.broken(), ModelUnavailable, 2),
    "our key": (failure.status(401, b""), ModelUnavailable, None),
    "its input": (failure.status(400, b""), ModelInput, None),
    "money": (failure.status(402, b""), ModelPaused, 60),
}


@pytest.mark.parametrize("request_", [LONG, IMAGE], ids=["text", "image"])
@pytest.mark.parametrize("name", UNCOUNTED)
def test_a_count_that_fails_costs_nothing_and_says_when_to_retry(name: str, request_: Request) -> None:
    found, kind, retry_after_s = UNCOUNTED[name]
    scene = Scene(book=Book(level=1_000))

    with pytest.raises(kind) as refused:
        scene.ask(Model(count_is=found), request_)

    assert refused.value.details.get("retryAfterSeconds") == retry_after_s
    assert refused.value.details["charged"] == 0
    assert (scene.book.asked, scene.tank.drawn) == ([], 0)


def test_the_model_counts_once_if_the_bound_does_not_fit_and_the_answer_does() -> None:
    scene, model = Scene(book=Book(level=1_000)), Model([said("hi", "STOP", 20)], count_is=300)

    scene.ask(model, LONG)

    assert (model.asked, scene.book.asked) == (["count", "generate"], [300 + 24 + 100])


@pytest.mark.parametrize(("level", "counted"), [(124, []), (125, ["count"])])
def test_nobody_who_cannot_pay_for_the_answer_gets_a_count(level: int, counted: list[str]) -> None:
    scene, model = Scene(book=Book(level=level)), Model(count_is=1_300)

    with pytest.raises((BucketEmpty, TooLarge)):
        scene.ask(model, LONG)

    assert (model.asked, scene.tank.drawn) == (counted, 0)


@pytest.mark.parametrize(
    ("used", "events"),
    [
        ({"promptTokenCount": 3, "totalTokenCount": 8}, ["firebreak.usage"]),
        ({"promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 8}, []),
        ({"promptTokenCount": True, "totalTokenCount": 8}, ["firebreak.usage"]),
        ({"promptTokenCount": 26, "candidatesTokenCount": 100, "totalTokenCount": 126}, []),
        ({"promptTokenCount": 26, "candidatesTokenCount": 101, "totalTokenCount": 127}, ["firebreak.overrun"]),
        ({"promptTokenCount": 27, "totalTokenCount": 27}, ["firebreak.prompt_bound"]),
    ],
)
def test_what_does_not_fit_is_logged(
    used: dict[str, Any], events: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Scene().ask(Model([said("hi", "STOP", **used)]))

    assert [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()] == events


@pytest.mark.parametrize(
    ("found", "severity"), [(failure.status(401, b""), "ERROR"), (failure.status(503, b""), "WARNING")]
)
def test_a_failure_is_logged_by_whose_fault_it_is(
    found: ModelFailure, severity: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ModelUnavailable):
        Scene().ask(Model([found]))

    (event,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (event["message"], event["severity"], event["model"]) == ("firebreak.model", severity, MODEL)


def test_a_fault_of_our_own_is_logged_by_its_type_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Internal):
        Scene().ask(Model([KeyError("secret")]))

    out = capsys.readouterr().out
    assert json.loads(out)["error"] == "KeyError"
    assert "secret" not in out
