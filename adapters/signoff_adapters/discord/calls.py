"""Calls of the REST API: how a request can fail, told apart by what Discord may have done with it.

The library's own client waits inside a call when a rate limit is near, repeats some failures for up to 25 s, and has no
time limit of its own. Here each call is made once, ends within its time, and says what is known of its effect.
"""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from typing import Any, TypeVar

import aiohttp
import msgspec

from signoff.errors import AdapterError, AdapterUnavailable, MessageGone, RateLimited, SendAmbiguous, SendRefused
from signoff.model import Attachment

from ..failures import NEVER_SENT, AnswerLost, CallFailed, NotSent, ServerTrouble
from ..hiding import TokenFilter
from . import codes
from .buckets import Buckets
from .config import DiscordConfig

T = TypeVar("T")
JsonObject = dict[str, Any]
DEFAULT_WAIT_S = 5.0
"""For a 429 that names no wait."""
_REASONS: dict[int, tuple[str, str]] = {
    codes.UNKNOWN_CHANNEL: ("chat_not_found", "the channel does not exist, or the bot is not in its server"),
    codes.UNKNOWN_USER: ("chat_not_found", "there is no such user or channel"),
    codes.INVALID_RECIPIENTS: ("chat_not_found", "there is no such user or channel"),
    codes.TOO_LARGE: ("attachment", "the file is too large"),
    codes.NO_ACCESS: ("no_access", "the bot may not see the channel"),
    codes.NO_DIRECT_MESSAGES: ("blocked", "the person does not take messages from the bot"),
    codes.NO_MESSAGES_HERE: ("no_rights", "the channel takes no messages"),
    codes.NO_PERMISSION: ("no_rights", "the bot lacks a permission there: View Channel, Send Messages, Attach Files"),
    codes.THREAD_ARCHIVED: ("archived", "the thread is archived and the bot may not open it again"),
    codes.REFUSED_ON_THE_WAY: ("no_rights", "something between us and Discord refused the call"),
    codes.THREAD_LOCKED: ("archived", "the thread is locked"),
}
"""Discord's error codes, a stable word for each, and the reason for people."""


class Unauthorized(CallFailed):
    """401: the token is not accepted, or something between us and Discord answers in its place."""


class Throttled(CallFailed):
    """429, with the seconds to wait; `for_all`: before whatever call of this bot, not of this kind alone."""

    def __init__(self, retry_after_s: float, *, for_all: bool = False) -> None:
        super().__init__(f"Discord asks to wait {retry_after_s:g} s")
        self.retry_after_s, self.for_all = retry_after_s, for_all


class OldEdits(CallFailed):
    """429 for too many edits of a message older than an hour, with the seconds until this one takes another."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("Discord takes no more edits of this old message for now")
        self.retry_after_s = retry_after_s


class Rejected(CallFailed):
    """Any other refusal, with the status and Discord's error code (0: none)."""

    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(f"Discord answered {status}: {text}" if text else f"Discord answered {status}")
        self.status, self.code, self.text = status, code, text


class _Refusal(msgspec.Struct, frozen=True):
    message: str = ""
    code: int = 0
    retry_after: float | None = None
    is_global: bool = msgspec.field(default=False, name="global")
    errors: Any = None


class Calls:
    """One session for all calls of one bot; no call waits for another."""

    def __init__(self, config: DiscordConfig) -> None:
        self._config = config
        self._base = f"{config.api_base_url.rstrip('/')}/api/v10"
        self._buckets = Buckets()
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The session; made when first needed, on the running loop."""
        if self._session is None or self._session.closed:
            agent = f"DiscordBot (https://pypi.org/project/signoff, {version('signoff')})"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": agent},
            )
        return self._session

    async def get(self, path: str, answer: type[T]) -> T:
        """Read something. Raises `CallFailed`."""
        return read_answer(await self.call("GET", path), answer)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        file: Attachment | None = None,
        with_token: bool = True,
    ) -> bytes:
        """Do one call and return the answer's body; `file` goes along in the same request. Raises `CallFailed`."""
        limit_s = self._config.upload_timeout_s if file is not None else self._config.answer_timeout_s
        headers = {"Authorization": f"Bot {self._config.token}"} if with_token else {}
        form: JsonObject = {}
        if file is not None:
            form = {"data": _multipart(body, file)}
        elif body is not None:
            headers["Content-Type"] = "application/json"
            form = {"data": msgspec.json.encode(body)}
        if with_token:
            self._hold_back(method, path)
        timeout = aiohttp.ClientTimeout(total=limit_s, sock_connect=self._config.connect_timeout_s)
        try:
            async with self.session.request(
                method, self._base + path, headers=headers, timeout=timeout, **form
            ) as response:
                answer = await response.read()
        except NEVER_SENT as error:
            raise NotSent(f"Discord could not be reached: {type(error).__name__}") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise AnswerLost(f"no answer from Discord: {type(error).__name__}") from None
        now_s = asyncio.get_running_loop().time()
        if with_token:
            self._buckets.heard(method, path, response.headers, now_s)
        if response.status < 300:
            return answer
        failure = _failure(response.status, answer, response.headers.get("Retry-After", ""))
        if isinstance(failure, OldEdits):
            self._buckets.hold_one(method, path, failure.retry_after_s, now_s)
        elif isinstance(failure, Throttled) and failure.for_all and with_token:
            self._buckets.hold_all(failure.retry_after_s, now_s)
        raise failure

    def _hold_back(self, method: str, path: str) -> None:
        """Refuse in Discord's place a call that it would refuse, for the rest of the time that it named."""
        now_s = asyncio.get_running_loop().time()
        if (wait_s := self._buckets.wait_s(method, path, now_s)) > 0:
            raise Throttled(wait_s)
        if (wait_s := self._buckets.wait_of_one_s(method, path, now_s)) > 0:
            raise OldEdits(wait_s)

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()


