"""Function declarations as a client sends them: what the API knows by name, checked before the SDK sees it.

The SDK takes a name that it does not know, warns with the client's text on stderr, and keeps that text for ever.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from firebreak.errors import InvalidField

TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL", "TYPE_UNSPECIFIED")
BEHAVIORS = ("BLOCKING", "NON_BLOCKING", "UNSPECIFIED")
# Schemas within a schema: alone, in a list, by name. JSON is taken under the fields' names in Python too.
ALONE, LISTED, NAMED = ("items",), ("anyOf", "any_of"), ("properties", "defs")


def check(value: object, name: str) -> None:
    """Check names in `functionDeclarations`; whatever else is no declaration is left to the API's own types.

    Raises:
        InvalidField: a type or behavior is none that the API knows.
    """
    for index, declaration in enumerate(value if isinstance(value, list) else ()):
        if isinstance(declaration, dict):
            _check(declaration, f"{name}[{index}]")


def _check(declaration: Mapping[str, object], name: str) -> None:
    _check_name(declaration, "behavior", BEHAVIORS, name)
    for field in ("parameters", "response"):
        for schema in _schemas(declaration.get(field)):
            _check_name(schema, "type", TYPES, f"{name}.{field}")


def _check_name(fields: Mapping[str, object], field: str, known: tuple[str, ...], name: str) -> None:
    value = fields.get(field)
    if value is not None and not (isinstance(value, str) and value.upper() in known):
        raise InvalidField(f"{name} must hold as {field} one of: {', '.join(known)}")


def _schemas(schema: object) -> Iterator[Mapping[str, object]]:
    """A schema and all within it."""
    if not isinstance(schema, dict):
        return
    yield schema
    alone = [schema.get(field) for field in ALONE]
    listed = [schema[field] for field in LISTED if isinstance(schema.get(field), list)]
    named = [schema[field].values() for field in NAMED if isinstance(schema.get(field), dict)]
    for inner in chain(alone, *listed, *named):
        yield from _schemas(inner)
