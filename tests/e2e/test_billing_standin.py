"""The billing stand-in, as Google's own clients see it: budgets, spend caps, and the notices of what is spent."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from google.api_core import exceptions
from google.cloud.billing import budgets_v1
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherRestTransport
from google.pubsub_v1.services.subscriber import SubscriberClient
from google.pubsub_v1.services.subscriber.transports import SubscriberRestTransport

from scripts.local.layout import PROJECT
from scripts.local.stack import Stack
from scripts.local.wire import call
from tests.conftest import StandIn
from tests.e2e.budgets import ACCOUNT, INVALID, PRECONDITION, Budgets, Json, credentials, refusal
from tests.unit.test_billing_rules import CAP

GEMINI, FIRESTORE = "AEFD-7695-64FA", "EE2C-7FAC-5E08"
THRESHOLDS = [{"thresholdPercent": 0.5}, {"thresholdPercent": 1.0}]
ID = "11111111-2222-3333-4444-555555555555"
LIFT = {"spendCap": {"inputState": "AWAITING_NEXT_PERIOD"}}
ARM = {"spendCap": {"inputState": "CONFIGURED"}}


@pytest.fixture
def standin(stack: Stack) -> Iterator[StandIn]:
    """The billing stand-in, with nothing in it."""
    standin = StandIn(url=stack.standins_url, service="billing")
    standin.reset()
    yield standin
    standin.reset()


@pytest.fixture
def budgets(stack: Stack, standin: StandIn) -> Budgets:
    return Budgets(stack.standins_url)


@pytest.fixture
def tell(standin: StandIn) -> Callable[..., Json]:
    """Steers the stand-in: `tell("spend", project=…)`."""

    def tell(what: str, **fields: object) -> Json:
        answer = call("POST", f"{standin.url}/_billing/{what}", fields)
        assert answer.status == 200, answer.body
        return dict(answer.json)

    return tell


def spend(tell: Callable[..., Json], amount: float, service: str = GEMINI, **more: object) -> Json:
    return tell("spend", project=PROJECT, service=service, amount=amount, **more)


@pytest.fixture
def enforced(budgets: Budgets, tell: Callable[..., Json]) -> str:
    """The name of a cap of 20 that has tripped."""
    name = budgets.create(CAP)["name"]
    spend(tell, 25)
    assert budgets.state(name) == "ENFORCED"
    return str(name)


# Budgets


def test_a_created_cap_is_read_back_as_the_service_stores_it(budgets: Budgets) -> None:
    created = budgets.create(CAP)

    assert created == budgets.get(created["name"])
    assert created["budgetFilter"]["projects"] == ["projects/123456789012"]
    assert created["amount"] == {"specifiedAmount": {"currencyCode": "USD", "units": "20"}}
    assert created["spendCap"] == {"inputState": "CONFIGURED", "outputState": "CONFIGURED"}
    assert created["etag"]


@pytest.mark.parametrize("state", ["AWAITING_NEXT_PERIOD", "ENFORCED", "STATE_UNSPECIFIED", None])
def test_a_cap_is_created_configured_alone(budgets: Budgets, state: str | None) -> None:
    answer = budgets.ask("POST", f"{ACCOUNT}/budgets", CAP | {"spendCap": {"inputState": state}})

    assert refusal(answer) == INVALID
    assert answer.json()["error"]["message"] == "Request contains an invalid argument."
    assert "details" not in answer.json()["error"]


def test_a_second_cap_of_project_and_service_is_refused_and_one_of_another_service_is_not(budgets: Budgets) -> None:
    budgets.create(CAP)
    other = CAP | {"budgetFilter": CAP["budgetFilter"] | {"services": ["services/152E-C115-5142"]}}

    by_number = CAP | {"budgetFilter": CAP["budgetFilter"] | {"projects": ["projects/123456789012"]}}

    assert refusal(budgets.ask("POST", f"{ACCOUNT}/budgets", by_number)) == INVALID
    assert budgets.create(other)["name"]


def test_one_of_many_racing_caps_is_created(budgets: Budgets) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: budgets.ask("POST", f"{ACCOUNT}/budgets", CAP).status_code, range(8)))

    assert sorted(answers) == [200, *[400] * 7]


def test_every_request_needs_a_token(stack: Stack, standin: StandIn) -> None:
    answer = call("GET", f"{stack.standins_url}/billingbudgets/v1/{ACCOUNT}/budgets")

    assert answer.status == 401
    assert answer.json["error"]["status"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("GET", f"{ACCOUNT}/budgets/none"),
        ("PATCH", f"{ACCOUNT}/budgets/none"),
        ("DELETE", f"{ACCOUNT}/budgets/none"),
        ("GET", "billingAccounts/000000-000000-000000/budgets"),
        ("POST", "billingAccounts/000000-000000-000000/budgets"),
    ],
)
def test_what_is_not_there_is_not_found(budgets: Budgets, method: str, name: str) -> None:
    body = {"displayName": "x"} if method in {"PATCH", "POST"} else None

    assert refusal(budgets.ask(method, name, body)) == (404, "NOT_FOUND")


def test_deleting_twice_succeeds(budgets: Budgets) -> None:
    name = budgets.create(CAP)["name"]

    assert [budgets.ask("DELETE", name).json() for _ in range(2)] == [{}, {}]
    assert budgets.ask("GET", name).status_code == 404


@pytest.mark.parametrize(
    ("permission", "act"),
    [
        ("billing.budgets.create", lambda b, _: b.ask("POST", f"{ACCOUNT}/budgets", CAP)),
        ("billing.budgets.configureSpendCap", lambda b, _: b.ask("POST", f"{ACCOUNT}/budgets", CAP)),
        ("billing.budgets.configureSpendCap", lambda b, name: b.patch(name, ARM, "spendCap.inputState")),
        ("billing.budgets.update", lambda b, name: b.patch(name, ARM, "spendCap.inputState")),
        ("billing.budgets.get", lambda b, name: b.ask("GET", name)),
        ("billing.budgets.list", lambda b, _: b.ask("GET", f"{ACCOUNT}/budgets")),
        ("billing.budgets.delete", lambda b, name: b.ask("DELETE", name)),
    ],
)
def test_a_denied_permission_is_refused(
    budgets: Budgets, tell: Callable[..., Json], permission: str, act: Callable[[Budgets, str], requests.Response]
) -> None:
    name = budgets.create(CAP)["name"]
    tell("deny", permissions=[permission])

    assert refusal(act(budgets, name)) == (403, "PERMISSION_DENIED")


def test_a_resellers_account_takes_alerts_but_no_cap(budgets: Budgets, tell: Callable[..., Json]) -> None:
    tell("account", account=ACCOUNT.removeprefix("billingAccounts/"), reseller=True)

    assert refusal(budgets.ask("POST", f"{ACCOUNT}/budgets", CAP)) == INVALID
    assert budgets.create({"amount": {"specifiedAmount": {"units": "1"}}})["name"]


@pytest.mark.parametrize(
    ("method", "path", "query", "words"),
    [
        ("GET", "budgets", {"filter": "x"}, 'Unknown name "filter": Cannot bind query parameter.'),
        ("GET", "budgets", {"pageSize": "many"}, "Invalid value at 'page_size' (TYPE_INT32)"),
        ("GET", "budgets", {"pageSize": "-1"}, "Request contains an invalid argument."),
        ("GET", "budgets", {"pageToken": "junk"}, "Request contains an invalid argument."),
        ("GET", "budgets", {"scope": "folders/1"}, "Request contains an invalid argument."),
    ],
)
def test_a_bad_query_is_refused(budgets: Budgets, method: str, path: str, query: Json, words: str) -> None:
    answer = budgets.ask(method, f"{ACCOUNT}/{path}", **query)

    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_a_list_comes_in_pages_and_by_project(budgets: Budgets) -> None:
    cap = budgets.create(CAP)["name"]
    others = [budgets.create({"amount": {"specifiedAmount": {"units": "1"}}})["name"] for _ in range(4)]

    names, token = [], ""
    while True:
        page = budgets.ask("GET", f"{ACCOUNT}/budgets", pageSize=2, pageToken=token).json()
        names += [[budget["name"] for budget in page["budgets"]]]
        if not (token := page.get("nextPageToken", "")):
            break
    scoped = budgets.ask("GET", f"{ACCOUNT}/budgets", scope=f"projects/{PROJECT}").json()

    assert names == [[cap, others[0]], others[1:3], others[3:]]
    assert [budget["name"] for budget in scoped["budgets"]] == [cap]


# Updates


def test_the_documented_update_of_an_amount(budgets: Budgets) -> None:
    created = budgets.create(CAP)
    body = {"amount": {"specifiedAmount": {"units": "30"}}, **ARM, "etag": created["etag"]}

    changed = budgets.patch(created["name"], body, "amount,spendCap.inputState").json()

    assert changed["amount"]["specifiedAmount"] == {"currencyCode": "USD", "units": "30"}
    assert changed["etag"] != created["etag"]
    assert {k: v for k, v in changed.items() if k not in {"amount", "etag"}}.items() <= created.items()


def test_a_masked_update_of_a_cap_names_the_cap(budgets: Budgets) -> None:
    name = budgets.create(CAP)["name"]
    body = {"amount": {"specifiedAmount": {"units": "30"}}}

    assert refusal(budgets.patch(name, body, "amount")) == INVALID
    assert refusal(budgets.patch(name, body | ARM, "amount")) == INVALID
    assert refusal(budgets.patch(name, body, "amount,spend_cap.input_state")) == INVALID
    assert budgets.patch(name, body | ARM, "amount,spend_cap").status_code == 200


def test_an_update_that_names_another_budget_is_refused(budgets: Budgets) -> None:
    created = budgets.create(CAP)
    other = f"{created['name'][:-4]}0000"

    assert refusal(budgets.patch(created["name"], ARM | {"name": other}, "spendCap.inputState")) == INVALID
    assert budgets.get(created["name"]) == created


def test_the_whole_budget_may_be_sent_back_without_a_mask(budgets: Budgets) -> None:
    created = budgets.create(CAP)

    changed = budgets.patch(created["name"], created | {"displayName": "renamed"}).json()

    assert changed == created | {"displayName": "renamed", "etag": changed["etag"]}


def test_a_stale_etag_is_refused_and_an_empty_one_is_not(budgets: Budgets) -> None:
    created = budgets.create(CAP)
    budgets.patch(created["name"], {"displayName": "first"})

    assert refusal(budgets.patch(created["name"], {"displayName": "second", "etag": created["etag"]})) == PRECONDITION
    assert budgets.patch(created["name"], {"displayName": "third", "etag": ""}).status_code == 200


def test_a_cap_becomes_an_alert_only_by_its_mask(budgets: Budgets) -> None:
    name = budgets.create(CAP)["name"]

    kept = budgets.patch(name, {"displayName": "still a cap"}).json()
    alerts = budgets.patch(name, {}, "spendCap").json()

    assert "spendCap" in kept
    assert "spendCap" not in alerts
    assert refusal(budgets.patch(name, ARM, "spendCap")) == INVALID
    assert refusal(budgets.patch(name, ARM)) == INVALID


def test_an_update_may_break_no_rule_of_caps(budgets: Budgets) -> None:
    created = budgets.create(CAP)

    answers = [
        budgets.patch(created["name"], {"budgetFilter": {"services": [f"services/{FIRESTORE}"]}}),
        budgets.patch(created["name"], ARM, "spendCap,thresholdRules"),
        budgets.patch(created["name"], {"amount": {"specifiedAmount": {"units": "1", "currencyCode": "EUR"}}}),
        budgets.patch(created["name"], ARM | {"name": "x"}, "spendCap,name"),
    ]

    assert [refusal(answer) for answer in answers] == [INVALID] * 4
    assert budgets.get(created["name"]) == created


# States


def test_a_cap_is_enforced_over_its_amount_after_it_was_seen_reconciling(
    budgets: Budgets, tell: Callable[..., Json]
) -> None:
    created = budgets.create(CAP)

    spend(tell, 20)
    at_the_amount = budgets.get(created["name"])
    spend(tell, 20.01)
    moving, resting = budgets.get(created["name"]), budgets.get(created["name"])

    assert at_the_amount == created
    assert moving["spendCap"] == {"inputState": "CONFIGURED", "outputState": "CONFIGURED", "reconciling": True}
    assert resting["spendCap"] == {"inputState": "CONFIGURED", "outputState": "ENFORCED"}
    assert len({created["etag"], moving["etag"], resting["etag"]}) == 3


def test_an_enforced_cap_takes_nothing_but_its_lifting(budgets: Budgets, enforced: str) -> None:
    more = {"amount": {"specifiedAmount": {"units": "30"}}}

    refused = [
        budgets.patch(enforced, more),
        budgets.patch(enforced, more | LIFT, "amount,spendCap.inputState"),
        budgets.patch(enforced, {"budgetFilter": {"services": ["services/nobody"]}}),
        budgets.patch(enforced, {}, "spendCap"),
    ]
    lifted = budgets.patch(enforced, budgets.get(enforced) | LIFT)

    assert [refusal(answer) for answer in refused] == [PRECONDITION] * 4
    assert lifted.json()["spendCap"] == {
        "inputState": "AWAITING_NEXT_PERIOD",
        "outputState": "ENFORCED",
        "reconciling": True,
    }
    assert budgets.state(enforced) == "AWAITING_NEXT_PERIOD"


@pytest.mark.parametrize("state", ["ENFORCED", "STATE_UNSPECIFIED"])
def test_no_cap_can_be_forced_on(budgets: Budgets, enforced: str, state: str) -> None:
    assert refusal(budgets.patch(enforced, {"spendCap": {"inputState": state}}, "spendCap.inputState")) == INVALID


def test_only_an_enforced_cap_is_lifted_and_only_once(budgets: Budgets, tell: Callable[..., Json]) -> None:
    name = budgets.create(CAP)["name"]

    early = budgets.patch(name, LIFT, "spendCap.inputState")
    spend(tell, 25)
    assert budgets.state(name) == "ENFORCED"
    lifted = budgets.patch(name, LIFT, "spendCap.inputState")
    assert budgets.state(name) == "AWAITING_NEXT_PERIOD"
    again = budgets.patch(name, LIFT, "spendCap.inputState")

    assert [refusal(early), lifted.status_code, refusal(again)] == [INVALID, 200, INVALID]


@pytest.mark.parametrize(("amount", "state"), [("20", "CONFIGURED"), ("24", "ENFORCED"), ("30", "CONFIGURED")])
def test_a_lifted_cap_is_armed_again_and_trips_only_above_its_old_amount(
    budgets: Budgets, enforced: str, amount: str, state: str
) -> None:
    budgets.patch(enforced, LIFT, "spendCap.inputState")
    assert budgets.state(enforced) == "AWAITING_NEXT_PERIOD"
    body = {"amount": {"specifiedAmount": {"units": amount}}}

    silent = budgets.patch(enforced, body)
    armed = budgets.patch(enforced, body | ARM, "amount,spendCap.inputState")

    assert refusal(silent) == INVALID
    assert armed.status_code == 200
    assert budgets.state(enforced) == state


@pytest.mark.parametrize(("lifts", "state"), [(False, "ENFORCED"), (True, "CONFIGURED")])
def test_the_next_period_arms_a_lifted_cap_and_leaves_an_enforced_one_unless_told(
    budgets: Budgets, tell: Callable[..., Json], enforced: str, lifts: bool, state: str
) -> None:
    tell("period", liftsEnforced=lifts)
    left = budgets.state(enforced)
    if state == "ENFORCED":
        budgets.patch(enforced, LIFT, "spendCap.inputState")
    tell("period")

    assert left == state
    assert budgets.state(enforced) == "CONFIGURED"


# Flakiness


def test_a_cap_that_is_there_may_be_not_found(budgets: Budgets, tell: Callable[..., Json]) -> None:
    name = budgets.create(CAP)["name"]
    tell("flaky", getNotFound=1, patchNotFound=1)

    gets = [budgets.ask("GET", name).status_code for _ in range(2)]
    patches = [budgets.patch(name, {"displayName": "x"}).status_code for _ in range(2)]

    assert gets == patches == [404, 200]


def test_a_list_may_omit_caps_alone(budgets: Budgets, tell: Callable[..., Json]) -> None:
    cap = budgets.create(CAP)["name"]
    alerts = budgets.create({"amount": {"specifiedAmount": {"units": "1"}}})["name"]
    tell("flaky", listOmitsCaps=1)

    lists = [budgets.ask("GET", f"{ACCOUNT}/budgets").json()["budgets"] for _ in range(2)]

    assert [[budget["name"] for budget in found] for found in lists] == [[alerts], [cap, alerts]]


def test_a_delete_may_not_stick(budgets: Budgets, tell: Callable[..., Json]) -> None:
    name = budgets.create(CAP)["name"]
    tell("flaky", deleteDoesNotStick=1)

    seen = [(budgets.ask("DELETE", name).status_code, budgets.ask("GET", name).status_code) for _ in range(2)]

    assert seen == [(200, 200), (200, 404)]


def test_a_lost_reply_leaves_what_was_done(budgets: Budgets, tell: Callable[..., Json]) -> None:
    tell("flaky", createDropped=1, patchUnavailable=1, deleteDropped=1)

    with pytest.raises(requests.ConnectionError):
        budgets.create(CAP)
    (found,) = budgets.ask("GET", f"{ACCOUNT}/budgets").json()["budgets"]
    patched = budgets.patch(found["name"], {"displayName": "x"})
    with pytest.raises(requests.ConnectionError):
        budgets.ask("DELETE", found["name"])

    assert refusal(patched) == (503, "UNAVAILABLE")
    assert budgets.ask("GET", found["name"]).status_code == 404


def test_a_script_and_a_log_work_as_of_the_other_standins(budgets: Budgets, standin: StandIn) -> None:
    standin.script({"for": "list", "status": 429})

    answer = budgets.ask("GET", f"{ACCOUNT}/budgets")
    budgets.ask("POST", f"{ACCOUNT}/budgets", CAP | {"ownershipScope": None})

    assert refusal(answer) == (429, "RESOURCE_EXHAUSTED")
    assert [entry["method"] for entry in standin.log()] == ["list", "create"]
    assert standin.log("create")[0]["refused"] == "ownershipScope is ALL_USERS"


# The official client


@pytest.fixture
def client(stack: Stack, standin: StandIn) -> budgets_v1.BudgetServiceClient:
    return budgets_v1.BudgetServiceClient(
        transport="rest",
        credentials=credentials(stack.standins_url),
        client_options={"api_endpoint": f"{stack.standins_url}/billingbudgets"},
    )


def test_the_official_client_creates_updates_lists_and_deletes(client: budgets_v1.BudgetServiceClient) -> None:
    wanted = budgets_v1.Budget(
        display_name="alerts",
        amount={"specified_amount": {"units": 5, "nanos": 500_000_000}},
        budget_filter={"services": [f"services/{FIRESTORE}"], "credit_types_treatment": 2},
        threshold_rules=[{"threshold_percent": 0.9, "spend_basis": 2}],
    )

    made = client.create_budget(parent=ACCOUNT, budget=wanted)
    renamed = client.update_budget(
        budget=budgets_v1.Budget(name=made.name, display_name="x", etag=made.etag),
        update_mask={"paths": ["display_name"]},
    )
    with pytest.raises(exceptions.BadRequest, match="Precondition check failed"):
        client.update_budget(budget=budgets_v1.Budget(name=made.name, display_name="y", etag=made.etag))
    listed = list(client.list_budgets(parent=ACCOUNT))
    client.delete_budget(name=made.name)

    assert made.budget_filter.calendar_period == budgets_v1.CalendarPeriod.MONTH
    assert made.amount.specified_amount.nanos == 500_000_000
    assert listed == [renamed]
    assert renamed.display_name == "x"
    with pytest.raises(exceptions.NotFound):
        client.get_budget(name=made.name)


def test_the_official_client_does_not_see_the_cap_of_a_budget(
    client: budgets_v1.BudgetServiceClient, budgets: Budgets
) -> None:
    name = budgets.create(CAP)["name"]

    assert "spend_cap" not in budgets_v1.Budget.meta.fields
    assert client.get_budget(name=name).display_name == "cap"


# Notices


@pytest.fixture
def publisher(stack: Stack, standin: StandIn) -> PublisherClient:
    """The topics' client over REST: the emulator behind the stand-in, which adds IAM."""
    account = credentials(stack.standins_url)
    return PublisherClient(transport=PublisherRestTransport(host=f"{stack.standins_url}/pubsub", credentials=account))


