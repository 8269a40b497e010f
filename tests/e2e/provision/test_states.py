"""Lifting, arming again, and what may not be done to a cap that is enforced or lifted."""

from datetime import UTC, datetime
from functools import partial

import pytest

from tests.e2e.provision.faults import Json, relaying
from tests.e2e.provision.world import CAPS, DONE, MONEY, NOTHING, WRONG, World
from tests.unit.test_billing_rules import CAP

CHANGED = CAPS | {"gemini": "35 USD"}


def enforced(world: World) -> None:
    world.apply()
    world.spend("gemini", 21)
    assert world.state("gemini") == "ENFORCED"


def lifted(world: World) -> None:
    enforced(world)
    assert world.run("lift", "gemini", "--yes") == DONE
    assert world.state("gemini") == "AWAITING_NEXT_PERIOD"


def with_cap(budget: Json, **fields: object) -> Json:
    return budget | {"spendCap": budget["spendCap"] | fields}


def test_a_change_of_an_enforced_cap_is_refused_with_the_way_out_and_nothing_is_sent(world: World) -> None:
    enforced(world)
    world.write(CHANGED, alert="7 USD")
    before = world.changes()

    assert world.run("plan", *MONEY) == WRONG
    assert world.apply() == WRONG

    told = world.told()
    assert "`lift gemini` first" in told
    assert "may take an hour" in told
    assert "does not trip again this month unless its amount is raised" in told
    assert world.changes() == before


@pytest.mark.parametrize("views", [2, 3])
def test_a_cap_that_trips_after_the_plan_was_made_is_left_as_it_is(world: World, views: int) -> None:
    """The plan saw it ready; the change meets it enforced, at its first look or after Google has refused the change."""
    world.apply()
    world.write(CHANGED)
    world.tell("flaky", reconcilingViews=views)
    world.spend("gemini", 21)
    world.script("billing", {"for": "patch", "status": 400, "error": {"code": 400, "status": "FAILED_PRECONDITION"}})

    assert world.apply() == WRONG

    assert "firebreak cap gemini demo-firebreak: it is enforced" in world.told()
    assert len(world.log("patch")) == views - 2
    assert world.cap("gemini")["amount"]["specifiedAmount"]["units"] == "20"


def test_an_enforced_cap_at_its_amount_is_kept_and_called_paused(world: World) -> None:
    enforced(world)

    assert world.run("plan", *MONEY) == NOTHING

    assert "ENFORCED: the service is paused" in world.told()


def test_lift_sends_the_state_alone_under_its_mask(world: World) -> None:
    lifted(world)

    (patch,) = world.log("patch")
    assert patch["query"] == {"updateMask": "spendCap.inputState"}
    assert patch["body"] == {"etag": patch["body"]["etag"], "spendCap": {"inputState": "AWAITING_NEXT_PERIOD"}}


def test_lift_of_a_lifted_cap_does_nothing(world: World) -> None:
    lifted(world)

    assert world.run("lift", "gemini", "--yes") == DONE

    assert len(world.log("patch")) == 1


def test_lift_whose_answer_was_lost_is_not_sent_again(world: World) -> None:
    enforced(world)
    world.tell("flaky", patchDropped=1)

    assert world.run("lift", "gemini", "--yes") == DONE

    assert len(world.log("patch")) == 1


def test_a_cap_that_was_lifted_in_an_earlier_month_is_lifted_again(world: World) -> None:
    """What was asked for last is still that it be lifted."""
    lifted(world)
    world.tell("period")
    world.spend("gemini", 25)
    assert world.state("gemini") == "ENFORCED"
    assert world.cap("gemini")["spendCap"]["inputState"] == "AWAITING_NEXT_PERIOD"

    assert world.run("lift", "gemini", "--yes") == DONE

    assert world.state("gemini") == "AWAITING_NEXT_PERIOD"
    assert len(world.log("patch")) == 2


