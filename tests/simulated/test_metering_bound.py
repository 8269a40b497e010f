"""The same as on the emulator."""

from tests.emulator.metering import test_metering_bound
from tests.simulated.same import same

globals().update(same(test_metering_bound))
