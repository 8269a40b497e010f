"""Deletes a budget and makes sure of it: deletions have been seen that did not stick."""

from scripts.provision.budgets import Budgets
from scripts.provision.failure import Failed, NoAnswer, Refusal

_TRIES = 5


def erase(budgets: Budgets, name: str) -> None:
    """Delete a budget; done only when reads by name and a list say that it is gone. A deletion may be repeated.

    Raises:
        Failed: it may not be deleted, or it is still there.
    """
    for number in range(_TRIES):
        if number:
            budgets.api.clock.sleep(budgets.patience.between_s)
        try:
            budgets.api.send("DELETE", budgets.url(name))
        except NoAnswer:
            pass
        except Refusal as error:
            if error.status != 404:
                raise
        if not _is_there(budgets, name):
            return
    raise Failed(
        f"{name} is still there after {_TRIES} deletions that Google took; delete it in the console "
        "(Billing, Budgets & alerts), then run `plan`"
    )


def _is_there(budgets: Budgets, name: str) -> bool:
    return budgets.get(name) is not None or any(budget.name == name for budget in budgets.one_list())
