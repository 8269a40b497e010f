"""The topic of the alert budgets' notices, and Google's right to publish to it, through Google's client."""

from collections.abc import Mapping
from typing import Any

from google.iam.v1 import iam_policy_pb2, options_pb2, policy_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from google.pubsub_v1 import PublisherClient

from firebreak.store.tries import Clock
from scripts.provision import policy
from scripts.provision.amend import amend
from scripts.provision.clients import told
from scripts.provision.failure import Failed, NoAnswer, Refusal
from scripts.provision.grants import PUBLISHER, PUBLISHER_ROLE

_TRIES = 5
_TIMEOUT_S = 30


class Topics:
    """Of one project; every operation may be repeated."""

    def __init__(self, client: PublisherClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def exists(self, name: str) -> bool:
        """Raises Failed where it may not be read."""
        try:
            with told(f"read {name}"):
                self._client.get_topic(topic=name, timeout=_TIMEOUT_S)
        except Refusal as error:
            if error.status != 404:
                raise
            return False
        return True

    def create(self, name: str) -> None:
        """Make it, unless it is there.

        Raises:
            Failed: Google does not.
        """
        for number in range(_TRIES):
            try:
                with told(f"create {name}"):
                    self._client.create_topic(name=name, retry=None, timeout=_TIMEOUT_S)
            except NoAnswer:
                self._clock.sleep(2**number)
            except Refusal as error:
                # It is there already: somebody else's, or that of a reply that was lost.
                if error.status != 409:
                    raise
                return
            else:
                return
        raise Failed(f"{name} could not be made: no answer came, {_TRIES} times; run this again later")

    def lets_google_publish(self, name: str) -> bool:
        """Whether the binding is there; raises as `exists`."""
        return policy.has(self._policy(name), PUBLISHER_ROLE, PUBLISHER)

    def let_google_publish(self, name: str) -> None:
        """Add the binding; raises as `amend`."""

        def write(grown: Mapping[str, Any]) -> None:
            request = iam_policy_pb2.SetIamPolicyRequest(
                resource=name, policy=ParseDict(dict(grown), policy_pb2.Policy())
            )
            with told(f"let Google publish to {name}"):
                self._client.set_iam_policy(request=request, retry=None, timeout=_TIMEOUT_S)

        amend(lambda: self._policy(name), write, role=PUBLISHER_ROLE, member=PUBLISHER, clock=self._clock)

    def _policy(self, name: str) -> dict[str, Any]:
        options = options_pb2.GetPolicyOptions(requested_policy_version=policy.VERSION)
        request = iam_policy_pb2.GetIamPolicyRequest(resource=name, options=options)
        with told(f"read who may publish to {name}"):
            found = self._client.get_iam_policy(request=request, timeout=_TIMEOUT_S)
        answer: dict[str, Any] = MessageToDict(found)
        return answer
