"""Adds one member to an IAM policy under its etag: read, add, write; every binding that is there stays as it is."""

from collections.abc import Callable, Mapping
from typing import Any

from firebreak.store.tries import Clock
from scripts.provision import policy
from scripts.provision.failure import Failed, NoAnswer, Refusal

_TRIES = 6
_CONFLICTS = (409, 412)


def amend(
    read: Callable[[], Mapping[str, Any]],
    write: Callable[[Mapping[str, Any]], object],
    *,
    role: str,
    member: str,
    clock: Clock,
) -> None:
    """Give the member the role, unless it has it; repeated after a lost reply or a change by somebody else.

    Raises:
        Failed: it may not be done, or never went through.
    """
    last: Failed | None = None
    for number in range(_TRIES):
        if last:
            clock.sleep(min(2**number, 10))
        found = read()
        if policy.has(found, role, member):
            return
        try:
            write(policy.with_member(found, role, member))
        except NoAnswer as error:
            last = error
        except Refusal as error:
            # An account made a second ago may be unknown to this API for a while.
            unknown = error.status == 400 and "does not exist" in error.said
            if error.status not in _CONFLICTS and not unknown:
                raise
            last = error
        else:
            return
    raise last or Failed(f"{role} to {member}: never went through")
