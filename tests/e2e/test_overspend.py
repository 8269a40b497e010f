"""The demo's act of an overspent budget, on the whole stack: notices through Pub/Sub trip Firestore's scope once."""

from rich.console import Console

from scripts.demo.overspend import overspend
from scripts.demo.overspend_claims import overspend_claims
from scripts.demo.screen import Screen
from scripts.local.stack import Stack


def test_notices_that_come_ten_times_act_once_and_a_reset_lasts(stack: Stack) -> None:
    with Screen(Console(quiet=True)) as screen:
        seen = overspend(stack, screen, switch_ttl_s=1)

    assert [claim for claim in overspend_claims(seen) if not claim.held] == []
