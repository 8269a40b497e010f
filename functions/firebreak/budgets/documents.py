"""A budget's standing in Firestore: a document per budget and period, written whole and under a precondition."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.cloud import firestore

from firebreak.budgets.standing import Applied, Standing, Told
from firebreak.settings.period import Period
from firebreak.settings.policies import Threshold, ThresholdKind
from firebreak.store import commit
from firebreak.store.documents import Corrupt
from firebreak.store.outcome import unavailable
from firebreak.store.times import DAY_US, from_us, to_us
from firebreak.store.tries import Clock, OutOfTries, Tries, repeat

NOTICES = "budget_notices"
# After the end of its period.
KEPT_US = 730 * DAY_US
# Of the tries within one delivery; Pub/Sub makes pauses of its own between deliveries.
TRIES_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A read: the standing, None where there is no document; the document's update_time; the server's time of it."""

    standing: Standing | None
    updated: datetime | None
    at_us: int


def read(client: firestore.Client, budget: str, period: Period, *, timeout_s: float) -> Seen:
    """Read the standing of a budget in a period, in one RPC.

    Raises:
        Corrupt: the document holds something else.
    """
    snapshot = commit.get(_reference(client, budget, period), timeout_s=timeout_s)
    data = snapshot.to_dict()
    return Seen(
        standing=None if data is None else _standing(data, period),
        updated=snapshot.update_time,
        at_us=to_us(snapshot.read_time),
    )


def write(client: firestore.Client, batch: firestore.WriteBatch, standing: Standing, *, seen: Seen) -> None:
    """Add the standing to a commit, which fails if the document is not as it was seen."""
    reference = _reference(client, standing.budget, standing.period)
    if seen.updated is None:
        batch.create(reference, _fields(standing))
    else:
        batch.update(reference, _fields(standing), option=client.write_option(last_update_time=seen.updated))


def insist[T](step: Callable[[float], T], *, clock: Clock, doing: str) -> T:
    """Do `step`, a read and a commit that goes by it, until it succeeds; it gets the timeout of an RPC.

    Each try reads anew, so that what an earlier one has done after all is seen, and not done again.

    Raises:
        StoreUnavailable: it may not be done.
    """
    tries = Tries(TRIES_S, clock)
    try:
        return repeat(lambda: (step(tries.rpc_s),), tries)[0]
    except OutOfTries as end:
        raise unavailable(end.error, step=doing) from end.error


def _reference(client: firestore.Client, budget: str, period: Period) -> firestore.DocumentReference:
    reference: firestore.DocumentReference = client.collection(NOTICES).document(f"{budget}:{period.name}")
    return reference


def _fields(standing: Standing) -> dict[str, Any]:
    return {
        "account": standing.account,
        "budget": standing.budget,
        "name": standing.name,
        "period": standing.period.name,
        "start": from_us(standing.period.start_us),
        "end": from_us(standing.period.end_us),
        "costMicros": standing.cost,
        "budgetMicros": standing.amount,
        "currency": standing.currency,
        "asOf": None if standing.as_of_us is None else from_us(standing.as_of_us),
        "applied": {str(threshold): _entry(threshold, done) for threshold, done in standing.applied.items()},
        "points": dict(standing.points),
        "expireAt": from_us(standing.period.end_us + KEPT_US),
    }


def _entry(threshold: Threshold, done: Applied) -> dict[str, Any]:
    return {
        "kind": threshold.kind.value,
        "basisPoints": threshold.bp,
        "action": done.action,
        "at": from_us(done.at_us),
        "message": done.message_id,
        "budgetMicros": done.amount,
        "told": done.told.value,
    }


def _standing(data: Mapping[str, Any], period: Period) -> Standing:
    try:
        as_of = data["asOf"]
        return Standing(
            account=str(data["account"]),
            budget=str(data["budget"]),
            name=str(data["name"]),
            period=period,
            cost=_whole(data["costMicros"]),
            amount=_whole(data["budgetMicros"]),
            currency=data["currency"],
            as_of_us=None if as_of is None else to_us(as_of),
            applied=dict(map(_applied, data["applied"].values())),
            points=dict(data["points"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"{NOTICES} holds what is no standing: {type(error).__name__}") from error


def _applied(entry: Mapping[str, Any]) -> tuple[Threshold, Applied]:
    threshold = Threshold(kind=ThresholdKind(entry["kind"]), bp=int(entry["basisPoints"]))
    return threshold, Applied(
        action=str(entry["action"]),
        at_us=to_us(entry["at"]),
        message_id=str(entry["message"]),
        amount=_whole(entry["budgetMicros"]),
        told=Told(entry["told"]),
    )


def _whole(value: object) -> int | None:
    return None if value is None else int(value)  # type: ignore[call-overload]  # refused if it is none
