"""Provisioning, with the real clients, against the stand-ins: what it makes, changes, takes over and leaves alone."""

import threading

import pytest

from firebreak.settings import policies
from scripts.local.layout import PROJECT
from scripts.provision.budgets import Patience
from tests.e2e.provision.world import DONE, MONEY, NOTHING, SERVICES, TO_DO, WRONG, World
from tests.unit.test_billing_rules import CAP


def test_a_plan_tells_what_is_to_do_and_changes_nothing(world: World) -> None:
    assert world.run("plan") == TO_DO

    assert "+ cap        gemini  20 USD a month" in world.told()
    assert world.budgets() == []
    assert world.record() == {}
    assert world.changes() == {}


def test_a_run_without_a_command_is_a_plan(world: World) -> None:
    world.monkeypatch.chdir(world.file.parent)

    assert world.run("--local") == TO_DO


def test_after_apply_there_is_nothing_to_do(world: World) -> None:
    assert world.run("apply", "--yes") == DONE
    assert world.run("plan") == NOTHING


def test_apply_makes_caps_and_an_alert_that_notifies_the_topic(world: World) -> None:
    world.apply()

    assert world.state("gemini") == "CONFIGURED"
    assert world.cap("functions")["amount"]["specifiedAmount"] == {
        "currencyCode": "USD",
        "units": "10",
        "nanos": 500000000,
    }
    assert world.cap("gemini")["ownershipScope"] == "ALL_USERS"
    assert world.alert()["notificationsRule"]["pubsubTopic"] == f"projects/{PROJECT}/topics/{world.topic}"
    assert world.alert()["budgetFilter"]["creditTypesTreatment"] == "EXCLUDE_ALL_CREDITS"
    assert [(rule["thresholdPercent"], rule["spendBasis"]) for rule in world.alert()["thresholdRules"]] == [
        (0.5, "CURRENT_SPEND"),
        (0.9, "CURRENT_SPEND"),
        (1.0, "CURRENT_SPEND"),
        (1.0, "FORECASTED_SPEND"),
    ]


def test_apply_again_sends_no_request_that_changes_anything(world: World) -> None:
    world.run("apply", "--yes")
    before = world.changes()

    assert world.run("apply", "--yes") == DONE

    assert world.changes() == before


def test_apply_asks_and_without_anybody_to_ask_does_nothing(world: World) -> None:
    assert world.run("apply") == WRONG

    assert "add --yes" in world.told()
    assert world.changes() == {}


def test_what_is_on_record_is_what_the_watch_over_the_caps_reads(world: World) -> None:
    world.apply()

    entry = world.record()["caps"]["gemini"]
    assert entry["name"] == world.cap("gemini")["name"]
    assert (entry["service"], entry["scope"]) == (f"services/{SERVICES['gemini']}", "gemini")
    assert (entry["intent"], entry["amount"], entry["currency"]) == ("keep", "20", "USD")
    assert entry["createdAt"]


def test_the_settings_that_apply_prints_are_ones_the_functions_take(world: World) -> None:
    _, answer = world.json("apply", "--yes")

    line, watch = answer["env"]
    (budget,) = policies.parse(line.removeprefix("BUDGET_POLICIES=")).values()
    assert world.alert()["name"].endswith(budget.id)
    assert [str(policy.action) for policy in budget.policies] == ["record", "tighten(50)", "trip(firestore)", "record"]
    assert watch == "WATCH_CAPS=true"


def test_another_amount_is_sent_with_the_state_in_the_mask_and_the_cap_stays_one(world: World) -> None:
    world.apply()
    world.write({"gemini": "35 USD", "functions": "10.50 USD"})

    assert world.apply() == DONE

    (patch,) = world.log("patch")
    assert patch["query"] == {"updateMask": "amount,spendCap.inputState"}
    assert patch["body"]["etag"]
    assert world.cap("gemini")["amount"]["specifiedAmount"]["units"] == "35"


def test_a_change_of_an_alert_sends_the_changed_fields_alone(world: World) -> None:
    world.apply()
    world.write(alert="7 USD")

    assert world.apply() == DONE

    (patch,) = world.log("patch")
    assert patch["query"]["updateMask"] == "amount"
    assert world.alert()["amount"]["specifiedAmount"]["units"] == "7"


