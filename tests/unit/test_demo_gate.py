"""Nothing is spent, and nothing is started, unless it can be agreed to and fits."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from scripts.demo.gate import NotAllowed, real_gemini_api_key
from scripts.demo.knob import Unfit
from scripts.demo.limit import daily_limit
from scripts.demo.policy import POLICY, switch_ttl_s
from scripts.local.layout import PROJECT, ROOT


def test_without_a_key_the_real_model_is_refused() -> None:
    with pytest.raises(NotAllowed, match="GEMINI_API_KEY"):
        real_gemini_api_key(
            {"GEMINI_API_KEY": " "}, limit=100_000, console=Console(file=io.StringIO()), interactive=True
        )


def test_without_a_terminal_the_real_model_is_refused() -> None:
    with pytest.raises(NotAllowed, match="terminal"):
        real_gemini_api_key(
            {"GEMINI_API_KEY": "k"}, limit=100_000, console=Console(file=io.StringIO()), interactive=False
        )


def test_the_emulators_own_env_file_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# tokens\nMODELS=a\nMAX_DAILY_TOKENS=5000000\n")
    (tmp_path / ".env.local").write_text('MAX_DAILY_TOKENS="100000"\n')

    assert daily_limit(tmp_path, "demo-x") == 100_000


@pytest.mark.parametrize("text", ["", "MAX_DAILY_TOKENS=", "MAX_DAILY_TOKENS=many", "MAX_DAILY_TOKENS=5000000"])
def test_a_limit_that_the_story_does_not_fit_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / ".env").write_text(text)

    with pytest.raises(Unfit, match="MAX_DAILY_TOKENS"):
        daily_limit(tmp_path, "demo-x")


def test_this_trees_own_settings_overspend_the_budget_of_the_demo() -> None:
    assert switch_ttl_s(ROOT / "functions", PROJECT) == 1


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SWITCH_TTL_S=1", "BUDGET_POLICIES"),
        ("SWITCH_TTL_S=1\nBUDGET_POLICIES=no policy", "BUDGET_POLICIES"),
        (f"SWITCH_TTL_S=1\nBUDGET_POLICIES={POLICY.replace('firestore', 'gemini')}", "BUDGET_POLICIES"),
        (f"SWITCH_TTL_S=1\nBUDGET_POLICIES={POLICY.replace('100%', '90.5%')}", "BUDGET_POLICIES"),
        (f"BUDGET_POLICIES={POLICY}", "SWITCH_TTL_S"),
        (f"SWITCH_TTL_S=15\nBUDGET_POLICIES={POLICY}", "SWITCH_TTL_S"),
    ],
)
def test_settings_that_the_overspent_budget_does_not_fit_are_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / ".env.demo-x").write_text(text)

    with pytest.raises(Unfit, match=named):
        switch_ttl_s(tmp_path, "demo-x")


def test_other_budgets_may_have_policies_beside_that_of_the_demo(tmp_path: Path) -> None:
    other = POLICY.replace("f12eb12e", "00000000")
    (tmp_path / ".env").write_text(f"SWITCH_TTL_S=2\nBUDGET_POLICIES={other}; {POLICY}\n")

    assert switch_ttl_s(tmp_path, "demo-x") == 2
