"""Whose rights a run has: the caller's own at Google, or those of the local service account at the stand-ins."""

import json

import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import DefaultCredentialsError
from google.oauth2.credentials import Credentials as UserCredentials
from google.oauth2.service_account import Credentials as AccountCredentials

from scripts.local.environment import write_credentials
from scripts.local.layout import Layout
from scripts.provision.failure import Failed
from scripts.provision.hosts import Hosts

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


def login(where: Hosts, project: str) -> Credentials:
    """The credentials for these hosts.

    Raises:
        Failed: there are none.
    """
    return _local(where.standins) if where.standins else _real(project)


def _local(standins: str) -> Credentials:
    """Of an account that nobody but the stand-ins knows."""
    layout = Layout()
    layout.make_folders()
    write_credentials(layout)
    account = json.loads(layout.service_account.read_text()) | {"token_uri": f"{standins}/token"}
    made: Credentials = AccountCredentials.from_service_account_info(  # type: ignore[no-untyped-call]  # it has no types
        account, scopes=_SCOPES
    )
    return made


def _real(project: str) -> Credentials:
    try:
        found, _ = google.auth.default(scopes=_SCOPES)
    except DefaultCredentialsError as error:
        raise Failed("there are no credentials: run `gcloud auth application-default login`") from error
    # A person's requests count against a project, which must be told; a service account's against its own.
    if isinstance(found, UserCredentials) and not found.quota_project_id:
        quota: Credentials = found.with_quota_project(project)
        return quota
    return found
