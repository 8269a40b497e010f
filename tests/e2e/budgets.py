"""Hands for the tests of the cloud stand-ins: the local service account, and the Budget API over plain REST."""

import json
from typing import Any

import requests
from google.auth.transport.requests import AuthorizedSession
from google.oauth2 import service_account

from scripts.local.layout import Layout

type Json = dict[str, Any]

ACCOUNT = "billingAccounts/01D4EE-079462-DFD6EC"
INVALID, PRECONDITION = (400, "INVALID_ARGUMENT"), (400, "FAILED_PRECONDITION")
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


def credentials(standins_url: str) -> service_account.Credentials:
    """Of the local service account, with the token endpoint of these stand-ins."""
    known = json.loads(Layout().service_account.read_text()) | {"token_uri": f"{standins_url}/token"}
    made: service_account.Credentials = service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]  # as it ships
        known, scopes=_SCOPES
    )
    return made


class Session:
    """An AuthorizedSession of the local service account, for paths below a prefix."""

    def __init__(self, standins_url: str, prefix: str = "") -> None:
        self._url = f"{standins_url}{prefix}"
        self._http = AuthorizedSession(credentials(standins_url))  # type: ignore[no-untyped-call]  # as it ships

    def ask(self, method: str, path: str, body: object = None, **query: object) -> requests.Response:
        answer: requests.Response = self._http.request(  # type: ignore[no-untyped-call]  # as it ships
            method, f"{self._url}/{path}", json=body, params=query, timeout=10
        )
        return answer


def refusal(answer: requests.Response) -> tuple[int, str]:
    """Its status as a number and in words."""
    return answer.status_code, answer.json()["error"]["status"]


class Budgets(Session):
    """The Budget API over an AuthorizedSession, as provisioning speaks it."""

    def __init__(self, standins_url: str) -> None:
        super().__init__(standins_url, "/billingbudgets/v1")

    def create(self, body: Json) -> Json:
        answer = self.ask("POST", f"{ACCOUNT}/budgets", body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def get(self, name: str) -> Json:
        return dict(self.ask("GET", name).json())

    def state(self, name: str) -> str:
        """Where its cap rests."""
        while (cap := self.get(name)["spendCap"]).get("reconciling"):
            pass
        return str(cap["outputState"])

    def patch(self, name: str, body: Json, mask: str = "") -> requests.Response:
        return self.ask("PATCH", name, body, **({"updateMask": mask} if mask else {}))
