"""The same as on the emulator."""

import pytest
from google.cloud import firestore

from firebreak.budgets.respond import Responder
from firebreak.settings import policies
from tests.emulator import test_respond
from tests.emulator.switch.hand import Hand
from tests.simulated.same import same

globals().update(same(test_respond))


@pytest.fixture
def store(direct: firestore.Client) -> firestore.Client:
    return direct


@pytest.fixture
def responder(through_proxy: firestore.Client, hand: Hand) -> Responder:
    budgets = policies.parse(test_respond.POLICIES)
    return Responder(client=through_proxy, budgets=budgets, webhook_url="none", clock=hand.clock)
