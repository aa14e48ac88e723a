"""A story's stage: a platform, a gateway in a process of its own, and agents in this one."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from signoff.client import ApprovalRecord, Client, EventRecord
from tests.scenarios.gateways import GatewayProcess, soon
from tests.scenarios.transport import APPROVERS, WAIT_S, Person, Seen, Transport

ANSWERED_WITHIN_S = 100.0
OWN_TIME = os.environ.get("SIGNOFF_TESTS_STORE") == "postgresql"
"""A database goes by its own clock, which no story moves: there a window passes by itself, and is short."""
WINDOW_S = 5.0 if OWN_TIME else 15.0
"""Of a question that is to run out: it must be seen before it does, on a machine that stands still for seconds too. It
runs out by `Stage.runs_out`, and is shorter than a turn's lease, which goes by the same clock."""
AGENT = 'kinds = ["api", "chat", "webhook"]'
METRIC = re.compile(r'signoff_approvals_total\{cause="(\w+)",outcome="(\w+)"\} ([\d.]+)')


class Stage:
    """What a story works with."""

    def __init__(self, transport: Transport, gateway: GatewayProcess) -> None:
        self.chat = transport
        self.gateway = gateway
        self.ran: list[str] = []
        """Commands that an agent ran, in order."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._clients: list[Client] = []
        self._marks = 0
        self._windows: asyncio.Barrier | None = None

    async def open(self, *launch: str) -> None:
        """Start the gateway (through the launcher where `launch` says how) and make the keys."""
        self.chat.meets(self.gateway)
        await self.chat.serves(self.gateway.hooks_url)
        if "--fast" in launch:
            await self.chat.lift_limits()
        await (self.gateway.launch(*launch) if launch else self.gateway.start())
        self.admin = Client(socket=self.gateway.socket, environ={})
        self.agent_key = await self._key("agent", agent="builder")
        self.agent = Client(self.gateway.url, self.agent_key, environ={})
        self._clients += [self.agent, self.admin]

    async def _key(self, scope: str, **facts: str) -> str:
        made = await self.admin.create_key(scope, **facts)
        return str(made["key"])

    async def person(self, principal: str) -> Client:
        """A person's own key on the API."""
        client = Client(self.gateway.url, await self._key("approver", principal=principal), environ={})
        self._clients.append(client)
        return client

    async def aclose(self) -> None:
        """Leave nothing running."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients:
            await client.aclose()

    # --- agents ------------------------------------------------------------------------------

    async def session(self, name: str, place: str | None, *, kind: str = "chat", user: Person | None = None) -> str:
        """Declare a session that asks in a place."""
        user_id = self.chat.user_id(user) if user else None
        await self.agent.session(name, kind=kind, destination=place, user_id=user_id)
        return name

    def ask(self, command: str, session: str, **facts: Any) -> asyncio.Task[ApprovalRecord]:
        """Ask in the background; a task that gives the claimed record."""
        action = {"kind": "command", "command": command}
        task = asyncio.create_task(self._limited(self.agent.request(action, session_id=session, **facts)))
        self._tasks.append(task)
        return task

    def work(self, command: str, session: str, **facts: Any) -> asyncio.Task[ApprovalRecord]:
        """Ask, run it if that is allowed, and report; a task that gives the record as it was answered."""
        task = asyncio.create_task(self._limited(self._work(command, session, facts)))
        self._tasks.append(task)
        return task

    async def _limited(self, asking: Coroutine[Any, Any, ApprovalRecord]) -> ApprovalRecord:
        """No story lasts longer, so that one that hangs says where."""
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            return await asking

    async def _work(self, command: str, session: str, facts: dict[str, Any]) -> ApprovalRecord:
        action = {"kind": "command", "command": command}
        record = await self.agent.request(action, session_id=session, **facts)
        if record.may_run:
            self.ran.append(command)
            await self.agent.result(record.request_id, "succeeded", 0)
        return record

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """One call of the API under the agent's key that no client keeps alive: an agent that may vanish."""
        headers = {"Authorization": f"Bearer {self.agent_key}"}
        session = aiohttp.ClientSession(self.gateway.url, headers=headers)
        async with session as http, http.post(path, json=body) as answer:
            assert answer.status < 300, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found

    # --- what the gateway says ---------------------------------------------------------------

    async def events(self, kind: str | None = None) -> list[EventRecord]:
        """The event log so far: up to an event that is made now to mark its end."""
        self._marks += 1
        mark = await self.session(f"mark-{self._marks}", None, kind="api")
        await self.agent.stop(mark)
        found: list[EventRecord] = []
        stream = self.admin.events(after=0)
        async with asyncio.timeout(WAIT_S), aclosing(stream):  # type: ignore[type-var]  # it is an async generator
            async for event in stream:
                if event.session_id == mark:
                    break
                if kind in (None, event.type):
                    found.append(event)
        return found

    async def metric(self) -> dict[tuple[str, str], int]:
        """How many requests ended, by outcome and cause."""
        connector = aiohttp.UnixConnector(path=str(self.gateway.socket))
        async with aiohttp.ClientSession(connector=connector) as http, http.get("http://local/metrics") as answer:
            text = await answer.text()
            assert answer.status == 200, text
        return {(outcome, cause): int(float(count)) for cause, outcome, count in METRIC.findall(text)}

    async def pending(self) -> list[str]:
        """Ids of what waits."""
        return [record.request_id for record in await self.admin.pending()]

    async def delivered(self, request_ids: int, within_s: float = WAIT_S) -> None:
        """Return once so many waiting requests are recorded as shown in some chat."""

        async def holds() -> bool:
            return sum(bool(record.delivered_to) for record in await self.admin.pending()) >= request_ids

        await soon(holds, within_s)

    async def waiting(self, command: str) -> ApprovalRecord:
        """The waiting request about this command, once it is recorded as shown in some chat."""
        found: list[ApprovalRecord] = []

        async def holds() -> bool:
            pending = await self.admin.pending()
            found[:] = [r for r in pending if r.delivered_to and r.action["command"] == command]
            return bool(found)

        await soon(holds)
        return found[0]

    async def runs_out(self, card: Seen, of: int = 1) -> None:
        """Let the gateway's clock leap beyond the window of the question on this card; where `of` stories have one,
        once all of them call this. It was launched with `--leaps`."""

        async def begun() -> bool:
            return (await self.agent.get(card.short_id)).expires_at is not None

        await soon(begun)  # not before the gateway knows that somebody sees it
        self._windows = self._windows or asyncio.Barrier(of)
        if await self._windows.wait() == 0 and not OWN_TIME:
            await self.gateway.leap(WINDOW_S + 1)

    async def execution_steps(self, request_id: str) -> int:
        """How often an action was started or reported: 2 for one that was started once and reported once."""
        return sum((e.approval or {})["request_id"] == request_id for e in await self.events("approval.execution"))


@asynccontextmanager
async def staged(
    transport: Transport,
    folder: Path,
    *launch: str,
    settings: str = "",
    approvers: Sequence[Person] = APPROVERS,
    store: str = "",
) -> AsyncIterator[Stage]:
    """A stage with a running gateway. `settings` may hold `[approvals]`; `launch` goes to the launcher."""
    config = f"{transport.config(approvers)}\n[agents.builder]\n{AGENT}\n{settings}\n"
    stage = Stage(transport, GatewayProcess(folder, config, store=store))
    try:
        await stage.open(*launch)
        yield stage
        if not launch and stage.gateway.starts == 1:
            assert await transport.beyond_limits() == 0
        assert stage.gateway.defects() == []
    finally:
        await stage.aclose()
        await stage.gateway.aclose()