@pytest.fixture
def topic(publisher: PublisherClient, uid: str) -> Iterator[str]:
    name = f"projects/{PROJECT}/topics/{uid}"
    publisher.create_topic(name=name)
    yield name
    publisher.delete_topic(topic=name)


@pytest.fixture
def arrived(stack: Stack, topic: str) -> Iterator[Callable[[int], list[Json]]]:
    """Waits for so many messages, as the official client pulls them from the emulator."""
    account = credentials(stack.standins_url)
    transport = SubscriberRestTransport(host=f"http://{stack.pubsub_host}", credentials=account)
    with SubscriberClient(transport=transport) as subscriber:
        name = topic.replace("/topics/", "/subscriptions/")
        subscriber.create_subscription(name=name, topic=topic)
        yield lambda count: pulled(subscriber, name, count)
        subscriber.delete_subscription(subscription=name)


def pulled(subscriber: SubscriberClient, subscription: str, count: int) -> list[Json]:
    """The first messages, as many as wanted or as came in time."""
    messages: list[Json] = []
    deadline = time.monotonic() + 30
    while len(messages) < count and time.monotonic() < deadline:
        received = subscriber.pull(subscription=subscription, max_messages=100, timeout=30).received_messages
        messages += [
            {"attributes": dict(one.message.attributes), "data": json.loads(one.message.data)} for one in received
        ]
        if received:
            subscriber.acknowledge(subscription=subscription, ack_ids=[one.ack_id for one in received])
    return messages


