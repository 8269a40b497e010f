"""What a call costs in bucket tokens: usage as the model reports it, weighed."""

from dataclasses import dataclass, fields

# No call of any model reaches this: a count above it is a fault of the report.
BELIEVABLE = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one call; `prompt` includes `cached`. None: the model did not say."""

    prompt: int | None = None
    output: int | None = None
    thought: int | None = None
    cached: int | None = None
    tool: int | None = None
    total: int | None = None

    def as_json(self) -> dict[str, int]:
        """The counts as the callable answers them, with 0 for what was not said."""
        return {f"{f.name}Tokens": count(getattr(self, f.name)) or 0 for f in fields(self) if f.name != "total"} | {
            "totalTokens": billed(self) or 0
        }


def count(value: object) -> int | None:
    """`value` if it can be a token count, else None."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= BELIEVABLE:
        return None
    return value


def billed(usage: Usage) -> int | None:
    """Tokens of a whole call: the total, or the sum of the parts where that is larger; None if there is no count.

    Never the candidates alone: thoughts and tool prompts are billed beside them.
    """
    parts = [count(part) for part in (usage.prompt, usage.output, usage.thought, usage.tool)]
    known = [part for part in [sum(part or 0 for part in parts), count(usage.total)] if part]
    return max(known, default=None)
