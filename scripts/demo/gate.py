"""Whether the real Gemini may be used: it costs money, so a person is told the most it can cost, and asked."""

from collections.abc import Mapping

import typer
from rich.console import Console

from scripts.demo.money import OUTPUT_NANOUSD_PER_TOKEN, PRICED_MODEL, dollars, worst_case_microusd

KEY = "GEMINI_API_KEY"
USERS = 3


class NotAllowed(Exception):
    """The real Gemini is not to be used; the message says why."""


def real_gemini_api_key(env: Mapping[str, str], *, limit: int, console: Console, interactive: bool) -> str:
    """The key, once its owner has agreed to the most that this run can cost.

    Raises:
        NotAllowed: there is no key, nobody to ask, or the answer was no.
    """
    key = env.get(KEY, "").strip()
    if not key:
        raise NotAllowed(f"REAL=1 (--real) needs a key in {KEY}; without it the demo needs none and costs nothing")
    if not interactive:
        raise NotAllowed("--real costs money and must be agreed to on a terminal; there is none here")
    price = OUTPUT_NANOUSD_PER_TOKEN / 1_000
    worst = dollars(worst_case_microusd(users=USERS, limit=limit))
    console.print(
        f"The callers will use the real Gemini, with the key in {KEY}, until at most {USERS} buckets of {limit:,} "
        f"tokens are empty.\nWorst case: {worst}, every token priced as output of {PRICED_MODEL} "
        f"(list price assumed: ${price:.2f} per million). Dearer models in functions/.env cost more.",
        highlight=False,
    )
    if not typer.confirm("Spend it?", default=False, err=True):
        raise NotAllowed("nothing was started and nothing was spent")
    return key
