"""An amount of money: a whole number of billionths and a currency, written as `20.50 USD`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

_WRITTEN = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))? ([A-Z]{3})", re.ASCII)
_UNIT = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """`nanos` is the whole amount in billionths of the currency's unit."""

    nanos: int
    currency: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `20.50 USD`.

        Raises:
            ValueError: it is not written so; the message says how.
        """
        match = _WRITTEN.fullmatch(text)
        if match is None:
            raise ValueError(f'must be an amount and a currency such as "20.50 USD", not {text!r}')
        sign, units, fraction, currency = match.groups()
        nanos = int(units) * _UNIT + int((fraction or "").ljust(9, "0"))
        return cls(nanos=-nanos if sign else nanos, currency=currency)

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Self:
        """From google.type.Money as JSON, which leaves out what is 0."""
        nanos = int(wire.get("units", 0)) * _UNIT + int(wire.get("nanos", 0))
        return cls(nanos=nanos, currency=str(wire.get("currencyCode", "")))

    def wire(self) -> dict[str, Any]:
        """As google.type.Money in JSON; only for amounts of at least 0."""
        return {"currencyCode": self.currency, "units": str(self.nanos // _UNIT), "nanos": self.nanos % _UNIT}

    @property
    def amount(self) -> str:
        """The decimal number alone, at least two places where there is a fraction."""
        units, nanos = divmod(abs(self.nanos), _UNIT)
        fraction = f"{nanos:09d}".rstrip("0").ljust(2, "0")
        return f"{'-' if self.nanos < 0 else ''}{units}{f'.{fraction}' if nanos else ''}"

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"
