"""Billing accounts, the projects that they pay for, and what the caller may not do."""

from collections.abc import Iterable
from dataclasses import dataclass

from scripts.local.layout import PROJECT
from scripts.local.standins.appcheck import PROJECT_NUMBER
from scripts.local.standins.google import GoogleError

ACCOUNT = "01D4EE-079462-DFD6EC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    id: str
    currency: str = "USD"
    open: bool = True
    reseller: bool = False
    display_name: str = "Local billing account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """`account` is None for a project without billing."""

    id: str
    number: str
    account: str | None


class Accounts:
    """All of them; a caller may do everything until it is denied."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.accounts = {ACCOUNT: Account(id=ACCOUNT)}
        self.projects = {PROJECT: Project(id=PROJECT, number=PROJECT_NUMBER, account=ACCOUNT)}
        self.denied: frozenset[str] = frozenset()

    def account(self, name: str) -> Account:
        """Raises GoogleError, 404."""
        if name not in self.accounts:
            raise not_found()
        return self.accounts[name]

    def project(self, id_or_number: str) -> Project | None:
        found = (project for project in self.projects.values() if id_or_number in {project.id, project.number})
        return next(found, None)

    def payee(self, id_or_number: str, *permissions: str) -> Project:
        """A project that the caller may see, with these permissions.

        Raises:
            GoogleError: 403, also if it does not exist.
        """
        self.require(*permissions)
        project = self.project(id_or_number)
        if project is None:
            raise _forbidden()
        return project

    def require(self, *permissions: str) -> None:
        """Raises GoogleError, 403."""
        if not self.denied.isdisjoint(permissions):
            raise _forbidden()

    def allowed(self, permissions: Iterable[str]) -> list[str]:
        return [permission for permission in permissions if permission not in self.denied]


def not_found() -> GoogleError:
    return GoogleError(404, "Requested entity was not found.")


def _forbidden() -> GoogleError:
    return GoogleError(403, "The caller does not have permission")
