"""The record of what people tried and may not do. A repetition is recorded once a minute, so that a stranger who
hammers at it cannot fill the log."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta

from signoff.model import ApprovalRequest, Destination, Event, Person
from signoff.ports import Clock, Store, Tx

SAME_REFUSAL = timedelta(seconds=60)
REMEMBERED = 2000
"""Refusals kept in memory to recognise a repetition."""


class Refusals:
    """Writes `tap.refused` events."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._last: OrderedDict[tuple[str, ...], datetime] = OrderedDict()

    async def record(
        self,
        profile: str,
        person: Person,
        place: Destination,
        *,
        why: str,
        operation: str,
        via: str = "command",
        row: ApprovalRequest | None = None,
        session_id: str | None = None,
    ) -> None:
        """Record that `person` was refused `operation` there, on that request or session, and why."""
        about = row.request_id if row is not None else session_id
        if not self._is_new((profile, person.platform, person.user_id, why, operation, about or "")):
            return

        def change(tx: Tx) -> None:
            tx.emit(
                Event(
                    profile=profile,
                    type="tap.refused",
                    at=tx.now,
                    session_id=row.session_id if row is not None else session_id,
                    request_id=row.request_id if row is not None else None,
                    data={
                        "why": why,
                        "operation": operation,
                        "via": via,
                        "platform": person.platform,
                        "user_id": person.user_id,
                        "name": person.name,
                        "destination": str(place),
                    },
                )
            )

        await self._store.transact(change)

    def _is_new(self, key: tuple[str, ...]) -> bool:
        now = self._clock.now()
        last = self._last.get(key)
        if last is not None and now - last < SAME_REFUSAL:
            return False
        self._last[key] = now
        self._last.move_to_end(key)
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        return True
