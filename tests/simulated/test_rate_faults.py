"""The same as on the emulator, with pauses that take no time."""

import pytest
from google.cloud import firestore

from firebreak.limits.requests import Rate
from tests.emulator import test_rate_faults
from tests.simulated.same import same
from tests.twin.clock import Virtual

# A timeout of the client library ends it, and only a real wire has that.
TIMED = ("test_callers_that_wait_for_a_lease_without_an_answer_are_refused_with_it",)

globals().update(same(test_rate_faults, without=TIMED))


@pytest.fixture
def rate(through_proxy: firestore.Client, virtual: Virtual) -> Rate:
    return Rate(through_proxy, virtual.clock)
