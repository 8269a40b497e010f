"""Why there is no answer, by status and words: what the client is told, what it cost, and how long to ask no more."""

import json
from typing import Any

import pytest

from firebreak.errors import DeadlineExceeded, ModelInput, ModelPaused, ModelUnavailable, Refused
from firebreak.gemini import failure
from firebreak.gemini.failure import ModelFailure, Window
from firebreak.gemini.windows import UNASKED_S, Windows


def error(status: str = "", message: str = "", details: object = ()) -> bytes:
    details = list(details) if isinstance(details, tuple) else details
    return json.dumps({"error": {"status": status, "message": message, "details": details}}).encode()


def wait(duration: object) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": duration}


def reason(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": name}


def quota(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


CREDITS = "Your prepayment credits are depleted. Please manage your project's billing."
CAP = "Your project has exceeded its monthly spending cap."
PER_DAY = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
PER_MINUTE = quota("GenerateRequestsPerMinutePerProjectPerModel")
TOKENS = quota("GenerateContentInputTokensPerModelPerMinute-FreeTier")
DAYS_TOKENS = quota("GenerateContentInputTokensPerModelPerDay")
NONE, MODEL, ACCOUNT = Window.NONE, Window.MODEL, Window.ACCOUNT

# What came: the refusal, whether it may be billed, whether it is ours, when to retry, what is not asked till then.
SORTED: dict[str, tuple[int, bytes, tuple[type[Refused], bool, bool, int | None, Window]]] = {
    "400": (400, error("INVALID_ARGUMENT"), (ModelInput, False, False, None, NONE)),
    "400 without words": (400, b"", (ModelInput, False, False, None, NONE)),
    "400 for the region": (400, error("FAILED_PRECONDITION"), (ModelUnavailable, False, True, None, NONE)),
    "400 that quotes the words of another": (
        400,
        error("INVALID_ARGUMENT", "FAILED_PRECONDITION API_KEY_INVALID spend cap"),
        (ModelInput, False, False, None, NONE),
    ),
    "400 for the key": (
        400,
        error("INVALID_ARGUMENT", details=(reason("API_KEY_INVALID"),)),
        (ModelUnavailable, False, True, None, NONE),
    ),
    "401": (401, error(), (ModelUnavailable, False, True, None, NONE)),
    "402": (402, error(), (ModelPaused, False, True, 60, ACCOUNT)),
    "403": (403, error(), (ModelUnavailable, False, True, None, NONE)),
    "403 without billing": (403, error(details=(reason("BILLING_DISABLED"),)), (ModelPaused, False, True, 60, ACCOUNT)),
    "403 by a cap": (403, error(message=CAP), (ModelPaused, False, True, 60, ACCOUNT)),
    "404": (404, error(), (ModelUnavailable, False, True, None, NONE)),
    "404 that speaks of a cap": (404, error(message=CAP), (ModelUnavailable, False, True, None, NONE)),
    "408": (408, error(), (DeadlineExceeded, True, False, None, NONE)),
    "409": (409, error(), (ModelUnavailable, True, False, None, NONE)),
    "429": (429, error(), (ModelUnavailable, False, False, 2, MODEL)),
    "429 without words": (429, b"\xff", (ModelUnavailable, False, False, 2, MODEL)),
    "429 for a while": (429, error(details=(wait("33.2s"),)), (ModelUnavailable, False, False, 34, MODEL)),
    "429 for a minute's quota": (
        429,
        error(details=(PER_MINUTE, wait("59s"))),
        (ModelUnavailable, False, False, 59, MODEL),
    ),
    "429 for ever": (429, error(details=(wait("999999s"),)), (ModelUnavailable, False, False, 86_400, MODEL)),
    "429 for today": (429, error(details=(PER_DAY, wait("3s"))), (ModelUnavailable, False, True, 3600, MODEL)),
    "429 for a minute's tokens": (
        429,
        error(details=(TOKENS, wait("59s"))),
        (ModelUnavailable, False, False, 59, NONE),
    ),
    "429 for a day's tokens": (429, error(details=(DAYS_TOKENS,)), (ModelUnavailable, False, True, 3600, NONE)),
    "429 for requests and tokens": (
        429,
        error(details=(TOKENS, PER_MINUTE, wait("59s"))),
        (ModelUnavailable, False, False, 59, MODEL),
    ),
    "429 without billing": (
        429,
        error(details=(reason("BILLING_DISABLED"),)),
        (ModelUnavailable, False, False, 2, MODEL),
    ),
    "429 by a cap": (429, error(message=CAP), (ModelPaused, False, True, 60, ACCOUNT)),
    "429 without credits": (429, error(message=CREDITS), (ModelPaused, False, True, 60, ACCOUNT)),
    "429 without credits, for a while": (
        429,
        error(message="Your prepaid credits\nare used up.", details=(wait("90s"),)),
        (ModelPaused, False, True, 90, ACCOUNT),
    ),
    "499": (499, error(), (ModelUnavailable, True, False, None, NONE)),
    "500": (500, error(), (ModelUnavailable, True, False, None, NONE)),
    "503 for a while": (503, error(details=(wait("5s"),)), (ModelUnavailable, True, False, 5, NONE)),
    "504": (504, error(), (DeadlineExceeded, True, False, None, NONE)),
    "302": (302, b"", (ModelUnavailable, True, False, None, NONE)),
    "201": (201, b"{}", (ModelUnavailable, True, False, None, NONE)),
}


@pytest.mark.parametrize("name", SORTED)
def test_a_status_says_what_it_cost_and_whose_fault_it_is(name: str) -> None:
    code, body, expected = SORTED[name]

    found = failure.status(code, body)

    assert (found.refusal, found.may_be_billed, found.ours, found.retry_after_s, found.window) == expected
    assert found.status == code


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("1s", 1), ("1.000000001s", 2), ("0.4s", 1), ("0s", 1), ("86400s", 86_400), ("86401s", 86_400)]
    + [(wrong, 2) for wrong in ("", "5", "-5s", "1e3s", "s", "٣s", 5, None, "9" * 10 + "s", "1.s")],
)
def test_a_retry_info_is_rounded_up_and_bounded(duration: object, seconds: int) -> None:
    assert failure.status(429, error(details=(wait(duration),))).retry_after_s == seconds


