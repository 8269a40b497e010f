"""A commit: its writes in their order, all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import AlreadyExists, FailedPrecondition, NotFound
from google.cloud.firestore_v1.types import CommitResponse, Document

from tests.twin import fields, values
from tests.twin.clock import micros, timestamp
from tests.twin.documents import Documents, Stored
from tests.twin.errors import invalid, refused
from tests.twin.paths import Path, document_name, field_path, overlap

_Document = Document.pb()
_Response = CommitResponse.pb()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write, read: `exists` and `updated_us` are its preconditions; no `mask` replaces all fields."""

    name: str
    deletes: bool
    exists: bool | None
    updated_us: int | None
    written: Any
    mask: Sequence[Path] | None
    transforms: Sequence[Any]


@dataclass(slots=True)
class Draft:
    """One document while the writes of a commit work on it in turn."""

    before: Stored | None
    first: Change
    last: Change
    after: Any | None
    anew: bool = False

    def delete(self) -> None:
        self.after, self.anew = None, True

    def write(self, change: Change, commit_us: int) -> list[Any]:
        """Take the write in; returns the results of its transforms."""
        if self.after is None:
            self.after = _Document(name=change.name)
        if change.mask is None:
            self.after.ClearField("fields")
            self.after.MergeFrom(_Document(fields=change.written))
        else:
            fields.overlay(self.after.fields, change.written, change.mask)
        return [fields.transformed(self.after.fields, each, commit_us=commit_us) for each in change.transforms]

    def finish(self, commit_us: int) -> Stored | None:
        """The document as the commit leaves it: one that does not change keeps its time."""
        if self.after is None:
            return None
        goes_on = None if self.anew else self.before
        if goes_on is not None and _fields(goes_on.document) == _fields(self.after):
            return goes_on
        now = timestamp(commit_us)
        self.after.create_time.CopyFrom(now if goes_on is None else goes_on.document.create_time)
        self.after.update_time.CopyFrom(now)
        return Stored(self.after)


def commit(documents: Documents, writes: Sequence[Any], commit_us: int) -> Any:
    """Apply all writes, or raise and apply none; returns a bare `CommitResponse`.

    Raises:
        InvalidArgument: one of them is none, or they do not go together.
        AlreadyExists: a document is there that should not be.
        NotFound: a document is not there that should be.
        FailedPrecondition: a document was changed at another time.
    """
    changes = [_read(write) for write in writes]
    drafts = _begun(documents, changes)
    for draft in drafts.values():
        _check(draft.first, draft.before)
    results = [_apply(drafts[change.name], change, commit_us) for change in changes]
    for name, draft in drafts.items():
        documents.put(name, draft.finish(commit_us))
    response = _Response(commit_time=timestamp(commit_us))
    for change, transformed in zip(changes, results, strict=True):
        result = response.write_results.add(transform_results=transformed)
        left = documents.get(change.name)
        if left is not None:
            result.update_time.CopyFrom(left.document.update_time)
    return response


def _read(write: Any) -> Change:
    operation = write.WhichOneof("operation")
    if operation not in {"update", "delete", "transform"}:
        raise invalid("empty write operation")
    transforms = write.transform.field_transforms if operation == "transform" else write.update_transforms
    condition = write.current_document.WhichOneof("condition_type")
    change = Change(
        name={"update": write.update.name, "delete": write.delete, "transform": write.transform.document}[operation],
        deletes=operation == "delete",
        exists=write.current_document.exists if condition == "exists" else None,
        updated_us=_exact_us(write.current_document.update_time) if condition == "update_time" else None,
        written=write.update.fields,
        mask=_mask(write, operation),
        transforms=transforms,
    )
    _check_change(change)
    return change


def _mask(write: Any, operation: str) -> list[Path] | None:
    if operation == "transform":
        return []
    return [field_path(path) for path in write.update_mask.field_paths] if write.HasField("update_mask") else None


def _exact_us(stamp: Any) -> int:
    if stamp.nanos % 1_000:
        raise invalid("timestamp cannot have more than microseconds precision")
    return micros(stamp)


def _check_change(change: Change) -> None:
    document_name(change.name)
    values.stored(change.written)
    for each in change.transforms:
        fields.check_transform(each)
    if overlap(field_path(each.field_path) for each in change.transforms):
        raise invalid("Cannot transform a property and its nested property at the same time.")


def _begun(documents: Documents, changes: Sequence[Change]) -> dict[str, Draft]:
    drafts: dict[str, Draft] = {}
    for change in changes:
        draft = drafts.get(change.name)
        if draft is None:
            before = documents.get(change.name)
            drafts[change.name] = Draft(before=before, first=change, last=change, after=_copy(before))
        else:
            _check_turn(draft, change)
            draft.last = change
    return drafts


def _check_turn(draft: Draft, change: Change) -> None:
    """Writes to one document must make sense in turn; only the first one's condition meets what is stored."""
    needs_it = change.exists or (change.updated_us is not None and not change.deletes)
    if needs_it if draft.last.deletes else change.exists is False:
        raise invalid("Cannot do this to an entity after the other in the same request.")
    if change.updated_us is not None and change.updated_us != draft.first.updated_us:
        raise invalid("Cannot collapse mutations with different version preconditions.")


def _check(change: Change, before: Stored | None) -> None:
    if change.exists is False and before is not None:
        raise refused(AlreadyExists, f"entity already exists: {change.name}")
    if change.exists and before is None:
        raise refused(NotFound, f"no entity to update: {change.name}")
    if change.updated_us is not None:
        _check_version(change.updated_us, 0 if before is None else before.updated_us)


def _check_version(required_us: int, stored_us: int) -> None:
    if 0 < stored_us < required_us:
        raise invalid("Invalid base version, it is greater than the stored version")
    if stored_us != required_us or not stored_us:
        raise refused(
            FailedPrecondition,
            f"the stored version ({stored_us}) does not match the required base version ({required_us})",
        )


def _apply(draft: Draft, change: Change, commit_us: int) -> list[Any]:
    if change.deletes:
        draft.delete()
        return []
    return draft.write(change, commit_us)


def _copy(before: Stored | None) -> Any | None:
    if before is None:
        return None
    copied = _Document()
    copied.CopyFrom(before.document)
    return copied


def _fields(document: Any) -> bytes:
    """The same for the same fields, bit by bit."""
    fields_alone: bytes = _Document(fields=document.fields).SerializeToString(deterministic=True)
    return fields_alone
