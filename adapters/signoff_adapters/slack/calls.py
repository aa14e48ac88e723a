"""Calls of the Web API: how a request can fail, told apart by what Slack may have done with it.

What matters is whether a message may have been posted, so a refused connection, a lost answer and a refusal each have
an error of their own here. Nothing is repeated: the SDK's default would post a card twice when its answer is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import aiohttp
import msgspec
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from signoff.errors import (
    AdapterError,
    AdapterUnavailable,
    MessageGone,
    RateLimited,
    SendAmbiguous,
    SendRefused,
)

from ..failures import NEVER_SENT, AnswerLost, CallFailed, NotSent, ServerTrouble
from .config import SlackConfig

DEFAULT_RETRY_S = 5.0
"""Seconds to wait when a 429 names none."""
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""What the SDK raises for an answer in a shape it does not know."""
FATAL = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "not_allowed_token_type",
        "team_access_not_granted",
    }
)
"""Slack's words for a token that will not work again by waiting."""
_TRANSIENT = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
_THROTTLED = frozenset({"ratelimited", "rate_limited"})
_GONE = frozenset({"message_not_found", "cant_update_message", "cant_delete_message"})
_REASONS: Mapping[str, tuple[str, str]] = {
    "channel_not_found": ("chat_not_found", "the channel was not found, or the app is not in it"),
    "user_not_found": ("chat_not_found", "the person was not found"),
    "users_not_found": ("chat_not_found", "the person was not found"),
    "is_archived": ("chat_closed", "the channel is archived"),
    "not_in_channel": ("bot_removed", "the app is not a member of the channel; invite it"),
    "user_disabled": ("deactivated", "the person's account is gone"),
    "cannot_dm_bot": ("blocked", "it is a bot"),
    "messages_tab_disabled": ("not_started", "the app's Messages tab is switched off"),
    "thread_not_found": ("thread_not_found", "the thread was not found"),
    "invalid_thread_ts": ("thread_not_found", "the thread was not found"),
    "cannot_reply_to_message": ("thread_not_found", "nothing can be replied to that message"),
    "thread_locked": ("thread_closed", "the thread is locked"),
    "edit_window_closed": ("no_rights", "the workspace does not allow edits of messages this old"),
    "restricted_action": ("no_rights", "the workspace does not let the app post there"),
    "restricted_action_read_only_channel": ("no_rights", "the channel is read-only"),
    "restricted_action_thread_locked": ("thread_closed", "the thread is locked"),
    "restricted_action_thread_only_channel": ("no_rights", "only threads are allowed in the channel"),
    "restricted_action_non_threadable_channel": ("no_rights", "the channel has no threads"),
    "missing_scope": ("no_rights", "the app lacks a scope; add it in the app's settings and install it again"),
    "msg_too_long": ("too_long", "the message is too long"),
    "msg_blocks_too_long": ("too_long", "the message is too long"),
}
"""Slack's words, ours, and the reason for people."""
_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Throttled(CallFailed):
    """429, with the seconds to wait."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Slack asks to wait {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class Refused(CallFailed):
    """Slack says no. `code` is its word, or `http_<status>` where something else answered in its place."""

    def __init__(self, code: str, needed: str = "") -> None:
        super().__init__(f"{code} (needed: {needed})" if needed else code)
        self.code = code


class Web:
    """One pool of connections to Slack. Each call ends within its time limits taken together."""

    def __init__(self, config: SlackConfig, size: int) -> None:
        """`size` connections at most. Connects nowhere yet."""
        self._config = config
        self._size = size
        self._opened: aiohttp.ClientSession | None = None
        self._client = AsyncWebClient(
            token=config.bot_token,
            base_url=f"{config.api_base_url.rstrip('/')}/api/",
            retry_handlers=[],
            logger=quiet_logger(),
        )

    async def call(
        self, method: str, body: Mapping[str, Any] | None = None, *, query: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """One call with a JSON body, or with form fields for methods that take no JSON; the answer's object."""
        given: dict[str, Any] = {"json": dict(body)} if body is not None else {"params": dict(query or {})}
        response = await self._within(self._web.api_call(method, **given), self._config.answer_timeout_s)
        return _object(response.data)

    async def socket_url(self, app_token: str) -> str:
        """A fresh address for Socket Mode; it can be used once."""
        opened = self._web.apps_connections_open(app_token=app_token)
        response = await self._within(opened, self._config.answer_timeout_s)
        return str(_object(response.data)["url"])

    async def connect(self, url: str) -> aiohttp.ClientWebSocketResponse:
        """Open a socket. Raises what a call raises; the address is used up either way."""
        closing = aiohttp.ClientWSTimeout(ws_close=1.0)
        opening = self._session.ws_connect(url, autoping=False, timeout=closing, proxy=self._client.proxy)
        return await self._within(_opened(opening), self._config.answer_timeout_s)

    async def upload(self, url: str, content: bytes) -> None:
        """Send a file's bytes to the address that Slack gave for them."""
        await self._within(self._posted(url, data=content), self._config.upload_timeout_s)

    async def respond(self, response_url: str, body: Mapping[str, Any]) -> None:
        """Answer an interaction at the address that came with it."""
        await self._within(self._posted(response_url, json=dict(body)), self._config.answer_timeout_s)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.close()

    @property
    def _web(self) -> AsyncWebClient:
        """The SDK's client, on our pool of connections."""
        self._client.session = self._session
        return self._client

    @property
    def _session(self) -> aiohttp.ClientSession:
        """Made in the loop that first calls."""
        if self._opened is None:
            limits = aiohttp.ClientTimeout(total=None, sock_connect=self._config.connect_timeout_s)
            self._opened = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=self._size), timeout=limits)
        return self._opened

    async def _posted(self, url: str, **given: Any) -> None:
        async with self._session.post(url, allow_redirects=False, proxy=self._client.proxy, **given) as answer:
            body = await answer.read()
            if answer.status == 429:
                raise Throttled(_retry_after_s(answer.headers))
            if answer.status >= 500:
                raise ServerTrouble(f"Slack answered {answer.status}")
            if answer.status != 200 or b'"ok":false' in body.replace(b" ", b"")[:1000]:
                raise Refused(_said(body) or f"http_{answer.status}")

    async def _within(self, call: Awaitable[_Result], limit_s: float) -> _Result:
        """The call's result within `limit_s` beyond the time to connect; its errors as this module's."""
        try:
            async with asyncio.timeout(self._config.connect_timeout_s + limit_s):
                return await call
        except CallFailed:
            raise
        except TimeoutError as error:
            never = isinstance(error, NEVER_SENT)
            raise (NotSent if never else AnswerLost)("no answer in time") from None
        except SlackApiError as error:
            raise _refused(error.response) from None
        except aiohttp.WSServerHandshakeError as error:
            raise Refused(f"http_{error.status}") from None
        except (aiohttp.ClientError, OSError) as error:
            name = type(error).__name__
            raise (NotSent(name) if isinstance(error, NEVER_SENT) else AnswerLost(name)) from None
        except _UNREADABLE as error:
            raise AnswerLost(f"unreadable answer: {type(error).__name__}") from None


