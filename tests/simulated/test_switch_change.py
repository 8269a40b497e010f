"""The same as on the emulator."""

from tests.emulator.switch import test_change
from tests.simulated.same import same

globals().update(same(test_change))
