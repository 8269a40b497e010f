"""The switch as values: what is tripped, what is over, and what no switch can hold."""

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.store.documents import Corrupt
from firebreak.switch import change
from firebreak.switch.state import OWNERS, SCOPES, ActiveTrip, State, Tightening, fields_of, parse
from scripts.local.layout import ROOT

HOLDERS = (*OWNERS, "budget:1", "budget:11111111-2222-3333-4444-555555555555")
TIMES = st.integers(0, 10**15)
ENDS = st.none() | TIMES
TEXTS = st.text(max_size=200)
TRIPS = st.builds(
    ActiveTrip,
    scope=st.sampled_from(SCOPES),
    owner=st.sampled_from(HOLDERS),
    reason=TEXTS,
    by=TEXTS,
    at_us=ENDS,
    until_us=ENDS,
)
TIGHTENINGS = st.builds(
    Tightening,
    owner=st.sampled_from(HOLDERS),
    percent=st.integers(1, 100),
    reason=TEXTS,
    by=TEXTS,
    at_us=ENDS,
    until_us=ENDS,
)
STATES = st.builds(
    State,
    version=st.integers(0, 10**9),
    trips=st.lists(TRIPS, unique_by=lambda t: (t.scope, t.owner)).map(
        lambda trips: tuple(sorted(trips, key=lambda t: (t.scope, t.owner)))
    ),
    tightened=st.lists(TIGHTENINGS, unique_by=lambda t: t.owner).map(
        lambda tightened: tuple(sorted(tightened, key=lambda t: t.owner))
    ),
)
SPENDS = st.frozensets(st.sampled_from(["gemini", "firestore"]))
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
ODD = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.datetimes(timezones=st.just(UTC))
ENTRIES = st.dictionaries(st.sampled_from(["reason", "by", "at", "until", "percent", "x"]), ODD, max_size=3)
OWNED = st.dictionaries(st.sampled_from([*OWNERS, "", "x"]), ENTRIES, max_size=3)
SCOPED = st.dictionaries(st.sampled_from([*SCOPES, "x"]), OWNED, max_size=3)


def trip(scope: str = "gemini", owner: str = "operator", until_us: int | None = None, reason: str = "") -> ActiveTrip:
    return ActiveTrip(scope=scope, owner=owner, reason=reason, by="", at_us=None, until_us=until_us)


def tightening(percent: int, owner: str = "operator", until_us: int | None = None) -> Tightening:
    return Tightening(owner=owner, percent=percent, reason="", by="", at_us=None, until_us=until_us)


def meant(owner: str | None) -> set[str]:
    """Whose things an owner's are: those of each budget are the budget's too."""
    budgets = {holder for holder in HOLDERS if holder.startswith("budget")}
    return set(HOLDERS) if owner is None else budgets if owner == "budget" else {owner}


def test_no_document_is_nothing_tripped() -> None:
    assert parse(None).tripped(["gemini", "firestore"], None) is None
    assert parse(None).percent(None) == 100


@given(STATES, SPENDS, ENDS)
def test_a_request_is_refused_exactly_by_what_it_spends_and_what_is_not_over(
    state: State, spends: frozenset[str], now_us: int | None
) -> None:
    holding = {
        (t.scope, t.owner)
        for t in state.trips
        if t.scope in spends | {"all"} and (t.until_us is None or now_us is None or t.until_us > now_us)
    }

    found = state.tripped(spends, now_us)
    assert (found is None) == (not holding)
    assert found is None or (found.scope, found.owner) in holding


@given(STATES, SPENDS, TIMES)
def test_the_trip_that_is_told_is_the_last_to_end(state: State, spends: frozenset[str], now_us: int) -> None:
    told = state.tripped(spends, now_us)

    if told is not None and told.until_us is not None:
        assert state.tripped(spends, told.until_us) is None


@given(STATES, ENDS)
def test_the_smallest_percent_that_is_not_over_counts(state: State, now_us: int | None) -> None:
    percents = [t.percent for t in state.tightened if t.until_us is None or now_us is None or t.until_us > now_us]

    assert state.percent(now_us) == min([100, *percents])


@given(STATES, SPENDS, TIMES)
def test_dropping_what_is_over_changes_nothing_from_then_on(state: State, spends: frozenset[str], now_us: int) -> None:
    kept = state.current(now_us)

    assert kept.tripped(spends, now_us) == state.tripped(spends, now_us)
    assert kept.percent(now_us) == state.percent(now_us)
    assert kept.current(now_us) == kept


def test_a_trip_ends_at_its_time_and_not_before() -> None:
    state = State(trips=(trip(until_us=1_000),))

    assert state.tripped(["gemini"], 999) is not None
    assert state.tripped(["gemini"], 1_000) is None


def test_without_a_clock_nothing_is_over() -> None:
    state = State(trips=(trip(until_us=0),), tightened=(tightening(10, until_us=0),))

    assert state.tripped(["gemini"], None) is not None
    assert state.percent(None) == 10


def test_of_two_trips_without_an_end_the_operator_speaks() -> None:
    state = State(trips=tuple(trip(owner=owner, reason=owner) for owner in OWNERS))

    told = state.tripped(["gemini"], 0)
    assert told is not None
    assert told.reason == "operator"


@given(STATES)
def test_what_is_written_is_read_the_same(state: State) -> None:
    assert parse(fields_of(state)) == state


