"""Alerts-only budgets through Google's client: created, and changed field by field; never a budget with a cap."""

import json

from google.cloud.billing import budgets_v1
from google.protobuf.field_mask_pb2 import FieldMask

from scripts.provision.budget import Budget
from scripts.provision.budgets import Budgets
from scripts.provision.clients import told
from scripts.provision.desired import AlertWanted
from scripts.provision.failure import Failed, NoAnswer, Refusal

_TRIES = 5
_TIMEOUT_S = 60


def create(client: budgets_v1.BudgetServiceClient, account: str, alert: AlertWanted) -> Budget:
    """Send the one request that makes it.

    Raises:
        Refusal, NoAnswer: as `Api.send`.
    """
    with told(f"create the alert budget {alert.key}"):
        made = client.create_budget(parent=account, budget=message(alert), retry=None, timeout=_TIMEOUT_S)
    return Budget.of(json.loads(budgets_v1.Budget.to_json(made, use_integers_for_enums=False)))


def change(
    client: budgets_v1.BudgetServiceClient, budgets: Budgets, alert: AlertWanted, name: str, mask: tuple[str, ...]
) -> None:
    """Set the masked fields, under the etag just read; sending them twice is harmless.

    Raises:
        Failed: it is gone, has become a cap, or Google did not take the change.
    """
    last: Failed = Failed(f"{name}: others change it at the same time; run `plan`")
    for number in range(_TRIES):
        if number:
            budgets.api.clock.sleep(budgets.patience.between_s)
        found = budgets.get(name)
        if found is None:
            raise Failed(f"{name} is not there any more; run `plan`")
        if found.cap is not None:
            raise Failed(f"{name} has become a spend cap, which this client would not see; nothing was changed")
        wanted = message(alert)
        wanted.name, wanted.etag = name, found.etag
        try:
            with told(f"change the alert budget {alert.key}"):
                client.update_budget(
                    request={"budget": wanted, "update_mask": FieldMask(paths=_paths(mask))},
                    retry=None,
                    timeout=_TIMEOUT_S,
                )
        except NoAnswer as error:
            last = error
        except Refusal as error:
            # FAILED_PRECONDITION: the etag was an old one; the status is that of any other 400.
            if error.status != 400 or "recondition" not in error.said:
                raise
            last = error
        else:
            return
    raise last


def message(alert: AlertWanted) -> budgets_v1.Budget:
    """The budget as the client takes it; a field that it does not know raises."""
    made: budgets_v1.Budget = budgets_v1.Budget.from_json(json.dumps(alert.body()))
    return made


def _paths(mask: tuple[str, ...]) -> list[str]:
    """A topic goes with its schema's version."""
    return [*mask, *(["notifications_rule.schema_version"] if "notifications_rule.pubsub_topic" in mask else ())]
