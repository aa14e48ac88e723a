"""Faults armed by tests: each hits the next REST requests that match it, a set number of times.

`401`, `403`, `404`, `429`, `500`, `502` and `503` answer that status and do nothing; `code` is Discord's error code for
them (403: 50001 when not given, 404: 10003). A `429` is Discord's own (`Via`, JSON), for the whole bot with
`is_global`, with code 30046 for old messages, or without `via` the proxy's ban: no `Via` and no JSON. `drop_before`
breaks the connection with nothing done; `drop_after` does the request and breaks the connection, so the answer is lost;
`error_after` does it and answers 500. `stall` never answers and does nothing, or with `after_s` does it at once and
answers that much later. `bad_json` does it and answers with broken JSON; `wrong_content_type` does it and answers with
`application/json; charset=utf-8`, which discord.py reads as text.

With call `interaction_post` the fault hits posts to an interactions URL, each of which Discord makes once:
`drop_before` loses one before it is sent, `drop_after` delivers it and loses the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from .limits import limited
from .model import FaultKind
from .refusal import Refused, coded, plain

INTERACTION_POST = "interaction_post"
DONE_FIRST = frozenset({"drop_after", "error_after", "bad_json", "wrong_content_type"})


@dataclass(kw_only=True)
class Fault:
    """One armed fault and how often it will still strike."""

    fault_id: int
    kind: FaultKind
    call: str | None
    method: str | None
    channel_id: int | None
    times_left: int
    code: int | None
    retry_after_s: float
    after_s: float | None
    via: bool
    is_global: bool

    def matches(self, call: str, method: str, channel_id: int | None) -> bool:
        """Whether it strikes this request. Posts to an interactions URL need the call."""
        return (
            self.call in ((call,) if call == INTERACTION_POST else (None, call))
            and self.method in (None, method)
            and (self.channel_id is None or self.channel_id == channel_id)
        )

    @property
    def done_first(self) -> bool:
        """Whether the request is carried out although its answer fails."""
        return self.kind in DONE_FIRST or (self.kind == "stall" and self.after_s is not None)

    def refusal(self) -> Refused | None:
        """The error it answers with, when it answers with one."""
        if self.kind == "429":
            return limited(self.retry_after_s, is_global=self.is_global, code=self.code or 0)
        if self.kind in ("403", "404"):
            return coded(self.code or {"403": 50001, "404": 10003}[self.kind])
        if self.kind == "error_after":
            return plain(500)
        return plain(int(self.kind)) if self.kind.isdigit() else None


class FaultBook:
    """The armed faults, struck in the order they were armed."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []
        self._next_id = 1

    def arm(self, fault: Fault) -> int:
        """Arm a fault; its id. ValueError when it would never strike."""
        if fault.times_left < 1:
            raise ValueError("a fault strikes at least once")
        fault.fault_id = self._next_id
        self._next_id += 1
        self._armed.append(fault)
        return fault.fault_id

    def strike(self, call: str, method: str, channel_id: int | None) -> Fault | None:
        """The fault that hits this request, used up once; none for a healthy request."""
        for fault in self._armed:
            if fault.matches(call, method, channel_id):
                fault.times_left -= 1
                if not fault.times_left:
                    self._armed.remove(fault)
                return fault
        return None

    def left(self) -> int:
        """Strikes still armed."""
        return sum(fault.times_left for fault in self._armed)

    def clear(self) -> None:
        """Disarm all."""
        self._armed.clear()