def _multipart(body: Any, file: Attachment) -> aiohttp.FormData:
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("payload_json", msgspec.json.encode(body).decode(), content_type="application/json")
    form.add_field("files[0]", file.content, filename=file.name, content_type="text/plain; charset=utf-8")
    return form


def _failure(status: int, answer: bytes, retry_after: str) -> CallFailed:
    try:
        refusal = msgspec.json.decode(answer, type=_Refusal)
    except msgspec.DecodeError:
        refusal = _Refusal(is_global=True)  # not Discord's own words: something before it shuts all of us out
    if status == 429:
        wait_s = _wait_s(refusal.retry_after, retry_after)
        old = refusal.code == codes.OLD_EDITS
        return OldEdits(wait_s) if old else Throttled(wait_s, for_all=refusal.is_global)
    if status >= 500:
        return ServerTrouble(f"Discord answered {status}")
    if status == 401 and refusal.code == 0:
        return Unauthorized("Discord answered 401: it does not accept the token")
    detail = _first_error(refusal.errors)
    return Rejected(status, refusal.code, f"{refusal.message} {detail}".strip())


def _wait_s(told: float | None, header: str) -> float:
    if told is not None and 0 <= told < 1e6:
        return told
    return float(header) if header.isascii() and header.isdigit() and len(header) < 7 else DEFAULT_WAIT_S


def _first_error(errors: Any) -> str:
    """The first field that Discord complains of, and why."""
    path: list[str] = []
    while isinstance(errors, dict) and errors and len(path) < 12:
        found = errors.get("_errors")
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return f"({'.'.join(path)}: {found[0].get('message', '')})"
        key = next(iter(errors))
        path.append(str(key))
        errors = errors[key]
    return ""


def read_answer(answer: bytes, shape: type[T]) -> T:
    """The body of a successful answer. Raises `AnswerLost` for one that cannot be read."""
    try:
        return msgspec.json.decode(answer, type=shape)
    except msgspec.DecodeError:
        raise AnswerLost("Discord's answer could not be read") from None


def as_send_error(error: CallFailed) -> AdapterError:
    """What a failed post means to the core.

    An answer of 500 and above is no proof that nothing was posted, so it is ambiguous like a lost answer.
    """
    if isinstance(error, ServerTrouble | AnswerLost):
        return SendAmbiguous(f"{error}; the message may have been posted.", answered=isinstance(error, ServerTrouble))
    return as_edit_error(error)


def as_edit_error(error: CallFailed) -> AdapterError:
    """What a failed edit or deletion means: these may be repeated, so a lost answer is only a failed try.

    So is the refusal of too many edits of an old message: it ends by itself, and concerns this message alone, while
    `RateLimited` would hold up the whole channel. The edit may be tried again whenever; until the time that Discord
    named no try leaves this process.
    """
    if isinstance(error, Throttled):
        return RateLimited(str(error), retry_after_s=error.retry_after_s)
    if not isinstance(error, Rejected):
        return AdapterUnavailable(f"{error}.")
    if error.code == codes.UNKNOWN_MESSAGE:
        return MessageGone("The message does not exist any more.")
    reason, words = _REASONS.get(error.code, ("refused", error.text or f"it answered {error.status}"))
    if error.status == 413:
        reason, words = _REASONS[codes.TOO_LARGE]
    return SendRefused(f"Discord refused it: {words}.", reason=reason)


class HideToken(TokenFilter):
    """Keeps the bot's token out of the log lines of the libraries, and whole frames of the gateway, which carry what
    people wrote and the tokens of their interactions."""

    LOGGERS = ("discord.client", "discord.gateway", "discord.http", "aiohttp.client", "aiohttp.websocket")

    def filter(self, record: logging.LogRecord) -> bool:
        """Frames are left out."""
        if record.name == "discord.gateway" and record.levelno <= logging.DEBUG:
            return False
        return super().filter(record)
