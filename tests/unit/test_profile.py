"""Every property runs under one profile, in which a busy machine fails none."""

import re

from hypothesis import HealthCheck, settings

from scripts.local.layout import ROOT


def test_no_property_fails_because_it_is_slow() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


def test_no_test_has_a_deadline_of_its_own() -> None:
    of_its_own = re.compile(r"\bsettings\([^)]*\bdeadline=")

    assert [path.name for path in (ROOT / "tests").rglob("test_*.py") if of_its_own.search(path.read_text())] == []


def test_no_test_quiets_one_check_and_brings_the_slow_one_back() -> None:
    """A list of a test's own replaces that of the profile."""
    lists = re.compile(r"(?:suppress_health_check=|quiet = )(\[[^]]*\]|list\(HealthCheck\))")
    found = [found for path in (ROOT / "tests").rglob("test_*.py") for found in lists.findall(path.read_text())]

    assert found
    assert all("too_slow" in each or each == "list(HealthCheck)" for each in found)
