"""Posts, edits and deletes cards.

A post whose answer was lost is tried again at once under the same nonce: Discord then gives the message that is there
already. So a doubtful send is settled here, within its time, and a card never stands twice.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import secrets
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from signoff.errors import AdapterError, MessageGone, SendAmbiguous, SendRefused
from signoff.model import Attachment, Card, Destination, Posted

from ..failures import AnswerLost, CallFailed, ServerTrouble
from .calls import Calls, Rejected, Throttled, as_edit_error, as_send_error, read_answer
from .codes import THREAD_ARCHIVED, TOO_LARGE, UNKNOWN_CHANNEL
from .config import DiscordConfig
from .places import Places, channel_id
from .render import edit_body, message_body
from .wire import number

NONCE_MAX_CHARS = 25
"""API, create message: nonce. With enforce_nonce it is checked against the bot's messages of the past few minutes."""
_CHANNEL_GONE = frozenset({"chat_not_found"})
_PAUSES_S = (0.1, 0.4, 1.0, 2.0)


class _Sent(Struct, frozen=True):
    id: str


class Sender:
    """Sends for one bot."""

    def __init__(self, calls: Calls, places: Places, config: DiscordConfig) -> None:
        self._calls = calls
        self._places = places
        self._config = config

    async def post(self, destination: Destination, card: Card, reply_to: str | None) -> Posted:
        """The card and its file as one message. Raises the `AdapterError` family."""
        body = message_body(card)
        if card.attachment is not None and not card.attachment.content:
            raise SendRefused("The file is empty, so the whole text could not be attached.", reason="attachment")
        with _of_place(destination):
            channel = await self._places.target(destination)
            body |= {"nonce": _nonce(channel, card), "enforce_nonce": True}
            if reply_to is not None:
                body["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
            sent = await self._settled(f"/channels/{channel}/messages", body, card.attachment)
        return Posted(sent.id, number(sent.id))

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Text and buttons anew; the file stays. A thread that was archived meanwhile is opened for it."""
        body = edit_body(card)
        channel = channel_id(destination)
        path = f"/channels/{channel}/messages/{_checked(message_id)}"
        with _of_place(destination):
            try:
                await self._edited(channel, path, body)
            except CallFailed as error:
                raise _of_message(error) from error

    async def _edited(self, channel: str, path: str, body: dict[str, Any]) -> None:
        try:
            await self._calls.call("PATCH", path, body)
        except Rejected as error:
            if error.code != THREAD_ARCHIVED:
                raise
            await self._calls.call("PATCH", f"/channels/{channel}", {"archived": False})
            await self._calls.call("PATCH", path, body)

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Already gone is success."""
        channel = channel_id(destination)
        with contextlib.suppress(MessageGone), _of_place(destination):
            try:
                await self._calls.call("DELETE", f"/channels/{channel}/messages/{_checked(message_id)}")
            except CallFailed as error:
                raise _of_message(error) from error

    async def _settled(self, path: str, body: dict[str, Any], file: Attachment | None) -> _Sent:
        """Post, and while it is in doubt whether the message exists, post it again under its nonce."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._config.settle_within_s
        doubt: CallFailed | None = None
        for pause_s in (*_PAUSES_S, None):
            try:
                async with asyncio.timeout_at(until):
                    return read_answer(await self._calls.call("POST", path, body, file=file), _Sent)
            except TimeoutError:
                doubt = doubt or AnswerLost("no answer from Discord in time")
                break
            except (AnswerLost, ServerTrouble) as error:
                doubt = error
            except CallFailed as error:
                if doubt is None:
                    raise _as_post_error(error, file) from error
                pause_s = error.retry_after_s if isinstance(error, Throttled) else pause_s  # noqa: PLW2901  # told
            if pause_s is None or loop.time() + pause_s >= until:
                break
            await asyncio.sleep(pause_s)
        meant = as_send_error(doubt) if doubt is not None else SendAmbiguous()
        raise meant from doubt


def _as_post_error(error: CallFailed, file: Attachment | None) -> AdapterError:
    if file is not None and isinstance(error, Rejected) and (error.status == 413 or error.code == TOO_LARGE):
        return SendRefused("The file could not be attached: it is too large for Discord.", reason="attachment")
    return as_send_error(error)


def _of_message(error: CallFailed) -> AdapterError:
    """A channel or thread that is gone took its messages along."""
    if isinstance(error, Rejected) and error.code == UNKNOWN_CHANNEL:
        return MessageGone("The channel or thread of the message does not exist any more.")
    return as_edit_error(error)


@contextlib.contextmanager
def _of_place(destination: Destination) -> Iterator[None]:
    """A thread is a channel of its own here: that it is gone says nothing of the one that it hangs on."""
    try:
        yield
    except SendRefused as error:
        if destination.thread_id is not None and error.facts.get("reason") in _CHANNEL_GONE:
            error.facts["reason"] = "thread_not_found"
        raise


def _nonce(channel: str, card: Card) -> str:
    """The message's idempotency key. A button's token belongs to one revision of one copy alone, so a card that is sent
    again after a restart keeps its key, though the times in its text have moved on; a message without buttons has none
    of its own and may well be said twice."""
    token = next((button.token for row in card.rows for button in row), None)
    if token is None:
        return secrets.token_urlsafe(18)[:NONCE_MAX_CHARS]
    digest = hashlib.sha256(f"{channel}\n{token}".encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()[:NONCE_MAX_CHARS]


def _checked(message_id: str) -> str:
    """An id that may become part of an address. Raises `MessageGone` for what cannot be one."""
    if not number(message_id):
        raise MessageGone(f"{message_id!r} is no message of Discord.")
    return message_id
