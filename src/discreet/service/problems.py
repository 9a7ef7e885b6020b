"""What is refused: application/problem+json (RFC 9457), with row numbers and reasons, never with content."""

from __future__ import annotations

from typing import Any

from discreet.service.shapes import ProblemModel

MOST_ROWS = 100  # this many bad rows are listed


class ProblemError(Exception):
    """A refusal. Every text in it is a constant of the program, or public."""

    def __init__(
        self, status: int, title: str, detail: str | None = None, *, retry_after: int | None = None, **more: Any
    ) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.detail = detail
        self.retry_after = retry_after
        self._more = more if detail is None else {"detail": detail, **more}

    def body(self) -> bytes:
        """As it is sent."""
        return ProblemModel(type="about:blank", title=self.title, status=self.status, **self._more).to_json()

    @property
    def headers(self) -> dict[str, str]:
        """Beside the content type."""
        headers = {"Cache-Control": "no-store"}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return headers

    @property
    def reason(self) -> str:
        """A short word for what admins count."""
        return _REASONS.get(self.status, str(self.status))


_REASONS = {
    400: "malformed",
    401: "no token",
    403: "not allowed",
    404: "not found",
    408: "slow body",
    409: "conflict",
    410: "ended",
    413: "too large",
    415: "format",
    422: "bad rows",
    429: "too busy",
    503: "stopping",
    507: "no room",
}


def too_busy(seconds: int = 1) -> ProblemError:
    """It cannot keep up, or somebody sends too fast."""
    return ProblemError(
        429, "Too many requests", "Nothing of this request was taken; send it again later.", retry_after=seconds
    )


def gone() -> ProblemError:
    """The horizon has ended."""
    return ProblemError(
        410, "The stream has ended", "Its horizon is over and its budget is spent; it takes no more events."
    )


def stopping() -> ProblemError:
    """The end of the process is near."""
    return ProblemError(503, "The service is stopping", retry_after=5)
