"""What the emulated functions will do about the budget of act 4, and how soon each of them sees it."""

from pathlib import Path

from firebreak.settings import policies
from scripts.demo import knob
from scripts.demo.billing import ACCOUNT, ID
from scripts.demo.knob import Unfit

KNOB, TTL = "BUDGET_POLICIES", "SWITCH_TTL_S"
POLICY = f"{ACCOUNT}/{ID}: 90%=record 100%=trip(firestore)"
MOST_TTL_S = 5


def switch_ttl_s(functions: Path, project: str) -> int:
    """Seconds until every process goes by the switch as it is.

    Raises:
        Unfit: it takes too long to be shown, or the budget would do something else.
    """
    if not _is_in(knob.text(functions, project, KNOB)):
        raise Unfit(f"the demo overspends a budget: functions/.env.{project} must have the line {KNOB}={POLICY}")
    ttl = knob.text(functions, project, TTL)
    if not ttl.isdecimal() or not 1 <= int(ttl) <= MOST_TTL_S:
        raise Unfit(f"the demo waits for the switch: functions/.env.{project} must have the line {TTL}=1, not {ttl!r}")
    return int(ttl)


def _is_in(text: str) -> bool:
    try:
        return policies.parse(text).get(ID) == policies.parse(POLICY)[ID]
    except ValueError:
        return False
