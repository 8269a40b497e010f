"""A caller's events, counted; the books of one user, added up."""

from scripts.demo.books import Books, CallDocument
from scripts.demo.tally import join, tally

USAGE = {"promptTokens": 3, "totalTokens": 8}
EVENTS = [
    {"event": "signed-in", "at": 1, "uid": "u"},
    {"event": "started", "at": 2, "call": 0},
    {"event": "waiting", "at": 3, "call": 0, "waitMs": 80},
    {"event": "answered", "at": 4, "call": 0, "ms": 2, "result": {"text": "yes", "usage": USAGE}},
    {"event": "started", "at": 5, "call": 1},
    {
        "event": "refused",
        "at": 6,
        "call": 1,
        "ms": 1,
        "code": "resource-exhausted",
        "details": {"reason": "tokens"},
    },
    {"event": "started", "at": 7, "call": 2},
    {"event": "refused", "at": 8, "call": 2, "ms": 1, "code": "internal", "details": None},
    {"event": "started", "at": 9, "call": 3},
]


def test_sending_the_same_again_is_not_a_call() -> None:
    seen = tally(EVENTS)

    assert (seen.calls, seen.waits, seen.answered, seen.refused, seen.unanswered) == (4, 1, 1, 2, 1)
    assert seen.answers[0].usage == USAGE


def test_refusals_are_told_apart_by_code_and_reason() -> None:
    seen = tally(EVENTS)

    assert seen.kinds == {"resource-exhausted (tokens)": 1, "internal (none)": 1}
    assert len(seen.out_of_tokens) == 1


def test_a_refusal_has_the_backends_own_words() -> None:
    told = "The app's budget is used up."
    event = {"event": "refused", "at": 1, "call": 0, "ms": 1, "code": "unavailable", "message": f"{told} [503]"}

    assert tally([event | {"details": None}]).refusals[0].message == told


def test_an_answer_of_another_function_than_the_models_has_no_usage() -> None:
    event = {"event": "answered", "at": 1, "call": 0, "ms": 1, "result": {"complete": True}}

    assert tally([event]).answers[0].usage == {}


def test_several_accounts_are_one_caller() -> None:
    both = join([tally(EVENTS), tally(EVENTS)])

    assert (both.uids, both.calls, both.refused) == (("u", "u"), 8, 4)


def test_a_call_is_charged_at_its_estimate_until_it_is_settled_and_a_void_one_never() -> None:
    books = Books(
        bucket=None,
        calls=(
            CallDocument(status="held", estimated=100, actual=None),
            CallDocument(status="settled", estimated=100, actual=30),
            CallDocument(status="settled", estimated=100, actual=0),
            CallDocument(status="void", estimated=0, actual=None),
        ),
    )

    assert (books.admitted, books.held, books.estimated, books.charged, books.refunded) == (
        3,
        1,
        300,
        130,
        170,
    )