def alerts(topic: str) -> Json:
    return {
        "displayName": "alerts",
        "budgetFilter": {"projects": [f"projects/{PROJECT}"], "services": [f"services/{FIRESTORE}"]},
        "amount": {"specifiedAmount": {"units": "10"}},
        "thresholdRules": THRESHOLDS,
        "notificationsRule": {"pubsubTopic": topic, "schemaVersion": "1.0"},
    }


def test_spend_is_told_to_the_topic_of_the_budget_that_counts_it(
    budgets: Budgets, tell: Callable[..., Json], topic: str, arrived: Callable[[int], list[Json]]
) -> None:
    name = budgets.create(alerts(topic))["name"]

    spend(tell, 4, FIRESTORE)
    spend(tell, 100, GEMINI, publish=False)
    spend(tell, 6, FIRESTORE, times=2)

    messages = arrived(3)
    costs = sorted(message["data"]["costAmount"] for message in messages)
    exceeded = [message["data"].get("alertThresholdExceeded") for message in messages]
    assert costs == [4.0, 6.0, 6.0]
    assert sorted(exceeded, key=str) == [0.5, 0.5, None]
    assert messages[0]["attributes"] == {
        "billingAccountId": "01D4EE-079462-DFD6EC",
        "budgetId": name.rpartition("/")[2],
        "schemaVersion": "1.0",
    }


