"""The same as on the emulator, with pauses that take no time."""

import pytest
from google.cloud import firestore

from firebreak.limits.pool import Pool
from tests.emulator import test_pool_faults
from tests.emulator.test_pool import pool_at
from tests.simulated.same import same
from tests.twin.clock import Virtual

globals().update(same(test_pool_faults))


@pytest.fixture
def pool(through_proxy: firestore.Client, virtual: Virtual) -> Pool:
    return pool_at(through_proxy, clock=virtual.clock)