def test_an_error_in_a_list_is_read_too() -> None:
    body = b"[" + error(details=(wait("7s"),)) + b"]"

    assert failure.status(429, body).retry_after_s == 7


@pytest.mark.parametrize(
    "body",
    [b"[]", b"[[]]", b"1", b'{"error": 1}', b"[" * 100_000, error(details="x"), error(details=("x", {"violations": 3})),
     error(details=({"violations": ["x", {"quotaId": 5}]},)), b'{"error": {"status": 4, "message": []}}'],
)  # fmt: skip
def test_words_that_cannot_be_read_leave_the_status(body: bytes) -> None:
    found = failure.status(429, body)

    assert (found.refusal, found.retry_after_s) == (ModelUnavailable, 2)


def test_a_quota_of_the_day_says_that_waiting_does_not_help() -> None:
    refused = failure.status(429, error(details=(PER_DAY,))).refused(charged=0)

    assert "today" in refused.message
    assert refused.details == {"reason": "model", "retryAfterSeconds": 3600, "charged": 0}


@pytest.mark.parametrize(("code", "kind"), [(504, DeadlineExceeded), (408, DeadlineExceeded), (429, ModelUnavailable)])
def test_an_error_told_in_an_answer_may_be_billed(code: int, kind: type[Refused]) -> None:
    found = failure.told(code)

    assert (found.refusal, found.may_be_billed, found.status) == (kind, True, code)


def test_what_broke_or_ran_late_may_be_billed() -> None:
    assert (failure.late().refusal, failure.late().may_be_billed) == (DeadlineExceeded, True)
    assert (failure.broken("x").refusal, failure.broken("x").may_be_billed) == (ModelUnavailable, True)
    assert failure.broken("x").refused(charged=7).details == {"reason": "model", "charged": 7}
    assert str(failure.told(503)) == "model 503"
    assert str(failure.broken()) == "model"


class Time:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def limited(seconds: int | None, window: Window = MODEL) -> ModelFailure:
    return ModelFailure(
        ModelUnavailable, may_be_billed=True, ours=True, retry_after_s=seconds, window=window, text=str(seconds)
    )


def test_a_window_is_met_from_memory_until_it_is_over() -> None:
    windows = Windows(time := Time())
    windows.note(limited(30), "a")

    time.now += 10.5
    met = windows.look("a")
    assert met is not None
    assert (met.retry_after_s, met.refusal, met.text, met.ours) == (20, ModelUnavailable, "30", True)
    assert not met.may_be_billed
    assert windows.look("b") is None
    assert windows.look("b", "a") is not None

    time.now += 19.5
    assert windows.look("a") is None


def test_a_long_window_is_told_whole_and_the_model_is_asked_again_before_its_end() -> None:
    windows = Windows(time := Time())
    windows.note(limited(3600), "a")

    time.now += UNASKED_S - 1
    met = windows.look("a")
    assert met is not None
    assert met.retry_after_s == 3600 - (UNASKED_S - 1)

    time.now += 1
    assert windows.look("a") is None


def test_a_window_of_the_account_is_met_by_every_model() -> None:
    windows = Windows(Time())
    windows.note(limited(60, ACCOUNT), "a")
    windows.note(limited(90), "a")

    met, other = windows.look("a"), windows.look("b")

    assert met is not None
    assert other is not None
    assert (met.retry_after_s, other.retry_after_s) == (90, 60)


@pytest.mark.parametrize("nothing", [limited(30, NONE), limited(None)])
def test_what_has_no_window_is_not_remembered(nothing: ModelFailure) -> None:
    windows = Windows(Time())
    windows.note(nothing, "a")

    assert windows.look("a") is None