def test_the_history_is_told_again_in_any_order_with_an_anomaly_among_it(
    budgets: Budgets, tell: Callable[..., Json], topic: str, arrived: Callable[[int], list[Json]]
) -> None:
    budgets.create(alerts(topic))
    for amount in (1, 2):
        spend(tell, amount, FIRESTORE)

    tell("notify", history=True, times=2, shuffle=True)
    tell("anomaly")

    messages = arrived(7)
    assert len(messages) == 7
    assert sum("budgetId" not in message["attributes"] for message in messages) == 1
    assert sorted(message["data"].get("costAmount", 0) for message in messages) == [0, 1, 1, 1, 2, 2, 2]


def test_a_budget_with_a_topic_grants_the_service_to_publish(
    budgets: Budgets, tell: Callable[..., Json], publisher: PublisherClient, topic: str
) -> None:
    budgets.create(alerts(topic))
    before = publisher.get_iam_policy(request={"resource": topic})
    publisher.set_iam_policy(request={"resource": topic, "policy": {"etag": before.etag}})

    told = spend(tell, 1, FIRESTORE)

    (binding,) = before.bindings
    assert binding.role == "roles/pubsub.publisher"
    assert list(binding.members) == ["serviceAccount:billing-budget-alert@system.gserviceaccount.com"]
    assert [notice["delivered"] for notice in told["notices"]] == [False]


