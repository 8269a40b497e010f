"""What a call asks of the bucket, and what it holds once it is admitted."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a call wants: `estimate` is an upper bound on its tokens, `limit` the user's tokens a day.

    `percent` of a limit that the bucket has for itself hold; `limit` is tightened already.
    """

    estimate: int
    limit: int
    model: str
    percent: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A call that was admitted and charged at `estimated`: it may run, and is to be settled once."""

    user_key: str
    request_id: str
    estimated: int
    limit: int
    held_at: datetime
    percent: int = 100
