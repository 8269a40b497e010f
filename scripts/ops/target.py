"""Which project an operator means, and whether that is the real one or an emulator's."""

from collections.abc import Mapping
from dataclasses import dataclass

EMULATOR_HOST = "FIRESTORE_EMULATOR_HOST"
LOCAL = "demo-"


class WrongTarget(Exception):
    """The project and the shell's environment contradict each other; the message says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A project, and the `host:port` of its emulator; None: the real project."""

    project: str
    emulator: str | None

    def __str__(self) -> str:
        return f"project {self.project} {f'on the emulator at {self.emulator}' if self.emulator else '(production)'}"


def target(project: str, env: Mapping[str, str]) -> Target:
    """What `--project` names, in this environment: a `demo-` project is never the cloud, another never an emulator.

    Raises:
        WrongTarget: it could be either.
    """
    host = env.get(EMULATOR_HOST)
    if project.startswith(LOCAL) and not host:
        raise WrongTarget(
            f"{project} is a local project: set {EMULATOR_HOST} (make serve: 127.0.0.1:8080), or name one in the cloud"
        )
    # Also an empty one: the SDK would go by it.
    if host is not None and not project.startswith(LOCAL):
        raise WrongTarget(
            f"{EMULATOR_HOST}={host} is set, and {project} is not a demo- project: unset it to reach the real one"
        )
    return Target(project=project, emulator=host)