def test_a_topic_must_exist_and_be_the_callers_to_share(
    budgets: Budgets, tell: Callable[..., Json], topic: str
) -> None:
    missing = budgets.ask("POST", f"{ACCOUNT}/budgets", alerts(f"{topic}-missing"))
    tell("deny", permissions=["pubsub.topics.setIamPolicy"])
    denied = budgets.ask("POST", f"{ACCOUNT}/budgets", alerts(topic))

    assert refusal(missing) == INVALID
    assert refusal(denied) == (403, "PERMISSION_DENIED")
    assert budgets.ask("GET", f"{ACCOUNT}/budgets").json() == {}


# Control


def test_a_budget_is_laid_under_its_id_told_of_and_taken_away(
    budgets: Budgets, tell: Callable[..., Json], topic: str, arrived: Callable[[int], list[Json]]
) -> None:
    tell("budget", id=ID, budget=CAP)

    laid = tell("budget", id=ID, budget=alerts(topic))["budgets"]
    spend(tell, 4, FIRESTORE)
    shown = budgets.get(laid[0])
    left = tell("budget", id=ID)["budgets"]

    assert (laid, left) == ([f"{ACCOUNT}/budgets/{ID}"], [])
    assert shown["displayName"] == "alerts"
    assert "spendCap" not in shown
    assert [message["attributes"]["budgetId"] for message in arrived(1)] == [ID]
    assert budgets.ask("GET", f"{ACCOUNT}/budgets").json() == {}


