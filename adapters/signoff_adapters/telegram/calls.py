"""Calls of the Bot API: how a request can fail, told apart by what the server may have done with it.

The SDK reports a refused connection, a lost answer and a broken server as one `NetworkError`. What matters here is
whether a message may have been posted, so the transport raises an error of its own for each.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import httpx
import msgspec
from telegram import Bot
from telegram.error import BadRequest, ChatMigrated, Forbidden, NetworkError, TelegramError
from telegram.request import HTTPXRequest, RequestData

from signoff.errors import (
    AdapterError,
    AdapterUnavailable,
    ChatMoved,
    MessageGone,
    RateLimited,
    SendAmbiguous,
    SendRefused,
)

from ..hiding import TokenFilter
from .config import TelegramConfig

_EMPTY_BATCH = b'{"ok":true,"result":[]}'
WRITE_TIMEOUT_S = 5.0
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
"""What the SDK's parser raises for an answer in a shape it does not know."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
_GONE = ("message to edit not found", "message_id_invalid", "message to delete not found")
_REASONS = (
    ("blocked by the user", "blocked", "the person blocked the bot"),
    ("can't initiate conversation", "not_started", "the person has not started a chat with the bot"),
    ("user is deactivated", "deactivated", "the person's account is gone"),
    ("kicked", "bot_removed", "the bot was removed from the chat"),
    ("not a member", "bot_removed", "the bot is not a member of the chat"),
    ("chat not found", "chat_not_found", "the chat was not found"),
    ("peer_id_invalid", "chat_not_found", "the chat was not found"),
    ("thread not found", "thread_not_found", "the topic was not found"),
    ("topic_closed", "thread_closed", "the topic is closed"),
    ("topic_deleted", "thread_not_found", "the topic was deleted"),
    ("group chat was deactivated", "chat_closed", "the group was closed"),
    ("not enough rights", "no_rights", "the bot may not write in the chat"),
    ("have no rights", "no_rights", "the bot may not write in the chat"),
    ("chat_write_forbidden", "no_rights", "the bot may not write in the chat"),
)
"""Parts of Telegram's descriptions (lower case), a stable word for them, and the reason for people."""


class NotSent(NetworkError):
    """No connection: the request did not leave."""


class AnswerLost(NetworkError):
    """The request left, and no usable answer came back."""


class ServerTrouble(NetworkError):
    """An answer of 500 or above."""


class Rejected(TelegramError):
    """401 or 404: the token is not accepted, or something between us and Telegram answers in its place."""

    def __init__(self, status: int) -> None:
        super().__init__(f"Telegram answered {status}")
        self.status = status


class Throttled(TelegramError):
    """429, with the seconds to wait."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Telegram asks to wait {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class _Parameters(msgspec.Struct, frozen=True):
    retry_after: float = 5.0
    """Seconds; the default stands in for an answer that names none."""


class _Refusal(msgspec.Struct, frozen=True):
    parameters: _Parameters = _Parameters()


class Transport(HTTPXRequest):
    """One pool of connections. Each call ends within its time limits, taken together, also when bytes only trickle."""

    def __init__(self, size: int, config: TelegramConfig, tls: ssl.SSLContext) -> None:
        """`size` connections at most."""
        super().__init__(
            size,
            connect_timeout=config.connect_timeout_s,
            read_timeout=config.answer_timeout_s,
            write_timeout=WRITE_TIMEOUT_S,
            # The SDK's own 1 s would drop the answer to a press when many press at once: it only waits for its turn.
            # No longer than for a new connection, though: a send that never left must not look like a doubtful one.
            pool_timeout=config.connect_timeout_s,
            media_write_timeout=config.upload_timeout_s,
            httpx_kwargs={"verify": tls},
        )
        self._config = config

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *args: Any, **kwargs: Any
    ) -> tuple[int, bytes]:
        """Do the call. Raises one of this module's errors."""
        try:
            async with asyncio.timeout(self._limit_s(request_data, kwargs.get("read_timeout"))):
                status, body = await super().do_request(url, method, request_data, *args, **kwargs)
        except TimeoutError:
            raise AnswerLost("no answer in time") from None
        except NetworkError as error:
            cause = error.__cause__
            name = type(cause or error).__name__
            raise (NotSent(name) if isinstance(cause, _NEVER_SENT) else AnswerLost(name)) from None
        if status in (401, 404):
            raise Rejected(status)
        if status == 413:
            raise BadRequest("file is too big")
        if status == 429:
            raise Throttled(_retry_after_s(body))
        if status >= 500:
            raise ServerTrouble(f"Telegram answered {status}")
        return status, body

    def _limit_s(self, data: RequestData | None, read_timeout: object) -> float:
        """Connect, write and read limits together."""
        read_s = read_timeout if isinstance(read_timeout, int | float) else self._config.answer_timeout_s
        write_s = self._config.upload_timeout_s if data is not None and data.multipart_data else WRITE_TIMEOUT_S
        return self._config.connect_timeout_s + write_s + read_s


