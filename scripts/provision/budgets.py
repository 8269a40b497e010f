"""Reads budgets over REST: the Python client 1.22.0 cannot see a spend cap. Answers are known to leave caps out."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from scripts.local.progress import Say
from scripts.provision.api import Api
from scripts.provision.budget import Budget
from scripts.provision.failure import Refusal

_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often one looks before one believes that something is not there, and how long in between.

    Attributes:
        looks: lists, because about half of them have been seen without any cap.
        gets: reads of a known name, because those have been seen to answer 404.
        between_s: seconds from one to the next.
        settle_s: seconds after which a creation without an answer has either happened or never will.
    """

    looks: int = 8
    gets: int = 5
    between_s: float = 1.5
    settle_s: float = 120.0


class Budgets:
    """The budgets of one billing account, as far as they concern one project."""

    def __init__(self, api: Api, root: str, *, account: str, project: str, patience: Patience, say: Say) -> None:
        self.api = api
        self.patience = patience
        self._say = say
        self.collection = f"{root}/v1/{account}/budgets"
        self._root = root
        self._scope = f"projects/{project}"

    def url(self, name: str) -> str:
        return f"{self._root}/v1/{name}"

    def fetch(self, name: str) -> dict[str, Any] | None:
        """The JSON of a budget; None if every read says that there is none.

        Raises:
            Failed: it cannot be read.
        """
        for number in range(self.patience.gets):
            if number:
                self.api.clock.sleep(self.patience.between_s)
            try:
                return self.api.get(self.url(name))
            except Refusal as error:
                if error.status != 404:
                    raise
        return None

    def get(self, name: str) -> Budget | None:
        """A budget, as `fetch`."""
        found = self.fetch(name)
        return None if found is None else Budget.of(found)

    def look(self, names: Iterable[str], complete: Callable[[Collection[Budget]], bool]) -> tuple[Budget, ...]:
        """Those of these names, and all that the lists show: one list, and more of them until it is `complete`.

        Raises:
            Failed: they cannot be read.
        """
        found = {budget.name: budget for budget in map(self.get, names) if budget is not None}
        for number in range(self.patience.looks):
            if number:
                self._say(
                    f"lists are known to leave caps out: looking at another, {number + 1} of {self.patience.looks}"
                )
                self.api.clock.sleep(self.patience.between_s)
            # What was read by name is as new as what a list says, and not from a cache of lists.
            found = {budget.name: budget for budget in self.one_list(number)} | found
            if complete(found.values()):
                break
        return tuple(found[name] for name in sorted(found))

    def one_list(self, number: int = 0) -> list[Budget]:
        """One list, by project or, every other time, by account: a caller may have the right to one of them only.

        Raises:
            Failed: it cannot be read either way.
        """
        scoped = number % 2 == 0
        try:
            return self._pages(scoped=scoped)
        except Refusal as error:
            if error.status != 403:
                raise
            return self._pages(scoped=not scoped)

    def _pages(self, *, scoped: bool) -> list[Budget]:
        params: dict[str, str | int] = {"pageSize": _PAGE} | ({"scope": self._scope} if scoped else {})
        found: list[Budget] = []
        while True:
            page = self.api.get(self.collection, params)
            found += map(Budget.of, page.get("budgets", ()))
            if not page.get("nextPageToken"):
                return found
            params |= {"pageToken": page["nextPageToken"]}
