"""Remembered tokens: as long as they hold, and no others."""

from firebreak.guard.attest import TokenCache


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_token_is_remembered_until_it_expires() -> None:
    clock = Clock()
    known = TokenCache(clock)
    known.put("a.b.c", "app", 1_060)

    assert known.get("a.b.c") == "app"
    clock.now_s = 1_060.0
    assert known.get("a.b.c") is None


def test_a_token_that_differs_in_one_character_is_another() -> None:
    known = TokenCache()
    known.put("a.b.c", "app", 2**40)

    assert known.get("a.b.d") is None
    assert known.get("a.b.c ") is None
    assert known.get("\ud800") is None


def test_only_so_many_are_remembered_and_the_oldest_goes_first() -> None:
    known = TokenCache(tokens=2)
    for token in ("one", "two", "three"):
        known.put(token, token, 2**40)

    assert [known.get(token) for token in ("one", "two", "three")] == [None, "two", "three"]
