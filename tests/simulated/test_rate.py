"""The same as on the emulator."""

from tests.emulator import test_rate
from tests.simulated.same import same

globals().update(same(test_rate))
