"""What an instance has leased: used oldest first, given back, and lapsed on its clock alone."""

from concurrent.futures import ThreadPoolExecutor

from firebreak.limits.credit import LEASE_S, Grant, LeasedTokens, split


class Held:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def lot(tokens: int, lapses_s: float = LEASE_S) -> Grant:
    return Grant(tokens=tokens, lapses_s=lapses_s)


def test_all_is_taken_or_nothing() -> None:
    credit = LeasedTokens(Held())
    credit.put([lot(5)])

    assert credit.take(6) is None
    assert credit.take(5) == (lot(5),)
    assert credit.take(1) is None


def test_what_lapses_first_is_used_first() -> None:
    credit = LeasedTokens(Held())
    credit.put([lot(5, 20.0)])
    credit.put([lot(5, 10.0)])

    assert credit.take(6) == (lot(5, 10.0), lot(1, 20.0))
    assert credit.tokens == 4


def test_what_has_lapsed_is_gone() -> None:
    clock = Held()
    credit = LeasedTokens(clock)
    credit.put([lot(5, 10.0), lot(5, 20.0)])
    clock.now_s = 10.0

    assert credit.tokens == 5
    assert credit.take(6) is None


def test_tokens_given_back_lapse_when_they_would_have() -> None:
    clock = Held()
    credit = LeasedTokens(clock)
    used = credit.leased(lot(8, 10.0), use=8)
    clock.now_s = 9.0
    credit.put(used)

    assert credit.tokens == 8
    clock.now_s = 10.0
    assert credit.tokens == 0


def test_parts_of_a_lease_that_come_back_are_one_lot_again() -> None:
    credit = LeasedTokens(Held())
    for part in (credit.leased(lot(8), use=3), (lot(2, 20.0),)):
        credit.put(part)

    assert credit.take(10) == (lot(2, 20.0), lot(8))


def test_a_lease_gives_out_what_is_needed_and_keeps_the_rest() -> None:
    credit = LeasedTokens(Held())

    assert credit.leased(lot(8), use=3) == (lot(3),)
    assert credit.take(5) == (lot(5),)


def test_the_first_lease_is_no_more_than_what_is_needed() -> None:
    assert LeasedTokens(Held()).next_size(goal_s=10.0, most=32) == 1


def test_leases_grow_while_they_do_not_last_and_shrink_when_they_lapse() -> None:
    clock = Held()
    credit = LeasedTokens(clock)
    credit.leased(lot(8), use=8)

    assert credit.next_size(goal_s=10.0, most=32) == 16
    clock.now_s = 11.0
    assert credit.next_size(goal_s=10.0, most=32) == 8
    clock.now_s = LEASE_S + 1.0
    assert credit.next_size(goal_s=10.0, most=32) == 4


def test_split_keeps_every_token() -> None:
    lots = (lot(3, 1.0), lot(4, 2.0))

    assert [split(lots, tokens) for tokens in (0, 2, 3, 5, 7, 9)] == [
        ((), lots),
        ((lot(2, 1.0),), (lot(1, 1.0), lot(4, 2.0))),
        ((lot(3, 1.0),), (lot(4, 2.0),)),
        ((lot(3, 1.0), lot(2, 2.0)), (lot(2, 2.0),)),
        (lots, ()),
        (lots, ()),
    ]


def test_a_hundred_threads_take_each_token_once() -> None:
    credit = LeasedTokens(Held())
    credit.put([lot(30, 10.0), lot(20, 20.0)])
    with ThreadPoolExecutor(max_workers=100) as threads:
        taken = list(threads.map(lambda _: credit.take(1), range(100)))

    assert sum(lots is not None for lots in taken) == 50
