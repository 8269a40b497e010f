"""What the spend caps' states ask of the switch."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.budgets.caps import STATES, Cap, CapsDecision, KnownCaps, NoCap, decide, known, resting
from firebreak.switch.state import SCOPES

NAMES = [f"billingAccounts/0-0/budgets/{n}" for n in range(5)]
CAPS = st.builds(
    Cap,
    key=st.just("key"),
    name=st.sampled_from(NAMES),
    scope=st.sampled_from(SCOPES),
    state=st.none() | st.sampled_from(sorted(STATES)),
)
KNOWN = st.builds(
    KnownCaps,
    caps=st.lists(CAPS, unique_by=lambda cap: cap.name).map(tuple),
    odd=st.sampled_from([(), ("x",)]),
)
SEEN = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(STATES)))
HELD = st.frozensets(st.sampled_from(SCOPES))
ENTRY = {"name": NAMES[0], "service": "services/AEFD-7695-64FA", "scope": "gemini", "outputState": "CONFIGURED"}


def cap(number: int = 0, scope: str = "gemini", state: str | None = "CONFIGURED") -> Cap:
    return Cap(key=f"c{number}", name=NAMES[number], scope=scope, state=state)


def decided(*caps: Cap, held: set[str], odd: tuple[str, ...] = (), **seen: str) -> CapsDecision:
    return decide(KnownCaps(caps=caps, odd=odd), {NAMES[int(n[1:])]: state for n, state in seen.items()}, held)


def nothing() -> CapsDecision:
    return CapsDecision(trips=(), resets=())


def test_an_enforced_cap_trips_its_scope_once() -> None:
    assert decided(cap(), held=set(), c0="ENFORCED") == CapsDecision(trips=("gemini",), resets=())
    assert decided(cap(), held={"gemini"}, c0="ENFORCED") == nothing()


@pytest.mark.parametrize("lifted", ["AWAITING_NEXT_PERIOD", "CONFIGURED"])
def test_a_lifted_cap_resets_its_scope(lifted: str) -> None:
    assert decided(cap(state="ENFORCED"), held={"gemini"}, c0=lifted) == CapsDecision(trips=(), resets=("gemini",))


def test_a_scope_is_reset_only_when_none_of_its_caps_is_enforced() -> None:
    caps = cap(0, state="ENFORCED"), cap(1, state="ENFORCED"), cap(2, "all")

    assert decided(*caps, held={"gemini"}, c0="CONFIGURED", c1="ENFORCED", c2="CONFIGURED") == nothing()
    assert decided(*caps, held={"gemini"}, c0="CONFIGURED", c2="CONFIGURED") == nothing()
    assert decided(*caps, held={"gemini"}, c0="CONFIGURED", c1="CONFIGURED").resets == ("gemini",)


@pytest.mark.parametrize("state", ["ENFORCED", None])
def test_a_cap_that_cannot_be_read_resets_nothing(state: str | None) -> None:
    assert decided(cap(state=state), held={"gemini"}) == nothing()


def test_a_cap_that_cannot_be_read_does_not_trip_again_what_an_operator_has_reset() -> None:
    assert decided(cap(state="ENFORCED"), held=set()) == nothing()


def test_a_cap_that_was_not_enforced_keeps_nothing_when_it_cannot_be_read() -> None:
    """One that was deleted in the console must not hold for ever what another one had tripped."""
    assert decided(cap(0, state="ENFORCED"), cap(1), held={"gemini"}, c0="CONFIGURED").resets == ("gemini",)


def test_a_scope_without_a_cap_is_reset() -> None:
    assert decided(held={"gemini"}).resets == ("gemini",)


def test_an_entry_that_is_no_cap_may_be_of_any_scope() -> None:
    assert decided(cap(), held={"gemini"}, odd=("x",), c0="CONFIGURED") == nothing()
    assert decided(cap(), held=set(), odd=("x",), c0="ENFORCED").trips == ("gemini",)


@given(KNOWN, SEEN, HELD)
def test_what_is_tripped_is_seen_enforced_and_what_is_reset_is_not(
    known: KnownCaps, seen: dict[str, str], held: frozenset[str]
) -> None:
    decision = decide(known, seen, held)

    enforced = {cap.scope for cap in known.caps if seen.get(cap.name) == "ENFORCED"}
    assert set(decision.trips) == enforced - held
    assert set(decision.resets) <= held - enforced
    for cap in known.caps:
        assert cap.scope not in decision.resets or seen.get(cap.name, cap.state) not in {"ENFORCED", None}


@given(KNOWN, SEEN, HELD)
def test_deciding_twice_is_deciding_once(known: KnownCaps, seen: dict[str, str], held: frozenset[str]) -> None:
    decision = decide(known, seen, held)

    assert decide(known, seen, (held | set(decision.trips)) - set(decision.resets)) == nothing()


def test_caps_are_known_by_what_provisioning_has_written() -> None:
    found = known({"gemini": ENTRY, "run": {"intent": "create"}, "old": {"outputState": "ENFORCED"}})

    assert found == KnownCaps(caps=(Cap(key="gemini", name=NAMES[0], scope="gemini", state="CONFIGURED"),), odd=())


@pytest.mark.parametrize(
    ("service", "scope"),
    [
        ("services/AEFD-7695-64FA", "gemini"),
        ("services/C7E2-9256-1C43", "gemini"),
        ("services/152E-C115-5142", "all"),
        ("services/29E7-DA93-CA13", "all"),
    ],
)
def test_without_a_scope_the_service_tells_it(service: str, scope: str) -> None:
    (found,) = known({"x": {"name": NAMES[0], "service": service}}).caps

    assert (found.scope, found.state) == (scope, None)


@pytest.mark.parametrize(
    "entry",
    [
        "x",
        ENTRY | {"name": 5},
        ENTRY | {"name": "billingAccounts/1/budgets/../../v1/projects"},
        ENTRY | {"name": "https://example.com/billingAccounts/1/budgets/1"},
        ENTRY | {"scope": "everything"},
        {"name": NAMES[0], "service": "services/EE2C-7FAC-5E08"},
        {"name": NAMES[0]},
    ],
    ids=str,
)
def test_what_is_no_cap_is_odd(entry: Any) -> None:
    assert known({"x": entry}) == KnownCaps(caps=(), odd=("x",))


@pytest.mark.parametrize("state", [["ENFORCED"], {"x": 1}, 5, None, "x"], ids=str)
def test_a_state_that_is_none_was_never_seen(state: Any) -> None:
    (found,) = known({"x": ENTRY | {"outputState": state}}).caps

    assert found.state is None


@pytest.mark.parametrize("entries", [None, [], "x", 5], ids=str)
def test_a_record_that_is_none_is_odd(entries: Any) -> None:
    assert known(entries).odd


@pytest.mark.parametrize("state", sorted(STATES))
def test_a_cap_at_rest_is_in_its_state(state: str) -> None:
    assert resting({"spendCap": {"inputState": "CONFIGURED", "outputState": state}}) == state


def test_a_cap_on_its_way_is_in_none() -> None:
    assert resting({"spendCap": {"outputState": "ENFORCED", "reconciling": True}}) is None


@pytest.mark.parametrize(
    "budget",
    [
        {},
        {"spendCap": None},
        {"spendCap": {}},
        {"spendCap": {"outputState": "STATE_UNSPECIFIED"}},
        {"spendCap": {"outputState": ["ENFORCED"]}},
    ],
    ids=str,
)
def test_a_budget_without_a_known_state_is_no_cap(budget: dict[str, Any]) -> None:
    with pytest.raises(NoCap):
        resting(budget)
