"""The server's time as an instance carries it forward."""

from firebreak.store.clock import ANCHOR_S, ServerClock


class Hand:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def test_without_a_stamp_there_is_no_time() -> None:
    assert ServerClock(Hand()).now_us() is None


def test_a_stamp_is_carried_forward_from_the_receipt_of_its_reply() -> None:
    hand = Hand()
    clock = ServerClock(hand)
    clock.note(1_000_000)
    hand.now += 2.5

    assert clock.now_us() == 3_500_000


def test_the_last_stamp_counts() -> None:
    hand = Hand()
    clock = ServerClock(hand)
    clock.note(9_000_000)
    hand.now += 1
    clock.note(5_000_000)

    assert clock.now_us() == 5_000_000


def test_an_old_stamp_is_not_carried_on() -> None:
    hand = Hand()
    clock = ServerClock(hand)
    clock.note(1_000_000)
    hand.now += ANCHOR_S + 1

    assert clock.now_us() is None
