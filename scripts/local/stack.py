"""Starts the local stack, hands out its addresses, and leaves nothing behind."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from scripts.local import claim
from scripts.local.launch import launched
from scripts.local.layout import PROJECT, REGION, Layout
from scripts.local.progress import Say, telling
from scripts.local.unavailable import Unavailable

__all__ = ["Stack", "Unavailable", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The addresses of a running stack: URLs with a scheme, hosts without."""

    project: str
    functions_url: str
    firestore_host: str
    auth_host: str
    pubsub_host: str
    standins_url: str


@contextmanager
def running(
    layout: Layout | None = None,
    *,
    env: Mapping[str, str] | None = None,
    real_gemini_api_key: str | None = None,
    share: bool = False,
    say: Say | None = None,
) -> Iterator[Stack]:
    """A stack that answers: the one that `make serve` keeps for this tree, else one as long as the context lasts.

    What it starts ends with this process, even if this process is killed.

    Args:
        layout: the tree and its ports; this one by default.
        env: variables for the functions, on top of what the stack sets.
        real_gemini_api_key: sends model calls to Google with this key, and costs money.
        share: lets other processes use this stack meanwhile.
        say: takes each line of progress; shown on stderr by default.

    Raises:
        Unavailable: a port is taken, something is not installed, or it did not come up.
    """
    layout = layout or Layout()
    settings = {"env": dict(env or {}), "real": real_gemini_api_key is not None}
    layout.make_folders()
    with ExitStack() as at_the_end:
        with telling() as shown:
            say = say or shown
            served = at_the_end.enter_context(claim.claimed(layout, say))
            if served is None:
                stack = launched(layout, extra=env or {}, real_gemini_api_key=real_gemini_api_key, say=say)
                at_the_end.enter_context(stack)
            elif served.settings != settings:
                raise Unavailable(f"process {served.owner} serves a stack with other settings; end it and try again")
            else:
                say(f"using the stack that process {served.owner} serves")
        if served is None and share:
            claim.serve(layout, settings)
        yield _addresses(layout)


def _addresses(layout: Layout) -> Stack:
    return Stack(
        project=PROJECT,
        functions_url=f"http://{layout.address('functions')}/{PROJECT}/{REGION}",
        firestore_host=layout.address("firestore"),
        auth_host=layout.address("auth"),
        pubsub_host=layout.address("pubsub"),
        standins_url=f"http://{layout.address('stand-ins')}",
    )
