"""Full approvals over HTTP: the gateway in a process of its own, agents and approvers in this one."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import msgspec
from msgspec import Struct

from signoff.bench.figures import NotMeasured
from signoff.bench.rig import PLATFORM, REASON
from signoff.bench.rows import Sizes

READY_WITHIN_S = 30.0
ENDS_WITHIN_S = 10.0


class Serving(Struct, frozen=True, kw_only=True):
    """The first line that the server process prints; after it, the id of each request whose card was posted."""

    url: str
    agent_key: str
    approver_key: str


async def approvals(sizes: Sizes) -> dict[str, float]:
    """`http_per_s`: ask and wait in one call, decide when the card stands, claim."""
    async with _server() as (serving, posted):
        run = _Run(serving, posted)
        async with run:
            await run.approvals(sizes.at_once, sizes.at_once)
            begun = time.perf_counter()
            done = await run.approvals(sizes.at_once, sizes.http_approvals)
            spent = time.perf_counter() - begun
    return {"http_per_s": done / spent}


class _Run:
    """Agents and an approver, who decides when the card was posted."""

    def __init__(self, serving: Serving, posted: asyncio.StreamReader) -> None:
        self._posted = posted
        self._agent = {"Authorization": f"Bearer {serving.agent_key}"}
        self._approver = {"Authorization": f"Bearer {serving.approver_key}"}
        self._base = f"{serving.url}/v1"
        self._shown: dict[str, asyncio.Event] = {}
        self._asked = 0

    async def __aenter__(self) -> None:
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._reading = asyncio.create_task(self._read())

    async def __aexit__(self, *exc: object) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        await self._http.close()

    async def approvals(self, at_once: int, number: int) -> int:
        each = max(number // at_once, 1)
        place = {"kind": "chat", "platform": PLATFORM}
        names = [f"s{n}" for n in range(at_once)]
        for name in names:
            await self._call("PUT", f"/sessions/{name}", self._agent, {**place, "chat_id": name})
        await asyncio.gather(*(self._work(name, each) for name in names))
        return each * at_once

    async def _work(self, name: str, number: int) -> None:
        for _ in range(number):
            self._asked += 1
            request_id = f"r{self._asked}"
            shown = self._shown[request_id] = asyncio.Event()
            question = {
                "session_id": name,
                "request_id": request_id,
                "reason": REASON,
                "action": {"kind": "command", "command": f"rm -rf build-{self._asked}", "cwd": "/srv/app"},
            }
            asking = asyncio.create_task(self._call("POST", "/approvals?wait=60", self._agent, question))
            await shown.wait()
            path = f"/approvals/{request_id}"
            await self._call("POST", f"{path}/decision", self._approver, {"choice": "once"})
            record = msgspec.json.decode(await asking)
            if record["outcome"] != "approved":
                raise RuntimeError(f"not approved: {record['outcome']}")
            await self._call("POST", f"{path}/claim", self._agent, {"digest": record["digest"], "claim_id": "c"})

    async def _call(self, method: str, path: str, who: dict[str, str], body: object) -> bytes:
        data = msgspec.json.encode(body)
        headers = {**who, "Content-Type": "application/json"}
        async with self._http.request(method, self._base + path, headers=headers, data=data) as answer:
            told = await answer.read()
            if answer.status >= 400:
                raise RuntimeError(f"{method} {path}: {answer.status} {told[:200]!r}")
            return told

    async def _read(self) -> None:
        while line := await self._posted.readline():
            shown = self._shown.pop(line.decode().strip(), None)
            if shown is not None:
                shown.set()


@asynccontextmanager
async def _server() -> AsyncIterator[tuple[Serving, asyncio.StreamReader]]:
    """The gateway's process; it ends with its standard input, and is ended if it does not."""
    with tempfile.TemporaryDirectory(prefix="signoff-bench-") as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "signoff",
            "bench",
            "--as-server",
            folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        if process.stdin is None or process.stdout is None:
            raise NotMeasured("the server's streams are not connected")
        try:
            line = await asyncio.wait_for(process.stdout.readline(), READY_WITHIN_S)
            if not line:
                raise NotMeasured(f"the server ended with code {await process.wait()}")
            yield msgspec.json.decode(line, type=Serving), process.stdout
        finally:
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), ENDS_WITHIN_S)
            except TimeoutError:
                process.kill()
                await process.wait()
