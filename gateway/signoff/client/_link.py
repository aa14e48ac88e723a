"""The connection to a gateway: one HTTP exchange, and how often and how long a lost one is tried again."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

from signoff.client import _wire
from signoff.client._wire import Call
from signoff.errors import GatewayUnreachable, InvalidInput, SignoffError, StoreError

log = logging.getLogger("signoff.client")

CONNECT_S = 5.0
"""How long a connection may take to open."""
ANSWER_S = 15.0
"""How long an answer may take beyond the time that the gateway was asked to hold it back."""
QUIET_S = 75.0
"""An event stream this long without a byte is taken for dead; the gateway sends a comment more often."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
"""Pauses double from the first to the longest, so that many clients do not crush a gateway that comes back."""
NOTICED_S = 1.0
"""A shorter outage, such as a quick restart, is nothing to tell of."""
OnOutage = Callable[[bool], None]
"""Is told True when a gateway does not answer any more, False once it does again."""
_IN_HEADER = re.compile(r"[!-~]+")
PASSING = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses of a gateway (or a proxy before it) that is not ready now."""


class Address(Struct, frozen=True, kw_only=True):
    """Where a gateway answers: an origin with a key, or its local administration socket."""

    url: str = "http://127.0.0.1:8787"
    key: str | None = None
    socket: Path | None = None
    profile: str | None = None

    def __repr__(self) -> str:
        return f"Address({self.shown!r}, profile={self.profile!r})"

    @property
    def shown(self) -> str:
        """The place for people, without the key."""
        return str(self.socket) if self.socket else self.url

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        headers = {"Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if self.profile:
            headers["X-Signoff-Profile"] = self.profile
        return headers


class Lost(Exception):
    """An exchange that may be tried again. `sent`: the gateway may have acted on it."""

    def __init__(
        self,
        why: str,
        *,
        sent: bool,
        after_s: float = 0.0,
        defect: SignoffError | None = None,
        refusal: SignoffError | None = None,
    ) -> None:
        super().__init__(why)
        self.why, self.sent, self.after_s, self.defect = why, sent, after_s, defect
        self.refusal = refusal
        """What the gateway answered; None where none did."""


class _Outage:
    """Tells once that nothing gets through any more, and once that it does again."""

    def __init__(self, tell: OnOutage | None) -> None:
        self._tell = tell
        self._since: float | None = None
        self.told = False

    def lost(self, now: float) -> None:
        self._since = now if self._since is None else self._since
        if self._tell is not None and not self.told and now - self._since >= NOTICED_S:
            self.told = True
            self._tell(True)

    def over(self) -> None:
        self._since, self.told = None, False
        if self._tell is not None:
            self._tell(False)


class Backoff:
    """Doubling pauses with jitter. Not for cryptography."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    def pause_s(self, at_least_s: float = 0.0) -> float:
        """The next pause: half to all of the current step."""
        step_s, self._next_s = self._next_s, min(self._next_s * 2, LONGEST_PAUSE_S)
        return max(at_least_s, random.uniform(step_s / 2, step_s))  # noqa: S311  # spreads load, hides nothing


