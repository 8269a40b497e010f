"""Random operations as a seed has them: the same on any store, and what each of them came to, in plain values."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import firestore
from google.cloud.firestore_v1._helpers import decode_value, encode_value
from google.cloud.firestore_v1.field_path import FieldPath
from google.cloud.firestore_v1.types import Value, Write
from google.protobuf.timestamp_pb2 import Timestamp

from firebreak.metering.client import Metered
from firebreak.store import commit
from firebreak.store.times import from_us, to_us
from tests.twin.clock import micros

NOW = datetime(2025, 1, 1, tzinfo=UTC)
IDS = ("a", "B", "a-b", "ü", "10", "9")
GONE = firestore.DELETE_FIELD

NAN, INFINITY = float("nan"), float("inf")
NUMBERS: tuple[Any, ...] = (
    *(0, 1, 1, 2, 5, -3, 2**63 - 1, -(2**63), 2**53 + 1),
    *(1.0, 0.5, 0.0, -0.0, 1e300, INFINITY, -INFINITY, NAN),
)
SCALARS: tuple[Any, ...] = (
    *NUMBERS,
    None,
    True,
    False,
    "",
    "x",
    "X",
    "é",
    "\U0001f600",
    "\uffee",
    b"",
    b"\x00\xff",
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    DatetimeWithNanoseconds(2001, 1, 1, nanosecond=123_456_789, tzinfo=UTC),  # type: ignore[no-untyped-call]  # google's
    firestore.GeoPoint(1.5, -2.0),
    firestore.GeoPoint(-90.0, 180.0),
)
COMMON = (0, 1, 2, 5, "x", "X")
VALUES: tuple[Any, ...] = (
    *SCALARS,
    {},
    {"k": 1},
    {"k": 1.0, "l": {"k": None}},
    {"a.b": {"`": 1}},
    [],
    [1, 1.0, "x"],
    [NAN, None, {"k": 1}],
    [2, 5, {"k": [1]}],
)
PATHS = tuple(
    FieldPath(*parts)
    for parts in [("n",), ("n",), ("n",), ("m",), ("m", "k"), ("m", "l", "k"), ("a",), ("a.b", "`"), ("ü",), ("b`q\\",)]
)


@dataclass(slots=True)
class Side:
    """One store: what was seen there of update times, and names for them that both stores share."""

    client: Metered
    root: str
    seen: dict[str, datetime] = field(default_factory=dict)
    first_seen: dict[str, datetime] = field(default_factory=dict)
    names: dict[int, int] = field(default_factory=dict)
    commits: int = 0
    last_us: int = 0

    def document(self, path: str) -> firestore.DocumentReference:
        return self.client.document(f"{self.root}/{path}")

    def collection(self, path: str = "") -> firestore.CollectionReference:
        return self.client.collection(f"{self.root}/{path}" if path else self.root)

    def note(self, path: str, updated: Any) -> None:
        # The SDK's snapshots of a collection group have the wire's own.
        if not isinstance(updated, datetime):
            return
        self.seen[path] = updated
        self.first_seen.setdefault(path, updated)

    def name(self, stamp: Any) -> int | None:
        """The number of the commit that a document's time is of."""
        return None if stamp is None else self.names.get(us(stamp), -1)

    def commit(self, batch: firestore.WriteBatch, paths: Sequence[str]) -> Any:
        """Commit writes to the documents at these paths; returns what that came to."""
        batch.commit()
        return self.committed(batch, paths)

    def committed(self, batch: firestore.WriteBatch, paths: Sequence[str]) -> Any:
        """Name the time of a commit, which is later than any before; returns its results."""
        self.commits += 1
        stamp = us(batch.commit_time)
        assert stamp > self.last_us, "commit times must rise"
        self.last_us = stamp
        self.names[stamp] = self.commits
        results = batch.write_results or []
        for path, result in zip(paths, results, strict=True):
            self.note(path, result.update_time)
        return [
            (
                self.name(result.update_time),
                [plain(decode_value(sum_, self.client)) for sum_ in result.transform_results],
            )
            for result in results
        ]

    def read_at(self, read_time: Any) -> None:
        assert us(read_time) >= self.last_us, "a read must not be before a commit"


