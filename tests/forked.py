"""`python -m MODULE` without the time it takes to import it: a process forked from one that has imported everything.

One such process stands beside each of the tests' own, made when it is first asked for and gone with it. What is forked
from it has its arguments, environment, folder and streams as a new one would.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import runpy
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from io import RawIOBase
from multiprocessing import reduction
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, BinaryIO

Stream = int | BinaryIO | None
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["tests.imported"])


class _Streams:
    """Standard input, output and errors on their way to the process."""

    def __init__(self, *files: int) -> None:
        self.files = files

    def __getstate__(self) -> list[Any]:
        return [reduction.DupFd(file) for file in self.files]

    def __setstate__(self, kept: list[Any]) -> None:
        self.files = tuple(each.detach() for each in kept)

    def take(self) -> None:
        """Make them this process's own."""
        for number, file in enumerate(self.files):
            os.dup2(file, number)
            os.close(file)
        # The objects beside them were made for what this process was forked from.
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115


def _run(module: str, arguments: tuple[str, ...], folder: str, environ: dict[str, str], streams: _Streams) -> None:
    streams.take()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


class Forked:
    """A running process, with what the tests use of `asyncio.subprocess.Process`."""

    def __init__(self, process: ForkServerProcess, stdin: RawIOBase | None) -> None:
        self._process = process
        self._stdin = stdin
        self.pid: int = process.pid or 0
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._ended = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(process.sentinel, self._over)

    def _over(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._process.join()
        if self._stdin is not None:
            self._stdin.close()
        self._ended.set_result(self._process.exitcode)

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._ended.result() if self._ended.done() else None

    def send_signal(self, number: int) -> None:
        """Send it that signal, unless it has ended."""
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        code: int = await asyncio.shield(self._ended)
        return code

    def give(self, text: bytes) -> None:
        """Write to its input, no more than a pipe holds."""
        assert self._stdin is not None
        self._stdin.write(text)

    async def communicate(self, given: bytes = b"") -> tuple[bytes, bytes]:
        """Give it that, close its input, and return what it has still written once it has ended."""
        if given:
            self.give(given)
        if self._stdin is not None:
            self._stdin.close()
        out, errors, _ = await asyncio.gather(_rest(self.stdout), _rest(self.stderr), self.wait())
        return out, errors


async def _rest(stream: asyncio.StreamReader | None) -> bytes:
    return await stream.read() if stream is not None else b""


async def fork_module(
    module: str,
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: Stream = DEVNULL,
    stdout: Stream = PIPE,
    stderr: Stream = PIPE,
) -> Forked:
    """Start `python -m module`; as `asyncio.create_subprocess_exec` takes them, each stream is PIPE, or DEVNULL, or an
    open file, or None for our own."""
    ours: dict[int, int] = {}
    theirs: list[int] = []
    for number, wanted in enumerate((stdin, stdout, stderr)):
        if wanted == PIPE:
            read, write = os.pipe()
            ours[number], given = (write, read) if number == 0 else (read, write)
        else:
            given = _opened(number, wanted)
        theirs.append(given)
    whole = (module, arguments, str(cwd), dict(env), _Streams(*theirs))
    process = _SERVER.Process(target=_run, args=whole, daemon=True)
    try:
        # The first waits until everything is imported.
        await asyncio.to_thread(process.start)
    finally:
        for file in theirs:
            os.close(file)
    forked = Forked(process, os.fdopen(ours[0], "wb", buffering=0) if 0 in ours else None)
    forked.stdout, forked.stderr = [await _reader(ours[number]) if number in ours else None for number in (1, 2)]
    return forked


def _opened(number: int, wanted: Stream) -> int:
    if wanted == DEVNULL:
        return os.open(os.devnull, os.O_RDWR)
    if wanted is None:
        return os.dup(number)
    return os.dup(wanted if isinstance(wanted, int) else wanted.fileno())


async def _reader(file: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(file, "rb", buffering=0)
    )
    return reader