@given(JUNK | st.dictionaries(st.sampled_from(["version", "trips", "tightened"]), JUNK))
def test_junk_is_corrupt_and_nothing_else(data: Any) -> None:
    try:
        state = parse(data if isinstance(data, dict) else {"trips": data})
    except Corrupt:
        return
    assert 1 <= state.percent(None) <= 100


@given(SCOPED, st.booleans())
def test_no_trip_is_lost_in_reading(trips: dict[str, dict[str, dict[str, Any]]], tight: bool) -> None:
    """Whatever stands under `trips` refuses, or the whole document is corrupt; no entry is passed over."""
    try:
        state = parse({"trips": trips, "tightened": {"x": {"percent": 1}} if tight else {}})
    except Corrupt:
        return
    assert len(state.trips) == sum(map(len, trips.values()))
    assert state.percent(None) == (1 if tight else 100)


@pytest.mark.parametrize(
    "data",
    [
        {"trips": {"Gemini": {"operator": {}}}},
        {"trips": {"gemini": "on"}},
        {"trips": {"gemini": {"operator": True}}},
        {"trips": {"gemini": {"operator": {"until": "tomorrow"}}}},
        {"trips": {"gemini": {"operator": {"until": datetime(2026, 1, 1)}}}},  # noqa: DTZ001 - the point
        {"trips": None},
        {"tightened": {"budget": {"percent": 0}}},
        {"tightened": {"budget": {"percent": 101}}},
        {"tightened": {"budget": {"percent": True}}},
        {"tightened": {"budget": {"percent": 50.0}}},
        {"tightened": {"budget": {}}},
        {"version": "1"},
    ],
    ids=str,
)
def test_what_no_switch_can_hold_is_corrupt(data: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        parse(data)


def test_a_trip_made_by_hand_needs_no_more_than_its_place() -> None:
    assert parse({"trips": {"all": {"operator": {}}}}).tripped([], 0) == trip(scope="all")


def test_a_long_reason_is_cut() -> None:
    told = parse({"trips": {"all": {"operator": {"reason": "x" * 5_000}}}}).tripped([], 0)

    assert told is not None
    assert told.reason == "x" * 200


def test_times_are_read_in_any_zone() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    state = parse({"trips": {"all": {"operator": {"until": noon}}}})
    assert state == parse({"trips": {"all": {"operator": {"until": noon.astimezone(UTC)}}}})


@given(STATES, st.sampled_from([None, *SCOPES]), st.sampled_from([None, *HOLDERS]))
def test_a_reset_takes_exactly_what_it_names(state: State, scope: str | None, owner: str | None) -> None:
    after = change.Reset(scope=scope, owner=owner, reason="", by="").on(state, 0)

    gone = set(state.trips) - set(after.trips)
    assert gone == {t for t in state.trips if scope in {None, t.scope} and t.owner in meant(owner)}
    assert after.tightened == state.tightened


@given(STATES, st.sampled_from(SCOPES), st.sampled_from(HOLDERS), ENDS)
def test_a_trip_replaces_its_owners_and_nobody_elses(
    state: State, scope: str, owner: str, until_us: int | None
) -> None:
    after = change.Trip(scope=scope, owner=owner, reason="r", by="b", until_us=until_us).on(state, 7)

    new = ActiveTrip(scope=scope, owner=owner, reason="r", by="b", at_us=7, until_us=until_us)
    assert set(after.trips) == {t for t in state.trips if (t.scope, t.owner) != (scope, owner)} | {new}


@given(STATES, st.sampled_from(HOLDERS), st.integers(1, 100))
def test_loosening_takes_back_what_the_owner_tightened(state: State, owner: str, percent: int) -> None:
    tight = change.Tighten(owner=owner, percent=percent, reason="", by="").on(state, 0)
    loose = change.Loosen(owner=owner, reason="", by="").on(tight, 0)

    assert tight.percent(None) <= percent
    assert set(loose.tightened) == {t for t in state.tightened if t.owner not in meant(owner)}


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        (change.Trip, {"scope": "gemin", "owner": "operator"}, "scope"),
        (change.Trip, {"scope": "gemini", "owner": "me"}, "owner"),
        (change.Trip, {"scope": "gemini", "owner": "operator", "until_us": -1}, "until_us"),
        (change.Reset, {"scope": "gemin", "owner": None}, "scope"),
        (change.Tighten, {"owner": "operator", "percent": 0}, "percent"),
        (change.Tighten, {"owner": "operator", "percent": 101}, "percent"),
        (change.Loosen, {"owner": "me"}, "owner"),
        (change.Tighten, {"owner": "budget:", "percent": 5}, "owner"),
        (change.Trip, {"scope": "gemini", "owner": "budget:A.b"}, "owner"),
        (change.Trip, {"scope": "gemini", "owner": f"budget:{'a' * 65}"}, "owner"),
        (change.Trip, {"scope": "gemini", "owner": "caps:a"}, "owner"),
    ],
)
def test_a_change_that_would_make_the_switch_corrupt_cannot_be_made(
    kind: Any, fields: dict[str, Any], name: str
) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        kind(reason="", by="", **fields)


@pytest.mark.parametrize("path", sorted((ROOT / "functions/firebreak/switch").glob("*.py")), ids=lambda path: path.name)
def test_no_module_of_the_switch_asks_a_wall_clock(path: Path) -> None:
    assert not re.search(r"time\.time|datetime\.now|utcnow|SERVER_TIMESTAMP", path.read_text())
