"""`@on_message`: a function on a Pub/Sub topic that no message can poison."""

import base64
import functools
from collections.abc import Callable, Mapping
from typing import Any

from cloudevents.http import CloudEvent
from firebase_functions import pubsub_fn
from werkzeug.exceptions import InternalServerError

from firebreak.budgets.notice import Message
from firebreak.errors import Again, Refused
from firebreak.events import unhandled
from firebreak.guard.invocation import invocation
from firebreak.store import times

MOST_CHARACTERS = 100


class Redeliver(InternalServerError):
    """Answers 500, which makes Pub/Sub deliver again; the cause is in our log, and in no traceback of the framework."""


type Handler = Callable[[Message], None]
type Function = Callable[[CloudEvent], None]


def on_message(
    *,
    topic: str,
    reads: int,
    writes: int,
    **options: Any,  # noqa: ANN401 - the SDK's own
) -> Callable[[Handler], Function]:
    """Make a function on `topic` of a handler that takes a `Message`; `options` are the SDK's.

    `reads` and `writes` are the most documents that one delivery may read and write.

    A handler that returns has done with the message, whatever it was; one that raises gets it again, with `retry=True`.
    The SDK's own parser fails on messages without data, with unknown fields or fine times, before any handler runs:
    only its description of the deployment is used here. The deployed function must bear the handler's name.
    """

    def decorate(handler: Handler) -> Function:
        describe: Any = pubsub_fn.on_message_published(topic=topic, **options)

        @functools.wraps(describe(handler))
        def function(event: CloudEvent) -> None:
            message = read(event)
            name = handler.__name__
            with invocation(name, reads=reads, writes=writes, message_id=message.id) as (audit, meters):
                try:
                    handler(message)
                    meters.check()
                    audit.setdefault("outcome", "ok")
                except Again:
                    audit["outcome"] = "again"
                    raise Redeliver from None
                except Refused as refusal:
                    audit["outcome"] = refusal.reason.value
                    raise Redeliver from None
                except Exception as error:  # noqa: BLE001 - the edge: libraries print their input in a traceback
                    audit["outcome"] = "internal"
                    unhandled(error)
                    raise Redeliver from None

        return function

    return decorate


def read(event: CloudEvent) -> Message:
    """The message of an event, in either spelling of its fields; what cannot be read is as if it were not there."""
    envelope = _mapping(event.get_data())
    message = _mapping(envelope.get("message"))
    number = message.get("messageId") or message.get("message_id") or event.get("id")
    published = message.get("publishTime") or message.get("publish_time") or event.get("time")
    return Message(
        id=str(number)[:MOST_CHARACTERS],
        data=_decoded(message.get("data")),
        attributes={k: v for k, v in _mapping(message.get("attributes")).items() if isinstance(v, str)},
        published_us=times.parse(published),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _decoded(data: object) -> bytes | None:
    try:
        return base64.b64decode(data) if isinstance(data, str) else None
    except ValueError:
        return None
