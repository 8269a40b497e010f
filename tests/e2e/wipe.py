"""Empties a project on the Firestore emulator, for tests that have one of their own."""

from scripts.local import wire
from scripts.local.stack import Stack


def wipe(stack: Stack, project: str) -> None:
    """Delete every document of the project."""
    url = f"http://{stack.firestore_host}/emulator/v1/projects/{project}/databases/(default)/documents"
    assert wire.call("DELETE", url).status == 200
