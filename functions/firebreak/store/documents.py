"""Documents by name: an id that no other shares, for each user too, and what is raised of fields that make no sense."""

import re
from urllib.parse import unquote

_RESERVED = re.compile(r"__.*__", re.DOTALL)


class Corrupt(Exception):
    """A document holds something that it cannot hold; the text says which field. Nothing is decided on a guess."""


def document_id(name: str) -> str:
    """Any name as a document id: different names never share one, whatever characters they hold."""
    return _unreserved(_escaped(name))


def user_key(uid: str, tenant: str | None = None) -> str:
    """The document id of a user. A uid is unique only within its tenant, so the tenant is part of it.

    An escaped name holds no dot: a dot stands between tenant and uid, and is in no key of a user without a tenant.
    """
    return document_id(uid) if tenant is None else _unreserved(f"{_escaped(tenant)}.{_escaped(uid)}")


def user_of(key: str) -> tuple[str, str | None]:
    """The reverse of `user_key`: uid and tenant."""
    tenant, dot, uid = key.rpartition(".")
    return unquote(uid), unquote(tenant) if dot else None


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F").replace(".", "%2E")


def _unreserved(escaped: str) -> str:
    return "%5F" + escaped[1:] if _RESERVED.fullmatch(escaped) else escaped
