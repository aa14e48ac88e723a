"""One connection to Discord's gateway after another.

The library speaks the protocol (greeting, identify, heartbeats, resume). Its own loop around it, its login and all its
parsers stay unused: they end for good on an unknown object, wait up to 1024 s between two tries, sleep 5 s before a new
session, and keep their addresses in class attributes, which all clients of a process share. Here the address belongs to
the client, and dispatches go to our reader as they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import aiohttp
import discord
import yarl
from discord.gateway import DiscordClientWebSocketResponse, DiscordWebSocket, ReconnectWebSocket
from msgspec import Struct

from signoff.errors import AdapterFatal

from .config import DiscordConfig
from .heart import Heart

INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
"""None of them is privileged: what people write is seen in direct chats and where the bot is mentioned."""
DISPATCHES = ("INTERACTION_CREATE", "MESSAGE_CREATE", "MESSAGE_UPDATE")
CLOSE_TIMEOUT_S = 1.0
RESUMABLE_CLOSE = 4000
"""Any code but 1000 and 1001 leaves the session open, so that what comes meanwhile is delivered on resume."""
VAIN_RESUMES = 3
"""So many resumes in a row that Discord takes and then does not answer end a session; a new one hears again."""
_SESSION_ENDED = (4007, 4009)
"""Close codes with which Discord asks for a new session: a sequence that it does not know, and a session too old."""
SESSIONS_A_DAY = 1000
"""Discord takes a bot's token away after so many new sessions in 24 h."""
_DAY_S = 86400.0
_FATAL = {
    4004: "Discord rejects the bot's token. Put the right one into platforms.discord.token.",
    4010: "Discord refuses the connection (invalid shard). Please report this.",
    4011: "This bot is in too many servers for one connection; use a bot of its own for approvals.",
    4012: "Discord no longer speaks this version of its gateway. Update discord.py.",
    4013: "Discord refuses the connection (invalid intents). Please report this.",
    4014: "Discord refuses the connection (intents that are not enabled). Please report this.",
}
"""Close codes after which the same connection would fail again for ever."""
_log = logging.getLogger(__name__)


class LinkLost(Exception):
    """The connection ended, or could not be made. `was_up`: a session had begun on it. `too_old`: Discord serves, but
    no longer knows the session that was to go on."""

    def __init__(self, text: str, *, was_up: bool, too_old: bool = False) -> None:
        super().__init__(text)
        self.was_up = was_up
        self.too_old = too_old


class Resumable(Struct, frozen=True):
    """What is needed to go on with a session: its id, the last dispatch that is done with, and where to."""

    session_id: str
    sequence: int
    url: str


class Dispatch(Struct, frozen=True):
    """One thing that happened, in the session's own order."""

    event: str
    data: Any
    sequence: int


class _Socket(DiscordWebSocket):
    """The library's socket with more frequent heartbeats, sent on the loop."""

    heartbeat_every_s = 9.5
    _heart: Heart | None = None

    async def received_message(self, msg: Any, /) -> None:
        """Raises ValueError for a packed frame, since none was asked for."""
        if isinstance(msg, bytes):
            raise ValueError("a binary frame")
        await super().received_message(msg)

    @property
    def _keep_alive(self) -> Any:
        return self._heart

    @_keep_alive.setter
    def _keep_alive(self, handler: Any) -> None:
        """The library sets its own thread here when Discord greets, then starts it; ours takes its place."""
        self._heart = None if handler is None else Heart(self, min(handler.interval, self.heartbeat_every_s))


def _socket_type(config: DiscordConfig, heard: Callable[[], None]) -> type[_Socket]:
    """The socket of one bot, with its own address, telling of every frame."""

    class Socket(_Socket):
        DEFAULT_GATEWAY = yarl.URL(config.gateway_url)
        heartbeat_every_s = config.heartbeat_every_s

        def log_receive(self, _: dict[str, Any], /) -> None:
            heard()

    return Socket


