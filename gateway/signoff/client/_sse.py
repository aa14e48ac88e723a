"""Server-sent events without I/O (WHATWG HTML, section 9.2): bytes in, whole events out."""

from __future__ import annotations

from msgspec import Struct

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""More than any event holds: an action is at most 1 MiB, and JSON may write a byte as six."""


class Sent(Struct, frozen=True, kw_only=True):
    """One dispatched event."""

    data: str
    event: str = "message"
    id: str = ""


class Parser:
    """Feed it what arrives; it keeps the last id, also of blocks without data."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self._rest = b""
        self._data: list[str] = []
        self._event = ""

    def feed(self, chunk: bytes) -> list[Sent]:
        """The events that `chunk` completes. Raises ValueError for one that never ends."""
        self._rest += chunk
        if len(self._rest) > MAX_EVENT_BYTES:
            raise ValueError("an event has no end")
        # A carriage return at the very end may be the first half of a line's end.
        held = self._rest.endswith(b"\r")
        text = self._rest[:-1] if held else self._rest
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + (b"\r" if held else b"")
        found = [self._line(line.decode("utf-8", "replace")) for line in lines]
        return [event for event in found if event is not None]

    def _line(self, line: str) -> Sent | None:
        if not line:
            return self._dispatch()
        name, colon, value = line.partition(":")
        value = value.removeprefix(" ") if colon else ""
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        return None

    def _dispatch(self) -> Sent | None:
        data, event = self._data, self._event or "message"
        self._data, self._event = [], ""
        return Sent(data="\n".join(data), event=event, id=self.last_id) if data else None
