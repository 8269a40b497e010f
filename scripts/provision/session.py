"""One command at work: the file, the project that it means, the clients, and what its failures mean."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from google.auth.credentials import Credentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud import firestore

from scripts import worst_day
from scripts.local.inject.raw_firestore import raw
from scripts.local.layout import ROOT
from scripts.local.progress import Say
from scripts.provision import clients, config, desired, ground, permissions, report, ttl
from scripts.provision.api import Api
from scripts.provision.budgets import Budgets, Patience
from scripts.provision.clock import Clock
from scripts.provision.config import Config
from scripts.provision.desired import Wanted
from scripts.provision.ground import Ground
from scripts.provision.hosts import FIRESTORE, Hosts, hosts
from scripts.provision.login import login
from scripts.provision.look import Looker
from scripts.provision.rights import Rights
from scripts.provision.state import Record
from scripts.provision.topic import Topics
from scripts.provision.ttl import Ttl
from scripts.provision.work import Worker

type Login = Callable[[Hosts, str], Credentials]


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What a session is made with: whose rights, which clock, how much patience."""

    login: Login = login
    clock: Clock = field(default_factory=Clock)
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a command works with."""

    config: Config
    hosts: Hosts
    api: Api
    store: firestore.Client
    worker: Worker

    @property
    def edges(self) -> Looker:
        return self.worker.edges

    def survey(self) -> tuple[Ground, Wanted]:
        """The ground, and what the file wants on it; raises as `ground.survey`."""
        self.edges.say("looking at the project, its billing account and the catalog")
        found = ground.survey(self.api, self.hosts, self.config)
        groups = ttl.groups(ROOT / "firestore.indexes.json")
        return found, desired.wanted(self.config, number=found.number, ttl=groups)

    def granted(self) -> frozenset[permissions.Need] | None:
        """What the caller may do; None where that is not told."""
        self.edges.say("looking at what you may do")
        return permissions.granted(self.api, self.hosts, self.config)

    def report(self) -> list[str]:
        self.edges.say("looking at App Check and API keys")
        return [
            *report.counted(self.config),
            *report.report(self.api, self.hosts, self.config.project),
            *worst_day.of_project(self.config.project),
        ]


def connect(file: Path, *, local: bool, say: Say, making: Making) -> Session:
    """Read the file and make the clients; nothing is sent yet.

    Raises:
        BadFile: the file is wrong.
        WrongTarget: the project could be a real one or one of the emulators.
        Failed: there are no credentials.
    """
    wants = config.read(file)
    where = hosts(wants.project, os.environ, local=local)
    credentials, clock = making.login(where, wants.project), making.clock
    api = Api(AuthorizedSession(credentials), clock)  # type: ignore[no-untyped-call]  # it has no types
    store = _firestore(wants.project, where, credentials)
    edges = Looker(
        budgets=Budgets(
            api,
            where.of("billingbudgets"),
            account=f"billingAccounts/{wants.billing_account}",
            project=wants.project,
            patience=making.patience,
            say=say,
        ),
        record=Record(store, clock),
        topics=Topics(clients.publisher(credentials, where.of("pubsub")), clock),
        rights=Rights(api, where, wants.project),
        ttl=Ttl(api, where, wants.project),
        say=say,
    )
    client = clients.budget_service(credentials, where.of("billingbudgets"))
    return Session(config=wants, hosts=where, api=api, store=store, worker=Worker(edges=edges, client=client))


def _firestore(project: str, where: Hosts, credentials: Credentials) -> firestore.Client:
    """No request of a user is under way here, so nothing meters it."""
    if where.firestore is None:
        return raw(firestore.Client(project=project, credentials=credentials), "provisioning serves no request")
    # The SDK takes the emulator's address from the environment alone.
    os.environ[FIRESTORE] = where.firestore
    return raw(firestore.Client(project=project), "provisioning serves no request")
