"""What a stand-in is told to answer, and what it was asked: a queue of replies and a log of requests."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Reply = Mapping[str, Any]
Entry = dict[str, Any]

# A reply leaves out what is to be as if unscripted; a null in `usage` or `finishReason` leaves that out of the answer.
# `calls` are functionCalls as on the wire, after the text: each gets an id, the first a signature. `signText` signs the
# text, in an empty part of its own. `refuses` names fields that v1 of the API is not to know.
FIELDS: dict[str, tuple[type, ...]] = {
    "for": (str,),
    "status": (int,),
    "error": (dict,),
    "delayMs": (int,),
    "dropAfter": (str, int),
    "body": (str,),
    "text": (str,),
    "signText": (bool,),
    "calls": (list,),
    "refuses": (list,),
    "chunks": (list,),
    "usage": (dict, type(None)),
    "usages": (list,),
    "chunkDelayMs": (int,),
    "finishReason": (str, type(None)),
    "promptFeedback": (dict,),
    "candidates": (list,),
    "raw": (dict, list),
}


class BadScript(ValueError):
    """A script that no stand-in could follow."""


@dataclass(kw_only=True)
class Script:
    """One service's replies to come and requests so far.

    `methods` are the API methods that a reply without `for` answers.
    """

    methods: frozenset[str]
    replies: deque[Reply] = field(default_factory=deque)
    log: list[Entry] = field(default_factory=list)

    def extend(self, replies: object) -> None:
        """Queue a list of replies.

        Raises:
            BadScript: one of them has an unknown field or a value of the wrong type; none is queued.
        """
        if not isinstance(replies, list):
            raise BadScript("a script is a list of replies")
        for reply in replies:
            _check(reply)
        self.replies.extend(replies)

    def next_for(self, method: str) -> Reply:
        """Take the first reply for this method out of the queue; an empty one if there is none."""
        for reply in self.replies:
            if reply["for"] == method if "for" in reply else method in self.methods:
                self.replies.remove(reply)
                return reply
        return {}

    def enter(self, **asked: object) -> Entry:
        """Log one request; `aborted` turns true if the client leaves before the answer is complete."""
        entry: Entry = {**asked, "at": time.time(), "aborted": False}
        self.log.append(entry)
        return entry

    def reset(self) -> None:
        self.replies.clear()
        self.log.clear()


def _check(reply: object) -> None:
    if not isinstance(reply, dict):
        raise BadScript("a reply is an object")
    for name, value in reply.items():
        if name not in FIELDS:
            raise BadScript(f"unknown field {name!r}; known are {', '.join(FIELDS)}")
        if not isinstance(value, FIELDS[name]) or (isinstance(value, bool) and bool not in FIELDS[name]):
            raise BadScript(f"field {name!r} cannot be {value!r}")
    drop = reply.get("dropAfter", 0)
    if isinstance(drop, str) and drop not in {"headers", "nothing"}:
        raise BadScript('dropAfter is "headers", "nothing" or a number of bytes, or of chunks in a stream')
