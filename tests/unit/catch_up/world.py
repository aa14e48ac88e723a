"""The core with its catch-up, over a platform in memory whose state a test sets."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.unit.core.harness import ANN, BEN, PLACE, World

from signoff.catching_up import CatchUps
from signoff.changes import staging
from signoff.changes.common import emit
from signoff.commands import Commands
from signoff.inbox import ProfileInbox
from signoff.maker import Maker
from signoff.model import Action, Answer, ApprovalRequest, Command, Copy, Destination, Session, Tool, replace
from signoff.ports import Store, Tx
from signoff.rows import session_key
from signoff.settings import ApprovalSettings, Profile
from signoff.taps import Taps
from signoff.testing.clock import FakeClock, settle
from signoff.testing.fake_adapter import FakeAdapter, FakeMessage

FALLBACK = Destination("fake", "900")
MINUTE = 60.0


class Absent(World):
    """A gateway that people leave and come back to."""

    def __init__(
        self, store: Store, clock: FakeClock, *, down_s: float = 0.0, console: str | None = None, **facts: Any
    ) -> None:
        settings = facts.pop("approvals", None) or ApprovalSettings(fallback_destination=FALLBACK, timeout_s=300.0)
        profile = Profile(approvers={"fake": (ANN, BEN)}, approvals=settings)
        super().__init__(store, clock, profile=profile, **facts)
        self.reading = False
        adapters = {("default", "fake"): self.chat}
        self.catch_ups = CatchUps(
            store,
            clock,
            {"default": self.profile},
            adapters,
            down=timedelta(seconds=down_s),
            listening=(lambda profile, agent: self.reading,),
            on_defect=lambda: self.defects.append(1),
        )
        maker = Maker(store, clock, self.signer, {"fake": self.chat.info}, console)
        self.dispatcher._maker = maker
        self.taps = Taps(self.broker, self.dispatcher, store, clock, self.signer, maker, self.catch_ups)
        commands = Commands(self.broker, self.sessions, self.dispatcher, store, clock, maker.title)
        inbox = ProfileInbox(
            "default",
            self.chat.info,
            store=store,
            taps=self.taps,
            commands=commands,
            dispatcher=self.dispatcher,
            catch_ups=self.catch_ups,
        )
        self._receiver.cancel()
        self._unsubscribe = store.subscribe(self.catch_ups._heard)
        self.catch_ups._news.add("default")
        self._receiver = asyncio.ensure_future(self.chat.run(inbox))

    async def aclose(self) -> None:
        """End it; the store stays."""
        self._unsubscribe()
        await super().aclose()

    async def session(self, session_id: str = "s", *, agent: str | None = None, **facts: Any) -> Session:
        """Declare a session of that agent."""
        session = await super().session(session_id, **facts)
        if agent is not None:
            session = replace(session, agent=agent)
            await self.put(session)
        return session

    async def submit(
        self, action: str | Action = "deploy build", session_id: str = "s", **facts: Any
    ) -> ApprovalRequest:
        """Ask as the session's agent."""
        session = await self.store.get(Session, session_key("default", session_id))
        return await super().submit(action, session_id, agent=session.agent if session else None, **facts)

    def platform(self, state: str) -> None:
        """What the platform's health says from now on."""
        self.chat._state = state  # type: ignore[assignment]  # one of its states

    async def looked(self) -> None:
        """Let the catch-up look once, and send what it has to say."""
        await settle()
        await self.catch_ups.round()
        await self.flush()

    async def passes(self, seconds: float) -> None:
        """Time goes by, with a look each second of the last ten and each minute before."""
        while seconds > 0:
            step = min(seconds, MINUTE if seconds > MINUTE else 1.0)
            await self.advance(step)
            await self.looked()
            seconds -= step

    async def unanswered(self, command: str = "deploy build", session: str = "s", **facts: Any) -> ApprovalRequest:
        """Ask, and nobody answers."""
        row = await self.ask(command, session, **facts)
        await self.passes(301)
        return await self.row(row)

    async def life(self, place: Destination = PLACE, by: str = ANN, text: str = "/help") -> None:
        """Somebody types a command."""
        await self.chat.say(text, where=place, by=by, addressed=True)
        await self.looked()

    def messages(self, place: Destination = PLACE) -> list[FakeMessage]:
        """The messages about absences in a place."""
        return [m for m in self.chat.shown() if m.destination == place and " to " in m.text.splitlines()[0]]

    async def only(self, place: Destination = PLACE) -> FakeMessage:
        """The only one of them."""
        (found,) = self.messages(place)
        return found

    async def tapped(self, message: FakeMessage, label: str, by: str = ANN) -> Answer:
        """Press a button of a message."""
        (token,) = message.tokens(label)
        answer = await self.press(token, message, by)
        await self.looked()
        return answer

    async def copies_told(self) -> list[Copy]:
        """Every message about an absence, as rows."""
        index = await self.catch_ups.index("default")
        found = [await self.store.get(Copy, name) for name in index.told]
        return [copy for copy in found if copy is not None]


def mail(to: str = "214 addresses") -> Tool:
    """A tool call."""
    return Tool(name="send_email", arguments={"to": to})


async def kept(world: Absent, session: str, request_id: str = "req_kept") -> ApprovalRequest:
    """An action of a cron session that is kept for a later yes; the question about it."""
    draft = ApprovalRequest(
        request_id=request_id,
        profile="default",
        short_id="R1R1R",
        session_id=session,
        agent="mailer",
        kind="cron",
        action=mail(),
        digest="d" * 64,
        destinations=(FALLBACK,),
        timeout_s=72 * 3600.0,
        created_at=world.clock.now(),
        executor="mailer",
        outcome="staged",
        decided_at=world.clock.now(),
    )

    def change(tx: Tx) -> ApprovalRequest:
        row = staging.stage(tx, draft)
        tx.put(row)
        emit(tx, "approval.resolved", row, outcome="staged")
        return row

    row = await world.store.transact(change)
    await world.flush()
    return await world.row(row.kept_as or "")


__all__ = ["ANN", "BEN", "FALLBACK", "MINUTE", "PLACE", "Absent", "Command", "FakeAdapter", "kept", "mail"]
