"""Telling people of a threshold: a small JSON body, sent to the owner's webhook, and remembered until it is taken."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import certifi
from google.cloud import firestore
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError
from urllib3.util import parse_url

from firebreak.budgets import documents
from firebreak.budgets.notice import MICROS
from firebreak.budgets.standing import Standing, Told
from firebreak.errors import Again
from firebreak.events import Event, Severity, emit
from firebreak.settings.policies import Threshold, ThresholdKind
from firebreak.store import commit, times
from firebreak.store.times import HOUR_US
from firebreak.store.tries import Clock
from firebreak.waiting import Late, within

# Of the whole exchange, and of each wait in it.
TOTAL_S = 10.0
SILENCE_S = 5.0

# It warns of headers that it cannot parse, and names the URL.
logging.getLogger("urllib3.connection").setLevel(logging.ERROR)


class NotDelivered(Exception):
    """The webhook is not known to have taken the message; the text is for the log and holds nothing of the URL."""


def client(*, certificates: str | None = None) -> PoolManager:
    """The HTTP client to keep; it retries nothing."""
    return PoolManager(ca_certs=certificates or certifi.where(), retries=False, timeout=SILENCE_S)


def read(url: str) -> str | None:
    """The URL that a secret's value holds; None if it is empty or `none`.

    Raises:
        ValueError: it is not an https URL.
    """
    url = url.strip()
    if url in {"", "none"}:
        return None
    with suppress(HTTPError):
        parts = parse_url(url)
        if parts.scheme == "https" and parts.host:
            return url
    raise ValueError("must be an https URL, or none")


def send(url: str, body: Mapping[str, object], *, http: PoolManager, total_s: float = TOTAL_S) -> None:
    """Post `body` as JSON and wait for a 2xx; a redirect is not followed, and the answer's body is not read.

    Raises:
        NotDelivered: no 2xx came in time; the request may still arrive.
    """
    try:
        answer = within(total_s, lambda: http.request("POST", url, json=body, redirect=False, preload_content=False))
    except Late:
        raise NotDelivered("no answer in time") from None
    except HTTPError as error:
        # Its message names the URL, so it is not chained.
        raise NotDelivered(type(error).__name__) from None
    answer.close()
    if not 200 <= answer.status < 300:
        raise NotDelivered(f"status {answer.status}")


def body(standing: Standing, threshold: Threshold) -> dict[str, object]:
    """The webhook's body; amounts are those of the latest notice."""
    action = standing.applied[threshold].action
    return {
        "text": _text(standing, threshold, action),
        "budget": standing.name,
        "budgetId": standing.budget,
        "period": standing.period.name,
        "kind": threshold.kind.value,
        "threshold": threshold.bp / 100,
        "action": action,
        "until": times.second(standing.period.end_us),
        "cost": _plain(standing.cost),
        "budgetAmount": _plain(standing.amount),
        "currency": standing.currency,
    }


def _text(standing: Standing, threshold: Threshold, action: str) -> str:
    passed = "is past" if threshold.kind is ThresholdKind.ACTUAL else "is forecast to pass"
    spent = ""
    if standing.cost is not None and standing.amount is not None:
        of = f"{standing.amount / MICROS:,.2f} {standing.currency or ''}".rstrip()
        spent = f" ({standing.cost / MICROS:,.2f} of {of} so far)"
    name = standing.name or standing.budget
    return _escaped(f"Budget {name} {passed} {threshold.percent}%{spent}: {_done(standing, action)}")


def _done(standing: Standing, action: str) -> str:
    deed, _, argument = action.rstrip(")").partition("(")
    until = f"until {times.second(standing.period.end_us)} or an operator's reset"
    if deed == "trip":
        return f"{argument} is switched off {until}."
    if deed == "tighten":
        return f"every daily limit is {argument}% of itself {until}."
    return "nothing was changed."


def _escaped(text: str) -> str:
    """Chats read these three as markup: a budget's name must not be able to call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(micros: int | None) -> float | None:
    return None if micros is None else micros / MICROS


# How long new deliveries, and new notices, try a webhook that fails.
LATEST_US = HOUR_US


class NotTold(Again):
    """Nobody took the news: a new delivery brings them again, and does nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """Tells the webhook, at least once, and marks what was told."""

    client: firestore.Client
    url: str = field(repr=False)
    http: PoolManager = field(repr=False)
    clock: Clock

    def tell(self, standing: Standing, now_us: int) -> None:
        """Tell what was not told yet, by this delivery or by an earlier one that failed.

        Raises:
            NotTold: the webhook did not take it; what was told before is marked.
            StoreUnavailable: it took it, and that may not be marked; it may get the same again.
        """
        for threshold, done in standing.in_order():
            if done.told is not Told.DUE:
                continue
            if now_us - done.at_us > LATEST_US:
                emit(
                    Event.BUDGET,
                    severity=Severity.ERROR,
                    outcome="not-told",
                    budget=standing.budget,
                    threshold=str(threshold),
                )
                self._mark(standing, threshold, Told.GIVEN_UP)
            else:
                self._send(standing, threshold)
                self._mark(standing, threshold, Told.TOLD)

    def _send(self, standing: Standing, threshold: Threshold) -> None:
        try:
            send(self.url, body(standing, threshold), http=self.http)
        except NotDelivered as error:
            emit(
                Event.BUDGET,
                severity=Severity.WARNING,
                outcome="webhook-failed",
                budget=standing.budget,
                threshold=str(threshold),
                why=str(error),
            )
            raise NotTold from error

    def _mark(self, standing: Standing, threshold: Threshold, told: Told) -> None:
        def mark(timeout_s: float) -> None:
            seen = documents.read(self.client, standing.budget, standing.period, timeout_s=timeout_s)
            done = seen.standing.applied.get(threshold) if seen.standing else None
            if seen.standing is None or done is None or done.told is not Told.DUE:
                return
            batch = self.client.batch()
            documents.write(self.client, batch, seen.standing.told(threshold, told), seen=seen)
            commit.send(batch, timeout_s=timeout_s)

        documents.insist(mark, clock=self.clock, doing="tell")
