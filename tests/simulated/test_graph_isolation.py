"""The same as on the emulator."""

from tests.emulator.graph import test_graph_isolation
from tests.simulated.same import same

globals().update(same(test_graph_isolation))
