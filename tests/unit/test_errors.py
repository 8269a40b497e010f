"""What a refusal tells beside its reason."""

import pytest

from firebreak.errors import KINDS, BucketEmpty, Code, Contention, ModelPaused, ReadsExceeded, Refused, ShuttingDown

WAITED_FOR = [kind for kind in KINDS if kind.code.http_status in {429, 503}]
OTHERS = [kind for kind in KINDS if kind not in WAITED_FOR]


@pytest.mark.parametrize("kind", WAITED_FOR)
def test_each_429_and_503_says_when_to_come_again(kind: type[Refused]) -> None:
    assert kind().retry_after_s == kind.usual_wait_s > 0
    assert kind(retry_after_s=7).retry_after_s == 7
    assert kind(retry_after_s=0).retry_after_s == 0


@pytest.mark.parametrize("kind", OTHERS)
def test_no_other_refusal_does(kind: type[Refused]) -> None:
    assert kind().retry_after_s is None
    assert kind(retry_after_s=7).retry_after_s is None


def test_both_statuses_have_refusals() -> None:
    assert {kind.code for kind in WAITED_FOR} == {Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}


def test_the_usual_wait_follows_the_advice() -> None:
    waits = [kind().retry_after_s for kind in (ShuttingDown, ModelPaused, ReadsExceeded, BucketEmpty, Contention)]

    assert waits == [1, 3600, 60, 60, 60]
