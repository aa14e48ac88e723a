"""Whether a job may ask in a session: over HTTP, where a client sees the sessions of its own agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from signoff.client.records import SessionRecord
from signoff.errors import SessionNotFound
from signoff.model import SessionKind
from signoff.presence import misplaced


async def why_not(job: SessionKind, session_id: str, find: Callable[[str], Awaitable[SessionRecord]]) -> str | None:
    """Why the job may not ask there; None where it may, and where the session is unknown or has ended, which the
    gateway tells whoever asks. `find` is `Client.find_session`."""
    try:
        session = await find(session_id)
    except SessionNotFound:
        return None
    root, seen = session, {session_id}
    while root.kind == "child" and root.parent is not None and root.parent not in seen:
        seen.add(root.parent)
        try:
            root = await find(root.parent)
        except SessionNotFound:  # somebody else's
            return misplaced(job, session_id, session.kind, None)
    return misplaced(job, session_id, session.kind, root.kind)
