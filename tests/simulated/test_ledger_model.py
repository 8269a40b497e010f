"""The same as on the emulator."""

from tests.emulator import test_ledger_model
from tests.simulated.same import same

globals().update(same(test_ledger_model))
