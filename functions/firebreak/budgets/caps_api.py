"""A spend cap as the Cloud Billing Budget API shows it: polling is the only signal a program can have of it."""

from collections.abc import Mapping
from typing import Any

from google.auth.exceptions import GoogleAuthError
from requests import RequestException, Session

from firebreak.bucket.tries import Clock
from firebreak.deadline import Late, within

GET_S = 8.0
# The preview answers 404 for caps that exist, now and then.
TRIES = 4
PAUSE_S = 2.0
_GOOGLE = "https://billingbudgets.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class CapUnreadable(Exception):
    """The API gives no usable answer for a cap; the text is for the log."""


class CapsApi:
    """Reads caps, as the function's own service account; `host` is where a stand-in is, None for Google."""

    def __init__(self, *, host: str | None, get_s: float = GET_S, clock: Clock | None = None) -> None:
        self._root = f"http://{host}/billingbudgets" if host else _GOOGLE
        self._get_s = get_s
        self._clock = clock or Clock()
        self._session: Session | None = None

    def budget(self, name: str) -> Mapping[str, Any]:
        """The budget of this name.

        Raises:
            CapUnreadable: it cannot be read, also not at another try where that may help.
        """
        for number in range(TRIES):
            if number:
                self._clock.sleep(self._clock.uniform(PAUSE_S / 2, PAUSE_S))
            status, body = self._get(f"{self._root}/v1/{name}")
            if status != 404:
                break
        if status != 200:
            raise CapUnreadable(f"HTTP {status}")
        if not isinstance(body, dict):
            raise CapUnreadable("not a JSON object")
        return body

    def _get(self, url: str) -> tuple[int, object]:
        try:
            # Of the whole, a new token included: the library's own timeouts bound each wait, and there are several.
            answer = within(self._get_s, lambda: self._connected().get(url, timeout=self._get_s, allow_redirects=False))
            return answer.status_code, answer.json() if answer.status_code == 200 else None
        except (Late, RequestException, GoogleAuthError, ValueError) as error:
            raise CapUnreadable(type(error).__name__) from error

    def _connected(self) -> Session:
        if self._session is None:
            import google.auth
            from google.auth.transport.requests import AuthorizedSession

            credentials, _ = google.auth.default(scopes=[_SCOPE])
            self._session = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]  # it ships no types there
        return self._session
