"""The APIs of a Google Cloud project that have no emulator, each under its own prefix, since their paths collide.

| prefix | API | module |
|---|---|---|
| `/billingbudgets/v1` | Cloud Billing Budget: budgets and spend caps | `billing.api` |
| `/cloudbilling/v1` | Cloud Billing: accounts, who pays for a project, the catalog | `billing.account_api` |
| `/pubsub/v1` | Pub/Sub: IAM of topics; the rest is passed to the emulator | `admin.pubsub_api` |
| `/iam/v1` | service accounts and their IAM | `admin.service_accounts` |
| `/cloudresourcemanager/v1` | projects and their IAM | `admin.project_api` |
| `/run/v2` | IAM of the services of Cloud Run | `admin.project_api` |
| `/secretmanager/v1` | secrets and their IAM, never their values | `admin.project_api` |
| `/apikeys/v2` | the list of API keys, never the keys | `admin.project_api` |
| `/firebaseappcheck/v1` | the list of services and their enforcement | `admin.project_api` |
| `/firestore/v1` | Firestore Admin: TTL policies | `admin.firestore` |
| `/serviceusage/v1` | enabled APIs | `admin.service_usage` |

Every request needs a token of the issuer, and its API enabled. Log and script of the first two are `billing`, of the
others `admin`. The control endpoints are in `billing.control`, `billing.notices` and `admin.control`.
"""

from typing import Protocol

from aiohttp import web

from scripts.local.standins.admin.control import AdminControl
from scripts.local.standins.admin.firestore import FirestoreAdmin
from scripts.local.standins.admin.iam import Policies
from scripts.local.standins.admin.iam_api import IamApi, Kind, Resource
from scripts.local.standins.admin.project_api import PROJECT_PATH, SECRET_PATH, SERVICE_PATH, Contents, ProjectApi
from scripts.local.standins.admin.pubsub_api import TOPIC_PATH, PubsubApi
from scripts.local.standins.admin.pubsub_topics import Topics
from scripts.local.standins.admin.service_accounts import (
    ACCOUNT_PATH,
    ServiceAccountApi,
    ServiceAccounts,
)
from scripts.local.standins.admin.service_usage import Enabled, ServiceUsage
from scripts.local.standins.api import Api
from scripts.local.standins.billing import api as billing
from scripts.local.standins.billing.account_api import BILLING_ACCOUNT_PATH, BillingAccountApi
from scripts.local.standins.billing.accounts import Accounts
from scripts.local.standins.billing.api import Billing
from scripts.local.standins.billing.budgets import Budgets
from scripts.local.standins.billing.catalog import Catalog
from scripts.local.standins.billing.control import BillingControl
from scripts.local.standins.billing.flaky import Flaky
from scripts.local.standins.billing.notices import BillingNotices
from scripts.local.standins.billing.spend import Ledger
from scripts.local.standins.oauth import Issuer
from scripts.local.standins.script import Script


class _Part(Protocol):
    def routes(self) -> list[web.RouteDef]: ...


class _State(Protocol):
    def reset(self) -> None: ...


class Cloud:
    """Their state, and the routes over it."""

    def __init__(self, issuer: Issuer, pubsub_host: str) -> None:
        self.scripts = {"billing": Script(methods=frozenset(billing.METHODS)), "admin": Script(methods=frozenset())}
        self._issuer, self._enabled, self._accounts = issuer, Enabled(), Accounts()
        self._service_accounts, self._contents = ServiceAccounts(self._accounts), Contents()
        self._topics, self._policies = Topics(pubsub_host), Policies(self._service_accounts.is_missing)
        self._states: list[_State] = [self._enabled, self._accounts, self._service_accounts, self._contents]
        self._states += [self._topics, self._policies]
        self._parts: list[_Part] = [*self._billing(), *self._admin()]

    def routes(self) -> list[web.RouteDef]:
        return [route for part in self._parts for route in part.routes()]

    def reset(self) -> None:
        for state in self._states:
            state.reset()

    def _billing(self) -> list[_Part]:
        accounts, topics, policies = self._accounts, self._topics, self._policies
        catalog, ledger, flaky = Catalog(), Ledger(), Flaky()
        budgets = Budgets(accounts, catalog, ledger)
        notices = BillingNotices(ledger, budgets, accounts, catalog, topics=topics, policies=policies)
        self._states += [catalog, ledger, flaky, budgets, notices]
        api, payers = self._api("billingbudgets", "billing"), self._api("cloudbilling", "billing")
        account_api = BillingAccountApi(payers, accounts, catalog)
        billing = Billing(api, budgets, accounts, topics=topics, policies=policies, flaky=flaky)
        return [
            billing,
            account_api,
            self._iam(payers, BILLING_ACCOUNT_PATH, "billing.accounts", account_api.resource),
            BillingControl(accounts, catalog, budgets, topics=topics, flaky=flaky, connect=billing.connect),
            notices,
        ]

    def _admin(self) -> list[_Part]:
        accounts, service_accounts = self._accounts, self._service_accounts
        pubsub, manager, secrets = self._api("pubsub"), self._api("cloudresourcemanager"), self._api("secretmanager")
        topics = PubsubApi(pubsub, self._topics, self._policies)
        lists = {"keys": self._api("apikeys"), "app_check": self._api("firebaseappcheck")}
        project = ProjectApi(accounts, self._contents, manager=manager, secrets=secrets, **lists)
        iam = ServiceAccountApi(self._api("iam"), accounts, service_accounts)
        firestore = FirestoreAdmin(self._api("firestore"), accounts)
        usage = ServiceUsage(self._api("serviceusage"), accounts, self._enabled)
        self._states += [firestore, usage]
        return [
            self._iam(manager, PROJECT_PATH, "resourcemanager.projects", project.project, reads_by="POST"),
            self._iam(secrets, SECRET_PATH, "secretmanager.secrets", project.secret),
            self._iam(self._api("run"), SERVICE_PATH, "run.services", project.service),
            self._iam(self._api("iam"), ACCOUNT_PATH, "iam.serviceAccounts", iam.resource, reads_by="POST"),
            self._iam(pubsub, TOPIC_PATH, "pubsub.topics", topics.resource),
            *(project, iam, firestore, usage, AdminControl(self._enabled, self._contents), topics),
        ]

    def _iam(self, api: Api, path: str, permission: str, resource: Resource, *, reads_by: str = "GET") -> IamApi:
        kind = Kind(path=path, permission=permission, resource=resource, reads_by=reads_by)
        return IamApi(api, kind, self._accounts, self._policies)

    def _api(self, service: str, script: str = "admin") -> Api:
        name = f"{service}.googleapis.com"
        return Api(name, issuer=self._issuer, script=self.scripts[script], switchboard=self._enabled)
