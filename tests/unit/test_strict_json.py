"""JSON's nesting, found without parsing it: to the bracket, whatever commas and strings stand between."""

import pytest

from firebreak import strict_json


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        (b"1", 0),
        (b"[]", 1),
        (b"[[],[],[],[]]", 2),
        (b'{"a": [1, 2, {"b": 3}], "c": []}', 3),
        (b'["[[[[", "\\"[[[["]', 1),
        (b"[1, 2, [3, 4, [5", 3),
        (b"[[], [[]]]", 3),
    ],
)
def test_a_text_is_as_deep_as_its_brackets(body: bytes, depth: int) -> None:
    structure = strict_json.structure(body)

    assert not strict_json.deeper(structure, depth)
    assert depth == 0 or strict_json.deeper(structure, depth - 1)