class Link:
    """One HTTP session. Made inside the loop that uses it."""

    def __init__(self, address: Address, *, unreachable_after_s: float, on_outage: OnOutage | None = None) -> None:
        self.address = address
        self.unreachable_after_s = unreachable_after_s
        self._on_outage = on_outage
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def once(self, call: Call) -> bytes:
        """One exchange. Raises `Lost`, or the error that the gateway answered with."""
        limit = aiohttp.ClientTimeout(total=call.wait_s + ANSWER_S, sock_connect=CONNECT_S)
        body = None if call.body is None else _wire.encode(call.body)
        try:
            async with self._open().request(
                call.method, call.path, params=list(call.query), data=body, timeout=limit, headers=_type_of(body)
            ) as answer:
                found = await answer.read()
        except aiohttp.ClientConnectorError as error:
            raise Lost(_reason(error), sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Lost(_reason(error), sent=True) from error
        if answer.status < 400:
            return found
        refusal = _wire.failure(answer.status, found)
        if answer.status in PASSING:
            own = _own(answer, refusal)
            raise Lost(refusal.message, sent=False, after_s=_retry_after(answer), defect=own, refusal=refusal)
        if answer.status >= 500:
            raise Lost(refusal.message, sent=True, defect=refusal)
        raise refusal

    async def call(self, call: Call, *, patience_s: float | None = None, watched: bool = False) -> bytes:
        """The answer to `call`, tried again over lost connections for `patience_s` (`unreachable_after_s` by default).

        What is not repeatable is tried again only where the gateway surely did not act on it. `watched`: an outage
        meanwhile is told to `on_outage`. Raises `GatewayUnreachable` when nothing got through for so long.
        """
        outage = _Outage(self._on_outage if watched else None)
        patience_s = self.unreachable_after_s if patience_s is None else patience_s
        loop = asyncio.get_running_loop()
        start, backoff = loop.time(), Backoff()
        while True:
            try:
                if outage.told:
                    await self._answers()
                    outage.over()
                return await self.once(call)
            except Lost as lost:
                outage.lost(loop.time())
                lost_s = loop.time() - start
                # A defect that answers is no outage: it is not waited out as one.
                limit_s = patience_s if lost.defect is None else min(patience_s, self.unreachable_after_s)
                if lost_s >= limit_s or (lost.sent and not call.repeatable):
                    raise self.given_up(lost, lost_s) from lost
                log.debug("trying again: %s", lost.why)
                pause_s = backoff.pause_s(lost.after_s)
            await asyncio.sleep(min(pause_s, max(0.05, limit_s - lost_s)))

    async def _answers(self) -> None:
        """Return once it answers, which a long poll would keep back; what it says to that does not matter. Raises
        `Lost`."""
        try:
            await self.once(_wire.health())
        except Lost as lost:
            lost.sent = False  # what is to be done was not
            raise
        except SignoffError:
            pass

    @asynccontextmanager
    async def stream(self, call: Call, last_id: str) -> AsyncIterator[aiohttp.StreamReader]:
        """An open event stream. Raises `Lost`, or the error that the gateway answered with."""
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=QUIET_S)
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        try:
            async with self._open().request(
                call.method, call.path, params=list(call.query), timeout=limit, headers=headers
            ) as answer:
                if answer.status >= 400:
                    refusal = _wire.failure(answer.status, await answer.read())
                    if answer.status in PASSING or answer.status >= 500:
                        own = _own(answer, refusal)
                        after_s = _retry_after(answer)
                        raise Lost(refusal.message, sent=False, after_s=after_s, defect=own, refusal=refusal)
                    raise refusal
                yield answer.content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Lost(_reason(error), sent=True) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise GatewayUnreachable("This client was closed; make a new one.")
        if self._session is None:
            address = self.address
            connector: aiohttp.BaseConnector = (
                aiohttp.UnixConnector(path=str(address.socket), limit=0)
                if address.socket
                else aiohttp.TCPConnector(limit=0)
            )
            base = "http://localhost" if address.socket else address.url
            self._session = aiohttp.ClientSession(base, connector=connector, headers=address.headers)
        return self._session

    def given_up(self, lost: Lost, after_s: float) -> SignoffError:
        """The error to raise after `after_s` seconds without success."""
        if lost.defect is not None:
            return lost.defect
        if isinstance(lost.refusal, StoreError):
            return GatewayUnreachable(
                f"The gateway at {self.address.shown} runs, but its store does not answer (tried for {after_s:.0f} s). "
                "Its log says why, and `signoff doctor` does."
            )
        return GatewayUnreachable(
            f"No gateway answers at {self.address.shown} ({lost.why}; tried for {after_s:.0f} s). "
            "Start one with `signoff serve`, or set SIGNOFF_URL."
        )


def address_of(url: str, named: str) -> str:
    """The origin that `url` writes; `named` is what the caller set it by. Raises `InvalidInput`.

    What is wrong with it is told without repeating what may be a password.
    """
    form = "Write http://HOST:PORT."
    if not url.startswith(("http://", "https://")):
        told = "It" if "@" in url else repr(url[:200])
        raise InvalidInput(f"{named}: {told} is not the address of a gateway. {form}", param="url")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if "@" in parts.netloc:
        raise InvalidInput(
            f"{named} holds a user or a password, which no gateway asks for. {form} The key goes into SIGNOFF_KEY.",
            param="url",
        )
    if not host or not url.isprintable() or " " in url or parts.query or parts.fragment or parts.path.strip("/"):
        raise InvalidInput(f"{named} is not the address of a gateway. {form[:-1]}, with nothing after it.", param="url")
    return url.rstrip("/")


def header_text(text: str | None, named: str, param: str) -> str | None:
    """`text` as it may stand in a header; `named` is what the caller set it by. Raises `InvalidInput`."""
    if text is not None and not _IN_HEADER.fullmatch(text):
        raise InvalidInput(
            f"{named} holds a space, a line break or another character that cannot stand there. Set it to the "
            f"{param} alone, without what is before or after it.",
            param=param,
        )
    return text


def _own(answer: aiohttp.ClientResponse, refusal: SignoffError) -> SignoffError | None:
    """A gateway that answers that it is asked too much is there: once patience ends, that is the error."""
    return refusal if answer.status == HTTPStatus.TOO_MANY_REQUESTS else None


def _type_of(body: bytes | None) -> dict[str, str]:
    return {} if body is None else {"Content-Type": "application/json"}


def _reason(error: Exception) -> str:
    """Why an exchange failed, in few words and on one line."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or "no connection"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (str(error) or "connection lost").splitlines()[0]


def _retry_after(answer: aiohttp.ClientResponse) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), 60.0) if text.isdecimal() else 0.0
