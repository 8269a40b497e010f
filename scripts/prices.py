"""What Google bills, from prices.toml: assumptions with a date, in whole nano-dollars a token."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("prices.toml")
# A dollar per million tokens.
_NANOUSD = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPrice:
    """Of a model: nano-dollars for a token that it reads, and for one that it writes or thinks."""

    input_nanousd: int
    output_nanousd: int
    read: str
    source: str

    def __str__(self) -> str:
        read, written = (f"${nanousd / _NANOUSD:.2f}" for nanousd in (self.input_nanousd, self.output_nanousd))
        return f"{read} in and {written} out per million tokens ({self.source}; read {self.read})"


@cache
def models() -> Mapping[str, ListPrice]:
    """The models whose price is known."""
    found = tomllib.loads(FILE.read_text(), parse_float=Decimal)["models"]
    return {
        name: ListPrice(
            input_nanousd=int(price["input"] * _NANOUSD),
            output_nanousd=int(price["output"] * _NANOUSD),
            read=price["read"],
            source=price["source"],
        )
        for name, price in found.items()
    }
