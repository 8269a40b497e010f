"""Upper bounds on what a request can cost, before it is sent: pure arithmetic."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from unicodedata import normalize

from firebreak.gemini.prices import bound
from firebreak.gemini.request import Request, declared, signatures, texts
from firebreak.settings.weights import Price

# What the service may add around the text: turn markers, the role, the beginning of the answer.
TURN_TOKENS = 8
REQUEST_TOKENS = 16


def most(request: Request, price: Price, *, counted: int | None = None) -> int:
    """Most bucket tokens of prompt and answer together; `counted` is the model's own count of the prompt, if asked."""
    unseen = tokens_bound(declared(request) + signatures(request)) + overhead(request)
    prompt = prompt_bound(request) if counted is None else counted + unseen
    return bound(prompt, output_bound(request), price)


def most_of_the_answer(request: Request, price: Price) -> int:
    """Most bucket tokens of the answer and the least of prompts: a bucket with less cannot pay for the call."""
    return bound(1 + overhead(request), output_bound(request), price)


def prompt_bound(request: Request) -> int:
    """Most tokens that a prompt of text can be."""
    return tokens_bound(texts(request) + declared(request)) + overhead(request)


def tokens_bound(texts: Iterable[str]) -> int:
    """Most tokens that texts can be: one for each UTF-8 byte, since byte fallback makes no smaller ones.

    Some characters grow when a tokenizer normalises them (NFKC makes 33 bytes of U+FDFA's three): then those count.
    Each is looked at alone: composing makes none longer, and normalising a text of many marks takes quadratic time.
    """
    characters = Counter(chain.from_iterable(texts))
    return sum(times * _most_bytes(character) for character, times in characters.items())


def _most_bytes(character: str) -> int:
    return max(len(character.encode()), len(normalize("NFKC", character).encode()))


def overhead(request: Request) -> int:
    """Tokens the service may add around the texts."""
    return REQUEST_TOKENS + TURN_TOKENS * (len(request.turns) + (request.system is not None))


def output_bound(request: Request) -> int:
    """Most tokens the answer can be, thoughts included: the limit covers both, once for each candidate."""
    return request.candidates * request.max_output_tokens
