"""Faults armed by tests: each hits the next requests, sockets or deliveries that match it, a set number of times.

Requests, by `method` (`chat.update`, also `response_url` and `upload`) and `channel`: `429`, `500`, `503` answer that
status and do nothing, `error` answers Slack's code `error`. `drop_before` breaks the connection with nothing done;
`drop_after` does the request and breaks the connection, so the answer is lost; `error_after` does it and answers 500.
`stall` never answers and does nothing, or with `after_s` does it at once and answers that much later. `bad_json` does
it and answers with broken JSON. `no_shares` lets files.info show a file as not shared yet.

New sockets: `handshake` refuses the WebSocket, whose ticket is used up all the same; `deaf` says hello and delivers
nothing; `no_hello` says nothing at all; `no_pong` leaves pings unanswered.

Deliveries, by `method` (`events_api`, `interactive`, `slash_commands`) and `channel`: `duplicate` delivers the same
twice; `lose` never sends it; `lose_ack` ignores its acknowledgement; `abort` sends it and resets the connection.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import FaultKind
from .refusal import Refused, rate_limited

DONE_FIRST = frozenset({"drop_after", "error_after", "bad_json", "no_shares"})
OF_SOCKETS = frozenset({"handshake", "deaf", "no_hello", "no_pong"})
OF_DELIVERIES = frozenset({"duplicate", "lose", "lose_ack", "abort"})


@dataclass(kw_only=True)
class Fault:
    """One armed fault and how often it will still strike."""

    fault_id: int
    kind: FaultKind
    method: str | None
    channel: str | None
    times_left: int
    error: str | None
    retry_after_s: int
    after_s: float | None

    def matches(self, family: frozenset[str] | None, method: str, channel: str | None) -> bool:
        """Whether it strikes; method names are compared without case."""
        own = next((each for each in (OF_SOCKETS, OF_DELIVERIES) if self.kind in each), None)
        if own is not family or self.channel not in (None, channel):
            return False
        if self.kind == "no_shares" and method.lower() != "files.info":
            return False
        return self.method is None or self.method.lower() == method.lower()

    @property
    def done_first(self) -> bool:
        """Whether the request is carried out although its answer fails."""
        return self.kind in DONE_FIRST or (self.kind == "stall" and self.after_s is not None)

    def refusal(self) -> Refused | None:
        """The error it answers with, when it answers one."""
        if self.kind == "429":
            return rate_limited(self.retry_after_s)
        if self.kind == "error":
            return Refused(self.error or "internal_error")
        if self.kind in ("500", "503", "error_after"):
            return Refused("internal_error", status=503 if self.kind == "503" else 500)
        return None


class FaultBook:
    """The armed faults, struck in the order they were armed."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []
        self._next_id = 1

    def arm(
        self,
        kind: FaultKind,
        *,
        method: str | None,
        channel: str | None,
        times: int,
        error: str | None,
        retry_after_s: int,
        after_s: float | None,
    ) -> int:
        """Arm a fault; its id. ValueError when `times` is not positive."""
        if times < 1:
            raise ValueError("a fault strikes at least once")
        fault = Fault(
            fault_id=self._next_id,
            kind=kind,
            method=method,
            channel=channel,
            times_left=times,
            error=error,
            retry_after_s=retry_after_s,
            after_s=after_s,
        )
        self._next_id += 1
        self._armed.append(fault)
        return fault.fault_id

    def strike(self, method: str, channel: str | None, *, family: frozenset[str] | None = None) -> Fault | None:
        """The fault that hits this request, socket or delivery, used up once; none for a healthy one."""
        for fault in self._armed:
            if fault.matches(family, method, channel):
                fault.times_left -= 1
                if fault.times_left == 0:
                    self._armed.remove(fault)
                return fault
        return None

    def left(self) -> int:
        """How many strikes are still armed, over all faults."""
        return sum(fault.times_left for fault in self._armed)

    def clear(self) -> None:
        """Disarm all."""
        self._armed.clear()
