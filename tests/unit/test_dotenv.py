"""Settings are looked at before anything starts or is deployed, as the Firebase CLI reads them."""

import json
from pathlib import Path

import pytest

from scripts.local.dotenv import dotenv, read, wrong
from scripts.local.layout import PROJECT, ROOT


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    """Of a tree whose `.firebaserc` calls the project `shop-1` `prod`."""
    (tmp_path / ".firebaserc").write_text(json.dumps({"projects": {"prod": "shop-1"}}))
    (tmp_path / "firebase.json").write_text("{}")
    functions = tmp_path / "functions"
    (functions / "firebreak").mkdir(parents=True)
    (functions / ".env").write_text("# limits\nMAX_DAILY_TOKENS=5\nTHREADS=8\n")
    return functions


def said(functions: Path, project: str) -> list[str]:
    return wrong(functions, read(functions, project))


def test_what_is_committed_is_right_here_and_for_any_project() -> None:
    for project in (PROJECT, "my-app"):
        found = read(ROOT / "functions", project)

        assert (wrong(ROOT / "functions", found), found.cuts) == ([], ())


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('MAX_DAILY_TOKENS="100000"', "100000"),
        ("MAX_DAILY_TOKENS='100000'", "100000"),
        ("export MAX_DAILY_TOKENS=100000", "100000"),
        ("  MAX_DAILY_TOKENS =  100000  ", "100000"),
        ("MAX_DAILY_TOKENS=100000 # a day", "100000"),
        ('MAX_DAILY_TOKENS="100000" # a day', "100000"),
        ("MAX_DAILY_TOKENS=7\nMAX_DAILY_TOKENS=100000", "100000"),
    ],
)
def test_values_are_those_that_the_cli_deploys(functions: Path, line: str, value: str) -> None:
    (functions / ".env.shop").write_text(f"{line}\n")

    assert dotenv(functions, "shop")["MAX_DAILY_TOKENS"] == value
    assert said(functions, "shop") == []


@pytest.mark.parametrize(
    ("text", "value", "cut"),
    [
        ("SYSTEM_INSTRUCTION=You teach C# and F#", "You teach C", 1),
        ("\n\nexport SYSTEM_INSTRUCTION = Rank #1 first", "Rank", 3),
        ("SYSTEM_INSTRUCTION=#1", "", 1),
        ('SYSTEM_INSTRUCTION="You teach C# and F#', '"You teach C', 1),
        ('SYSTEM_INSTRUCTION="You teach C# and F#"', "You teach C# and F#", None),
        ('SYSTEM_INSTRUCTION="You teach C#" # not Java', "You teach C#", None),
        ("# You teach C#\nSYSTEM_INSTRUCTION=You teach C", "You teach C", None),
        ('SYSTEM_INSTRUCTION="Two lines:\nTHREADS=9 # both"', "Two lines:\nTHREADS=9 # both", None),
    ],
)
def test_a_bare_hash_is_named_with_its_file_and_line(functions: Path, text: str, value: str, cut: int | None) -> None:
    (functions / ".env.shop").write_text(f"{text}\n")

    found = read(functions, "shop")

    assert found.values["SYSTEM_INSTRUCTION"] == value
    place = f"functions/.env.shop:{cut}: the value of SYSTEM_INSTRUCTION ends at the #."
    assert [text.partition(" To keep")[0] for text in found.cuts] == ([] if cut is None else [place])
    assert "quotes" in "".join(found.cuts) or cut is None


@pytest.mark.parametrize(
    ("project", "value"),
    [("shop", "5"), ("shop-1", "6"), ("prod", "7"), (PROJECT, "8")],
    ids=["none of its own", "by its id", "by its alias", "local alone"],
)
def test_which_files_count_is_the_clis_to_say(functions: Path, project: str, value: str) -> None:
    if project != "prod":
        (functions / ".env.shop-1").write_text("MAX_DAILY_TOKENS=6\n")
    (functions / ".env.prod").write_text("MAX_DAILY_TOKENS=7\n")
    (functions / f".env.{PROJECT}").write_text("MAX_DAILY_TOKENS=9\n")
    (functions / ".env.local").write_text("MAX_DAILY_TOKENS=8\n")

    assert dotenv(functions, project)["MAX_DAILY_TOKENS"] == value


def test_an_alias_is_resolved(functions: Path) -> None:
    assert read(functions, "prod").project == "shop-1"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("this is not a setting", "this is not a setting"),
        ("FIREBASE_THING=1", "FIREBASE_THING"),
        ("PORT=1", "PORT"),
        ("threads=1", "threads"),
    ],
)
def test_what_the_cli_would_refuse_is_refused_before_it_starts(functions: Path, line: str, names: str) -> None:
    (functions / ".env.shop").write_text(f"{line}\n")

    (fault,) = said(functions, "shop")

    assert ".env.shop" in fault
    assert names in fault


def test_a_wrong_knob_is_named(functions: Path) -> None:
    (functions / ".env.shop").write_text("THREADS=abc\n")

    assert said(functions, "shop") == ["THREADS must be a whole number, not 'abc'"]


def test_a_name_that_is_almost_a_knob_is_a_slip_and_any_other_is_somebody_elses(functions: Path) -> None:
    (functions / ".env.shop").write_text("CHECK_REVOKE=true\nMY_OWN_THING=1\n")

    assert said(functions, "shop") == ["CHECK_REVOKE is not a setting; did you mean CHECK_REVOKED?"]


@pytest.mark.parametrize("name", ["GEMINI_API_KEY", "BUDGET_WEBHOOK_URL"])
def test_a_secret_among_the_settings_is_refused_and_not_repeated(functions: Path, name: str) -> None:
    (functions / ".env.shop").write_text(f"{name}=hush\n")

    assert said(functions, "shop") == [
        f"{name} is a secret and must not be in this file: remove it and run npx firebase functions:secrets:set {name}"
    ]


def test_functions_of_somebody_else_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("THREADS=abc\n")

    assert said(tmp_path, "shop") == []


def test_without_node_it_says_what_is_missing(functions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(functions))

    (fault,) = said(functions, "shop")

    assert "make setup" in fault
