"""What is taken of a verified token."""

import pytest

from firebreak.guard.attest import storable


@pytest.mark.parametrize("claim", ["user", "Zo\u00eb", "\U0001f600", "a/b", " ", "\x00"])
def test_a_text_can_be_stored(claim: str) -> None:
    assert storable(claim)


@pytest.mark.parametrize("claim", ["", "\ud800", "user-\udfff", "\ude00\ud83d", None, 7, True, b"user", ["user"], {}])
def test_what_is_no_text_or_half_a_character_cannot(claim: object) -> None:
    assert not storable(claim)
