"""The same as on the emulator."""

from tests.emulator import test_pool
from tests.simulated.same import same

globals().update(same(test_pool))
