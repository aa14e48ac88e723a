"""Made-up messages by which an operator tries a receiver. Their ids begin with `test_`. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime

import msgspec

from signoff.hooks.payloads import HOOK_OF, payload_of
from signoff.model import Actor, ApprovalRequest, Command, Event, Session
from signoff.settings import HookName

SESSION = "hook-test"


def samples(profile: str, wanted: tuple[HookName, ...], now: datetime) -> Iterator[tuple[HookName, str, bytes]]:
    """Hook, id and body of one message of each kind that the receiver wants. Nothing of it happened."""
    by = Actor(type="person", platform="local", user_id="0", name="Ana", via="cli")
    row = ApprovalRequest(
        request_id="req_test",
        profile=profile,
        short_id="T3STS",
        session_id=SESSION,
        action=Command(command="echo this is a test"),
        digest="0" * 64,
        description="is a test of this hook",
        created_at=now,
        outcome="denied",
        choice="deny",
        decided_by=(by,),
        reason="nothing was asked: this is a test",
        decided_at=now,
    )
    session = Session(profile=profile, session_id=SESSION, kind="cli", created_at=now)
    kinds = {hook: kind for kind, hook in reversed(HOOK_OF.items())}
    for seq, hook in enumerate(wanted, 1):
        data = {"turn_id": "turn_test", "cause": "turn_ended"} if hook == "agent_end" else {}
        event = Event(profile=profile, type=kinds[hook], at=now, seq=seq, session_id=SESSION, data=data)
        yield hook, f"test_{secrets.token_urlsafe(12)}_{seq}", msgspec.json.encode(payload_of(event, row, session))
