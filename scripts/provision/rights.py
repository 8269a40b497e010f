"""Service accounts and their roles on project, billing account and service; nothing that is there is taken away."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scripts.provision import policy
from scripts.provision.amend import amend
from scripts.provision.api import Api
from scripts.provision.failure import NoAnswer, Refusal
from scripts.provision.grants import Grant, is_service
from scripts.provision.hosts import Hosts

_TRIES = 4


@dataclass(frozen=True, slots=True)
class Rights:
    """Of one project; every operation may be repeated."""

    api: Api
    hosts: Hosts
    project: str

    def has_account(self, email: str) -> bool:
        """Raises Failed where accounts may not be read."""
        try:
            self.api.get(f"{self._accounts}/{email}")
        except Refusal as error:
            if error.status != 404:
                raise
            return False
        return True

    def create_account(self, email: str) -> None:
        """Make it, unless it is there.

        Raises:
            Failed: Google does not.
        """
        name = email.partition("@")[0]
        body = {"accountId": name, "serviceAccount": {"displayName": name.replace("-", " ").capitalize()}}
        for number in range(_TRIES):
            try:
                self.api.send("POST", self._accounts, body)
            except NoAnswer:
                if number == _TRIES - 1:
                    raise
                self.api.clock.sleep(2**number)
            except Refusal as error:
                # It is there already: somebody else's, or that of a reply that was lost.
                if error.status != 409:
                    raise
                return
            else:
                return

    def has(self, grant: Grant, policies: dict[str, Mapping[str, Any]]) -> bool:
        """Whether a grant is there; `policies` remembers what was read, by resource. Raises as `has_account`."""
        if grant.resource not in policies:
            policies[grant.resource] = self._read(grant.resource)
        return policy.has(policies[grant.resource], grant.role, grant.member)

    def give(self, grant: Grant) -> None:
        """Add it; raises as `amend`."""
        amend(
            lambda: self._read(grant.resource),
            lambda grown: self.api.send("POST", f"{self._url(grant.resource)}:setIamPolicy", {"policy": grown}),
            role=grant.role,
            member=grant.member,
            clock=self.api.clock,
        )

    def _read(self, resource: str) -> dict[str, Any]:
        url = f"{self._url(resource)}:getIamPolicy"
        if resource.startswith("billingAccounts/") or is_service(resource):
            return self.api.get(url, {"options.requestedPolicyVersion": policy.VERSION})
        return self.api.read(url, {"options": {"requestedPolicyVersion": policy.VERSION}})

    def _url(self, resource: str) -> str:
        if is_service(resource):
            return f"{self.hosts.of('run')}/v2/{resource}"
        api = "cloudbilling" if resource.startswith("billingAccounts/") else "cloudresourcemanager"
        return f"{self.hosts.of(api)}/v1/{resource}"

    @property
    def _accounts(self) -> str:
        return f"{self.hosts.of('iam')}/v1/projects/{self.project}/serviceAccounts"
