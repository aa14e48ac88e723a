"""`TerminalPrompt`: one `cli` session's questions, put to the person at the terminal of the gateway's own process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from signoff.authorize import local_actor
from signoff.errors import AlreadyResolved, InvalidInput, StoreError
from signoff.ids import new_id
from signoff.model import ApprovalRequest, Cause, Change, Session
from signoff.rows import session_key
from signoff.shown_card import ShownCard
from signoff.terminal.lease import LEASE_S, Lease
from signoff.terminal.prompting import Failure, prompted
from signoff.terminal.talking import COUNTED, Reply
from signoff.terminal.tty import CONTROLLING

if TYPE_CHECKING:
    from signoff.verbs import Verbs

log = logging.getLogger("signoff.terminal")

RETRY_S = 1.0
"""After a store that failed."""
MOST_BELOW = 1000
"""Sessions below the one that is prompted for; more children are not looked at."""


class TerminalPrompt:
    """While inside, the session's questions (and its children's) are asked on this process's terminal, one at a time.

    Only for a session of kind `cli`. A prompt that is interrupted, has no terminal or fails ends what it asked
    `cancelled` with that cause, unless it can be answered elsewhere, and is gone then: `gone` says why. Entering raises
    `InvalidInput`, `SessionNotFound`.
    """

    def __init__(self, gateway: Verbs, session_id: str, *, profile: str = "default", path: str = CONTROLLING) -> None:
        self.gone: Failure | None = None
        self._gateway = gateway
        self._session_id = session_id
        self._profile = profile
        self._path = path
        self._name = new_id("terminal")
        self._side = _InProcess(gateway, profile)
        self._changed = asyncio.Event()
        self._lease = Lease(gateway.clock, self._attach, self._detach)
        self._asking = False
        self._stack = contextlib.ExitStack()
        self._running: asyncio.Task[None]

    async def __aenter__(self) -> TerminalPrompt:
        session = await self._gateway.find_session(self._session_id, profile=self._profile)
        if session.kind != "cli":
            raise InvalidInput(
                f"A terminal prompt is for a session of kind cli; {self._session_id} is {session.kind}.",
                param="session_id",
            )
        await self._lease.begin()
        self._stack.callback(self._gateway.store.subscribe(self._heard))
        self._changed.set()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        interrupted = self._asking and error is not None
        self._stack.close()
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        cause = self.gone or ("prompt_interrupted" if interrupted else "notifier_gone")
        try:
            await asyncio.shield(self._lease.end(cause))
        except StoreError as failed:  # it lapses by itself, and what the block gave or raised is worth more
            log.error("terminal.left: %s", failed)

    async def _attach(self) -> None:
        await self._gateway.attach(self._session_id, self._name, lease_s=LEASE_S, profile=self._profile)

    async def _detach(self, cause: Cause) -> None:
        await self._gateway.detach(self._session_id, self._name, cause, profile=self._profile)

    def _heard(self, changes: Sequence[Change]) -> None:
        if any(change.request is not None and change.request.outcome is None for change in changes):
            self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._look()
                if self.gone is not None:
                    return await self._lease.end(self.gone)
            except StoreError as error:  # it is tried again, or what waits would stand before nobody
                log.error("terminal.unread: %s", error)
                await asyncio.sleep(RETRY_S)
                self._changed.set()

    async def _look(self) -> None:
        """Ask what waits longest."""
        row = await self._next() if self.gone is None else None
        if row is None:
            return
        self._changed.set()
        self._asking = True
        self.gone = await self._prompt(row.request_id)
        self._asking = False

    async def _prompt(self, request_id: str) -> Failure | None:
        """Ask; an interrupt at the prompt ends the prompt, not the program."""
        asking = asyncio.create_task(prompted(self._side, request_id, self._over(request_id), self._path))
        interrupted: list[int] = []

        def interrupt() -> None:
            interrupted.append(signal.SIGINT)
            asking.cancel()

        with _interrupts(interrupt):
            try:
                return await asking
            except asyncio.CancelledError:
                if not interrupted:
                    asking.cancel()
                    await asyncio.wait({asking})
                    raise
                return "prompt_interrupted"

    async def _over(self, request_id: str) -> str:
        return (await self._gateway.wait(request_id, profile=self._profile)).user_summary

    async def _next(self) -> ApprovalRequest | None:
        """The oldest question that waits on a card of its own."""
        waiting: list[ApprovalRequest] = []
        for session_id in await self._family():
            key = session_key(self._profile, session_id)
            rows = await self._gateway.store.find(ApprovalRequest, "live_session", key)
            waiting += [row for row in rows if row.outcome is None and row.leader_id is None]
        return min(waiting, key=lambda row: row.created_at, default=None)

    async def _family(self) -> list[str]:
        found = [self._session_id]
        for name in found:
            children = await self._gateway.store.find(Session, "parent", session_key(self._profile, name))
            found += [child.session_id for child in children if child.session_id not in found]
            if len(found) > MOST_BELOW:
                break
        return found


@contextlib.contextmanager
def _interrupts(interrupt: Callable[[], None]) -> Iterator[None]:
    """While inside, Ctrl-C calls `interrupt`; on a loop of another thread it goes where it went before."""
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except (NotImplementedError, RuntimeError, ValueError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


class _InProcess:
    """The answering side inside the gateway's own process: whoever runs it is the operator there."""

    def __init__(self, gateway: Verbs, profile: str) -> None:
        self._gateway = gateway
        self._profile = profile
        self._actor = local_actor(os.getuid())

    async def card(self, request_id: str) -> ShownCard:
        """The card as it stands."""
        return await self._gateway.card(request_id, profile=self._profile)

    async def decide(self, request_id: str, reply: Reply) -> str:
        """Answer as the operator."""
        decided = await self._gateway.broker.decide(
            self._profile, request_id, reply.choice, self._actor, reason=reply.reason, content=reply.content
        )
        if decided.how == "lost":
            raise AlreadyResolved(row=decided.row)
        record = await self._gateway.get(request_id, profile=self._profile)
        return record.user_summary or COUNTED
