"""Where each of Google's APIs is: Google's own addresses, or those of the stand-ins for a project of the emulators."""

from collections.abc import Mapping
from dataclasses import dataclass

from scripts.local.layout import Layout

LOCAL = "demo-"
STANDINS, FIRESTORE = "FIREBREAK_STANDINS", "FIRESTORE_EMULATOR_HOST"


class WrongTarget(Exception):
    """The project, the options and the environment contradict each other; the message says how to resolve it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """`standins` and `firestore` are the addresses of a local stack, None for the real Google."""

    standins: str | None = None
    firestore: str | None = None

    def of(self, api: str) -> str:
        """The base URL of an API by its short name, such as `billingbudgets`."""
        return f"{self.standins}/{api}" if self.standins else f"https://{api}.googleapis.com"

    def __str__(self) -> str:
        return f"stand-ins at {self.standins}, Firestore at {self.firestore}" if self.standins else "Google Cloud"


def hosts(project: str, env: Mapping[str, str], *, local: bool) -> Hosts:
    """The addresses for a project: a `demo-` project is never Google's, and no other one is ever local.

    Raises:
        WrongTarget: it could be either.
    """
    named = [name for name in (STANDINS, FIRESTORE) if name in env]
    if project.startswith(LOCAL):
        if not local and not named:
            raise WrongTarget(f"{project} is a project of the emulators: add --local, or name a real one in the file")
        layout = Layout()
        return Hosts(
            standins=env.get(STANDINS) or f"http://{layout.address('stand-ins')}",
            firestore=env.get(FIRESTORE) or layout.address("firestore"),
        )
    if local:
        raise WrongTarget(f"--local is for projects whose id begins with {LOCAL}, not for {project}")
    if named:
        raise WrongTarget(f"{project} is a real project: unset {' and '.join(named)}, or name a demo- one")
    return Hosts()
