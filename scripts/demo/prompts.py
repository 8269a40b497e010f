"""What the callers of the story ask."""

from scripts.clients.client import Json

BOT: tuple[Json, ...] = (
    {
        "prompt": "Write 50 five-star reviews of a hotel, each in another voice, as a JSON array of strings.",
        "maxOutputTokens": 4096,
    },
)

RUNAWAY_MARK = "You are the night agent of a help desk."
"""How the runaway's requests are told from the others in the log of the Gemini stand-in."""

# An agent whose exit condition never comes true: it sends the same step again and again.
RUNAWAY: tuple[Json, ...] = (
    {
        "prompt": (
            f"{RUNAWAY_MARK} Your queue holds ticket 48213: 'Since this morning the export of our invoices stops at "
            "2 per cent and the page says nothing. We must send 340 invoices before the end of the month, and two "
            "colleagues see the same.' Write the full story for the second line: the summary, every cause there can "
            "be with the test that tells it from the others, the questions to the customer, and a draft of the answer. "
            "When the ticket is closed, say DONE; until then you will be asked again."
        ),
        "maxOutputTokens": 1024,
    },
)

EDITS: tuple[Json, ...] = tuple(
    {"operations": [{"op": "create_node", "label": label}]} for label in ("oak", "fern", "moss", "heather")
)

NORMAL: tuple[Json, ...] = tuple(
    {"prompt": prompt, "maxOutputTokens": 256}
    for prompt in (
        "Give me three names for a bakery that opens at five in the morning.",
        "How long do I boil an egg so that the yolk is just set?",
        "Turn this into one polite sentence: I can't come on Friday, what about Monday?",
        "What is the difference between weather and climate, in two sentences?",
        "Suggest a packing list for two days in the hills in November.",
        "Explain to a ten-year-old why the sea is salty.",
    )
)
