"""The Bot API's error answer, and the sentences that client libraries and gateways look for."""

from __future__ import annotations

from .model import JsonObject

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)
QUERY_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
OTHER_POLLER = "terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_ACTIVE = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"

_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
}


class Refused(Exception):
    """A request the server answers with an error; `parameters` is the answer's field of that name."""

    def __init__(self, status: int, detail: str = "", parameters: JsonObject | None = None) -> None:
        title = _TITLES[status]
        self.status = status
        self.description = f"{title}: {detail}" if detail else title
        self.parameters = parameters
        super().__init__(self.description)

    def body(self) -> JsonObject:
        """The answer's JSON object."""
        answer: JsonObject = {"ok": False, "error_code": self.status, "description": self.description}
        if self.parameters:
            answer["parameters"] = self.parameters
        return answer


def bad_request(detail: str) -> Refused:
    """400, the answer to whatever the caller got wrong."""
    return Refused(400, detail)


def forbidden(detail: str) -> Refused:
    """403, when the bot may not speak there."""
    return Refused(403, detail)


def conflict(detail: str) -> Refused:
    """409, when two ways of receiving updates collide."""
    return Refused(409, detail)


def too_many_requests(retry_after_s: int) -> Refused:
    """429 with the whole seconds to wait, never 0: clients read 0 as absent."""
    wait_s = max(1, retry_after_s)
    return Refused(429, f"retry after {wait_s}", {"retry_after": wait_s})


def upgraded(new_chat_id: int) -> Refused:
    """400 for a group that has become a supergroup, with its new id."""
    return Refused(400, "group chat was upgraded to a supergroup chat", {"migrate_to_chat_id": new_chat_id})
