"""The switch under an operator's hand: read, changed, and shown."""

from dataclasses import asdict
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, RetryError
from rich.table import Table

from firebreak.store.documents import Corrupt
from firebreak.store.outcome import PERMANENT, Unreadable
from firebreak.store.times import SECOND_US
from firebreak.switch import change, documents
from firebreak.switch.change import LOST, Change
from firebreak.switch.documents import SwitchReading
from firebreak.switch.state import ActiveTrip, State, Tightening
from scripts.ops import text
from scripts.ops.change import CHANGE_S
from scripts.ops.failure import STORE, NotDone, told
from scripts.ops.limits import settings_if_right
from scripts.ops.rpc import RPC_S, patiently
from scripts.ops.session import Session


def read(at: Session) -> SwitchReading:
    """The switch as it is, and the server's time.

    Raises:
        NotDone: it cannot be read.
    """
    try:
        return patiently(lambda: documents.read(at.client, timeout_s=RPC_S))
    except Corrupt as error:
        raise _mend(error) from error
    except Unreadable as error:
        raise _no_database(at) from error


def percent(at: Session) -> int:
    """What the switch leaves of all daily limits at the moment."""
    reading = read(at)
    return reading.state.percent(reading.at_us)


def _mend(error: Corrupt) -> NotDone:
    return NotDone(
        f"the document ops/switch cannot be read ({error}), and new instances refuse every call: "
        "delete it in the console, then trip again what should be off"
    )


def _no_database(at: Session) -> NotDone:
    return NotDone(f"{at.target} has no database (default) in native mode")


def until_us(at: Session, for_s: int | None) -> int | None:
    """When that many seconds from now will be over, by the server's clock; None: never."""
    return None if for_s is None else read(at).at_us + for_s * SECOND_US


def apply(at: Session, *changes: Change) -> None:
    """Change the switch, with a record of each change, and show it; if that fails, it is changed all the same.

    Raises:
        NotDone: it was not changed, or nobody knows; the message tells which.
    """
    try:
        change.apply(at.client, changes, timeout_s=CHANGE_S)
    except PERMANENT:
        raise
    except LOST as error:
        raise NotDone("others changed the switch at the same moment, each time; nothing was changed") from error
    except (GoogleAPICallError, RetryError) as error:
        raise NotDone("Firestore did not answer; it may have been made: look with `switch show`") from error
    except Corrupt as error:
        raise _mend(error) from error
    except Unreadable as error:
        raise _no_database(at) from error
    at.say("changed", "green")
    try:
        show(at, read(at))
    except NotDone as error:
        at.say(f"it was changed, but cannot be shown: {error}", "yellow")
    except STORE as error:
        at.say(f"it was changed, but cannot be shown: {told(error, at.target)}", "yellow")


def show(at: Session, reading: SwitchReading) -> None:
    """Print what holds, and how soon instances know of it."""
    state = reading.state.current(reading.at_us)
    knobs = settings_if_right(at.target.project, at.say)
    data = {
        "trips": [_fields(trip) for trip in state.trips],
        "tightened": [_fields(entry) for entry in state.tightened],
        "percent": state.percent(reading.at_us),
        "killSwitch": sorted(knobs.kill_switch) if knobs else None,
        "seenWithinSeconds": knobs.switch_ttl_s if knobs else None,
    }
    at.show(data, *_tables(state, reading.at_us))
    if knobs and knobs.kill_switch:
        at.say("KILL_SWITCH in functions/.env switches off beside this, wherever it is deployed", "yellow")
    if knobs:
        at.say(f"an instance sees a change within {knobs.switch_ttl_s} s (SWITCH_TTL_S)")


def _tables(state: State, now_us: int) -> list[Table | str]:
    if not state.trips and not state.tightened:
        return ["nothing is switched off, and no limit is tightened"]
    shown: list[Table | str] = []
    if state.trips:
        rows = [(trip.scope, *_row(trip, now_us)) for trip in state.trips]
        shown.append(text.table("Switched off", "scope,owner,reason,by,for,until", rows))
    if state.tightened:
        rows = [(f"{entry.percent} %", *_row(entry, now_us)) for entry in state.tightened]
        shown.append(text.table("Daily limits tightened to", "percent>,owner,reason,by,for,until", rows))
    return shown


def _row(entry: ActiveTrip | Tightening, now_us: int) -> tuple[str | None, ...]:
    since = None if entry.at_us is None else text.ago(entry.at_us, now_us)
    return entry.owner, entry.reason, entry.by, since, text.stamp(entry.until_us) or "it is taken back"


def _fields(entry: ActiveTrip | Tightening) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(entry).items() if not name.endswith("_us")}
    return fields | {"at": text.stamp(entry.at_us), "until": text.stamp(entry.until_us)}
