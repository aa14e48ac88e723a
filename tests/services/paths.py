"""A path to a server on loopback that can be cut, or made to swallow what is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.services.postgres import Database

from signoff.clock import SystemClock
from signoff.stores.postgres import PostgresStore


class Path:
    """Forwards connections to a port. `watch` sees what clients send, before it is forwarded, and may cut the path."""

    def __init__(self, to_port: int, watch: Callable[[Path, bytes], None] = lambda path, sent: None) -> None:
        self.port = 0
        self._to_port = to_port
        self._watch = watch
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._swallowed: set[asyncio.StreamWriter] = set()
        self.deaf = False
        """Nothing that the server says comes through, on any connection."""
        self.unheard: Callable[[Path], None] | None = None
        """Called once the server has said something that did not come through."""

    async def __aenter__(self) -> Path:
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def opened(self, database: Database) -> PostgresStore:
        """A store that reaches the database by this path. Opening waits, so it is done beside the loop."""
        url = database.server.tcp_url(database.name, port=self.port)
        return await asyncio.to_thread(PostgresStore, url, SystemClock())

    def swallow(self) -> None:
        """From now on nothing comes through on the connections there are, and none is closed."""
        self._swallowed |= {writer for pair in self._pairs for writer in pair}
        self.deaf = True

    def forward_new(self) -> None:
        """Connections that are made from now on come through."""
        self.deaf = False

    def cut(self) -> None:
        """Cut every connection there is."""
        for pair in self._pairs:
            for writer in pair:
                writer.transport.abort()
        self._pairs.clear()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        self._pairs.append((writer, to_writer))
        for source, sink, sent in ((reader, to_writer, True), (to_reader, writer, False)):
            task = asyncio.create_task(self._pass(source, sink, sent=sent))
            self._tasks.add(task)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, sent: bool) -> None:
        try:
            while data := await source.read(65536):
                if sent:
                    self._watch(self, data)
                if sink in self._swallowed or (self.deaf and not sent):
                    if not sent and (told := self.unheard) is not None:
                        self.unheard = None
                        told(self)
                    continue
                sink.write(data)
                await sink.drain()
        except OSError:
            return
        finally:
            if sink not in self._swallowed:
                sink.close()
