"""The values that a field of `firebreak.toml` may have: caps, money, thresholds, services; each error says what is."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from scripts.provision.fields import written_as
from scripts.provision.money import Money
from scripts.provision.services import CAPPED, FIRESTORE, NO_FIRESTORE_CAP, SERVICES, known

_SERVICE_ID = re.compile(r"[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}", re.ASCII)
_MOST_THRESHOLD = 10
# Hundredths of a percent are the finest that notices are acted on by.
_DECIMALS = 4


def cap(key: str) -> Callable[[Any], Money]:
    """An amount for the cap of this service, which must be one that can have a cap."""

    def parse(found: object) -> Money:
        if key == FIRESTORE.key:
            raise ValueError(f"cannot be: {NO_FIRESTORE_CAP}")
        known(key, CAPPED)
        return money(found)

    return parse


def money(found: object) -> Money:
    """An amount of at least 0."""
    if not isinstance(found, str):
        raise ValueError(  # noqa: TRY004  # a wrong value is a wrong value
            f'must be an amount and a currency in quotes, such as "20.50 USD", not {found}'
        )
    amount = Money.parse(found)
    if amount.nanos < 0:
        raise ValueError(f"must be at least 0, not {amount}; 0 stops at the first cent")
    return amount


def thresholds(found: object) -> tuple[Decimal, ...]:
    """Parts of an amount, in rising order."""
    wanted = "must be a list such as [0.5, 0.9, 1.0]: parts of the amount, each once"
    if not isinstance(found, list) or not found:
        raise ValueError(f"{wanted}, not {found!r}")
    for part in found:
        if not _is_part(part):
            raise ValueError(
                f"{wanted}, above 0 and at most {_MOST_THRESHOLD}, with {_DECIMALS} decimals at most; not {part}"
            )
    parts = tuple(sorted(Decimal(part) for part in found))
    if len(set(parts)) < len(parts):
        raise ValueError(wanted)
    return parts


def _is_part(found: object) -> bool:
    if isinstance(found, bool) or not isinstance(found, Decimal | int):
        return False
    part = Decimal(found)
    return part.is_finite() and 0 < part <= _MOST_THRESHOLD and int(part.as_tuple().exponent) >= -_DECIMALS


def service(found: object) -> str:
    """The key of a service that budgets can track."""
    return known(str(found), SERVICES).key


def confirmed(key: str) -> Callable[[Any], str]:
    """A service's id, which the file's owner vouches for."""

    def parse(found: object) -> str:
        known(key, SERVICES)
        return written_as(_SERVICE_ID, 'a service id such as "EE2C-7FAC-5E08"')(found)

    return parse


def counted(found: object) -> str:
    """Whether credits are subtracted from what counts."""
    if found not in ("exclude", "include"):
        raise ValueError(f'must be "exclude" (free tier and credits count as money) or "include", not {found!r}')
    return str(found)