class _Client(discord.Client):
    """The library's client, as far as its socket needs one."""

    def __init__(self, config: DiscordConfig, session: Callable[[], aiohttp.ClientSession]) -> None:
        # Its warnings that voice libraries are missing would only puzzle an operator.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        super().__init__(intents=INTENTS, max_messages=None, heartbeat_timeout=config.silence_s)
        self.http.token = config.token
        self.http.ws_connect = self._open_socket  # type: ignore[method-assign]  # its own session and no login
        self._session = session
        self.raw: aiohttp.ClientWebSocketResponse | None = None

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Nothing: the gap between two sessions is kept by the link, and only where there is one to keep."""

    async def _open_socket(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        self.raw = await self._session().ws_connect(
            url,
            max_msg_size=0,
            autoclose=False,
            compress=compress,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
        )
        return self.raw


class Link:
    """The gateway side of one bot. `on_dispatch` and `on_heard` are called on the loop and must not raise."""

    def __init__(
        self,
        config: DiscordConfig,
        *,
        on_dispatch: Callable[[Dispatch], None],
        on_heard: Callable[[], None],
        on_up: Callable[[], None],
    ) -> None:
        """`on_up` is told that a session began or goes on."""
        self.resume: Resumable | None = None
        """The session to go on with; None for a new one."""
        self._config = config
        self._on_dispatch, self._on_up = on_dispatch, on_up
        self._socket_type = _socket_type(config, on_heard)
        self._client: _Client | None = None
        self._socket: _Socket | None = None
        self._up = asyncio.Event()
        self._vain = 0
        """Resumes in a row that were sent and brought nothing."""
        self._elsewhere = False
        """The session's own address did not let us in, so the general one is asked, which resumes too."""
        self._identified: deque[float] = deque(maxlen=SESSIONS_A_DAY)
        self._websockets: aiohttp.ClientSession | None = None

    def gap_s(self) -> float:
        """Seconds to wait before a new session may begin; 0 for a resumed one."""
        if self.resume is not None or not self._identified:
            return 0.0
        now = time.monotonic()
        today = sum(now - each < _DAY_S for each in self._identified)
        # After a fifth of the day's sessions the rest are spread so that the day cannot use them up.
        gap_s = self._config.identify_gap_s if today < SESSIONS_A_DAY / 5 else _DAY_S / (SESSIONS_A_DAY * 0.75)
        return max(0.0, self._identified[-1] + gap_s - now)

    def position(self) -> Resumable | None:
        """The present session and the last dispatch that came; None without a session."""
        socket = self._client.ws if self._client is not None else None
        if socket is None or socket.session_id is None or not self._up.is_set():
            return None
        return Resumable(socket.session_id, socket.sequence or 0, str(socket.gateway))

    async def hold(self) -> None:
        """Connect and receive until the connection ends. Raises `LinkLost`, or `AdapterFatal` for good."""
        self._up.clear()
        resuming = self.resume
        try:
            async with asyncio.timeout(self._config.greeting_timeout_s):
                socket = await self._connect(resuming)
            await self._receive(socket)
        except TimeoutError:
            self._remember(keep=True)
            self._missed(resuming, VAIN_RESUMES)
            raise self._lost("the gateway did not begin a session in time") from None
        except ReconnectWebSocket as ended:
            goes_on = ended.resume and self._close_code() not in _SESSION_ENDED
            self._remember(keep=goes_on)
            self._missed(resuming)
            too_old = resuming is not None and not ended.resume and not self._up.is_set()
            raise self._lost(self._why(resume=goes_on), too_old=too_old) from None
        except discord.ConnectionClosed as closed:
            self.resume = None
            if closed.code in _FATAL:
                raise AdapterFatal(_FATAL[closed.code]) from None
            raise self._lost(f"the gateway closed the connection ({closed.code})") from None
        except (OSError, aiohttp.ClientError, discord.DiscordException) as error:
            self._remember(keep=True)
            self._missed(resuming)
            raise self._lost(f"the connection failed ({type(error).__name__})") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # A frame that the library cannot take apart. What comes after it is fetched again, unless nothing came.
            self._remember(keep=self._up.is_set())
            raise self._lost(f"a frame could not be read ({type(error).__name__})") from None
        finally:
            await self._drop()

    async def aclose(self) -> None:
        """Close the connection; the session stays, so that a restart can go on with it. Idempotent."""
        await self._drop()
        if self._websockets is not None:
            await self._websockets.close()

    async def _connect(self, resuming: Resumable | None) -> _Socket:
        client = self._client
        if client is None:
            client = self._client = _Client(self._config, self._session)
            await client._async_setup_hook()
            client._connection.parsers = self._readers()
        url = yarl.URL(self._config.gateway_url if resuming is None or self._elsewhere else resuming.url)
        if resuming is None:
            self._identified.append(time.monotonic())
        self._socket = await self._socket_type.from_client(
            client,
            initial=True,
            gateway=url,
            session=resuming.session_id if resuming is not None else None,
            sequence=resuming.sequence if resuming is not None else None,
            resume=resuming is not None,
            compress=False,  # little comes, and how it is packed would depend on what else is installed
        )
        client.ws = self._socket
        while not self._up.is_set():
            await self._socket.poll_event()
        return self._socket

    async def _receive(self, socket: _Socket) -> None:
        while True:
            await socket.poll_event()

    def _session(self) -> aiohttp.ClientSession:
        if self._websockets is None or self._websockets.closed:
            self._websockets = aiohttp.ClientSession(
                ws_response_class=DiscordClientWebSocketResponse, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._websockets

    def _readers(self) -> dict[str, Callable[[Any], None]]:
        """What is done with each kind of dispatch; those without an entry are passed over."""
        readers: dict[str, Callable[[Any], None]] = {name: self._reader(name) for name in DISPATCHES}
        readers["READY"] = readers["RESUMED"] = self._began
        return readers

    def _reader(self, event: str) -> Callable[[Any], None]:
        def read(data: Any) -> None:
            socket = self._client.ws if self._client is not None else None
            self._on_dispatch(Dispatch(event, data, (socket.sequence if socket is not None else None) or 0))

        return read

    def _began(self, _: Any) -> None:
        self._vain, self._elsewhere = 0, False
        self._up.set()
        self._on_up()

    def _remember(self, *, keep: bool) -> None:
        """What the next connection goes on with."""
        socket = self._socket
        if not keep:
            self.resume = None
        elif socket is not None and socket.session_id is not None:
            self.resume = Resumable(socket.session_id, socket.sequence or 0, str(socket.gateway))

    def _missed(self, resuming: Resumable | None, weight: int = 1) -> None:
        """A resume that got no session. Before it was sent only the way there failed, and the session may well be held
        for us; after that, too many which brought nothing at all are its end."""
        if resuming is None or self._up.is_set():
            return
        if self._socket is None:
            self._elsewhere = not self._elsewhere
            return
        came = self._socket.sequence != resuming.sequence
        self._vain = 0 if came else self._vain + weight
        if self._vain >= VAIN_RESUMES:
            self.resume, self._vain = None, 0

    def _lost(self, text: str, *, too_old: bool = False) -> LinkLost:
        return LinkLost(text, was_up=self._up.is_set(), too_old=too_old)

    def _close_code(self) -> int | None:
        return self._socket.socket.close_code if self._socket is not None else None

    def _why(self, *, resume: bool) -> str:
        code = self._close_code()
        if not resume:
            return "the gateway ended the session; a new one begins"
        return f"the connection ended (code {code})" if code is not None else "the connection ended"

    async def _drop(self) -> None:
        """Close what is open; also a socket whose greeting never came."""
        socket, self._socket = self._socket, None
        raw = self._client.raw if self._client is not None else None
        if self._client is not None:
            self._client.raw = None
        if socket is not None and socket._keep_alive is not None:
            socket._keep_alive.stop()
        if raw is not None and not raw.closed:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await raw.close(code=RESUMABLE_CLOSE)