async def _opened(opening: Any) -> aiohttp.ClientWebSocketResponse:
    socket: aiohttp.ClientWebSocketResponse = await opening
    return socket


def quiet_logger() -> logging.Logger:
    """A logger of its own for the SDK, which never goes below INFO: its debug lines hold whole requests and answers,
    and with them addresses that are as good as a token."""
    logger = logging.getLogger("signoff_adapters.slack.sdk")
    logger.setLevel(logging.INFO)
    return logger


def _object(data: object) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise AnswerLost("unreadable answer")
    return data


def _refused(response: Any) -> CallFailed:
    """What an answer other than `ok` means. `response` is the SDK's, or aiohttp's when the body was no JSON."""
    status = int(getattr(response, "status_code", None) or getattr(response, "status", None) or 0)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    data = getattr(response, "data", None)
    code = str(data.get("error") or "") if isinstance(data, dict) else ""
    if status == 429 or code in _THROTTLED:
        return Throttled(_retry_after_s(headers))
    if status >= 500 or code in _TRANSIENT:
        return ServerTrouble(f"Slack answered {code or status}")
    if code:
        return Refused(code, str(data.get("needed") or "") if isinstance(data, dict) else "")
    return AnswerLost("unreadable answer") if status == 200 else Refused(f"http_{status}")


def _retry_after_s(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", DEFAULT_RETRY_S)))
    except ValueError:
        return DEFAULT_RETRY_S


def _said(body: bytes) -> str:
    """Slack's word in the answer to a `response_url`, which is JSON or plain text."""
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body[:80].decode("utf-8", "replace").strip()
    return str(decoded.get("error") or "") if isinstance(decoded, dict) else ""


def as_send_error(error: CallFailed) -> AdapterError:
    """What a failed post means to the core.

    An answer of 500 and above is no proof that nothing was posted, so it is ambiguous like a lost answer;
    `facts["answered"]` tells the two apart.
    """
    if isinstance(error, ServerTrouble):
        return SendAmbiguous(f"{error}; the message may have been posted.", answered=True)
    if isinstance(error, AnswerLost):
        return SendAmbiguous(f"The answer was lost ({error}); the message may have been posted.", answered=False)
    return as_edit_error(error)


def as_edit_error(error: CallFailed) -> AdapterError:
    """What a failed edit or deletion means: these may be repeated, so a lost answer is only a failed try."""
    if isinstance(error, Throttled):
        return RateLimited(str(error), retry_after_s=error.retry_after_s)
    if isinstance(error, Refused):
        return _refusal(error.code)
    if isinstance(error, NotSent):
        return AdapterUnavailable(f"Slack could not be reached: {error}.")
    return AdapterUnavailable(f"Slack did not take it: {error}.")


def _refusal(code: str) -> AdapterError:
    if code in FATAL or code.startswith("http_"):
        return AdapterUnavailable(f"Slack did not take it ({code}). If it stays so, check platforms.slack.bot_token.")
    if code in _GONE:
        return MessageGone("The message does not exist any more.")
    reason, words = _REASONS.get(code, ("refused", code))
    return SendRefused(f"Slack refused it: {words}.", reason=reason, code=code)
