"""Upper bounds on what a request can cost, before it is sent: pure arithmetic."""

from firebreak.gemini.request import Request, prompt_bytes

# What the service may add around the text: turn markers, the role, the beginning of the answer.
TURN_TOKENS = 8
REQUEST_TOKENS = 16


def bound(request: Request) -> int:
    """Most tokens that prompt and answer can be together."""
    return prompt_bound(request) + output_bound(request)


def prompt_bound(request: Request) -> int:
    """Most tokens the prompt can be: one for each UTF-8 byte; a tokenizer with byte fallback makes no smaller ones."""
    return prompt_bytes(request) + overhead(request)


def overhead(request: Request) -> int:
    """Tokens the service may add around the texts."""
    return REQUEST_TOKENS + TURN_TOKENS * (len(request.turns) + (request.system is not None))


def output_bound(request: Request) -> int:
    """Most tokens the answer can be, thoughts included: the limit covers both, once for each candidate."""
    return request.candidates * request.max_output_tokens
