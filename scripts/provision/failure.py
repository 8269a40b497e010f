"""What can go wrong at the edge, told apart by what is known afterwards."""


class Failed(Exception):
    """It was not done; the message says why, and what to do."""


class NoAnswer(Failed):
    """Nobody knows whether it was done: the reply was lost, or the service broke down on the way."""


class Refusal(Failed):
    """The service said no: nothing was done."""

    def __init__(self, what: str, *, status: int, code: str, message: str, disabled: str = "") -> None:
        """`disabled` is the API that the project has not enabled, where that is the reason."""
        super().__init__(f"{what}: Google answered {status} {code}: {message}{_way_out(status, disabled)}")
        self.status = status
        self.code = code
        self.said = message
        self.disabled = disabled


class Raced(Failed):
    """Another run is at work on the same project."""


def _way_out(status: int, disabled: str) -> str:
    if disabled:
        return f" — run `gcloud services enable {disabled}`, wait a minute, and try again"
    return {
        401: " — run `gcloud auth application-default login`",
        403: " — `plan` lists the permissions that are missing",
        429: " — the quota of this minute is used up; wait one and try again",
    }.get(status, "")
