"""One signed POST to a receiver, and what came of it. Whatever the receiver does, nothing is raised."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from email.utils import parsedate_to_datetime

import aiohttp
from msgspec import Struct

from signoff.hooks.signing import signed
from signoff.loopback import leads_away
from signoff.ports import Clock
from signoff.settings import HookSettings
from signoff.unreached import why_unreached

WITHIN_S = 10.0
"""How long a receiver may take; it should store the message and answer."""
MAX_ANSWER_BYTES = 500


class Posted(Struct, frozen=True, kw_only=True):
    """What came of one try."""

    ok: bool
    """It answered with a status of 200 to 299: it has the message."""
    detail: str
    """Status or error, in words for a log."""
    seconds: float
    retry_after_s: float | None = None
    """After how many seconds the receiver wants the next try, where it says so."""
    answer: bytes = b""
    """The beginning of its answer, where that was wanted."""


class Poster:
    """Posts to one receiver, over connections that are kept. Redirects are not followed: the operator named one place,
    and only that one is told."""

    def __init__(self, hook: HookSettings, clock: Clock, *, within_s: float = WITHIN_S) -> None:
        self._hook, self._clock, self._within_s = hook, clock, within_s
        self._http: aiohttp.ClientSession | None = None

    async def post(self, message_id: str, body: bytes, *, read: bool = False) -> Posted:
        """Try once. `read` also takes the beginning of the answer."""
        began = time.perf_counter()
        answer, retry_after_s = b"", None
        try:
            async with asyncio.timeout(self._within_s):
                status, answer, wanted = await self._post(message_id, body, read)
            retry_after_s = _seconds_until(wanted, self._clock.wall())
            ok, detail = 200 <= status < 300, f"HTTP {status}"
        except TimeoutError:
            ok, detail = False, f"no answer within {self._within_s:g} s"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            ok, detail = False, why_unreached(error)[:200]
        seconds = time.perf_counter() - began
        return Posted(ok=ok, detail=detail, seconds=seconds, retry_after_s=retry_after_s, answer=answer)

    async def _post(self, message_id: str, body: bytes, read: bool) -> tuple[int, bytes, str]:
        headers = signed(self._hook.secret, message_id, int(self._clock.wall().timestamp()), body)
        headers |= {"Content-Type": "application/json", "User-Agent": "signoff"}
        async with self._session().post(self._hook.url, data=body, headers=headers, allow_redirects=False) as response:
            answer = await response.content.read(MAX_ANSWER_BYTES) if read else b""
            return response.status, answer, response.headers.get("Retry-After", "")

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            # A proxy of the environment is for what leads away from this machine.
            away = leads_away(self._hook.url)
            self._http = aiohttp.ClientSession(
                trust_env=away, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        return self._http


def _seconds_until(wanted: str, now: datetime) -> float | None:
    """What a `Retry-After` says: whole seconds, or a date; None for nothing and for what is neither."""
    text = wanted.strip()[:100]
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return None if at.tzinfo is None else max(0.0, (at - now).total_seconds())
