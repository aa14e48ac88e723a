"""Connections to the database, and asking several things in one round trip."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg

from signoff.stores.postgres_errors import explain, is_lost
from signoff.stores.postgres_place import CONNECT_S, Place
from signoff.stores.postgres_shapes import Statement

Connection = psycopg.AsyncConnection[Any]

ANSWER_S = 40.0
"""How long an answer may take before the connection counts as dead: longer than the server's own limits."""
COMMIT_S = 20.0
"""How long the answer to a commit may take; a server with a synchronous standby waits for the standby first."""
LINES = 4
"""Connections for reading at most; a page or an export holds one for some milliseconds."""
_SESSION = (
    "SELECT set_config('TimeZone', 'UTC', false), set_config('statement_timeout', '30s', false),"
    " set_config('lock_timeout', '4s', false),"
    # Acknowledged means durable, whatever the server's default.
    " CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END"
)
# The server's idle_in_transaction_session_timeout is of no use: the driver ends each round trip with a Flush message,
# which stops that timer (seen with PostgreSQL 15 and psycopg 3.3). Whoever waits cuts off a holder that stands still.


async def connect(place: Place) -> Connection:
    """A new connection. Raises `psycopg.Error`, and `TimeoutError` when the server does not answer."""
    async with asyncio.timeout(CONNECT_S * 3):
        connection = await psycopg.AsyncConnection.connect(**place.options, autocommit=True)
        try:
            await connection.execute(_SESSION)
        except BaseException:
            await connection.close()
            raise
    return connection


async def ask(connection: Connection, statements: Sequence[Statement], limit_s: float | None = ANSWER_S) -> list[Any]:
    """Run the statements in one round trip; the rows of each. Raises `psycopg.Error`, after which the connection is
    to be closed, and `TimeoutError`."""
    cursors = []
    if len(statements) == 1:
        async with asyncio.timeout(limit_s):
            (sql, values), *_ = statements
            cursor = await connection.cursor(binary=True).execute(sql, values or None)
            return [await cursor.fetchall() if cursor.description else []]
    async with asyncio.timeout(limit_s), connection.pipeline():
        for sql, values in statements:
            cursors.append(await connection.cursor(binary=True).execute(sql, values or None))
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]


async def commit(connection: Connection, statements: Sequence[Statement], limit_s: float) -> bool:
    """Run statements that end in a commit; whether the server confirms it without a warning.

    One warning is that somebody ended the wait for a synchronous standby: the commit then stands on this server alone.
    A limit of `ask` would end that wait as well, since the driver asks the server to cancel. So the connection is cut
    instead, after which the server goes on waiting. Raises `psycopg.Error`, then too.
    """
    warned: list[psycopg.errors.Diagnostic] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warned.append(notice)

    connection.add_notice_handler(hear)
    limit = asyncio.get_running_loop().call_later(limit_s, _cut, connection)
    try:
        await ask(connection, statements, None)
    finally:
        limit.cancel()
        connection.remove_notice_handler(hear)
    return not warned


def _cut(connection: Connection) -> None:
    """End the connection below the driver, which finds it lost."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class Lines:
    """Connections for reading, made as needed and kept."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._free = asyncio.Semaphore(LINES)
        self._idle: list[Connection] = []

    async def ask(self, statements: Sequence[Statement]) -> list[Any]:
        """Ask on a connection of its own. One that the server had closed meanwhile is replaced.

        Raises `StoreUnavailable`.
        """
        async with self._free:
            while True:
                kept = bool(self._idle)
                connection: Connection | None = None
                try:
                    connection = self._idle.pop() if kept else await connect(self._place)
                    rows = await ask(connection, statements)
                except (psycopg.Error, TimeoutError) as error:
                    stale = kept and not isinstance(error, TimeoutError) and is_lost(error, connection)
                    if connection is not None:
                        await connection.close()
                    if not stale:
                        raise explain(error, self._place.shown) from error
                except BaseException:
                    if connection is not None:
                        await connection.close()
                    raise
                else:
                    self._idle.append(connection)
                    return rows

    async def close(self) -> None:
        """Finish what is being read, then close."""
        for _ in range(LINES):
            await self._free.acquire()
        while self._idle:
            await self._idle.pop().close()
