"""The clients, built once, on first use: an import must stay cheap, and a fork must not share them."""

import os
from collections.abc import Callable
from functools import cache, wraps
from threading import RLock

from firebreak.bucket.ledger import Ledger
from firebreak.budgets.caps_watch import CapsApi
from firebreak.budgets.respond import Responder
from firebreak.errors import Misconfigured
from firebreak.events import Event, Severity, emit
from firebreak.gemini.client import Developer, Gemini, Vertex
from firebreak.limits.pool import Pool
from firebreak.limits.requests import Rate
from firebreak.metering.client import Metered
from firebreak.settings.settings import GEMINI_API_KEY, settings
from firebreak.switch.watch import Switch

_building = RLock()


def once[T](build: Callable[[], T]) -> Callable[[], T]:
    """Build on first use, and once: the threads of a cold instance all come at the same time."""
    built = cache(build)

    @wraps(build)
    def get() -> T:
        # Without the lock as soon as it is there.
        if built.cache_info().currsize:
            return built()
        with _building:
            return built()

    return get


@once
def store() -> Metered:
    """The Firestore of the handlers: bounded for each request."""
    return Metered(project=settings().project)


@once
def guards() -> Metered:
    """The Firestore of the guard itself."""
    return store().guards()


@once
def switch() -> Switch:
    """The kill switch, as this instance last saw it."""
    return Switch(guards(), ttl_s=settings().switch_ttl_s)


@once
def rate() -> Rate:
    """The hourly requests of each user, as this instance leases them."""
    return Rate(guards())


@once
def ledger() -> Ledger:
    """The ledger of this instance."""
    return Ledger(guards())


@once
def pool() -> Pool:
    """The app-wide pool, as this instance draws from it."""
    knobs = settings()
    return Pool(guards(), tokens_per_hour=knobs.pool_tokens_per_hour, shares=knobs.pool_shares)


@once
def budgets() -> Responder:
    """What acts on budget notices."""
    knobs = settings()
    url = os.environ.get("BUDGET_WEBHOOK_URL", "") if knobs.budget_webhook else ""
    return Responder(client=store(), budgets=knobs.budget_policies, webhook_url=url)


@once
def caps() -> CapsApi:
    """The Budget API, as the function's own service account."""
    return CapsApi(host=settings().billing_host)


@once
def gemini() -> Gemini:
    """The Gemini client of this instance.

    Raises:
        Misconfigured: the backend wants a key, and the secret holds none.
    """
    knobs = settings()
    version = knobs.gemini_api_version
    if knobs.gemini_backend == "vertex":
        vertex = Vertex(project=knobs.project, location=knobs.vertex_location)
        return Gemini(vertex, host=knobs.gemini_host, version=version)
    if not GEMINI_API_KEY.value:
        emit(Event.SETTINGS, severity=Severity.ERROR, wrong=["GEMINI_API_KEY must be set, as a secret"])
        raise Misconfigured
    return Gemini(Developer(api_key=GEMINI_API_KEY.value), host=knobs.gemini_host, version=version)
