"""Why a local stack cannot be had."""


class Unavailable(RuntimeError):
    """Something is missing or in the way, or the stack did not come up; the message says what to do about it."""