def test_lift_finds_the_cap_that_was_made_in_place_of_the_one_on_record(world: World) -> None:
    world.apply()
    world.ask("DELETE", f"billingbudgets/v1/{world.cap('gemini')['name']}")
    world.make(**CAP | {"displayName": "Team cap"})
    world.spend("gemini", 25)
    assert world.state("gemini") == "ENFORCED"

    assert world.run("lift", "gemini", "--yes") == DONE

    assert world.state("gemini") == "AWAITING_NEXT_PERIOD"


def test_a_cap_on_record_that_became_an_alert_does_not_hide_the_one_that_pauses(world: World) -> None:
    world.apply()
    world.ask("PATCH", f"billingbudgets/v1/{world.cap('gemini')['name']}", {}, updateMask="spendCap")
    name = world.make(**CAP | {"displayName": "Team cap"})
    world.spend("gemini", 25)

    assert world.run("lift", "gemini", "--yes") == DONE

    assert world.log("patch")[-1]["path"].endswith(name)


def test_lift_of_a_ready_cap_is_refused(world: World) -> None:
    world.apply()

    assert world.run("lift", "gemini", "--yes") == WRONG

    assert "there is nothing to lift" in world.told()


def test_lift_asks_first(world: World) -> None:
    enforced(world)

    assert world.run("lift", "gemini") == WRONG

    assert world.state("gemini") == "ENFORCED"


def test_lift_finds_a_cap_that_is_not_on_record(world: World) -> None:
    enforced(world)
    world.store.document("ops/caps").delete()

    assert world.run("lift", "gemini", "--yes") == DONE

    assert world.state("gemini") == "AWAITING_NEXT_PERIOD"


def test_lift_works_while_firestore_is_away(world: World) -> None:
    enforced(world)
    world.firestore_host = "127.0.0.1:1"

    assert world.run("lift", "gemini", "--yes") == DONE

    assert world.state("gemini") == "AWAITING_NEXT_PERIOD"


def test_lift_of_a_service_without_a_cap_is_refused(world: World) -> None:
    world.apply()

    assert world.run("lift", "firestore", "--yes") == WRONG
    assert world.run("lift", "run", "--yes") == WRONG

    assert "there is no cap run on record" in world.told()


def test_a_lifted_cap_is_armed_again_only_above_its_amount(world: World) -> None:
    lifted(world)

    assert world.run("rearm", "gemini", "--amount", "20 USD", "--yes") == WRONG
    assert "20 USD is not" in world.told()
    assert world.run("rearm", "gemini", "--amount", "40 USD", "--yes") == DONE

    assert world.state("gemini") == "CONFIGURED"
    assert 'write gemini = "40 USD" into the file' in world.told()
    world.spend("gemini", 41)
    assert world.state("gemini") == "ENFORCED"


def test_an_enforced_cap_at_its_own_amount_is_not_armed(world: World) -> None:
    enforced(world)

    assert world.run("rearm", "gemini", "--yes") == WRONG

    assert "it is enforced: `lift` it first" in world.told()
    assert world.log("patch") == []


def test_a_lifted_cap_is_not_armed_because_it_says_that_this_was_asked_for(world: World) -> None:
    """A service that shows what was asked for at first, and not last."""
    lifted(world)
    with relaying(world.standins, shows=partial(with_cap, inputState="CONFIGURED")) as relay:
        assert world.run("rearm", "gemini", "--yes", standins=relay.url) == WRONG

    assert "20 USD is not" in world.told()
    assert world.state("gemini") == "AWAITING_NEXT_PERIOD"


def test_arming_that_reads_do_not_show_is_told_as_that(world: World) -> None:
    lifted(world)
    world.tell("flaky", reconcilingViews=99)
    with relaying(world.standins, shows=partial(with_cap, reconciling=False)) as relay:
        assert world.run("rearm", "gemini", "--amount", "40 USD", "--yes", standins=relay.url) == WRONG

    assert "Google takes the change, and reads do not show it" in world.told()


