"""Faults armed by tests: each hits the next requests that match it, a set number of times.

`429`, `500`, `502`, `401`, `404`, `409` answer that status and do nothing. `drop_before` breaks the connection with
nothing done; `drop_after` does the request and breaks the connection, so the answer is lost; `error_after` does it and
answers 500. `stall` never answers and does nothing, or with `after_s` does it at once and answers that much later.
`bad_json` does it and answers with broken JSON. `chat_gone` and `kicked` answer as for a chat that does not exist and a
group the bot was removed from; `migrate` answers as for a group that became the supergroup `migrate_to`.

With method `webhook` the fault hits deliveries: `drop_before` loses one before it is sent, `drop_after` delivers it and
loses the receiver's answer, so the same update comes again.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import FaultKind
from .refusal import Refused, bad_request, conflict, forbidden, too_many_requests, upgraded

WEBHOOK = "webhook"
DONE_FIRST = frozenset({"drop_after", "error_after", "bad_json"})


@dataclass(kw_only=True)
class Fault:
    """One armed fault and how often it will still strike."""

    fault_id: int
    kind: FaultKind
    method: str | None
    chat_id: int | None
    times_left: int
    retry_after_s: int
    after_s: float | None
    migrate_to: int | None

    def matches(self, method: str, chat_id: int | None) -> bool:
        """Whether it strikes this request; method names are compared without case. Deliveries need the method."""
        if self.method is None:
            return method != WEBHOOK and self.chat_id in (None, chat_id)
        return self.method.lower() == method.lower() and self.chat_id in (None, chat_id)

    @property
    def done_first(self) -> bool:
        """Whether the request is carried out although its answer fails."""
        return self.kind in DONE_FIRST or (self.kind == "stall" and self.after_s is not None)

    def refusal(self) -> Refused | None:
        """The error it answers with, when it answers at all."""
        answers: dict[str, Refused] = {
            "500": Refused(500),
            "error_after": Refused(500),
            "502": Refused(502),
            "401": Refused(401),
            "404": Refused(404),
            "409": conflict("terminated by other getUpdates request; make sure that only one bot instance is running"),
            "429": too_many_requests(self.retry_after_s),
            "chat_gone": bad_request("chat not found"),
            "kicked": forbidden("bot was kicked from the supergroup chat"),
            "migrate": upgraded(self.migrate_to or -1000000000001),
        }
        return answers.get(self.kind)


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
        chat_id: int | None,
        times: int,
        retry_after_s: int,
        after_s: float | None,
        migrate_to: int | None,
    ) -> int:
        """Arm a fault; its id. ValueError when `times` is not positive."""
        if times < 1:
            raise ValueError("a fault strikes at least once")
        fault = Fault(
            fault_id=self._next_id,
            kind=kind,
            method=method,
            chat_id=chat_id,
            times_left=times,
            retry_after_s=retry_after_s,
            after_s=after_s,
            migrate_to=migrate_to,
        )
        self._next_id += 1
        self._armed.append(fault)
        return fault.fault_id

    def strike(self, method: str, chat_id: int | None) -> Fault | None:
        """The fault that hits this request, used up once; none for a healthy request."""
        for fault in self._armed:
            if fault.matches(method, chat_id):
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