def test_a_budget_that_the_service_would_not_create_is_not_laid(budgets: Budgets, standin: StandIn) -> None:
    missing = alerts(f"projects/{PROJECT}/topics/missing")

    answer = call("POST", f"{standin.url}/_billing/budget", {"id": ID, "budget": missing})

    assert answer.status == 400
    assert "the topic exists" in answer.json["error"]["message"]
    assert budgets.ask("GET", f"{ACCOUNT}/budgets").json() == {}


@pytest.mark.parametrize(
    ("what", "fields", "named"),
    [
        ("spend", {"service": GEMINI, "amount": 1}, "project is required"),
        ("spend", {"project": "nobody", "service": GEMINI, "amount": 1}, "project is unknown"),
        ("spend", {"project": PROJECT, "service": "Gemini", "amount": 1}, "service is no id"),
        ("spend", {"project": PROJECT, "service": GEMINI, "amount": -1}, "amount is not negative"),
        ("spend", {"project": PROJECT, "service": GEMINI, "amount": "lots"}, "'amount' (TYPE_DOUBLE)"),
        ("spend", {"project": PROJECT, "service": GEMINI, "amount": 1, "time": 2}, 'Unknown name "time"'),
        ("notify", {"times": -1}, "times is not negative"),
        ("anomaly", {"topic": "t"}, "topic is projects/"),
        ("period", {"start": "soon"}, "start is a time"),
        ("account", {}, "account is required"),
        ("project", {"project": "demo-x", "account": "nobody"}, "account is unknown"),
        ("budget", {"id": "one"}, "id is a UUID"),
        ("budget", {"id": ID, "account": "nobody"}, "account is unknown"),
        ("budget", {"id": ID, "budget": {}}, "amount is required"),
        ("budget", {"id": ID, "budget": {"displayName": 1}}, "'budget.display_name' (TYPE_STRING)"),
        ("deny", {"permissions": ["create"]}, "permissions are like"),
        ("catalog", {"most": -1}, "most is at least 1"),
        ("flaky", {"getNotFound": -1}, "getNotFound is not negative"),
        ("flaky", {"get": 1}, 'Unknown name "get"'),
        ("topic", {"name": "t"}, "name is projects/"),
    ],
)
def test_bad_control_input_names_the_field(standin: StandIn, what: str, fields: Json, named: str) -> None:
    answer = call("POST", f"{standin.url}/_billing/{what}", fields)

    assert answer.status == 400
    assert named in answer.json["error"]["message"]


def test_reset_forgets_everything(budgets: Budgets, tell: Callable[..., Json], standin: StandIn) -> None:
    budgets.create(CAP)
    spend(tell, 100)
    tell("deny", permissions=["billing.budgets.list"])
    tell("flaky", createUnavailable=5)

    standin.reset()

    assert budgets.ask("GET", f"{ACCOUNT}/budgets").json() == {}
    assert budgets.create(CAP)["spendCap"]["outputState"] == "CONFIGURED"
    assert (
        "reconciling"
        not in budgets.get(budgets.ask("GET", f"{ACCOUNT}/budgets").json()["budgets"][0]["name"])["spendCap"]
    )
