"""`firebreak.toml`: what it holds, and what each error says."""

from decimal import Decimal

import pytest

from scripts.local.layout import ROOT
from scripts.provision import config
from scripts.provision.__main__ import main
from scripts.provision.config import Alert
from scripts.provision.fields import BadFile
from scripts.provision.money import Money

HEAD = 'project = "my-app"\nbilling_account = "012345-6789AB-CDEF01"\n'
CAPS = '[caps]\ngemini = "20.50 USD"\n'
ALERT = '[budgets.firestore]\nservice = "firestore"\namount = "5 USD"\nthresholds = [0.5, 1]\n'


def faults(text: str) -> str:
    with pytest.raises(BadFile) as error:
        config.parse(text)
    return "\n".join(error.value.faults)


def test_the_example_is_valid_and_caps_functions_and_run_both() -> None:
    example = config.read(ROOT / "firebreak.toml.example")

    assert set(example.caps) == {"gemini", "agent-platform", "run", "functions"}
    assert example.topic == "budget-alerts"
    assert example.budgets["firestore"] == Alert(
        amount=Money(nanos=20 * 10**9, currency="USD"),
        thresholds=(Decimal("0.5"), Decimal("0.9"), Decimal("1.0")),
        forecast=(Decimal("1.0"),),
        service="firestore",
        credits="exclude",
    )


def test_money_is_kept_to_the_billionth() -> None:
    assert config.parse(HEAD + CAPS).caps["gemini"] == Money(nanos=20_500_000_000, currency="USD")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(CAPS, "project is missing; firebreak.toml.example has one", id="missing"),
        pytest.param("project = 3\n" + CAPS, 'project must be a project id such as "my-app", not 3', id="type"),
        pytest.param(HEAD + "[caps]\ngemini = 20\n", "in quotes", id="a number"),
        pytest.param(HEAD + '[caps]\ngemini = "20"\n', "such as \"20.50 USD\", not '20'", id="no currency"),
        pytest.param(HEAD + '[caps]\ngemini = "20.1234567891 USD"\n', "caps.gemini must be an amount", id="too fine"),
        pytest.param(HEAD + '[caps]\ngemini = "-1 USD"\n', "caps.gemini must be at least 0, not -1 USD", id="negative"),
        pytest.param(HEAD + '[caps]\nmaps = "1 USD"\n', "caps.maps is no service known here", id="unknown service"),
        pytest.param(HEAD + '[caps]\ngemni = "1 USD"\n', "did you mean gemini?", id="slip in a service"),
        pytest.param(HEAD + '[caps]\nfirestore = "1 USD"\n', "Firestore has no spend cap", id="firestore"),
        pytest.param(HEAD + "[caps]\n", "nothing to provision", id="empty"),
        pytest.param(HEAD + CAPS + ALERT.replace("5 USD", "5 EUR"), "not in EUR, USD", id="two currencies"),
        pytest.param(HEAD + "[budgets.a]\nthresholds = [1]\n", "budgets.a.amount is missing", id="no amount"),
        pytest.param(HEAD + ALERT.replace("[0.5, 1]", "[]"), "thresholds must be a list such as", id="no thresholds"),
        pytest.param(HEAD + ALERT.replace("[0.5, 1]", "[1, 1.0]"), "each once", id="a threshold twice"),
        pytest.param(
            HEAD + ALERT.replace("[0.5, 1]", "[50]"),
            "at most 10, with 4 decimals at most; not 50",
            id="a threshold in percent",
        ),
        pytest.param(
            HEAD + ALERT.replace("[0.5, 1]", "[0.33333]"), "4 decimals at most; not 0.33333", id="too fine a threshold"
        ),
        pytest.param(
            HEAD + ALERT.replace("[0.5, 1]", "[0.1000000000000000000000000000000001]"),
            "4 decimals at most; not 0.1000000000000000000000000000000001",
            id="a threshold finer than decimals are reckoned",
        ),
        pytest.param(
            HEAD + ALERT.replace("[0.5, 1]", "[1e-9999999]"), "4 decimals at most; not 1E-9999999", id="next to nothing"
        ),
        pytest.param(HEAD + ALERT.replace("[0.5, 1]", f"[{'9' * 5_000}]"), "this is not TOML", id="endless digits"),
        pytest.param(HEAD + f"x = {'[' * 100_000}", "this is not TOML", id="endlessly deep"),
        pytest.param(HEAD + f"x = 1e{'9' * 20}", "this is not TOML", id="an endless exponent"),
        pytest.param(
            HEAD + '"caps.gemini" = "1 USD"\n' + CAPS, "'caps.gemini' must be no key with a dot", id="a dot in a key"
        ),
        pytest.param(
            HEAD + ALERT + '[budgets]\n"firestore.thresholds" = [0.5]\n',
            "'firestore.thresholds' must be no key with a dot",
            id="a dot in a key of a table",
        ),
        pytest.param(HEAD + ALERT.replace("[0.5, 1]", "[true]"), "not True", id="no number"),
        pytest.param(HEAD + ALERT.replace("[0.5, 1]", "[nan]"), "not NaN", id="nan"),
        pytest.param(HEAD + ALERT.replace("[0.5, 1]", "[inf]"), "not Infinity", id="inf"),
        pytest.param(HEAD + ALERT + "treshold = [1]\n", "budgets.firestore.treshold is no field", id="slip in a field"),
        pytest.param(HEAD + ALERT + 'credits = "no"\n', 'credits must be "exclude"', id="credits"),
        pytest.param(HEAD + ALERT.replace('"firestore"', '"maps"'), "budgets.firestore.service is no", id="service"),
        pytest.param(HEAD + ALERT.replace("firestore]", "fourteen-chars]"), "1 to 13", id="too long a name"),
        pytest.param(HEAD + CAPS + "[services]\ngemini = 'x'\n", "services.gemini must be a service id", id="id"),
        pytest.param(HEAD + CAPS + "[rights]\nvertex = 1\n", "rights.vertex must be true or false", id="flag"),
        pytest.param(HEAD + "[caps\n", "this is not TOML", id="no toml"),
        pytest.param(HEAD + "caps = 1\n", "caps must be a table", id="no table"),
        pytest.param(HEAD.replace("0123", "x123") + CAPS, "billing_account must be an id", id="account"),
    ],
)
def test_an_error_names_the_field_and_the_way_out(text: str, fault: str) -> None:
    assert fault in faults(text)


