"""The core with the tool gate on, and executors that write down what they ran."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.core.harness import ANN, BEN, BY_ANN, PLACE, World

from signoff.changes import staging
from signoff.executing import Executing
from signoff.executors import Call, Executors
from signoff.gate import Gate
from signoff.gating import executor_for
from signoff.model import Actor, ApprovalRequest, Destination, Tool, replace
from signoff.ports import Store
from signoff.settings import ApprovalSettings, ExecutorSettings, Profile, ToolGateSettings
from signoff.staged import Staged, state_of
from signoff.testing.clock import FakeClock, settle

MAIL = Tool(name="send_email", arguments={"to": ["ana@example.org"], "subject": "Weekly report", "copies": 2})
KEPT_PLACE = Destination("fake", "900")
GATE = ToolGateSettings(require_approval=("send_email", "delete_*"))


def profile_with(gate: ToolGateSettings = GATE, **settings: Any) -> Profile:
    """A profile whose tool gate is on, with the executor `mailer` for what it keeps."""
    facts = {"staged_destination": KEPT_PLACE, **settings}
    return Profile(
        approvers={"fake": (ANN, BEN)},
        approvals=ApprovalSettings(tool_gate=gate, **facts),
        executors={"mailer": ExecutorSettings(tools=("send_email", "delete_*"), timeout_s=30.0)},
    )


class KeptWorld(World):
    """One gateway's core with executors. `runs` is False for a gateway in which the executor is not registered."""

    def __init__(
        self, store: Store, clock: FakeClock, *, profile: Profile | None = None, runs: bool = True, **facts: Any
    ) -> None:
        profile = profile or profile_with()
        super().__init__(store, clock, profile=profile, **facts)
        self.ran: list[Call] = []
        """What the executor ran, in order."""
        self.fails: BaseException | None = None
        self.hold: asyncio.Event | None = None
        """What the executor waits for before it ends."""
        self.settings = {"default": profile}
        """Of the executors, by profile; changed while things wait."""
        self.executors = Executors(self.settings, clock)
        for name, settings in profile.executors.items() if runs else ():
            if not settings.command and not settings.url:
                self.executors.register("default", name, self._run)
        self.executing = Executing(store, clock, self.executors, on_defect=lambda: self.defects.append(1))
        self.staged = Staged(store, self.broker, self.executing, clock)
        self.gate = Gate(store, self.broker, self.sessions, self.executors, "deny")
        self._loop: asyncio.Task[None] | None = None

    async def _run(self, call: Call) -> str:
        self.ran.append(call)
        if self.hold is not None:
            await self.hold.wait()
        if self.fails is not None:
            raise self.fails
        return f"sent {len(self.ran)}"

    def start(self) -> None:
        """Have approved actions run by themselves, as a gateway does."""
        self._loop = asyncio.ensure_future(self.executing.run_loop())

    async def aclose(self) -> None:
        """As the world's, after the runs."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        await self.executing.aclose(0.0)
        await self.gate.aclose()
        await super().aclose()

    async def job(self, session_id: str = "job", **facts: Any) -> str:
        """A cron session, in which nobody can be asked."""
        await self.session(session_id, kind="cron", destination=None, **facts)
        return session_id

    async def keep(self, action: Tool = MAIL, session_id: str = "job", **facts: Any) -> ApprovalRequest:
        """Ask for something that is kept; the question about it."""
        row = await self.submit(action, session_id, **facts)
        assert row.outcome == "staged", (row.outcome, row.why)
        assert row.kept_as is not None
        return await self.row(row.kept_as)

    async def until_ended(self, row: ApprovalRequest) -> ApprovalRequest:
        """The row once its run has ended: what runs ends by itself, whatever the clock says."""
        async with asyncio.timeout(60):
            while (found := await self.row(row)).execution.state in ("none", "claimed"):
                await settle(1)
        return found


def with_executor(profile: Profile, name: str, settings: ExecutorSettings) -> Profile:
    """The profile with one more executor."""
    return replace(profile, executors={**profile.executors, name: settings})


BY_BEN = Actor(type="person", platform="fake", user_id=BEN, name="Ben", via="command")


async def approved(world: KeptWorld) -> ApprovalRequest:
    """A kept action that was approved and that nothing has started."""
    kept = await world.keep()
    return await world.staged.approve("default", kept.request_id, BY_ANN)


async def lost(world: KeptWorld) -> ApprovalRequest:
    """A kept action whose claimant stopped while it ran."""
    row = await approved(world)
    change = lambda tx: staging.start(tx, "default", row.request_id, "dead")  # noqa: E731  # one line
    await world.store.transact(change)
    await world.advance(staging.LEASE_S + 1)
    found = await world.row(row)
    assert state_of(found) == "unknown"
    return found


__all__ = [
    "BY_BEN",
    "GATE",
    "KEPT_PLACE",
    "MAIL",
    "PLACE",
    "KeptWorld",
    "approved",
    "executor_for",
    "lost",
    "profile_with",
    "with_executor",
]
