"""What a token costs the bucket, by model and kind."""

from dataclasses import dataclass

# The largest context window of any Gemini model: a call that is said to have used more did not.
BELIEVABLE = 2**21


# Weights are whole thousandths of a bucket token.
ONE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Thousandths of a bucket token that one token of each kind costs."""

    prompt: int = ONE
    output: int = ONE
    thought: int = ONE
    cached: int = ONE
    tool: int = ONE

    @property
    def dearest_input(self) -> int:
        return max(self.prompt, self.cached, self.tool)

    @property
    def dearest_output(self) -> int:
        return max(self.output, self.thought)


EVEN = Weights()


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model's tokens cost; with prompts of more than `long_from` tokens, `long` instead of `short`."""

    short: Weights = EVEN
    long_from: int | None = None
    long: Weights = EVEN

    def at(self, prompt_tokens: int) -> Weights:
        """The weights of a call whose prompt has this many tokens."""
        return self.short if self.long_from is None or prompt_tokens <= self.long_from else self.long


FLAT = Price()