NUMERIC = (firestore.Increment, firestore.Maximum, firestore.Minimum)
LISTED = (firestore.ArrayUnion, firestore.ArrayRemove)

type Step = Callable[[Side], Any]
type Queue = Callable[[Side, firestore.WriteBatch], None]


def readable(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a write as a failure shows them: the SDK's transforms say only where they are in memory."""
    return {name: _readable(value) for name, value in data.items()}


def _readable(value: Any) -> Any:
    if isinstance(value, NUMERIC + LISTED):
        return type(value).__name__, value.value if isinstance(value, NUMERIC) else value.values
    return value


def us(stamp: Any) -> int:
    """Microseconds of a time, whether it came as the wire has it or as a datetime."""
    return to_us(stamp) if isinstance(stamp, datetime) else micros(stamp)


def outcome(step: Step, side: Side) -> Any:
    """What a step came to; an error by its type and code."""
    try:
        return step(side)
    except GoogleAPICallError as error:
        return type(error).__name__, error.code
    except (ValueError, TypeError, AttributeError) as error:
        return type(error).__name__


def plain(value: Any) -> Any:
    """A value that equals only what is the same bit by bit; times of the server's clock are all one."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return "server's" if value > NOW else f"time {value.isoformat()}"
    if isinstance(value, firestore.GeoPoint):
        return f"geo {value.latitude!r} {value.longitude!r}"
    if isinstance(value, firestore.DocumentReference):
        return f"document {value.path}"
    return f"{type(value).__name__} {value!r}"


def shown(side: Side, snapshot: firestore.DocumentSnapshot[Any]) -> Any:
    side.read_at(snapshot.read_time)
    path = snapshot.reference.path.removeprefix(side.root + "/")
    if not snapshot.exists:
        return path, None
    side.note(path, snapshot.update_time)
    return path, plain(snapshot._data), side.name(snapshot.update_time), side.name(snapshot.create_time)


class History:
    """Makes the steps of one seed, each with the number of operations that it is."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self.root = f"h{seed}"
        self.group = f"g{seed}"
        self._paths = [*IDS, f"a/{self.group}/x", f"a/{self.group}/y", f"q/{self.group}/x", f"ü/{self.group}/z"]

    def step(self) -> tuple[int, str, Step]:
        """Operations, what the step is, and the step."""
        self._number += 1
        weighted: list[tuple[int, Callable[[], tuple[int, str, Step]]]] = [
            (50, self.commit),
            (22, self.query),
            (8, self.get),
            (4, self.get_all),
            (4, self.listed),
            (3, self.count),
            (2, self.transact),
            (1, self.sum),
            (1, self.collections),
        ]
        make = self.weighed(weighted)
        return make()

    def commit(self) -> tuple[int, str, Step]:
        (count,) = self._random.choices([1, 2, 3, 4], [60, 28, 9, 3])
        path = self.path()
        queue: list[tuple[str, Queue]] = []
        told = []
        for _ in range(count):
            what, queued = self.write(path)
            told.append(f"{what} {path}")
            queue.append((path, queued))
            if self.chance(0.85):
                path = self.path()

        def step(side: Side) -> Any:
            batch = side.client.batch()
            for _, queued in queue:
                queued(side, batch)
            return side.commit(batch, [path for path, _ in queue])

        return count, f"commit {told}", step

    def get(self) -> tuple[int, str, Step]:
        path = self.path()
        mask = [self.field().to_api_repr()] if self.chance(0.2) else None
        return 1, f"get {path} {mask}", lambda side: shown(side, side.document(path).get(mask))

    def get_all(self) -> tuple[int, str, Step]:
        paths = [self.path() for _ in range(self._random.randint(1, 4))]

        def step(side: Side) -> Any:
            found = side.client.get_all([side.document(path) for path in paths])
            return sorted(repr(shown(side, snapshot)) for snapshot in found)

        return len(paths), f"get_all {paths}", step

    def query(self) -> tuple[int, str, Step]:
        told, make = self.asked()

        def step(side: Side) -> Any:
            return [shown(side, snapshot) for snapshot in make(side).get()]

        return 1, f"query {told}", step

    def count(self) -> tuple[int, str, Step]:
        told, make = self.asked()

        def step(side: Side) -> Any:
            ((result,),) = make(side).count(alias="all").get()
            return result.alias, plain(result.value)

        return 1, f"count {told}", step

    def sum(self) -> tuple[int, str, Step]:
        """Of small whole numbers: of others, the sum depends on their order."""

        def step(side: Side) -> Any:
            every: Any = side.collection()
            (found,) = every.count().sum("version").avg("version", alias="mean").get()
            return sorted((result.alias, plain(result.value)) for result in found)

        return 1, "sum", step

    def listed(self) -> tuple[int, str, Step]:
        size, path = self._random.choice([None, 1, 2, 3]), self._random.choice(["", f"a/{self.group}"])

        def step(side: Side) -> Any:
            return [document.path for document in side.collection(path).list_documents(page_size=size)]

        return 1, f"list {path} {size}", step

    def collections(self) -> tuple[int, str, Step]:
        path = self._random.choice(["a", "q", "B"])
        return 1, f"collections {path}", lambda side: [each.id for each in side.document(path).collections()]

    def transact(self) -> tuple[int, str, Step]:
        read, path = self.path(), self.path()
        what, queued = self.write(path)

        def step(side: Side) -> Any:
            transaction = side.client.transaction(max_attempts=1)

            def work(transaction: firestore.Transaction) -> Any:
                snapshot = side.document(read).get(transaction=transaction)
                queued(side, transaction)
                return snapshot.exists

            there = firestore.transactional(work)(transaction)
            return there, side.committed(transaction, [path])

        return 2, f"transact {read}, {what} {path}", step

    def asked(self) -> tuple[str, Callable[[Side], Any]]:
        """A query of the shapes that the shipped code has, and their relatives."""
        source = self._random.choice(["", "", "", f"a/{self.group}", "group"])
        parts: list[tuple[str, tuple[Any, ...]]] = []
        ranged = self.filters(parts)
        self.orders(parts, ranged)
        if self.chance(0.5):
            parts.append(("limit", (self._random.choice([0, 1, 2, 3, 100]),)))
        if self.chance(0.15):
            parts.append(("offset", (self._random.randint(0, 3),)))
        if self.chance(0.2):
            parts.append(("select", (self._random.choice([[], ["__name__"], ["n"], ["m.k", "a"]]),)))

        def make(side: Side) -> Any:
            query: Any = side.client.collection_group(self.group) if source == "group" else side.collection(source)
            for method, arguments in parts:
                if method == "where":
                    query = query.where(filter=firestore.FieldFilter(*arguments))
                elif method == "order_by":
                    query = query.order_by(arguments[0], direction=arguments[1])
                elif method.startswith(("start", "end")) and "__name__" in arguments[0]:
                    name = side.document(arguments[0]["__name__"])
                    query = getattr(query, method)({**arguments[0], "__name__": name})
                else:
                    query = getattr(query, method)(*arguments)
            return query

        return f"{source} {parts}", make

    def filters(self, parts: list[tuple[str, tuple[Any, ...]]]) -> str | None:
        """Returns the field that an inequality is about."""
        if self.chance(0.2):
            parts.append(("where", ("n", "==", self.value(SCALARS))))
        if self.chance(0.2):
            some = [self.value(SCALARS) for _ in range(self._random.randint(1, 3))]
            op, operand = self._random.choice([("in", some), ("array_contains", some[0]), ("array_contains_any", some)])
            parts.append(("where", ("n" if op == "in" else "a", op, operand)))
        if self.chance(0.3):
            name = self._random.choice(["n", "m.k", "m"])
            parts.append(("where", (name, self._random.choice(["<", "<=", ">", ">="]), self.value(VALUES))))
            return name
        return None

    def orders(self, parts: list[tuple[str, tuple[Any, ...]]], ranged: str | None) -> None:
        order = self._random.choice([[], [], ["n"], ["m.k"], ["n", "__name__"], ["__name__"], ["n", "m"]])
        if ranged is not None:
            order = [ranged, *(name for name in order if name != ranged)]
        for name in order:
            # A whole collection group by descending names would need an index.
            directions = ["ASCENDING"] if order[0] == "__name__" else ["ASCENDING", "DESCENDING"]
            parts.append(("order_by", (name, self._random.choice(directions))))
        for methods in (["start_at", "start_after"], ["end_at", "end_before"]):
            if order and "." not in "".join(order) and self.chance(0.25):
                cursor = {
                    name: self._random.choice(IDS) if name == "__name__" else self.value(VALUES) for name in order
                }
                parts.append((self._random.choice(methods), (cursor,)))

    def write(self, path: str) -> tuple[str, Queue]:
        weighted: list[tuple[int, Callable[[str], tuple[str, Queue]]]] = [
            (30, self.shipped),
            (20, self.update),
            (14, self.create),
            (12, self.merge),
            (10, self.raw),
            (11, self.put),
            (5, self.delete),
        ]
        make = self.weighed(weighted)
        return make(path)

    def create(self, path: str) -> tuple[str, Queue]:
        data = self.fields(transforms=True)
        return f"create {readable(data)}", lambda side, batch: batch.create(side.document(path), data)

    def put(self, path: str) -> tuple[str, Queue]:
        data = self.fields(transforms=True)
        return f"set {readable(data)}", lambda side, batch: batch.set(side.document(path), data)

    def merge(self, path: str) -> tuple[str, Queue]:
        data = self.fields(transforms=True, deletes=True)
        merge = True if self.chance(0.7) else [FieldPath(name).to_api_repr() for name in data][:2]
        return f"merge {readable(data)} {merge}", lambda side, batch: batch.set(side.document(path), data, merge=merge)

    def update(self, path: str) -> tuple[str, Queue]:
        data = {
            self.field().to_api_repr(): self._random.choice([self.value(VALUES), self.transform(), GONE])
            for _ in range(self._random.randint(1, 3))
        }
        data |= self.stamped()
        unchanged = self.unchanged(path)

        def queued(side: Side, batch: firestore.WriteBatch) -> None:
            when = unchanged(side)
            option = None if when is None else side.client.write_option(last_update_time=when)
            batch.update(side.document(path), data, option=option)

        return f"update {readable(data)} {unchanged.__doc__}", queued

    def delete(self, path: str) -> tuple[str, Queue]:
        unchanged, exists = self.unchanged(path), self._random.choice([None, True, False])

        def queued(side: Side, batch: firestore.WriteBatch) -> None:
            when = unchanged(side)
            option = None if exists is None else side.client.write_option(exists=exists)
            if when is not None:
                option = side.client.write_option(last_update_time=when)
            batch.delete(side.document(path), option=option)

        return f"delete {exists} {unchanged.__doc__}", queued

    def shipped(self, path: str) -> tuple[str, Queue]:
        """As bucket, limits and switch write."""
        data: dict[str, Any] = {"version": self._random.randint(0, 3), "n": self._random.choice([1, 5, "x", 2**62])}
        if self.chance(0.3):
            data["m"] = {"k": self._random.randint(0, 5), "at": datetime(2000, 1, 1, tzinfo=UTC)}
        if self.chance(0.3):
            return f"shipped create {data}", lambda side, batch: commit.create(batch, side.document(path), data)
        increments = {name: self._random.choice([1, -5, 2**62]) for name in ("n", "life.x", "b") if self.chance(0.4)}
        paths = None if self.chance(0.6) else ["m.k", "version"]
        unchanged = self.unchanged(path)

        def queued(side: Side, batch: firestore.WriteBatch) -> None:
            when = unchanged(side)
            commit.update(batch, side.document(path), data, increments=increments, unchanged=when, paths=paths)

        return f"shipped update {data} {increments} {paths} {unchanged.__doc__}", queued

    def raw(self, path: str) -> tuple[str, Queue]:
        """What the SDK's own builders never send."""
        write = Write.pb()()
        for name in self._random.sample(["n", "m", "a", "x.y"], 2):
            write.update.fields[name].CopyFrom(self.bare())
        if self.chance(0.6):
            masks = ["n", "m", "m.k", "m.l.k", "a", "`x.y`", "none", "n.k", "b..c", "1a", "``", "`a\\`b`"]
            write.update_mask.field_paths.extend(self._random.choices(masks, [8] * 8 + [1] * 4, k=2))
        if self.chance(0.4):
            for _ in range(2):
                added = write.update_transforms.add(field_path=self._random.choice(["n", "m.k", "a", "m", "c.d"]))
                kind = self._random.choice(["increment", "maximum", "minimum"])
                getattr(added, kind).CopyFrom(Value.pb(encode_value(self._random.choice(NUMBERS))))
        condition = self._random.choice([None, None, None, True, False, Timestamp(seconds=9, nanos=1)])
        if isinstance(condition, bool):
            write.current_document.exists = condition
        elif condition is not None:
            write.current_document.update_time.CopyFrom(condition)

        def queued(side: Side, batch: firestore.WriteBatch) -> None:
            write.update.name = side.document(path)._document_path
            batch._add_write_pbs([Write.wrap(write)])

        return f"raw {write}", queued

    def bare(self) -> Any:
        bad = [Value.pb()(), Value.pb()(array_value={"values": [{"array_value": {}}]})]
        bad.append(Value.pb()(timestamp_value=Timestamp(seconds=2**50)))
        bad.append(Value.pb()(map_value={"fields": {"__x__": {"null_value": 0}}}))
        bad.append(Value.pb()(reference_value="projects/p/databases/d/documents/a"))
        return self._random.choice(bad) if self.chance(0.1) else Value.pb(encode_value(self.value(VALUES)))

    def unchanged(self, path: str) -> Callable[[Side], datetime | None]:
        """A precondition: none, the time last seen, one of before, or one just beside."""
        (kind,) = self._random.choices(["none", "seen", "first", "before", "after", "never"], [40, 40, 8, 4, 4, 4])
        never = datetime(2020, 1, 1, tzinfo=UTC)

        def unchanged(side: Side) -> datetime | None:
            if kind == "none":
                return None
            if kind == "first":
                return side.first_seen.get(path, never)
            seen = side.seen.get(path)
            if seen is None:
                return None
            beside = {"before": -1, "after": 1}.get(kind, 0)
            if kind == "never":
                return never
            return from_us(to_us(seen) + beside) if beside else seen

        unchanged.__doc__ = f"if {kind}"
        return unchanged

    def fields(self, *, transforms: bool = False, deletes: bool = False) -> dict[str, Any]:
        names = self._random.sample(["n", "m", "a", "b", "ü", "a.b", "b`q\\", "r"], self._random.randint(0, 4))
        data: dict[str, Any] = {name: self.value(VALUES) for name in names}
        if self.chance(0.8):
            data["n"] = self.value(SCALARS)
        if transforms and self.chance(0.25):
            data["b"] = self.transform()
        if deletes and self.chance(0.3):
            data["n"] = GONE
        return data | self.stamped()

    def stamped(self) -> dict[str, Any]:
        """The server's time, with a number that no other write has: two times may be the same millisecond."""
        return {"s": firestore.SERVER_TIMESTAMP, "u": self._number} if self.chance(0.1) else {}

    def transform(self) -> Any:
        number = self._random.choice(NUMBERS)
        some = [self.value(SCALARS) for _ in range(self._random.randint(1, 3))]
        return self._random.choice(
            [
                firestore.Increment(number),
                firestore.Increment(number),
                firestore.Maximum(number),
                firestore.Minimum(number),
                firestore.ArrayUnion(some),
                firestore.ArrayRemove(some),
            ]
        )

    def weighed[T](self, weighted: Sequence[tuple[int, T]]) -> T:
        ((_, chosen),) = self._random.choices(weighted, [weight for weight, _ in weighted])
        return chosen

    def value(self, some: Sequence[Any]) -> Any:
        """One of some, nasty as they are, or one that is likely to be met again."""
        return self._random.choice(COMMON if self.chance(0.4) else some)

    def field(self) -> FieldPath:
        return self._random.choice(PATHS)

    def path(self) -> str:
        return self._random.choice(self._paths)

    def chance(self, of: float) -> bool:
        return self._random.random() < of
