"""Creates a budget once: intent on record, one request, name on record; in doubt it looks, it never asks again."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.local.progress import Say
from scripts.provision.budget import Budget
from scripts.provision.budgets import Budgets
from scripts.provision.erase import erase
from scripts.provision.failure import Failed, NoAnswer, Refusal
from scripts.provision.seen import Entry, Intent
from scripts.provision.state import Record
from scripts.provision.step import Kind

_LOOK_EVERY_S = 10.0
# Others wait for `settle_s` after an intent for its request to take effect; it may itself be under way for half of it.
_LATEST_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """What is to be created.

    Attributes:
        fields: what is put on record beside intent and name.
        post: sends the one request.
        sound: whether a budget is the one wanted.
        broken: whether it is one that was made, but not as asked for: a plain alert in place of a cap.
    """

    kind: Kind
    key: str
    display_name: str
    fields: Mapping[str, Any]
    post: Callable[[], Budget]
    sound: Callable[[Budget], bool]
    broken: Callable[[Budget], bool] = lambda _: False


class Creator:
    """Creates one budget after another, through one record."""

    def __init__(self, budgets: Budgets, record: Record, say: Say) -> None:
        self._budgets = budgets
        self._record = record
        self._say = say

    def create(self, creation: Creation, entry: Entry | None) -> Entry:
        """Create it, or take into the record what an earlier or another run has created; its entry.

        Raises:
            Refusal: Google said no; nothing was made.
            Failed: nobody knows whether it was made, or it was made wrong and is deleted; the message says what to do.
        """
        if entry and entry.is_open and (found := self._wait_out(creation, entry)):
            return self._keep(creation, found, entry)
        begun = self._budgets.api.clock.now()
        entry = self._record.start(creation.kind, creation.key, creation.fields, was=entry)
        self._stop_if_late(creation, begun)
        try:
            made = creation.post()
        except NoAnswer as error:
            made = self._find_or_stop(creation, error)
        except Refusal as error:
            # A second cap of a service is refused with nothing but "invalid argument".
            if error.status in (400, 409) and (found := self._find(creation)):
                return self._keep(creation, found, entry)
            self._record.forget(creation.kind, creation.key, was=entry)
            raise
        return self._keep(creation, made, entry)

    def _stop_if_late(self, creation: Creation, begun: tuple[float, float]) -> None:
        late_s = self._budgets.api.clock.since(begun)
        if late_s > _LATEST_S:
            raise Failed(
                f"this run stood still for {late_s:.0f} s before it could ask for {creation.kind} {creation.key}, and "
                "another one may be at work by now: it was not asked for. Run `apply` again"
            )

    def _keep(self, creation: Creation, made: Budget, entry: Entry | None) -> Entry:
        kind, key = creation.kind, creation.key
        if creation.sound(made):
            adopted = made.display_name != creation.display_name
            fields = {**creation.fields, "name": made.name, "displayName": made.display_name, "adopted": adopted}
            return self._record.write(kind, key, Intent.KEEP, fields, was=entry)
        entry = self._record.write(kind, key, Intent.DELETE, {"name": made.name}, was=entry)
        erase(self._budgets, made.name)
        self._record.forget(kind, key, was=entry)
        wrong = "a plain alert, which stops nothing" if made.cap is None else "it tracks or says something else"
        raise Failed(
            f"Google made {made.name} for {kind} {key}, but not as asked for ({wrong}); it was deleted again. "
            "Create it in the console, then run `apply`, which takes it over"
        )

    def _find(self, creation: Creation) -> Budget | None:
        """What was made, if one of several looks shows it; a sound one before a broken one."""

        def complete(found: Collection[Budget]) -> bool:
            return any(map(creation.sound, found)) or any(map(creation.broken, found))

        found = self._budgets.look((), complete)
        ordered = [*filter(creation.sound, found), *filter(creation.broken, found)]
        return ordered[0] if ordered else None

    def _find_or_stop(self, creation: Creation, error: NoAnswer) -> Budget:
        self._say(f"no answer; looking whether {creation.display_name} was made")
        if found := self._find(creation):
            return found
        raise Failed(
            f"asked for {creation.kind} {creation.key}, and no answer came ({error}); "
            f"{self._budgets.patience.looks} lists do not show it. It was not asked for again. Run `apply` once more: "
            "it waits until the request can no longer take effect, looks again, and only then asks"
        ) from error

    def _wait_out(self, creation: Creation, entry: Entry) -> Budget | None:
        """What an earlier run made without putting its name on record, once it must have happened or never will."""
        left_s = self._budgets.patience.settle_s - entry.age_s
        while True:
            self._say(
                f"looking whether an earlier run made {creation.display_name}, for another {max(left_s, 0):.0f} s"
            )
            found = self._find(creation)
            if found or left_s <= 0:
                return found
            pause_s = min(left_s, _LOOK_EVERY_S)
            self._budgets.api.clock.sleep(pause_s)
            left_s -= pause_s
