"""Error answers in Discord's own words."""

from __future__ import annotations

from .model import JsonObject

WORDS: dict[int, tuple[int, str]] = {
    10003: (404, "Unknown Channel"),
    10004: (404, "Unknown Guild"),
    10008: (404, "Unknown Message"),
    10013: (404, "Unknown User"),
    10015: (404, "Unknown Webhook"),
    10062: (404, "Unknown interaction"),
    30046: (429, "Maximum number of edits to messages older than 1 hour reached. Try again later."),
    40005: (413, "Request entity too large"),
    40060: (400, "Interaction has already been acknowledged."),
    50001: (403, "Missing Access"),
    50005: (403, "Cannot edit a message authored by another user"),
    50006: (400, "Cannot send an empty message"),
    50007: (403, "Cannot send messages to this user"),
    50008: (400, "Cannot send messages in a non-text channel"),
    50013: (403, "Missing Permissions"),
    50027: (401, "Invalid Webhook Token"),
    50035: (400, "Invalid Form Body"),
    50083: (400, "Thread is archived"),
    160005: (400, "Thread is locked"),
    50109: (400, "The request body contains invalid JSON."),
}
"""HTTP status and message by error code, from Discord's page on opcodes and status codes."""

PLAIN: dict[int, str] = {
    401: "401: Unauthorized",
    404: "404: Not Found",
    405: "405: Method Not Allowed",
    500: "500: Internal Server Error",
    502: "502: Bad Gateway",
    503: "503: Service Unavailable",
}


class Refused(Exception):
    """A request answered with an error; `body` is the JSON and `headers` what goes with it."""

    def __init__(self, status: int, body: JsonObject, headers: dict[str, str] | None = None) -> None:
        super().__init__(str(body.get("message", "")))
        self.status = status
        self.body = body
        self.headers = headers or {}

    @property
    def code(self) -> int:
        """Discord's error code, 0 for general ones."""
        return int(self.body.get("code", 0))


def coded(code: int) -> Refused:
    """The refusal with one of Discord's codes."""
    status, message = WORDS[code]
    return Refused(status, {"message": message, "code": code})


def plain(status: int) -> Refused:
    """A general error of the HTTP layer."""
    return Refused(status, {"message": PLAIN.get(status, f"{status}: Error"), "code": 0})


class FormErrors:
    """Collects what is wrong with a body, field by field, as the tree that comes with code 50035."""

    def __init__(self) -> None:
        self._tree: JsonObject = {}

    def add(self, path: tuple[str | int, ...], code: str, message: str) -> None:
        """Note a fault at `path`."""
        node = self._tree
        for step in path:
            node = node.setdefault(str(step), {})
        node.setdefault("_errors", []).append({"code": code, "message": message})

    def length(self, path: tuple[str | int, ...], value: object, least: int, most: int, *, needed: bool = True) -> bool:
        """Check a string's length in Unicode characters (code points, as Discord counts them); whether it fits."""
        if value is None or value == "":
            if needed and least:
                self.add(path, "BASE_TYPE_REQUIRED", "This field is required")
            return not (needed and least)
        if not isinstance(value, str):
            self.add(path, "BASE_TYPE_STRING", "Could not interpret value as string.")
            return False
        if len(value) > most and not least:
            self.add(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")
        elif not least <= len(value) <= most:
            self.add(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
        return least <= len(value) <= most

    def raise_any(self) -> None:
        """Refused 50035 when anything was noted."""
        if self._tree:
            raise Refused(400, {"message": WORDS[50035][1], "code": 50035, "errors": self._tree})


def invalid(path: tuple[str | int, ...], code: str, message: str) -> Refused:
    """A 50035 about one field."""
    errors = FormErrors()
    errors.add(path, code, message)
    try:
        errors.raise_any()
    except Refused as refused:
        return refused
    raise ValueError("nothing was noted")
