"""What all Google APIs share on the wire: the error envelope."""

from http import HTTPStatus
from typing import Any

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GoogleError(Exception):
    """An error answer, as Google words it."""

    def __init__(
        self, code: int, message: str, details: list[dict[str, Any]] | None = None, *, status: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.body = envelope(code, message, details, status=status)


def envelope(
    code: int, message: str, details: list[dict[str, Any]] | None = None, *, status: str | None = None
) -> dict[str, Any]:
    """The JSON body of an error with this HTTP status; `status` for a name that is not the usual one of its code."""
    error: dict[str, Any] = {"code": code, "message": message, "status": status or _STATUS.get(code, "UNKNOWN")}
    return {"error": error | ({"details": details} if details else {})}


def phrase(code: int) -> str:
    """The usual words for an HTTP status, `Error 499` where there are none."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return f"Error {code}"