@pytest.mark.parametrize("lost", ["name", "entry"])
def test_a_cap_that_a_list_shows_is_armed_and_its_name_is_on_record(world: World, lost: str) -> None:
    """Its creation was begun and its end not recorded, or what is on record is there no more."""
    lifted(world)
    entry = world.record()["caps"]["gemini"]
    found = entry["name"]
    begun = {"intent": "create", "mark": "m", "displayName": entry["displayName"], "service": entry["service"]}
    gone = entry | {"name": f"{found[:-4]}0000"}
    world.store.document("ops/caps").update({"caps.gemini": begun if lost == "name" else gone})

    assert world.run("rearm", "gemini", "--amount", "40 USD", "--yes") == DONE

    after = world.record()["caps"]["gemini"]
    assert (after["intent"], after["name"], after["amount"], after["adopted"]) == ("keep", found, "40", False)


def test_arming_again_twice_is_arming_once(world: World) -> None:
    lifted(world)

    for _ in range(2):
        assert world.run("rearm", "gemini", "--amount", "40 USD", "--yes") == DONE

    assert len(world.log("patch")) == 2


def test_a_cap_is_armed_again_at_the_files_amount_where_none_is_named(world: World) -> None:
    lifted(world)
    world.write(CHANGED)

    assert world.run("plan", *MONEY) == WRONG
    assert world.run("rearm", "gemini", "--yes") == DONE
    assert world.run("plan", *MONEY) == NOTHING


def test_an_enforced_cap_is_neither_armed_nor_destroyed(world: World) -> None:
    enforced(world)
    before = world.changes()

    assert world.run("rearm", "gemini", "--amount", "40 USD", "--yes") == WRONG
    assert world.run("destroy", "--yes") == WRONG

    assert "`lift gemini` first" in world.told()
    assert world.changes() == before


def test_a_lifted_cap_at_its_amount_is_kept_until_the_month_ends(world: World) -> None:
    lifted(world)

    assert world.apply() == NOTHING
    assert "it stops nothing" in world.told()

    world.tell("period")
    assert world.state("gemini") == "CONFIGURED"


def test_lifting_and_arming_answer_in_json(world: World) -> None:
    enforced(world)

    _, lift = world.json("lift", "gemini", "--yes")
    _, rearm = world.json("rearm", "gemini", "--amount", "40 USD", "--yes")

    assert lift["cap"]["state"] == "AWAITING_NEXT_PERIOD"
    assert rearm["cap"]["amount"] == "40 USD"


def test_status_tells_states_and_the_last_notice(world: World) -> None:
    enforced(world)
    budget = world.alert()["name"].rpartition("/")[2]
    notice = world.store.document(f"budget_notices/{budget}:2026-11")
    notice.set(
        {
            "budget": budget,
            "period": "2026-11",
            "start": datetime(2026, 11, 1, 7, tzinfo=UTC),
            "costMicros": 4_500_000,
            "budgetMicros": 5_000_000,
            "currency": "USD",
            "asOf": datetime(2026, 11, 20, tzinfo=UTC),
            "applied": {"actual 90%": {"action": "tighten(50)"}},
        }
    )

    status, answer = world.json("status")
    notice.delete()

    assert status == DONE
    caps = {cap["key"]: cap for cap in answer["caps"]}
    assert (caps["gemini"]["state"], caps["gemini"]["amount"]) == ("ENFORCED", "20 USD")
    assert caps["functions"]["state"] == "CONFIGURED"
    (told,) = answer["budgets"]
    assert (told["cost"], told["amount"], told["applied"]) == ("4.50 USD", "5 USD", ["actual 90% tighten(50)"])


def test_status_of_what_was_never_made_says_so(world: World) -> None:
    _, answer = world.json("status")

    assert {cap["key"]: cap["state"] for cap in answer["caps"]} == dict.fromkeys(CAPS, "not made")
    assert world.run("status") == DONE
