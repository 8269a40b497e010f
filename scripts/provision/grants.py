"""Who may do what: the service accounts that functions run as, their roles, and Google's right to publish: pure."""

from dataclasses import dataclass

from scripts.provision.config import Config

PUBLISHER = "serviceAccount:billing-budget-alert@system.gserviceaccount.com"
PUBLISHER_ROLE = "roles/pubsub.publisher"
# Of `on_budget_alert`, as Cloud Run names the service of a function: its IAM exists once it is deployed.
ALERTS_SERVICE = "on-budget-alert"
REGION = "us-central1"
_ACCOUNTS = ("firebreak-functions", "firebreak-alerts", "firebreak-caps")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Grant:
    """A role of a member on a resource such as `projects/my-app`."""

    resource: str
    role: str
    member: str


def accounts(config: Config) -> tuple[str, ...]:
    """The e-mails of the service accounts."""
    return tuple(f"{name}@{config.project}.iam.gserviceaccount.com" for name in _ACCOUNTS)


def grants(config: Config) -> tuple[Grant, ...]:
    """Only what the functions use; docs/adopting.md says what for."""
    project, account = f"projects/{config.project}", f"billingAccounts/{config.billing_account}"
    functions, alerts, caps = (f"serviceAccount:{email}" for email in accounts(config))
    given = [(project, "roles/datastore.user", member) for member in (functions, alerts, caps)]
    # The Firebase CLI grants these two to no account of an event function: without them no notice arrives.
    given.append((project, "roles/eventarc.eventReceiver", alerts))
    given.append((f"{project}/locations/{REGION}/services/{ALERTS_SERVICE}", "roles/run.invoker", alerts))
    given.append((account, "roles/billing.viewer", caps))
    if config.replay_protection:
        given.append((project, "roles/firebaseappcheck.tokenVerifier", functions))
    if config.check_revoked:
        given.append((project, "roles/firebaseauth.viewer", functions))
    if config.vertex:
        given.append((project, "roles/aiplatform.user", functions))
    return tuple(sorted(Grant(resource=resource, role=role, member=member) for resource, role, member in given))


def is_service(resource: str) -> bool:
    """Whether it is a service of Cloud Run, which exists only once its function is deployed."""
    return "/services/" in resource
