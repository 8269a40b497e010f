"""A version of the API that does not know a field of ours: the operator's fault, and the log names the knob."""

import json
from typing import Any

import pytest

from firebreak.errors import ModelInput, ModelUnavailable
from firebreak.gemini.client import Developer, Vertex
from firebreak.gemini.failure import status


def refused(said: str) -> Any:
    body = {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}
    return status(400, json.dumps(body).encode())


def unknown(name: str, where: str = "") -> str:
    return f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (unknown("systemInstruction"), "systemInstruction"),
        (unknown("tools"), "tools"),
        (unknown("responseJsonSchema", " at 'generation_config'"), "responseJsonSchema"),
        (unknown("thoughtSignature", " at 'contents[1].parts[0]'"), "thoughtSignature"),
        (unknown("behavior", " at 'tools[0].function_declarations[0]'"), "behavior"),
    ],
)
def test_an_unknown_field_is_ours_free_and_names_the_knob(said: str, name: str) -> None:
    failed = refused(said)

    assert (failed.refusal, failed.may_be_billed, failed.ours, failed.status) == (ModelUnavailable, False, True, 400)
    assert failed.cause == f"GEMINI_API_VERSION must name a version of the API that knows {name}; try v1beta"


@pytest.mark.parametrize(
    "said",
    [
        unknown("x", " at 'tools[0].google_search'"),
        "Corrupted thought signature.",
        "Unknown name: the model does not know it.",
    ],
)
def test_any_other_wrong_input_stays_the_callers(said: str) -> None:
    failed = refused(said)

    assert (failed.refusal, failed.may_be_billed, failed.ours) == (ModelInput, False, False)
    assert failed.cause == ""


@pytest.mark.parametrize(("asked", "vertex"), [("v1", "v1"), ("v1beta", "v1beta1")])
def test_vertex_has_its_own_name_for_a_version(asked: str, vertex: str) -> None:
    assert Developer(api_key="k").version(asked) == asked
    assert Vertex(project="p", location="global").version(asked) == vertex
