"""Slack's error answer."""

from __future__ import annotations

from collections.abc import Sequence

from .model import JsonObject


class Refused(Exception):
    """A request the server answers with `ok: false`; `status` is 200 except for rate limits and outages."""

    def __init__(
        self,
        error: str,
        *,
        status: int = 200,
        messages: Sequence[str] = (),
        retry_after_s: int | None = None,
        **extra: object,
    ) -> None:
        self.error = error
        self.status = status
        self.messages = list(messages)
        self.retry_after_s = retry_after_s
        self.extra = extra
        super().__init__(error)

    def body(self) -> JsonObject:
        """The answer's JSON object."""
        answer: JsonObject = {"ok": False, "error": self.error, **self.extra}
        if self.messages:
            answer |= {"errors": self.messages, "response_metadata": {"messages": self.messages}}
        return answer

    def headers(self) -> dict[str, str]:
        """`Retry-After` in whole seconds for a rate limit."""
        return {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}


def rate_limited(retry_after_s: int) -> Refused:
    """429 with the whole seconds to wait, at least 1."""
    return Refused("ratelimited", status=429, retry_after_s=max(1, retry_after_s))
