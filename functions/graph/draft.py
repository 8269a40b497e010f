"""What a list of operations makes of a graph, on paper: nothing is read or written here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from firebreak.errors import InvalidField
from graph.documents import Content, Key, Kind, node, same


@dataclass(slots=True, kw_only=True)
class Draft:
    """The documents as they were read and as they are to be (None: there is none), and the nodes whose edges must go.

    An operation sees what those before it in the list have done.
    """

    before: Mapping[Key, Content | None]
    after: dict[Key, Content | None] = field(default_factory=dict)
    swept: dict[str, None] = field(default_factory=dict)
    _claims: dict[Key, str] = field(default_factory=dict)

    def get(self, key: Key) -> Content | None:
        """A document as of now."""
        return self.after[key] if key in self.after else self.before.get(key)

    def create(self, key: Key, content: Content, place: str) -> None:
        """Put a document where there is none, or one that is the same."""
        now = self.get(key)
        if now is not None and not same(now, content):
            if key in self.after:
                raise _exists(place)
            # A list that is sent again may create what it then changes: it counts what comes of it in the end.
            self._claims.setdefault(key, place)
        self.after[key] = content

    def change(self, key: Key, fields: Content, place: str) -> None:
        """Change fields of a document that is there."""
        self.must_be(key, f"{place}.id")
        self.after[key] = {**(self.get(key) or {}), **fields}

    def must_be(self, key: Key, place: str) -> None:
        """Refuse where there is no such document."""
        if self.get(key) is None:
            raise InvalidField(f"{place}: there is no such {'node' if key.kind is Kind.NODE else 'edge'}")

    def delete(self, key: Key) -> None:
        """Take a document away, if it is there."""
        self.after[key] = None

    def delete_node(self, id_: str) -> None:
        """Take a node away with its edges: here those that are known, and by a sweep those that are only stored."""
        self.delete(node(id_))
        self.swept[id_] = None
        for key in [*self.before, *self.after]:
            now = self.get(key) if key.kind is Kind.EDGE else None
            if now is not None and id_ in (now.get("from"), now.get("to")):
                self.delete(key)

    def changes(self) -> dict[Key, Content | None]:
        """The documents that are to be others than they were.

        Raises:
            InvalidField: one that was to be created was there, with another content.
        """
        changed = {key: after for key, after in self.after.items() if not same(after, self.before.get(key))}
        for key, place in self._claims.items():
            if key in changed:
                raise _exists(place)
        return changed


def _exists(place: str) -> InvalidField:
    return InvalidField(f"{place}.id: exists already, with another content")
