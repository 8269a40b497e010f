"""Google's REST APIs over one authorized session: reads are repeated, everything else is sent once."""

from collections.abc import Mapping
from typing import Any

import requests
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession

from scripts.provision.clock import Clock
from scripts.provision.failure import Failed, NoAnswer, Refusal

type Params = Mapping[str, str | int]

_TIMEOUT_S = 30
_READ_TRIES = 5
_BROKEN = frozenset({408, 499, 500, 502, 503, 504})


class Api:
    """One caller's session."""

    def __init__(self, session: AuthorizedSession, clock: Clock) -> None:
        self._session: requests.Session = session
        self.clock = clock

    def get(self, url: str, params: Params | None = None) -> dict[str, Any]:
        """Read, again after 1, 2, 4 and 8 seconds if no answer comes or the quota is used up.

        Raises:
            Refusal: the service said no.
            NoAnswer: it never said anything.
        """
        return self._insist("GET", url, None, params)

    def read(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """As `get`, for what is read by a POST."""
        return self._insist("POST", url, body, None)

    def _insist(self, method: str, url: str, body: Mapping[str, Any] | None, params: Params | None) -> dict[str, Any]:
        for number in range(_READ_TRIES - 1):
            try:
                return self.send(method, url, body, params=params)
            except NoAnswer:
                pass
            except Refusal as error:
                if error.status != 429:
                    raise
            self.clock.sleep(2**number)
        return self.send(method, url, body, params=params)

    def send(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Params | None = None,
    ) -> dict[str, Any]:
        """One request, one answer; never repeated here.

        Raises:
            Refusal: the service said no.
            NoAnswer: nobody knows whether it was done.
            Failed: nothing was sent, for want of credentials.
        """
        what = f"{method} {url}"
        try:
            answer = self._session.request(
                method, url, params=params, json=body, timeout=_TIMEOUT_S, allow_redirects=False
            )
        except (requests.RequestException, TransportError) as error:
            raise NoAnswer(f"{what}: no answer ({type(error).__name__})") from error
        except GoogleAuthError as error:
            raise Failed(
                f"the credentials are not taken: {error}; run `gcloud auth application-default login`"
            ) from error
        if answer.status_code in _BROKEN:
            raise NoAnswer(f"{what}: Google answered {answer.status_code}")
        found = _json(answer, what)
        if not answer.ok:
            raise _refusal(what, answer.status_code, found)
        return found


def _json(answer: requests.Response, what: str) -> dict[str, Any]:
    """The answer's object.

    Raises:
        NoAnswer: a cut or foreign body, which tells nothing.
    """
    try:
        found = answer.json() if answer.content else {}
    except requests.JSONDecodeError as error:
        if not answer.ok:
            return {}
        raise NoAnswer(f"{what}: the answer is not JSON") from error
    return found if isinstance(found, dict) else {}


def _refusal(what: str, status: int, found: Mapping[str, Any]) -> Refusal:
    error = found.get("error")
    error = error if isinstance(error, dict) else {}
    return Refusal(
        what,
        status=status,
        code=str(error.get("status", "")),
        message=str(error.get("message", "")),
        disabled=_disabled(error.get("details")),
    )


def _disabled(details: object) -> str:
    """The API that is not enabled, as google.rpc.ErrorInfo names it."""
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and detail.get("reason") == "SERVICE_DISABLED":
            return str(detail.get("metadata", {}).get("service", ""))
    return ""
