"""When the story is over: not before the runaway is refused for good, and the normal user was answered since."""

from scripts.demo.story import REFUSALS_AT_THE_END, is_lost, is_over
from scripts.demo.tally import Answer, Refusal, Tally


def seen(*, answers: list[int], refusals: list[int], code: str = "resource-exhausted") -> Tally:
    return Tally(
        uids=("u",),
        calls=len(answers) + len(refusals),
        waits=0,
        answers=tuple(Answer(at_ms=at, took_ms=1, usage={}) for at in answers),
        refusals=tuple(Refusal(at_ms=at, code=code, details={"reason": "tokens"}) for at in refusals),
    )


NORMAL = seen(answers=list(range(20)), refusals=[])
REFUSED_FOR_GOOD = seen(answers=[1, 2], refusals=[3] * REFUSALS_AT_THE_END)


def test_it_is_over_once_nobody_is_admitted_any_more() -> None:
    assert is_over(REFUSED_FOR_GOOD, NORMAL)


def test_it_goes_on_while_a_refund_may_admit_another_call() -> None:
    admitted_since = seen(answers=[1, 2, 4], refusals=[3] * REFUSALS_AT_THE_END)

    assert not is_over(admitted_since, NORMAL)


def test_it_goes_on_until_the_normal_user_was_answered_after_the_refusal() -> None:
    assert not is_over(REFUSED_FOR_GOOD, seen(answers=[0, 1, 2, 3], refusals=[]))


def test_it_is_lost_when_refusals_do_not_belong_to_it() -> None:
    broken = seen(answers=[], refusals=list(range(20)), code="internal")

    assert is_lost(broken, NORMAL)
    assert is_lost(REFUSED_FOR_GOOD, broken)
    assert not is_lost(REFUSED_FOR_GOOD, NORMAL)
