"""The other stand-ins of Google Cloud, as provisioning sees them: accounts, catalog, IAM, TTL, enabled APIs."""

from collections.abc import Callable, Iterator

import pytest
import requests
from google.api_core import exceptions
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherRestTransport

from scripts.local.layout import PROJECT
from scripts.local.stack import Stack
from scripts.local.wire import call
from tests.conftest import StandIn
from tests.e2e.budgets import ACCOUNT, INVALID, PRECONDITION, Json, Session, credentials, refusal

GEMINI, FIRESTORE = "AEFD-7695-64FA", "EE2C-7FAC-5E08"


@pytest.fixture
def standin(stack: Stack) -> Iterator[StandIn]:
    """The stand-ins of what provisioning asks, as they are at first."""
    standin = StandIn(url=stack.standins_url, service="admin")
    standin.reset()
    yield standin
    standin.reset()


@pytest.fixture
def tell(standin: StandIn) -> Callable[..., Json]:
    """Steers the stand-in: `tell("spend", project=…)`."""

    def tell(what: str, **fields: object) -> Json:
        answer = call("POST", f"{standin.url}/_billing/{what}", fields)
        assert answer.status == 200, answer.body
        return dict(answer.json)

    return tell


@pytest.fixture
def ask(stack: Stack, standin: StandIn) -> Callable[..., requests.Response]:
    """One request to any of the APIs: `ask("GET", "iam/v1/…")`."""

    return Session(stack.standins_url).ask


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


def test_the_catalog_comes_in_pages_and_a_service_can_be_renamed_or_dropped(
    ask: Callable[..., requests.Response], tell: Callable[..., Json]
) -> None:
    tell("catalog", most=4)
    tell("catalog", service=GEMINI, displayName="Renamed")
    tell("catalog", service=FIRESTORE, drop=True)

    found: dict[str, str] = {}
    token, pages = "", 0
    while pages == 0 or token:
        page = ask("GET", "cloudbilling/v1/services", pageSize=5000, pageToken=token).json()
        found |= {service["serviceId"]: service["displayName"] for service in page["services"]}
        token, pages = page.get("nextPageToken", ""), pages + 1

    assert pages > 1
    assert found[GEMINI] == "Renamed"
    assert found["6F81-5844-456A"] == "Compute Engine"
    assert FIRESTORE not in found


def test_an_account_says_who_it_is_and_what_it_pays_for(
    ask: Callable[..., requests.Response], tell: Callable[..., Json]
) -> None:
    tell("account", account="0AAAAA-0BBBBB-0CCCCC", currency="EUR", open=False)
    tell("project", project="demo-other", account="0AAAAA-0BBBBB-0CCCCC")
    tell("project", project="demo-poor", account="")
    tell("deny", permissions=["billing.budgets.configureSpendCap"])
    wanted = ["billing.budgets.create", "billing.budgets.configureSpendCap"]

    account = ask("GET", "cloudbilling/v1/billingAccounts/0AAAAA-0BBBBB-0CCCCC").json()
    infos = [
        ask("GET", f"cloudbilling/v1/projects/{project}/billingInfo").json()
        for project in (PROJECT, "demo-other", "demo-poor")
    ]
    allowed = ask("POST", f"cloudbilling/v1/{ACCOUNT}:testIamPermissions", {"permissions": wanted}).json()

    assert account["currencyCode"] == "EUR"
    assert [info.get("billingEnabled", False) for info in infos] == [True, False, False]
    assert [info["billingAccountName"] for info in infos] == [ACCOUNT, "billingAccounts/0AAAAA-0BBBBB-0CCCCC", ""]
    assert allowed == {"permissions": ["billing.budgets.create"]}


def test_a_policy_is_written_only_over_the_one_that_was_read(publisher: PublisherClient, topic: str) -> None:
    read = publisher.get_iam_policy(request={"resource": topic})
    read.bindings.add(role="roles/pubsub.viewer", members=["user:a@example.com"])

    written = publisher.set_iam_policy(request={"resource": topic, "policy": read})

    assert publisher.get_iam_policy(request={"resource": topic}) == written
    with pytest.raises(exceptions.Conflict, match="concurrent policy changes"):
        publisher.set_iam_policy(request={"resource": topic, "policy": read})
    # The client sends an etag back byte by byte as it got it.
    publisher.set_iam_policy(request={"resource": topic, "policy": written})


def test_a_service_account_is_created_once_and_gets_roles(ask: Callable[..., requests.Response]) -> None:
    accounts, project = f"iam/v1/projects/{PROJECT}/serviceAccounts", f"cloudresourcemanager/v1/projects/{PROJECT}"
    body = {"accountId": "firebreak-run", "serviceAccount": {"displayName": "Runs the functions"}}

    def grant(member: str) -> requests.Response:
        policy = ask("POST", f"{project}:getIamPolicy", {}).json()
        bindings = [{"role": "roles/datastore.user", "members": [f"serviceAccount:{member}"]}]
        return ask("POST", f"{project}:setIamPolicy", {"policy": {"etag": policy["etag"], "bindings": bindings}})

    too_early = grant(f"firebreak-run@{PROJECT}.iam.gserviceaccount.com")
    email = ask("POST", accounts, body).json()["email"]

    assert refusal(too_early) == INVALID
    assert refusal(ask("POST", accounts, body)) == (409, "ALREADY_EXISTS")
    assert ask("GET", f"{accounts}/{email}").json()["displayName"] == "Runs the functions"
    assert email in [account["email"] for account in ask("GET", accounts).json()["accounts"]]
    assert grant(email).status_code == 200
    assert refusal(ask("POST", accounts, {"accountId": "X"})) == INVALID
    assert refusal(ask("GET", f"{accounts}/nobody@example.com")) == (404, "NOT_FOUND")


