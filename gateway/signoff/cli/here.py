"""The terminal of `ask` and `run` as a place where their own question is answered, for sessions of kind `cli`.

The answer goes over the gateway's local socket, which only its own user can open: an agent's key never answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import click

from signoff.cli.connect import ASK_PATIENCE_S, Place
from signoff.client import ApprovalRecord, Client
from signoff.client.asking import Seen
from signoff.client.turns import to_the_end
from signoff.clock import SystemClock
from signoff.errors import GatewayUnreachable, SignoffError
from signoff.ids import new_id
from signoff.model import Cause
from signoff.ports import Clock
from signoff.shown_card import ShownCard
from signoff.terminal.lease import LEASE_S, Lease
from signoff.terminal.prompting import prompted
from signoff.terminal.talking import COUNTED, Reply
from signoff.terminal.tty import CONTROLLING

END_WITHIN_S = 3.0
"""How long saying that nobody answers here may take."""

Asking = Callable[[Seen], Coroutine[Any, Any, ApprovalRecord]]


@asynccontextmanager
async def answering(place: Place, client: Client) -> AsyncIterator[Client]:
    """A client that may answer: the one that asks, where it came over the local socket, else one of its own.

    Raises `GatewayUnreachable` where there is no such socket here, `ConfigError`.
    """
    if not place.by_url:
        yield client
        return
    socket = place.location().gateway.admin_socket
    if not socket.exists():
        raise GatewayUnreachable(
            f"A question is answered on a terminal over the gateway's local socket, and {socket} does not exist. Run "
            "this as the gateway's own user, in the folder of its signoff.toml, or leave out --here."
        )
    async with Client(socket=socket, profile=place.profile, unreachable_after_s=ASK_PATIENCE_S) as found:
        yield found


class Here:
    """This terminal, attached to one session while its question waits. `clock` times the renewals."""

    def __init__(self, door: Client, session_id: str, *, clock: Clock | None = None, path: str = CONTROLLING) -> None:
        self._door = door
        self._session_id = session_id
        self._path = path
        self._name = new_id("terminal")
        self._lease = Lease(clock or SystemClock(), self._attach, self._detach)

    @asynccontextmanager
    async def attached(self) -> AsyncIterator[Here]:
        """While inside, the session counts as one whose questions a person can see. Raises `SessionNotFound` where the
        socket is another gateway's."""
        await self._lease.begin()
        try:
            yield self
        finally:
            await to_the_end(self._lease.end("notifier_gone"), END_WITHIN_S)

    async def _attach(self) -> None:
        await self._door.attach(self._session_id, self._name, lease_s=LEASE_S)

    async def _detach(self, cause: Cause) -> None:
        with contextlib.suppress(SignoffError):
            await self._door.detach(self._session_id, self._name, cause)

    async def ask(self, asking: Asking) -> ApprovalRecord:
        """The end of the question that `asking` puts: answered on this terminal, or elsewhere while it stands here.

        An interrupt ends it `cancelled` with the cause `prompt_interrupted`.
        """
        shown: asyncio.Future[ApprovalRecord] = asyncio.get_running_loop().create_future()

        def seen(record: ApprovalRecord) -> None:
            if record.pending and not shown.done():
                shown.set_result(record)

        asked = asyncio.create_task(asking(seen))
        try:
            await asyncio.wait({asked, shown}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                await self._prompt(shown.result(), asked)
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            if shown.done() and not asked.done():
                await to_the_end(self._interrupted(shown.result().request_id), END_WITHIN_S)
            asked.cancel()
            await asyncio.wait({asked})
            raise

    async def _prompt(self, record: ApprovalRecord, asked: asyncio.Task[ApprovalRecord]) -> None:
        failure = await prompted(_OverSocket(self._door), record.request_id, _over(asked), self._path)
        if failure is None:
            return
        await self._lease.end(failure)
        with contextlib.suppress(SignoffError):
            left = await self._door.get(record.request_id)
            if left.pending:
                places = ", ".join(left.destinations) or "the console"
                click.echo(
                    f"signoff: {record.short_id} is not answered here ({failure}); it waits in {places}.", err=True
                )

    async def _interrupted(self, request_id: str) -> None:
        with contextlib.suppress(SignoffError):
            await self._door.cancel(request_id, "prompt_interrupted")


async def _over(asked: asyncio.Task[ApprovalRecord]) -> str:
    try:
        return (await asyncio.shield(asked)).user_summary
    except SignoffError as error:
        return error.message


class _OverSocket:
    """The answering side over the local socket, where the gateway sees which user it is."""

    def __init__(self, door: Client) -> None:
        self._door = door

    async def card(self, request_id: str) -> ShownCard:
        """The card as it stands."""
        return await self._door.card(request_id)

    async def decide(self, request_id: str, reply: Reply) -> str:
        """Answer as the user of this process."""
        record = await self._door.decide(request_id, reply.choice, reply.reason, content=reply.content)
        return record.user_summary or COUNTED