class PollTransport(Transport):
    """The pool for polls. It keeps the batch to itself, so that nothing in it can trip the SDK's parser."""

    batch: bytes = _EMPTY_BATCH

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *args: Any, **kwargs: Any
    ) -> tuple[int, bytes]:
        """Do the call; a good answer is left in `batch`."""
        status, body = await super().do_request(url, method, request_data, *args, **kwargs)
        if status == 200:
            self.batch, body = body, _EMPTY_BATCH
        return status, body


def bot_of(config: TelegramConfig, calls: Transport, polls: Transport) -> Bot:
    """The SDK's client. Each kind of call has connections of its own: no send holds up a poll or an answer."""
    origin = config.api_base_url.rstrip("/")
    return Bot(
        config.token,
        base_url=f"{origin}/bot",
        base_file_url=f"{origin}/file/bot",
        request=calls,
        get_updates_request=polls,
    )


def _retry_after_s(body: bytes) -> float:
    try:
        return msgspec.json.decode(body, type=_Refusal).parameters.retry_after
    except msgspec.DecodeError:
        return _Parameters().retry_after


def as_send_error(error: TelegramError) -> AdapterError:
    """What a failed post means to the core.

    An answer of 500 and above is no proof that nothing was posted (the server may fail after it stored the message), so
    it is ambiguous like a lost answer; `facts["answered"]` tells the two apart.
    """
    if isinstance(error, ServerTrouble):
        return SendAmbiguous(f"{error.message}; the message may have been posted.", answered=True)
    if isinstance(error, NotSent | Rejected | Throttled | ChatMigrated | Forbidden | BadRequest):
        return as_edit_error(error)
    return SendAmbiguous(f"The answer was lost ({error.message}); the message may have been posted.", answered=False)


def as_edit_error(error: TelegramError) -> AdapterError:
    """What a failed edit or deletion means: these may be repeated, so a lost answer is only a failed try."""
    if isinstance(error, Throttled):
        return RateLimited(error.message, retry_after_s=error.retry_after_s)
    if isinstance(error, ChatMigrated):
        return ChatMoved(f"The group is now {error.new_chat_id}.", new_chat_id=str(error.new_chat_id))
    if isinstance(error, Forbidden | BadRequest):
        return _refusal(error.message)
    if isinstance(error, NotSent):
        return AdapterUnavailable(f"Telegram could not be reached: {error.message}.")
    return AdapterUnavailable(f"Telegram did not take it: {error.message}.")


def _refusal(description: str) -> AdapterError:
    text = description.lower()
    if any(part in text for part in _GONE):
        return MessageGone("The message does not exist any more.")
    for part, reason, words in _REASONS:
        if part in text:
            return SendRefused(f"Telegram refused it: {words}.", reason=reason)
    return SendRefused(f"Telegram refused it: {description}.", reason="refused")


def known(error: BadRequest) -> bool:
    """Whether the refusal has a reason of its own, so that another form of the same text would be refused as well."""
    found = _refusal(error.message)
    return isinstance(found, MessageGone) or found.facts["reason"] != "refused"


class HideToken(TokenFilter):
    """Keeps the token, which is part of every address, out of the log lines of the SDK and its HTTP library."""

    LOGGERS = ("telegram.Bot", "httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")
