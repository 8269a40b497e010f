"""The clients, built once, on first use: an import must stay cheap, and a fork must not share them."""

from functools import cache

from google.cloud import firestore

from firebreak.bucket.ledger import Ledger
from firebreak.errors import Misconfigured
from firebreak.events import Event, Severity, emit
from firebreak.gemini.client import Developer, Gemini, Vertex
from firebreak.settings import GEMINI_API_KEY, settings


@cache
def ledger() -> Ledger:
    """The ledger of this instance."""
    return Ledger(firestore.Client(project=settings().project))


@cache
def gemini() -> Gemini:
    """The Gemini client of this instance.

    Raises:
        Misconfigured: the backend wants a key, and the secret holds none.
    """
    knobs = settings()
    if knobs.gemini_backend == "vertex":
        return Gemini(Vertex(project=knobs.project, location=knobs.vertex_location), host=knobs.gemini_host)
    if not GEMINI_API_KEY.value:
        emit(Event.SETTINGS, severity=Severity.ERROR, wrong=["GEMINI_API_KEY must be set, as a secret"])
        raise Misconfigured
    return Gemini(Developer(api_key=GEMINI_API_KEY.value), host=knobs.gemini_host)
