"""Google's Python clients, all over REST, so that what is tested is what runs; and their errors in our terms."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud.billing.budgets_v1 import Budget, BudgetServiceClient
from google.cloud.billing.budgets_v1.services.budget_service.transports import BudgetServiceRestTransport
from google.pubsub_v1 import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherRestTransport

from scripts.provision.failure import Failed, NoAnswer, Refusal

_BROKEN_FROM = 500


def budget_service(credentials: Credentials, root: str) -> BudgetServiceClient:
    """The client for alerts-only budgets."""
    return BudgetServiceClient(transport=BudgetServiceRestTransport(credentials=credentials, host=root))


def publisher(credentials: Credentials, root: str) -> PublisherClient:
    """The client for topics and their policies."""
    return PublisherClient(transport=PublisherRestTransport(credentials=credentials, host=root))


def knows_spend_caps() -> bool:
    """Whether the installed client has the field; one that has not would drop it and create a plain alert."""
    return "spend_cap" in Budget.meta.fields


@contextmanager
def told(what: str) -> Iterator[None]:
    """Raise what a client raises as one of our failures.

    Raises:
        NoAnswer, Refusal, Failed: as in `Api.send`.
    """
    try:
        yield
    except GoogleAPICallError as error:
        if error.code is None or error.code >= _BROKEN_FROM or error.code in (408, 499):
            raise NoAnswer(f"{what}: Google answered {error.code}") from error
        code = error.grpc_status_code.name if error.grpc_status_code else ""
        raise Refusal(what, status=int(error.code), code=code, message=str(error.message)) from error
    except (requests.RequestException, TransportError, RetryError) as error:
        raise NoAnswer(f"{what}: no answer ({type(error).__name__})") from error
    except GoogleAuthError as error:
        raise Failed(f"the credentials are not taken: {error}; run `gcloud auth application-default login`") from error