def test_a_secret_that_is_there_has_a_policy(ask: Callable[..., requests.Response]) -> None:
    secrets = f"secretmanager/v1/projects/{PROJECT}/secrets"

    assert ask("GET", f"{secrets}/GEMINI_API_KEY:getIamPolicy").json() == {"etag": "ACAB"}
    assert refusal(ask("GET", f"{secrets}/NO_KEY:getIamPolicy")) == (404, "NOT_FOUND")


def test_a_service_of_cloud_run_has_a_policy_once_it_is_deployed(ask: Callable[..., requests.Response]) -> None:
    services = f"run/v2/projects/{PROJECT}/locations/us-central1/services"
    policy = {"bindings": [{"role": "roles/run.invoker", "members": ["allUsers"]}]}

    assert ask("GET", f"{services}/on-budget-alert:getIamPolicy").json() == {"etag": "ACAB"}
    assert ask("POST", f"{services}/on-budget-alert:setIamPolicy", {"policy": policy}).status_code == 200
    assert ask("GET", f"{services}/on-budget-alert:getIamPolicy").json()["bindings"] == policy["bindings"]
    assert refusal(ask("GET", f"{services}/generate:getIamPolicy")) == (404, "NOT_FOUND")
    elsewhere = f"{services.replace('us-central1', 'europe-west1')}/on-budget-alert:setIamPolicy"
    assert refusal(ask("POST", elsewhere, {"policy": policy})) == (404, "NOT_FOUND")
    assert ask("POST", f"{services}/on-budget-alert:getIamPolicy", {}).status_code == 405
    nobody = f"serviceAccount:firebreak-nobody@{PROJECT}.iam.gserviceaccount.com"
    unknown = {"bindings": [{"role": "roles/run.invoker", "members": [nobody]}]}
    assert refusal(ask("POST", f"{services}/on-budget-alert:setIamPolicy", {"policy": unknown})) == INVALID


def test_a_ttl_policy_is_active_once_its_operation_is_done(ask: Callable[..., requests.Response]) -> None:
    database = f"firestore/v1/projects/{PROJECT}/databases/(default)"
    field = f"{database}/collectionGroups/calls/fields/expireAt"

    before = ask("GET", field).json()
    operation = ask("PATCH", field, {"ttlConfig": {}}, updateMask="ttlConfig").json()["name"]
    while not ask("GET", f"firestore/v1/{operation}").json().get("done"):
        assert ask("GET", field).json()["ttlConfig"] == {"state": "CREATING"}

    assert "ttlConfig" not in before
    assert ask("GET", field).json()["ttlConfig"] == {"state": "ACTIVE"}
    second = ask("PATCH", field.replace("expireAt", "other"), {"ttlConfig": {}}, updateMask="ttlConfig")
    assert refusal(second) == PRECONDITION


def test_a_project_holds_what_the_control_says(ask: Callable[..., requests.Response], standin: StandIn) -> None:
    state = {
        "appCheck": {"firestore.googleapis.com": "ENFORCED"},
        "apiKeys": [{"displayName": "Browser key", "restrictions": {"browserKeyRestrictions": {}}}],
    }
    services, keys = (
        f"firebaseappcheck/v1/projects/{PROJECT}/services",
        f"apikeys/v2/projects/{PROJECT}/locations/global/keys",
    )

    before = ask("GET", services).json()
    call("POST", f"{standin.url}/_admin/state", state)

    assert before == {}
    assert [service["enforcementMode"] for service in ask("GET", services).json()["services"]] == ["ENFORCED"]
    assert ask("GET", keys).json()["keys"][0]["displayName"] == "Browser key"


def test_an_api_answers_once_it_is_enabled(ask: Callable[..., requests.Response], standin: StandIn) -> None:
    call("POST", f"{standin.url}/_admin/state", {"enabled": ["serviceusage.googleapis.com"]})
    listing = f"serviceusage/v1/projects/{PROJECT}/services"

    refused = ask("GET", f"billingbudgets/v1/{ACCOUNT}/budgets")
    wanted = {"serviceIds": ["billingbudgets.googleapis.com"]}
    operation = ask("POST", f"{listing}:batchEnable", wanted).json()["name"]
    done = ask("GET", f"serviceusage/v1/{operation}").json()["done"]

    assert refusal(refused) == (403, "PERMISSION_DENIED")
    assert refused.json()["error"]["details"][0]["reason"] == "SERVICE_DISABLED"
    assert done
    assert ask("GET", f"billingbudgets/v1/{ACCOUNT}/budgets").json() == {}
    enabled = ask("GET", listing, filter="state:ENABLED").json()["services"]
    assert {service["config"]["name"] for service in enabled} == {"serviceusage.googleapis.com", *wanted["serviceIds"]}
    assert ask("POST", f"{listing}:batchEnable", wanted).json() == {
        "name": "operations/noop.DONE_OPERATION",
        "done": True,
    }
