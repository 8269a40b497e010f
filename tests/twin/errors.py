"""What the store answers when it does not do as asked, as it comes through gRPC; and what the twin cannot do."""

from google.api_core.exceptions import GoogleAPICallError, InvalidArgument


class NotCovered(NotImplementedError):
    """The twin does not know how the store answers this: hold the test to the emulator."""


def refused(kind: type[GoogleAPICallError], message: str) -> GoogleAPICallError:
    """An error of that kind."""
    return kind(message)


def invalid(message: str) -> GoogleAPICallError:
    """The request itself makes no sense."""
    return refused(InvalidArgument, message)
