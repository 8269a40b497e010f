"""Act 4: a budget for Firestore is overspent, its notices switch Firestore off, and the operator switches it on."""

import time

from scripts.clients.caller import Caller
from scripts.clients.client import Client
from scripts.demo import prompts
from scripts.demo.act import Act
from scripts.demo.billing import AMOUNT_USD, Billing
from scripts.demo.deliveries import Deliveries
from scripts.demo.evidence import Overspend
from scripts.demo.notices import Notices
from scripts.demo.ops import Ops
from scripts.demo.screen import Screen
from scripts.local.layout import Layout
from scripts.local.stack import Stack

EDIT_PAUSE_MS = 150
POLL_S = 0.1
ON_THEIR_WAY_S = 10


def overspend(stack: Stack, screen: Screen, *, switch_ttl_s: int) -> Overspend:
    """The act; the switch and the stand-in are put back at its end, whatever happens.

    Raises:
        CallerFailed: a client broke.
    """
    screen.say(f"act 4: a user edits a graph; Firestore's budget of ${AMOUNT_USD} is overspent", "bold")
    billing, ops = Billing(project=stack.project, standins_url=stack.standins_url), Ops(stack.firestore_host)
    notices = Notices(billing, Deliveries(Layout().firebase_log))
    ops.begin_period()
    try:
        billing.lay()
        with Caller(_editor(stack)) as editing:
            act = Act(stack, screen, ops=ops, sent=notices, editing=editing, switch_ttl_s=switch_ttl_s)
            return act.play()
    finally:
        _put_back(screen, billing, ops, notices)


def _editor(stack: Stack) -> Client:
    return Client(
        backend=stack,
        functions=("mutate",),
        data=prompts.EDITS,
        calls=None,
        pause_ms=EDIT_PAUSE_MS,
        request_ids=False,
    )


def _put_back(screen: Screen, billing: Billing, ops: Ops, notices: Notices) -> None:
    # What is still on its way could trip the switch once more.
    deadline = time.monotonic() + ON_THEIR_WAY_S
    while notices.on_their_way() and time.monotonic() < deadline:
        screen.now("  waiting for the notices that are on their way")
        time.sleep(POLL_S)
    ops.reset()
    billing.clear()
