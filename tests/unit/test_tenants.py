"""Which tenants may call, and that nothing of ours is named by a uid alone."""

import ast

import pytest

from firebreak.errors import SignInRequired
from firebreak.guard.attest import _tenant
from firebreak.store.documents import user_key
from scripts.local.layout import ROOT

FIREBREAK = ROOT / "functions" / "firebreak"


@pytest.mark.parametrize("claim", [{}, {"tenant": None}])
def test_a_user_without_a_tenant_needs_no_setting(claim: dict[str, object]) -> None:
    assert _tenant(claim, ()) is None


def test_a_tenant_that_is_named_may_call() -> None:
    assert _tenant({"tenant": "acme"}, ("globex", "acme")) == "acme"


@pytest.mark.parametrize("tenant", ["acme", "", "globe", "GLOBEX", "globex ", 5, True, ["globex"], {"globex": 1}])
def test_a_tenant_that_is_not_named_is_refused_and_told_the_setting(tenant: object) -> None:
    with pytest.raises(SignInRequired, match="ALLOWED_TENANTS"):
        _tenant({"tenant": tenant}, ("globex",))


def test_a_user_of_a_tenant_has_a_key_of_their_own() -> None:
    keys = [user_key("alice", tenant) for tenant in (None, "acme", "globex")]

    assert keys == ["alice", "acme.alice", "globex.alice"]


def test_no_code_of_ours_reads_a_uid_but_that_which_verifies_it() -> None:
    found = {
        path.name
        for path in [*FIREBREAK.rglob("*.py"), FIREBREAK.parent / "main.py"]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "uid"
    }

    # Whether the SDK's second lock found a user at all.
    assert found == {"layers.py"}
