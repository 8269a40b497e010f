"""Names of documents and paths of fields, read as strictly as the emulator reads them."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from tests.twin.errors import invalid

type Path = tuple[str, ...]

NAME: Path = ("__name__",)
MOST_BYTES = 1_500

_STEP = re.compile(r"([a-zA-Z_][a-zA-Z_0-9]*)|`((?:[^`\\]|\\.)+)`", re.DOTALL)
_RESERVED = re.compile(r"__.*__", re.DOTALL)


@lru_cache(maxsize=4_096)
def field_path(text: str) -> Path:
    """The steps of a field path, quoted or not.

    Raises:
        InvalidArgument: it is none.
    """
    steps, at = [], 0
    while step := _STEP.match(text, at):
        steps.append(step[1] or re.sub(r"\\(.)", r"\1", step[2], flags=re.DOTALL))
        at = step.end()
        if at == len(text):
            return _allowed(tuple(steps))
        if text[at] != ".":
            break
        at += 1
    raise invalid(f'Invalid property path "{text}".')


def _allowed(path: Path) -> Path:
    if path != NAME:
        for step in path:
            check_field(step)
    return path


def check_field(name: str) -> None:
    """A field's own name.

    Raises:
        InvalidArgument: no field may have it.
    """
    if not name:
        raise invalid("The property.name is the empty string.")
    if _RESERVED.fullmatch(name):
        raise invalid(f"field name {name} is reserved")
    if len(name.encode()) > MOST_BYTES:
        raise invalid(f"The property.name is longer than {MOST_BYTES} bytes.")


def overlap(paths: Iterable[Path]) -> bool:
    """Whether one of them lies in another; the same one twice does not."""
    ordered = sorted(set(paths))
    return any(after[: len(before)] == before for before, after in pairwise(ordered))


@lru_cache(maxsize=65_536)
def document_name(name: str) -> Path:
    """The segments of a document's full name, in whose order documents are.

    Raises:
        InvalidArgument: no document can have it.
    """
    segments = tuple(name.split("/"))
    if not is_root(segments[:5]) or len(segments) < 7 or len(segments) % 2 == 0:
        raise invalid(f'Document name "{name}" is not one.')
    for segment in segments[5:]:
        _check_id(name, segment)
    return segments


def is_root(segments: Path) -> bool:
    """Whether these are a database's documents."""
    return len(segments) == 5 and (segments[0], segments[2], segments[4]) == ("projects", "databases", "documents")


def _check_id(name: str, segment: str) -> None:
    if segment in {"", ".", ".."} or _RESERVED.fullmatch(segment):
        raise invalid(f'Document name "{name}" contains a resource id "{segment}".')
    if len(segment.encode()) > MOST_BYTES:
        raise invalid(f"The key path element name is longer than {MOST_BYTES} bytes.")


def parent(name: str) -> str:
    """The collection that a document is in, or the document that a collection is in."""
    return name.rpartition("/")[0]
