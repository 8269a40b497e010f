"""README and .env.example are as the code has them."""

from firebreak.errors import KINDS, Reason
from firebreak.settings.settings import KNOBS
from scripts import docs
from scripts.local.deployed import FUNCTIONS
from scripts.local.dotenv import dotenv


def test_readme_and_env_example_are_as_the_code_has_them() -> None:
    assert docs.stale() == []


def test_every_reason_has_one_kind_of_refusal() -> None:
    assert sorted(kind.reason for kind in KINDS) == sorted(Reason)


def test_what_is_committed_as_env_names_knobs_alone() -> None:
    named = dotenv(FUNCTIONS, "my-app").keys()

    assert "MAX_DAILY_TOKENS" in named
    assert named <= {knob.name for knob in KNOBS}
