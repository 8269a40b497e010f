"""What the bucket's documents say about one user. Pure."""

from dataclasses import dataclass

DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDocument:
    """`token_buckets/{uid}/calls/{requestId}`: estimated when it was admitted, actual once it was settled."""

    status: str
    estimated: int
    actual: int | None

    @property
    def charged(self) -> int:
        """What the call takes from the bucket: the estimate until it is settled."""
        if self.status == "void":
            return 0
        return self.estimated if self.actual is None else self.actual


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """`token_buckets/{uid}` at one moment; times are the server's, in microseconds."""

    level: int
    opened_us: int
    updated_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """All that is stored about a user's tokens."""

    bucket: Bucket | None
    calls: tuple[CallDocument, ...] = ()

    @property
    def documents(self) -> int:
        return len(self.calls) + (self.bucket is not None)

    @property
    def admitted(self) -> int:
        return sum(call.status != "void" for call in self.calls)

    @property
    def held(self) -> int:
        return sum(call.status == "held" for call in self.calls)

    @property
    def estimated(self) -> int:
        return sum(call.estimated for call in self.calls if call.status != "void")

    @property
    def charged(self) -> int:
        return sum(call.charged for call in self.calls)

    @property
    def refunded(self) -> int:
        return self.estimated - self.charged

    @property
    def smallest_estimate(self) -> int:
        return min((call.estimated for call in self.calls if call.status != "void"), default=0)


def refill_needed(books: Books, limit: int) -> int:
    """Tokens that must have been refilled for the level to be what it is: level = limit - charged + refill."""
    assert books.bucket is not None
    return books.bucket.level - limit + books.charged


def refill_possible(bucket: Bucket, limit: int) -> int:
    """Tokens that `limit` a day can have bought in the life of the bucket."""
    return limit * max(0, bucket.updated_us - bucket.opened_us) // DAY_US + 1
