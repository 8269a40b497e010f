"""Provisioning under faults: a run that dies at any request, lost replies, and the flakiness seen of the preview."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from scripts.local.layout import ROOT
from tests.e2e.provision.faults import Crash, Fate, relaying
from tests.e2e.provision.world import CAPS, DONE, MONEY, NOTHING, TO_DO, WRONG, World
from tests.unit.test_billing_rules import CAP

MANY = 10_000
EVERYTHING = (*MONEY, "--only", "rights", "--only", "ttl")


def requests_of_apply(world: World, *options: str) -> tuple[int, list[int]]:
    """How many requests a whole run sends, and which of them change something."""
    with relaying(world.standins) as relay:
        assert world.apply(*options, standins=relay.url) == DONE
    world.reset()
    return len(relay.seen), relay.changing


def die_before(world: World, number: int, *options: str) -> None:
    with suppress(Crash):
        world.apply(*options, fate=Fate(dies_before=number))


def die_unanswered(world: World, number: int, *options: str) -> None:
    """The request is carried out; the run dies before it can know."""
    fate = Fate()

    def die() -> None:
        fate.dead = True

    with relaying(world.standins, loses=number, on_loss=die) as relay, suppress(Crash):
        world.apply(*options, standins=relay.url, fate=fate)


@pytest.mark.parametrize("die", [die_before, die_unanswered])
def test_a_run_that_died_at_any_change_of_money_is_finished_by_the_next(world: World, die: Callable[..., None]) -> None:
    _, changing = requests_of_apply(world, *MONEY)
    assert len(changing) == len(CAPS) + 3
    for number in sorted({*changing, *(one + 1 for one in changing)}):
        world.reset()
        die(world, number, *MONEY)

        assert world.apply() == DONE
        world.settled()


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("die", [die_before, die_unanswered])
def test_a_run_that_died_at_any_request_at_all_is_finished_by_the_next(world: World, die: Callable[..., None]) -> None:
    every, _ = requests_of_apply(world, *EVERYTHING)
    for number in range(1, every + 1):
        world.reset()
        die(world, number, *EVERYTHING)

        assert world.run("apply", "--yes") == DONE
        world.settled()


@pytest.mark.parametrize("die", [die_before, die_unanswered])
def test_a_destroy_that_died_at_any_change_is_finished_by_the_next(world: World, die: Callable[..., None]) -> None:
    world.apply()
    with relaying(world.standins) as relay:
        assert world.run("destroy", "--yes", standins=relay.url) == DONE
    for number in sorted({*relay.changing, *(one + 1 for one in relay.changing)}):
        world.reset()
        world.apply()
        _destroy(world, die, number)

        assert world.run("destroy", "--yes") == DONE
        assert world.budgets() == []
        assert world.record() == {"caps": {}, "budgets": {}}


def _destroy(world: World, die: Callable[..., None], number: int) -> None:
    fate = Fate(dies_before=number if die is die_before else None)

    def kill() -> None:
        fate.dead = True

    loses = 0 if die is die_before else number
    with relaying(world.standins, loses=loses, on_loss=kill) as relay, suppress(Crash):
        world.run("destroy", "--yes", standins=relay.url, fate=fate)


def test_a_process_that_is_killed_at_its_first_creation_is_finished_by_the_next(world: World) -> None:
    _, changing = requests_of_apply(world, *MONEY)
    command = [sys.executable, "-m", "scripts.provision", "apply", "--yes", *MONEY, "--file", str(world.file)]
    processes: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        processes[0].kill()

    with relaying(world.standins, loses=changing[0], on_loss=kill) as relay:
        env = os.environ | {"FIREBREAK_STANDINS": relay.url, "FIRESTORE_EMULATOR_HOST": world.firestore_host}
        env |= {"PYTHONPATH": f"{ROOT / 'functions'}{os.pathsep}{ROOT}"}
        processes.append(
            subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )

        assert processes[0].wait(timeout=110) == -signal.SIGKILL

    assert len(world.budgets()) == 1
    assert world.apply() == DONE
    world.settled()


@pytest.mark.timeout(1200)
def test_every_lost_reply_of_a_change_is_overcome_within_the_run(world: World) -> None:
    _, changing = requests_of_apply(world, *EVERYTHING)
    for number in changing:
        world.reset()
        with relaying(world.standins, loses=number) as relay:
            assert world.apply(*EVERYTHING, standins=relay.url) == DONE
        world.settled()


@pytest.mark.parametrize("fault", ["createDropped", "createUnavailable"])
def test_a_creation_without_an_answer_is_looked_for_and_never_repeated(world: World, fault: str) -> None:
    world.tell("flaky", **{fault: 3})

    assert world.apply() == DONE

    assert len(world.log("create")) == len(CAPS) + 1
    world.settled()


def test_a_creation_that_cannot_be_decided_stops_says_what_to_do_and_is_found_by_the_next_run(world: World) -> None:
    world.tell("flaky", createDropped=1, listOmitsCaps=world.patience.looks)

    assert world.apply() == WRONG
    assert "It was not asked for again. Run `apply` once more" in world.told()
    assert len(world.log("create")) == 1

    assert world.apply() == DONE
    assert len(world.log("create")) == len(CAPS) + 1
    world.settled()


@pytest.mark.parametrize("omitted", [1, 4, 7])
def test_lists_that_leave_caps_out_make_no_second_cap(world: World, omitted: int) -> None:
    world.make(**CAP | {"displayName": "Team cap"})
    world.tell("flaky", listOmitsCaps=omitted)

    assert world.apply() == DONE

    assert world.cap("gemini")["displayName"] == "Team cap"


def test_a_cap_that_no_list_shows_is_found_by_the_refusal_of_a_second(world: World) -> None:
    world.make(**CAP | {"displayName": "Team cap"})
    world.tell("flaky", listOmitsCaps=world.patience.looks + 2)

    assert world.apply() == DONE

    assert world.cap("gemini")["displayName"] == "Team cap"
    assert world.record()["caps"]["gemini"]["adopted"] is True


def test_a_known_cap_that_answers_not_found_at_times_is_not_made_again(world: World) -> None:
    world.apply()
    world.tell("flaky", getNotFound=4, listOmitsCaps=MANY)

    assert world.run("plan", *MONEY) == NOTHING


def test_a_known_cap_that_answers_not_found_all_the_time_is_still_not_made_twice(world: World) -> None:
    """Its reads and the lists all say that it is not there; the refusal of a second one says that it is."""
    world.apply()
    world.tell("flaky", getNotFound=2 * world.patience.gets, listOmitsCaps=world.patience.looks + 2)

    world.apply()

    assert world.apply() == DONE
    world.settled()


@pytest.mark.parametrize("fault", ["patchDropped", "patchUnavailable", "patchNotFound"])
def test_a_change_without_an_answer_is_looked_at_and_done_once(world: World, fault: str) -> None:
    world.apply()
    world.write({"gemini": "35 USD", "functions": "10.50 USD"})
    world.tell("flaky", **{fault: 1})

    assert world.apply() == DONE

    assert world.cap("gemini")["amount"]["specifiedAmount"]["units"] == "35"
    assert len(world.log("patch")) == (2 if fault == "patchNotFound" else 1)


def test_a_mask_that_is_refused_is_followed_by_the_whole_cap_without_one(world: World) -> None:
    world.apply()
    world.write({"gemini": "35 USD", "functions": "10.50 USD"})
    world.script("billing", {"for": "patch", "status": 400})

    assert world.apply() == DONE

    _, whole = world.log("patch")
    assert whole["query"] == {}
    assert whole["body"]["ownershipScope"] == "ALL_USERS"
    assert whole["body"]["spendCap"] == {"inputState": "CONFIGURED"}
    world.settled_at("gemini", "35")


@pytest.mark.parametrize(("before", "after"), [("20 USD", "0 USD"), ("20 USD", "0.50 USD"), ("50.50 USD", "30 USD")])
def test_an_amount_is_never_sent_without_a_mask_that_could_keep_a_part_of_the_old_one(
    world: World, before: str, after: str
) -> None:
    world.write({"gemini": before})
    world.apply()
    there = world.cap("gemini")["amount"]
    world.write({"gemini": after})
    world.script("billing", {"for": "patch", "status": 400})

    assert world.apply() == WRONG

    assert len(world.log("patch")) == 1
    assert f"{before} → {after}" in world.told().splitlines()[-1]
    assert world.cap("gemini")["amount"] == there


def test_a_change_that_is_taken_and_never_shown_is_told_as_that(world: World) -> None:
    """After a refusal that no longer matters."""
    world.apply()
    world.write({"gemini": "35 USD", "functions": "10.50 USD"})
    world.script("billing", {"for": "patch", "status": 404})
    name, old = world.cap("gemini")["name"], world.cap("gemini")["amount"]
    with relaying(world.standins, shows=lambda b: b | ({"amount": old} if b["name"] == name else {})) as relay:
        assert world.apply(standins=relay.url) == WRONG

    assert "Google takes the change, and reads do not show it" in world.told()


def test_a_run_that_stood_still_after_its_intent_does_not_ask(world: World) -> None:
    """A lid was closed; by now another run may have asked for the same."""
    world.wall = lambda: time.time() + (61 if world.record() else 0)

    assert world.apply() == WRONG

    assert "this run stood still for 61 s before it could ask for cap functions" in world.told()
    assert world.log("create") == []
    world.wall = time.time
    assert world.apply() == DONE
    world.settled()


def test_the_intent_is_on_record_before_the_request_is_sent(world: World) -> None:
    _, changing = requests_of_apply(world, *MONEY)

    die_before(world, changing[0], *MONEY)

    (entry,) = world.record()["caps"].values()
    assert entry["intent"] == "create"
    assert "name" not in entry
    assert world.budgets() == []


def test_a_deletion_is_believed_only_when_no_list_shows_the_cap_either(world: World) -> None:
    world.write({"gemini": "20 USD"}, alert=None)
    world.apply()
    world.tell("flaky", deleteDoesNotStick=1, getNotFound=2 * world.patience.gets)

    assert world.run("destroy", "--yes") == DONE

    assert world.budgets() == []


@pytest.mark.parametrize("times", [1, 3])
def test_a_deletion_that_does_not_stick_is_repeated(world: World, times: int) -> None:
    world.apply()
    world.tell("flaky", deleteDoesNotStick=times)

    assert world.run("destroy", "--yes") == DONE

    assert world.budgets() == []


def test_a_deletion_that_never_sticks_is_told_and_stays_on_record(world: World) -> None:
    world.apply()
    world.tell("flaky", deleteDoesNotStick=MANY)

    assert world.run("destroy", "--yes") == WRONG

    assert "is still there after" in world.told()
    on_record = [entry for kind in ("caps", "budgets") for entry in world.record()[kind].values()]
    assert [entry["intent"] for entry in on_record].count("delete") == 1


@pytest.mark.parametrize("fault", ["deleteDropped", "deleteUnavailable"])
def test_a_deletion_without_an_answer_is_looked_at(world: World, fault: str) -> None:
    world.apply()
    world.tell("flaky", **{fault: 2})

    assert world.run("destroy", "--yes") == DONE

    assert world.budgets() == []


def test_a_cap_that_comes_out_as_a_plain_alert_is_deleted_at_once_and_the_run_fails(world: World) -> None:
    with relaying(world.standins, drops="spendCap") as relay:
        assert world.apply(standins=relay.url) == WRONG

    assert "a plain alert, which stops nothing" in world.told()
    assert world.budgets() == []
    assert world.record()["caps"] == {}


def test_a_plain_alert_whose_maker_died_is_replaced_by_a_cap(world: World) -> None:
    """Died after the service had made the alert, before the answer could be looked at."""
    _, changing = requests_of_apply(world, *MONEY)
    fate = Fate()

    def die() -> None:
        fate.dead = True

    with relaying(world.standins, drops="spendCap", loses=changing[0], on_loss=die) as relay, suppress(Crash):
        world.apply(standins=relay.url, fate=fate)
    assert ["spendCap" in budget for budget in world.budgets()] == [False]

    assert world.run("plan", *MONEY) == TO_DO
    assert "a plain alert where a cap should be" in world.told()
    assert world.apply() == DONE
    world.settled()
