"""The same as on the emulator."""

from tests.emulator.graph import test_graph_delete
from tests.simulated.same import same

# Thousands of documents take seconds.
LARGE = (
    "test_five_thousand_edges_go_in_pages_each_committed_before_the_next_is_read",
    "test_a_budget_that_is_too_small_is_used_up_call_by_call_and_never_exceeded",
)

globals().update(same(test_graph_delete, without=LARGE))
