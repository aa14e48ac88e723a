"""Kept actions in a place, answered by people there, and started and ended as an executor would."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.unit.core.harness import ANN, BEN, PLACE, World

from signoff.changes import staging
from signoff.changes.common import emit
from signoff.changes.staging import Ran
from signoff.commands import Commands
from signoff.model import Action, ApprovalRequest, FileWrite, Message, Person, Session, Tool
from signoff.ports import Tx
from signoff.rows import joined
from signoff.testing.fake_adapter import FakeMessage

DAYS_3_S = 72 * 3600.0
MAIL = Tool(name="send_email", arguments={"subject": "Weekly report", "to": "214 addresses"})
DIFF = FileWrite(path="/etc/cron.d/report", diff="--- a/report\n+++ b/report\n@@ -1 +1 @@\n-0 2 * * *\n+0 3 * * *\n")


async def kept(world: World, action: Action = MAIL, **facts: Any) -> ApprovalRequest:
    """An action of the cron job `weekly-mail` that is kept for a later yes; the question about it, with its card."""
    job = Session(
        profile="default", session_id="weekly-mail", kind="cron", agent="mailer", created_at=world.clock.now()
    )
    values: dict[str, Any] = {
        "request_id": f"req-{len(await world.store.find(ApprovalRequest, 'staged', 'default'))}",
        "profile": "default",
        "short_id": "R1R1R",
        "session_id": "weekly-mail",
        "agent": "mailer",
        "kind": "cron",
        "host": "prod-db-1",
        "action": action,
        "digest": "51d0c7aa" * 8,
        "description": "sends mail to many people",
        "rule_keys": ("mail.many",),
        "destinations": (PLACE,),
        "timeout_s": DAYS_3_S,
        "created_at": world.clock.now(),
        "decided_at": world.clock.now(),
        "executor": "mailer",
        "outcome": "staged",
        **facts,
    }
    draft = ApprovalRequest(**values)

    def change(tx: Tx) -> ApprovalRequest:
        tx.put(job)
        row = staging.stage(tx, draft)
        tx.put(row)
        emit(tx, "approval.resolved", row, outcome="staged")
        return row

    row = await world.store.transact(change)
    await world.flush()
    return await world.row(row.kept_as or "")


async def started(world: World, row: ApprovalRequest) -> ApprovalRequest:
    """An executor claims it."""
    change = partial(staging.start, profile="default", request_id=row.request_id, claim_id="run")
    row = await world.store.transact(change)
    await world.flush()
    return row


async def ended(world: World, row: ApprovalRequest, state: Any, **facts: Any) -> ApprovalRequest:
    """The executor says how its run ended."""
    ran = Ran(state=state, **facts)
    change = partial(staging.settle, profile="default", request_id=row.request_id, claim_id="run", ran=ran)
    row = await world.store.transact(change)
    await world.flush()
    return row


async def unknown(world: World, **facts: Any) -> ApprovalRequest:
    """One whose executor stopped while it ran."""
    row = await kept(world)
    await world.tap(row, "once")
    await started(world, row)
    await world.advance(10)
    return await ended(world, row, "unknown", **facts)


async def newest(world: World) -> ApprovalRequest:
    """The newest question about a kept action."""
    return (await world.store.find(ApprovalRequest, "staged", "default"))[-1]


def lines(message: FakeMessage) -> list[str]:
    """What a card says, line by line."""
    return message.text.splitlines()


def labels(message: FakeMessage) -> list[list[str]]:
    """The buttons of a card, row by row."""
    return [[button.label for button in row] for row in message.card.rows]


async def typed(world: World, text: str, *, by: str = ANN, order: int = 10_000) -> str:
    """Type a command in the place; what is answered."""
    commands = Commands(world.broker, world.sessions, world.dispatcher, world.store, world.clock, str)
    message = Message(
        destination=PLACE,
        message_id=str(order),
        order=order,
        person=Person(platform="fake", user_id=by, name="Ann" if by == ANN else "Ben"),
        text=text,
        replies="all",
    )
    shown = await commands.handle("default", message, world.chat.info)
    commands.close()
    await world.flush()
    return "" if shown is None else "\n".join("".join(s.text for s in b.spans) for b in shown.card.blocks)


__all__ = ["ANN", "BEN", "PLACE", "joined"]