@pytest.mark.parametrize(
    ("before", "after", "mask"),
    [
        pytest.param("[0.5, 0.9, 1.0]", "[0.25]", "thresholdRules", id="thresholds"),
        pytest.param('"firestore"', '"gemini"', "budgetFilter", id="service"),
        pytest.param("forecast =", 'credits = "include"\nforecast =', "budgetFilter", id="credits"),
        pytest.param(
            '"\n[caps]', '-2"\n[caps]', "notificationsRule.pubsubTopic,notificationsRule.schemaVersion", id="topic"
        ),
    ],
)
def test_any_change_of_an_alert_is_made_in_place(world: World, before: str, after: str, mask: str) -> None:
    world.apply()
    name = world.alert()["name"]
    world.file.write_text(world.file.read_text().replace(before, after, 1))

    assert world.apply() == DONE
    assert world.run("plan", *MONEY) == NOTHING

    (patch,) = world.log("patch")
    assert patch["query"]["updateMask"] == mask
    assert patch["path"].endswith(name)


def test_a_cap_made_elsewhere_is_taken_over_and_never_deleted(world: World) -> None:
    name = world.make(**CAP | {"displayName": "Team cap"})

    assert world.apply() == DONE
    assert world.cap("gemini")["name"] == name
    assert world.run("destroy", "--yes") == DONE

    assert [budget["displayName"] for budget in world.budgets()] == ["Team cap"]


def test_budgets_of_somebody_else_are_named_and_left_alone(world: World) -> None:
    name = world.make(displayName="Team alert", amount={"specifiedAmount": {"units": "9"}},
                      budgetFilter={"projects": [f"projects/{PROJECT}"]})  # fmt: skip
    before = world.ask("GET", f"billingbudgets/v1/{name}")

    world.apply()

    assert f"Team alert  an alert budget that is not in the file: {name}" in world.told()
    assert world.ask("GET", f"billingbudgets/v1/{name}") == before


def test_a_cap_that_was_turned_into_an_alert_is_replaced_by_a_cap(world: World) -> None:
    world.apply()
    name = world.cap("gemini")["name"]
    world.ask("PATCH", f"billingbudgets/v1/{name}", {}, updateMask="spendCap")

    assert world.apply() == DONE

    assert world.cap("gemini")["name"] != name
    world.settled()


def test_destroy_deletes_what_this_made_and_may_be_repeated(world: World) -> None:
    world.apply()

    assert world.run("destroy", "--yes") == DONE
    assert world.budgets() == []
    assert world.record() == {"caps": {}, "budgets": {}}
    assert world.run("destroy", "--yes") == DONE


def test_destroy_of_one_leaves_the_others(world: World) -> None:
    world.apply()

    assert world.run("destroy", "caps.gemini", "--yes") == DONE

    assert len(world.budgets()) == 2
    assert "gemini" not in world.record()["caps"]


def test_a_cap_taken_out_of_the_file_goes_on_bounding(world: World) -> None:
    world.apply()
    world.write({"functions": "10.50 USD"})

    assert world.apply() == NOTHING

    assert world.state("gemini") == "CONFIGURED"


@pytest.mark.parametrize("round_", range(2))
def test_two_at_once_make_one_of_each(world: World, round_: int) -> None:
    ends: list[int] = []
    both = [threading.Thread(target=lambda: ends.append(world.apply())) for _ in range(2)]

    for run in both:
        run.start()
    for run in both:
        run.join()

    assert DONE in ends
    assert world.apply() == DONE
    world.settled()


def test_a_record_that_is_lost_is_made_again_from_what_is_there(world: World) -> None:
    world.apply()
    world.store.document("ops/caps").delete()

    assert world.apply() == DONE

    world.settled()
    assert {entry["adopted"] for entry in world.record()["caps"].values()} == {False}


def test_an_unanswered_creation_of_a_moment_ago_is_waited_out(world: World) -> None:
    """Nobody knows whether that request is still under way, so nothing is asked for until it cannot be."""
    world.store.document("ops/caps").set(
        {
            "caps": {
                "gemini": {"intent": "create", "mark": "m", "since": world.store.document("ops/caps").get().read_time}
            }
        }
    )

    assert world.apply() == DONE

    assert sum(world.slept) >= Patience().settle_s - 5
    world.settled()
