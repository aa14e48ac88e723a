"""From an event of the log to the payload of its hook, with the rows that it takes."""

from __future__ import annotations

import asyncio

from signoff.hooks.payloads import HOOK_OF, Payload, payload_of
from signoff.model import ApprovalRequest, Event, Session
from signoff.ports import Store
from signoff.rows import request_key, session_key

PAGE = 100
"""Events that a reader holds at most: a backlog stays in the log, however long it is."""


async def load(store: Store, event: Event) -> Payload | None:
    """The payload of this event; None where there is nothing to tell. Raises `StoreError`.

    Masking the largest action takes 0.3 s, so it is done in a thread.
    """
    row = session = None
    if HOOK_OF.get(event.type) == "agent_end":
        if "session" in event.data:
            return payload_of(event, None, None)
        session = await store.get(Session, session_key(event.profile, event.session_id or ""))
    elif event.request_id is not None:
        row = await store.get(ApprovalRequest, request_key(event.profile, event.request_id))
    return await asyncio.to_thread(payload_of, event, row, session)
