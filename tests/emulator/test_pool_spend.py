"""A call and the pool: one draw is outstanding while it runs, what it did not spend goes back once, however it ends."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.gemini import generate
from firebreak.gemini.admit import Account
from firebreak.gemini.client import Developer, Gemini
from firebreak.gemini.request import parse
from firebreak.limits.pool import Draw, Pool
from tests.conftest import StandIn
from tests.emulator.books import books
from tests.emulator.test_spend import ANSWERED, BOUNDS, ESTIMATE, FAILURES, LIMIT, image, usage

pytestmark = pytest.mark.usefixtures("full_pool")

PER_HOUR = 16_000_000
type Run = Callable[..., dict[str, Any]]


class CountingPool(Pool):
    """The real pool; it only counts what is outstanding."""

    draws = 0
    returns = 0
    outstanding = 0

    def take(self, share: str, tokens: int) -> Draw:
        draw = super().take(share, tokens)
        self.draws += 1
        self.outstanding += tokens
        return draw

    def give_back(self, draw: Draw, tokens: int) -> None:
        super().give_back(draw, tokens)
        self.returns += 1
        self.outstanding -= max(0, tokens)


@pytest.fixture
def ledger(direct: firestore.Client) -> Ledger:
    return Ledger(direct)


@pytest.fixture
def pool(direct: firestore.Client) -> CountingPool:
    return CountingPool(direct, tokens_per_hour=PER_HOUR, shares={"anonymous": 10, "default": 50})


@pytest.fixture
def call(ledger: Ledger, pool: CountingPool, gemini: StandIn, uid: str) -> Run:
    client = Gemini(Developer(api_key="local"), host=gemini.url.removeprefix("http://"))

    def call(
        ask: Callable[..., Any] = generate.generate,
        pool: Pool = pool,
        shadow: bool = False,
        share: str = "default",
        request_id: str = "r",
        **data: Any,
    ) -> Any:
        return ask(
            parse({name: value for name, value in ({"prompt": "hi"} | data).items() if value is not None}, BOUNDS),
            request_id,
            Account(user_key=uid, limit=LIMIT, share=share, shadow=shadow),
            deadline_s=10.0,
            ledger=ledger,
            gemini=client,
            pool=pool,
        )

    return call


def empty(client: firestore.Client) -> Pool:
    """A pool in which there is one token left for each tier, if that."""
    pool = Pool(client, tokens_per_hour=160, shares={"anonymous": 10, "default": 50})
    pool.take("default", 144)
    return pool


@pytest.mark.parametrize("name", ANSWERED)
def test_what_an_answer_did_not_use_goes_back_once(name: str, call: Run, pool: CountingPool, gemini: StandIn) -> None:
    reply, charged, _ = ANSWERED[name]
    gemini.script(reply)

    call()

    assert (pool.draws, pool.returns) == (1, 1)
    assert pool.outstanding == min(charged, ESTIMATE)


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_costs_the_pool_what_it_costs_the_user(
    name: str, call: Run, pool: CountingPool, gemini: StandIn
) -> None:
    reply, refusal, charged = FAILURES[name]
    gemini.script(reply)

    with pytest.raises(refusal):
        call()

    assert (pool.draws, pool.returns, pool.outstanding) == (1, 1, charged)


def test_a_stream_that_is_left_keeps_its_draw(call: Run, pool: CountingPool, gemini: StandIn) -> None:
    gemini.script({"text": "one two three four", "usage": usage(3, 5)})
    pieces: Any = call(generate.stream)
    next(pieces)
    assert (pool.returns, pool.outstanding) == (0, ESTIMATE)

    pieces.close()

    assert (pool.draws, pool.returns, pool.outstanding) == (1, 1, ESTIMATE)


def test_a_duplicate_gives_the_draw_back(call: Run, pool: CountingPool) -> None:
    call()
    spent = pool.outstanding

    with pytest.raises(errors.Duplicate):
        call()

    assert (pool.draws, pool.returns, pool.outstanding) == (2, 2, spent)


def test_of_two_bounds_one_draw_is_outstanding(
    call: Run, pool: CountingPool, ledger: Ledger, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    ledger.reserve(uid, "before", Ask(estimate=LIMIT - 1_000, limit=LIMIT, model="m"))
    gemini.script({"for": "countTokens", "raw": {"totalTokens": 240}}, {"status": 503})

    with pytest.raises(errors.ModelUnavailable):
        call(prompt="four score and " * 80)

    assert (pool.draws, pool.returns) == (1, 1)
    assert pool.outstanding == books(direct, uid).calls["r"]["estimated"] == 240 + 24 + 100


def test_what_can_never_fit_the_bucket_takes_nothing_from_the_pool(
    call: Run, pool: CountingPool, gemini: StandIn
) -> None:
    """Else refused requests could hold what others need."""
    gemini.script({"for": "countTokens", "raw": {"totalTokens": 9_900}})

    with pytest.raises(errors.TooLarge):
        call(prompt="x" * 9_950, maxOutputTokens=1_000)

    assert pool.draws == 0


def test_an_override_above_the_limit_draws_like_any_other(
    call: Run, pool: CountingPool, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    bucket = direct.collection("token_buckets").document(uid)
    bucket.set({"tokens": 50_000, "updatedAt": bucket.get().read_time, "override": 50_000})
    gemini.script({"status": 503})

    with pytest.raises(errors.ModelUnavailable):
        call(prompt="x" * 9_950, maxOutputTokens=1_000)

    assert pool.outstanding == books(direct, uid).calls["r"]["estimated"] == 9_950 + 24 + 1_000


@pytest.mark.parametrize("data", [{}, {"prompt": None, "contents": [image()]}], ids=["text", "media"])
def test_an_empty_pool_refuses_before_the_bucket_and_the_model(
    call: Run, gemini: StandIn, direct: firestore.Client, uid: str, data: dict[str, Any]
) -> None:
    with pytest.raises(errors.PoolEmpty) as refusal:
        call(pool=empty(direct), **data)

    assert int(refusal.value.details["retryAfterSeconds"]) > 60
    assert gemini.log() == []
    assert books(direct, uid).bucket is None


def test_media_are_drawn_for_before_they_are_counted(call: Run, pool: CountingPool, gemini: StandIn) -> None:
    gemini.script({"for": "countTokens", "raw": {"totalTokens": 500}}, {"text": "a png", "usage": usage(500, 5)})

    call(prompt=None, contents=[image()])

    assert (pool.draws, pool.returns, pool.outstanding) == (2, 2, 505)


def test_shadow_mode_admits_what_the_pool_refuses_and_books_it_with_the_bucket(
    call: Run, gemini: StandIn, direct: firestore.Client, uid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gemini.script({"text": "hello", "usage": usage(3, 5)})

    answer = call(pool=empty(direct), shadow=True)

    event = json.loads(capsys.readouterr().out)
    assert (answer["charged"], event["message"], event["reason"]) == (8, "firebreak.shadow", "pool")
    assert books(direct, uid).charged == 8


def test_shadow_mode_admits_when_the_pool_cannot_be_reached(
    call: Run, gemini: StandIn, direct: firestore.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(16):
        direct.collection("pool").document(str(number)).set({"levels": 5})
    gemini.script({"text": "hello", "usage": usage(3, 5)})

    answer = call(shadow=True)

    reasons = [json.loads(line).get("reason") for line in capsys.readouterr().out.splitlines()]
    assert (answer["charged"], reasons[-1]) == (8, "store")


def test_shadow_mode_draws_nothing_for_what_the_bucket_refuses(
    call: Run, pool: CountingPool, ledger: Ledger, uid: str
) -> None:
    ledger.reserve(uid, "before", Ask(estimate=LIMIT, limit=LIMIT, model="m"))

    call(shadow=True)

    assert pool.draws == 0


def test_a_call_draws_from_the_share_of_its_user(call: Run, direct: firestore.Client) -> None:
    call(share="anonymous")

    levels = [(snapshot.to_dict() or {})["levels"] for snapshot in direct.collection("pool").stream()]
    assert [sorted(level) for level in levels] == [["anonymous"]]


@pytest.mark.parametrize(
    "bucket",
    [{"tokens": 5}, {"tokens": 5_000, "override": 0}, {"tokens": 5, "override": 5}],
    ids=["an empty bucket", "a blocked user", "a limit that never fits"],
)
def test_whom_the_bucket_refuses_takes_nothing_from_the_pool(
    call: Run, pool: CountingPool, direct: firestore.Client, uid: str, bucket: dict[str, int]
) -> None:
    """Not even for a moment: what is leased for nothing lapses, and others are refused for it."""
    fields = {"updatedAt": firestore.SERVER_TIMESTAMP, "version": 1}
    direct.collection("token_buckets").document(uid).set(fields | bucket)

    for number in range(20):
        with pytest.raises((errors.BucketEmpty, errors.Blocked, errors.TooLarge)):
            call(request_id=f"r{number}")

    assert pool.draws == 0
    assert not list(direct.collection("pool").stream())
