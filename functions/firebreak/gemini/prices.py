"""What a call costs in bucket tokens: usage as the model reports it, weighed by model and kind of token."""

from dataclasses import dataclass, fields, replace

from firebreak.settings.weights import BELIEVABLE, FLAT, ONE, Price

# Stands for a count that was told as something other than a whole number.
NOT_A_COUNT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one call; `prompt` includes `cached`. None: the model did not say."""

    prompt: int | None = None
    output: int | None = None
    thought: int | None = None
    cached: int | None = None
    tool: int | None = None
    total: int | None = None

    @property
    def believable(self) -> bool:
        """Whether every count that was given can be one, and all of them together."""
        given = [getattr(self, f.name) for f in fields(self)]
        return all(value is None or count(value) is not None for value in given) and self.tokens <= BELIEVABLE

    @property
    def parts(self) -> int:
        """The sum of the parts; cached tokens are prompt tokens already."""
        return sum(part or 0 for part in (self.prompt, self.output, self.thought, self.tool))

    @property
    def adds_up(self) -> bool:
        """Whether the total is the sum of its parts, as far as both were given."""
        return not self.total or not self.parts or self.total == self.parts

    @property
    def tokens(self) -> int:
        """Tokens of the whole call: the total or the sum of the parts, whichever is larger."""
        return max(self.total or 0, self.parts)

    def as_json(self) -> dict[str, int]:
        """The counts as the callable answers them, with 0 for what was not said."""
        counts = {f"{f.name}Tokens": count(getattr(self, f.name)) or 0 for f in fields(self) if f.name != "total"}
        return counts | {"totalTokens": self.tokens if self.believable else 0}


UNSAID = Usage()


def count(value: object) -> int | None:
    """`value` if it can be a token count, else None."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= BELIEVABLE:
        return None
    return value


def cost(usage: Usage, price: Price) -> int | None:
    """Bucket tokens of a call, rounded up; None if its usage says nothing, or something that cannot be.

    Thoughts and tool prompts count beside the candidates. What a total holds above its parts costs the dearest weight.
    """
    if not usage.believable or not usage.tokens:
        return None
    at = price.at(max(usage.prompt or 0, usage.tokens - usage.parts))
    prompt, cached = usage.prompt or 0, min(usage.cached or 0, usage.prompt or 0)
    weighed = (
        (prompt - cached) * at.prompt
        + cached * at.cached
        + (usage.output or 0) * at.output
        + (usage.thought or 0) * at.thought
        + (usage.tool or 0) * at.tool
        + (usage.tokens - usage.parts) * max(at.dearest_input, at.dearest_output)
    )
    return -(-weighed // ONE)


def bound(prompt_tokens: int, output_tokens: int, price: Price) -> int:
    """Most bucket tokens of a call whose prompt and answer are at most these."""
    # A shorter prompt may be the dearer one, if somebody priced it so.
    short, long = price.short, price.at(prompt_tokens)
    dearest_input = max(short.dearest_input, long.dearest_input)
    dearest_output = max(short.dearest_output, long.dearest_output)
    return -(-(prompt_tokens * dearest_input + output_tokens * dearest_output) // ONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The charge of a call as its answer comes in. In doubt it is the estimate, and never less than the most seen.

    `finished`: the model said that it is done; `ended`: nothing was cut off. Only then is its last usage the charge.
    """

    estimate: int
    price: Price = FLAT
    finished: bool = False
    ended: bool = False
    usage: Usage = UNSAID
    most: int = 0

    def see(self, usage: Usage | None, *, finished: bool) -> "Tally":
        """Take in one chunk: what it says of usage, and whether the model says that it is done.

        Counts in chunks are no running totals to rely on: they fall and jump. Those of the last one count, once it is
        known to be the last.
        """
        done = self.finished or finished
        if usage is None:
            # The last chunk's counts are the ones to go by: if it has none, those of an earlier one will not do.
            last = finished and not self.finished
            return replace(self, finished=done, usage=UNSAID if last else self.usage)
        return replace(self, finished=done, usage=usage, most=max(self.most, cost(usage, self.price) or 0))

    def end(self) -> "Tally":
        """The answer came to its end, and did not break on the way."""
        return replace(self, ended=True)

    @property
    def charge(self) -> int:
        """Bucket tokens to book."""
        final = cost(self.usage, self.price) if self.finished and self.ended else None
        return max(self.estimate, self.most) if final is None else final
