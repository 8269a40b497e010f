"""A project to provision, as the tests reach into it."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.auth.transport.requests import AuthorizedSession
from google.cloud import firestore

from scripts.local.layout import PROJECT
from scripts.local.wire import call
from scripts.provision.__main__ import main
from scripts.provision.budgets import Patience
from scripts.provision.clock import Clock
from scripts.provision.session import Making
from tests.e2e.budgets import ACCOUNT, Json
from tests.e2e.provision.faults import Fate, doomed, known

NOTHING, WRONG, TO_DO = 0, 1, 2
DONE = NOTHING
CAPS = {"gemini": "20 USD", "functions": "10.50 USD"}
SERVICES = {"gemini": "AEFD-7695-64FA", "functions": "29E7-DA93-CA13", "run": "152E-C115-5142"}
FIRESTORE = "EE2C-7FAC-5E08"
# Most tests are about the money; rights and TTL policies have tests of their own.
MONEY = ("--only", "caps", "--only", "topic", "--only", "budgets")
_READS = ("get", "list", "getIamPolicy", "testIamPermissions", "getBillingInfo")


@dataclass(slots=True, kw_only=True)
class World:
    """One project, at first with nothing provisioned, and a file that says what is wanted.

    Attributes:
        slept: what the runs would have slept, in seconds; no time passes.
        wall: the time of day, in seconds, as the runs see it.
    """

    standins: str
    firestore_host: str
    store: firestore.Client
    file: Path
    topic: str
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    patience: Patience = field(default_factory=Patience)
    slept: list[float] = field(default_factory=list)
    wall: Callable[[], float] = time.time

    def reset(self) -> None:
        assert call("POST", f"{self.standins}/_reset").status == 200
        self.store.document("ops/caps").delete()
        self.ask("DELETE", f"pubsub/v1/projects/{PROJECT}/topics/{self.topic}")
        assert call("POST", f"{self.standins}/_reset").status == 200

    def write(self, caps: Mapping[str, str] | None = None, *, alert: str | None = "5 USD", more: str = "") -> None:
        """The file, with these caps and one alert budget of this amount, if any."""
        lines = [f'project = "{PROJECT}"', f'billing_account = "{ACCOUNT.removeprefix("billingAccounts/")}"']
        lines += [f'topic = "{self.topic}"', "[caps]"]
        lines += [f'{key} = "{amount}"' for key, amount in (CAPS if caps is None else caps).items()]
        if alert:
            lines += ["[budgets.firestore]", 'service = "firestore"', f'amount = "{alert}"']
            lines += ["thresholds = [0.5, 0.9, 1.0]", "forecast = [1.0]"]
        self.file.write_text("\n".join([*lines, more]) + "\n")

    def run(self, command: str, *arguments: str, standins: str | None = None, fate: Fate | None = None) -> int:
        """One run, in this process; its exit status."""
        self.monkeypatch.setenv("FIREBREAK_STANDINS", standins or self.standins)
        self.monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", self.firestore_host)
        account = known(self.standins)
        making = Making(
            login=doomed(account, fate) if fate else lambda _where, _project: account,
            clock=Clock(sleep=self.slept.append, uniform=lambda low, _: low, wall=self.wall),
            patience=self.patience,
        )
        return main([command, *arguments, "--file", str(self.file)], making)

    def apply(self, *options: str, standins: str | None = None, fate: Fate | None = None) -> int:
        return self.run("apply", "--yes", *(options or MONEY), standins=standins, fate=fate)

    def told(self) -> str:
        """What the runs have printed since this was asked last."""
        out, err = self.capsys.readouterr()
        return out + err

    def json(self, *arguments: str) -> tuple[int, Json]:
        """The exit status, and the JSON on stdout, which must hold nothing else."""
        self.told()
        status = self.run(*arguments, "--json")
        return status, dict(json.loads(self.capsys.readouterr().out))

    def tell(self, what: str, **fields: object) -> None:
        """Steer the billing stand-in."""
        answer = call("POST", f"{self.standins}/_billing/{what}", fields)
        assert answer.status == 200, answer.body

    def script(self, service: str, *replies: Json) -> None:
        answer = call("POST", f"{self.standins}/_script/{service}", list(replies))
        assert answer.status == 200, answer.body

    def ask(self, method: str, path: str, body: object = None, **query: object) -> Json:
        session = AuthorizedSession(known(self.standins))  # type: ignore[no-untyped-call]  # as it ships
        answer = session.request(  # type: ignore[no-untyped-call]  # as it ships
            method, f"{self.standins}/{path}", json=body, params=query, timeout=10
        )
        return dict(answer.json())

    def make(self, **fields: object) -> str:
        """A budget that somebody else made; its name."""
        return str(self.ask("POST", f"billingbudgets/v1/{ACCOUNT}/budgets", fields)["name"])

    def budgets(self) -> list[Json]:
        return list(self.ask("GET", f"billingbudgets/v1/{ACCOUNT}/budgets").get("budgets", []))

    def cap(self, key: str) -> Json:
        """The one budget of a service, a cap."""
        (found,) = (b for b in self.budgets() if b["budgetFilter"]["services"] == [f"services/{SERVICES[key]}"])
        assert "spendCap" in found
        return dict(found)

    def state(self, key: str) -> str:
        while (cap := self.cap(key)["spendCap"]).get("reconciling"):
            pass
        return str(cap["outputState"])

    def alert(self) -> Json:
        """The one budget of Firestore."""
        (found,) = (b for b in self.budgets() if b["budgetFilter"].get("services") == [f"services/{FIRESTORE}"])
        assert "spendCap" not in found
        return dict(found)

    def spend(self, key: str, amount: float) -> None:
        self.tell("spend", project=PROJECT, service=SERVICES[key], amount=amount, publish=False)

    def record(self) -> Json:
        return dict(self.store.document("ops/caps").get().to_dict() or {})

    def log(self, method: str, service: str = "billing") -> list[Json]:
        found: list[Any] = call("GET", f"{self.standins}/_log/{service}").json
        return [entry for entry in found if entry["method"] == method]

    def changes(self) -> Counter[str]:
        """The requests so far that change something, by method."""
        log = [entry for name in ("billing", "admin") for entry in call("GET", f"{self.standins}/_log/{name}").json]
        # What is passed to the Pub/Sub emulator has one method for all.
        reads = [
            e for e in log if e["method"].rpartition(".")[2] in _READS or (e["method"] == "pubsub" and not e["body"])
        ]
        return Counter(entry["method"] for entry in log if entry not in reads)

    def settled_at(self, key: str, units: str) -> None:
        assert self.cap(key)["amount"]["specifiedAmount"]["units"] == units
        assert self.run("plan", *MONEY) == NOTHING

    def settled(self) -> None:
        """One cap for each service, one alert, nothing else, and nothing left to do."""
        for key in CAPS:
            assert self.cap(key)["spendCap"]["outputState"] == "CONFIGURED"
        assert self.alert()["notificationsRule"]["pubsubTopic"].endswith(self.topic)
        assert len(self.budgets()) == len(CAPS) + 1
        assert self.run("plan", *MONEY) == NOTHING