FUNCTIONS, FIRESTORE = "29E7-DA93-CA13", "EE2C-7FAC-5E08"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            f'[caps]\nrun = "1 USD"\nfunctions = "2 USD"\n[services]\nrun = "{FUNCTIONS}"\n',
            f"functions and run cannot both be {FUNCTIONS}",
            id="two caps",
        ),
        pytest.param(
            f'{ALERT}[caps]\nrun = "1 USD"\n[services]\nfirestore = "152E-C115-5142"\n',
            "firestore and run cannot both be 152E-C115-5142",
            id="a cap and an alert",
        ),
        pytest.param(
            f'[caps]\nrun = "1 USD"\n[services]\nrun = "{FUNCTIONS}"\n', "run and functions", id="one of them unused"
        ),
        pytest.param(
            f'{CAPS}[services]\ngemini = "{FIRESTORE}"\n', "Firestore has no spend cap", id="a cap of Firestore"
        ),
    ],
)
def test_a_service_under_the_id_of_another_is_refused(text: str, fault: str) -> None:
    """Its owner would believe it capped, and it would not be."""
    assert fault in faults(HEAD + text)


def test_a_service_may_be_given_a_new_id() -> None:
    confirmed = config.parse(HEAD + CAPS + '[services]\ngemini = "0123-4567-89AB"\n').confirmed

    assert confirmed == {"gemini": "0123-4567-89AB"}


def test_all_errors_are_told_at_once() -> None:
    found = faults('projekt = "my-app"\n[caps]\ngemini = 1\nrun = "-1 USD"\n').splitlines()

    assert len(found) == 5


def test_a_file_that_is_not_there_is_told_with_the_way_out() -> None:
    with pytest.raises(BadFile, match=r"copy firebreak\.toml\.example"):
        config.read(ROOT / "no-such-file.toml")


@pytest.mark.parametrize("text", ["20 USD", "0 USD", "0.01 EUR", "12.345678901 JPY", "-3.50 USD", "999999999999 USD"])
def test_money_is_written_as_it_was_read(text: str) -> None:
    assert str(Money.parse(text)) == text


@pytest.mark.parametrize("text", ["20", "USD 20", "20USD", "20 usd", "1,5 USD", "1e3 USD", " 1 USD", "٣ USD", "1. USD"])
def test_anything_else_is_no_money(text: str) -> None:
    with pytest.raises(ValueError, match="must be an amount and a currency"):
        Money.parse(text)


@pytest.mark.parametrize("text", ["20 USD", "0.50 USD", "0 USD", "3.000000001 USD"])
def test_money_survives_the_wire(text: str) -> None:
    money = Money.parse(text)

    assert Money.of(money.wire()) == money


@pytest.mark.parametrize("options", [["--file", "other.toml"], ["--local"], ["--json"], ["--only", "caps"]])
def test_options_before_the_command_are_refused_for_they_would_be_another_commands(options: list[str]) -> None:
    assert main([*options, "apply", "--yes"]) == 1
