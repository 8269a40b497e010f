"""What a user has: by the claim `tier` where the knobs know it, else by the kind of sign-in."""

import pytest

from firebreak.settings.settings import Settings, load
from firebreak.settings.tiers import requests_per_hour, tier_name

KNOBS = {
    "GCLOUD_PROJECT": "my-app",
    "MAX_DAILY_TOKENS": "1000",
    "TIERS": "pro=5000,free=500",
    "READ_REQUESTS_PER_HOUR": "1200,anonymous=300,pro=5000",
    "WRITE_REQUESTS_PER_HOUR": "600",
}


@pytest.fixture
def knobs() -> Settings:
    return load(KNOBS)


@pytest.mark.parametrize(
    ("tier", "anonymous", "name"),
    [
        ("pro", False, "pro"),
        ("pro", True, "pro"),
        (None, True, "anonymous"),
        (None, False, "default"),
        ("gold", False, "default"),
        (["pro"], False, "default"),
        (5, True, "anonymous"),
    ],
)
def test_a_claim_counts_only_if_it_is_a_known_tier(knobs: Settings, tier: object, anonymous: bool, name: str) -> None:
    assert tier_name(knobs, tier=tier, anonymous=anonymous) == name


def test_requests_an_hour_are_those_of_the_tier_or_those_of_all(knobs: Settings) -> None:
    assert requests_per_hour(knobs, "read", tier="pro", anonymous=False) == 5000
    assert requests_per_hour(knobs, "read", tier="free", anonymous=False) == 1200
    assert requests_per_hour(knobs, "read", tier=None, anonymous=True) == 300
    assert requests_per_hour(knobs, "write", tier=None, anonymous=True) == 600
