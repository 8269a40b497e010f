"""`firebreak.toml`: read and checked as a whole; each error names its field and says what is wanted."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from scripts.provision import values
from scripts.provision.fields import BadFile, Fields, flag, written_as
from scripts.provision.money import Money
from scripts.provision.services import CAPPED, FIRESTORE, NO_FIRESTORE_CAP, SERVICES

_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", re.ASCII)
_ACCOUNT = re.compile(r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}", re.ASCII)
_TOPIC = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9._~+%-]{2,254}", re.ASCII)
# A budget's display name has room for so much beside the project's id.
_KEY = re.compile(r"[a-z][a-z0-9-]{0,12}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alerts-only budget as the file wants it; no service means all that the project uses."""

    amount: Money
    thresholds: tuple[Decimal, ...]
    forecast: tuple[Decimal, ...] = ()
    service: str | None = None
    credits: str = "exclude"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole file, checked. `confirmed` are service ids that its owner vouches for."""

    project: str
    billing_account: str
    topic: str
    caps: Mapping[str, Money] = field(default_factory=dict)
    budgets: Mapping[str, Alert] = field(default_factory=dict)
    confirmed: Mapping[str, str] = field(default_factory=dict)
    replay_protection: bool = False
    check_revoked: bool = False
    vertex: bool = False


def read(path: Path) -> Config:
    """The file at `path`.

    Raises:
        BadFile: there is none, or a field is wrong.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise BadFile([f"there is no {path}; copy firebreak.toml.example and fill it in"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile([f"{path} cannot be read: {error}"]) from error
    return parse(text)


def parse(text: str) -> Config:
    """The text of the file.

    Raises:
        BadFile: a field is wrong.
    """
    try:
        data = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise BadFile([f"this is not TOML: {error}"]) from error
    fields = Fields(data)
    config = Config(
        project=fields.take("project", written_as(_PROJECT, 'a project id such as "my-app"'), ""),
        billing_account=fields.take(
            "billing_account", written_as(_ACCOUNT, 'an id such as "012345-6789AB-CDEF01"'), ""
        ),
        topic=fields.take(
            "topic", written_as(_TOPIC, "a topic's name, 3 characters at least"), "", default="budget-alerts"
        ),
        caps={key: fields.take(f"caps.{key}", values.cap(key), _NOTHING) for key in fields.table("caps")},
        budgets={key: _alert(fields, key) for key in fields.table("budgets")},
        confirmed={key: fields.take(f"services.{key}", values.confirmed(key), "") for key in fields.table("services")},
        replay_protection=fields.take("rights.replay_protection", flag, False, default=False),
        check_revoked=fields.take("rights.check_revoked", flag, False, default=False),
        vertex=fields.take("rights.vertex", flag, False, default=False),
    )
    fields.refuse_the_rest()
    fields.faults += _contradictions(config)
    if fields.faults:
        raise BadFile(fields.faults)
    return config


_NOTHING = Money(nanos=0, currency="")


def _alert(fields: Fields, key: str) -> Alert:
    path = f"budgets.{key}"
    if not _KEY.fullmatch(key):
        fields.faults.append(f"{path} must be a name of 1 to 13 small letters, digits and -, not {key!r}")
    service = fields.take(f"{path}.service", values.service, "", default="")
    return Alert(
        amount=fields.take(f"{path}.amount", values.money, _NOTHING),
        thresholds=fields.take(f"{path}.thresholds", values.thresholds, ()),
        forecast=fields.take(f"{path}.forecast", values.thresholds, (), default=()),
        service=service or None,
        credits=fields.take(f"{path}.credits", values.counted, "exclude", default="exclude"),
    )


def _contradictions(config: Config) -> list[str]:
    amounts = {f"caps.{key}": money for key, money in config.caps.items()}
    amounts |= {f"budgets.{key}.amount": alert.amount for key, alert in config.budgets.items()}
    currencies = sorted({money.currency for money in amounts.values() if money.currency})
    wrong = []
    if len(currencies) > 1:
        wrong.append(f"all amounts must be in the currency of the one billing account, not in {', '.join(currencies)}")
    if not amounts:
        wrong.append("there is nothing to provision: name at least one of [caps] or [budgets.…]")
    return [*wrong, *_confusions(config)]


def service_id(confirmed: Mapping[str, str], key: str) -> str:
    """The catalog's id of a service: the one known here, unless the file vouches for another."""
    return confirmed.get(key) or SERVICES[key].id


def _confusions(config: Config) -> Iterator[str]:
    """Services that the file confuses: a cap under another one's id would leave its own service unbounded."""
    used = {*config.caps, *(alert.service or "" for alert in config.budgets.values())} & SERVICES.keys()
    for key in sorted(used):
        id_ = service_id(config.confirmed, key)
        if key in CAPPED and id_ == FIRESTORE.id:
            yield f"services.{key} cannot be {id_}, which is Firestore's; {NO_FIRESTORE_CAP}"
            continue
        for other in SERVICES.keys() - {key}:
            if service_id(config.confirmed, other) == id_ and (other not in used or key < other):
                yield f"{key} and {other} cannot both be {id_}: [services] must give each an id of its own"
