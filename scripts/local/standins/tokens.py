"""A tokenizer for the stand-in: deterministic, about as dense as a real one, and never more tokens than UTF-8 bytes."""

import hashlib
import re
from itertools import count as counter

_PIECE = re.compile(r"[\x00-\x7f]{1,4}|[^\x00-\x7f]")
_WORDS = (
    "the a quiet harbour light over water turned and slowly every morning ship beyond hills carried letters "
    "home while winter wind kept old stories under snow her brother counted stars until dawn found them walking"
).split()


def count(text: str) -> int:
    """Tokens in `text`: one for up to four ASCII characters, one for any other character."""
    return sum(1 for _ in _PIECE.finditer(text))


def cut(text: str, tokens: int) -> str:
    """The first `tokens` tokens of `text`."""
    return "".join(match.group() for match, _ in zip(_PIECE.finditer(text), range(tokens), strict=False))


def split(text: str, parts: int) -> list[str]:
    """`text` in up to `parts` pieces between tokens, none of them empty; one empty piece for an empty text."""
    pieces = _PIECE.findall(text)
    size = max(1, -(-len(pieces) // parts))
    return ["".join(pieces[start : start + size]) for start in range(0, len(pieces), size)] or [""]


def prose(seed: str, tokens: int) -> str:
    """Text of exactly `tokens` tokens, the same for the same seed."""
    words: list[str] = []
    length = 0
    for number in counter():
        if length >= 4 * tokens:
            break
        digest = hashlib.blake2b(f"{number} {seed}".encode(), digest_size=2).digest()
        words.append(_WORDS[int.from_bytes(digest) % len(_WORDS)])
        length += len(words[-1]) + 1
    return cut(" ".join(words) + ".", tokens)


def percent(seed: str) -> int:
    """A number from 0 to 99, the same for the same seed."""
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=4).digest()) % 100
