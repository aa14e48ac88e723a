"""Posts, edits and deletes cards. Nothing is repeated here: when to try again is the core's to say.

A reply on Slack is a message in a thread, where a card would be out of sight. So a file goes first into the same place
as its card, and the card follows it there instead of replying to it; only a note that answers a message of a channel
stands in that message's thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from signoff.errors import AdapterError, AdapterUnavailable, ChatMoved, MessageGone
from signoff.model import Attachment, Card, Destination, Message, Posted
from signoff.ports import Clock

from ..failures import AnswerLost, CallFailed
from ..files import FILES_REMEMBERED, as_file_error, file_key
from ..recent import Recent
from .calls import Refused, Web, as_edit_error, as_send_error
from .config import SlackConfig
from .limits import MethodLimits
from .memory import Threads
from .render import Rendered, render
from .wire import order_of

WAITING = timedelta(hours=1)
FIRST_LOOK_S, LONGEST_LOOK_S = 0.05, 1.0
_ABOUT_THE_FILE = frozenset({"refused", "no_rights", "too_long"})
_NO_THREAD = frozenset({"thread_not_found", "invalid_thread_ts", "cannot_reply_to_message"})
_PERSON = re.compile(r"[UW][A-Z0-9]+")
_Result = TypeVar("_Result")


class _Share(msgspec.Struct, frozen=True):
    ts: str = ""


class _Shares(msgspec.Struct, frozen=True):
    public: dict[str, tuple[_Share, ...]] = {}
    private: dict[str, tuple[_Share, ...]] = {}


class _File(msgspec.Struct, frozen=True):
    id: str = ""
    shares: _Shares = _Shares()


class Sender:
    """Sends for one bot."""

    def __init__(
        self, web: Web, clock: Clock, config: SlackConfig, threads: Threads, posted: Callable[[str, str], None]
    ) -> None:
        """`posted` is told of each message, by channel and timestamp."""
        self._web = web
        self._clock = clock
        self._config = config
        self._threads = threads
        self._posted = posted
        self._limits = MethodLimits()
        self._files: Recent[tuple[str, ...], str] = Recent(FILES_REMEMBERED)
        self._direct: Recent[str, str] = Recent()
        self._waiting: Recent[tuple[str, str], datetime] = Recent()

    def waits(self) -> bool:
        """Whether a message got buttons within the last hour and still has them. Some have theirs for days."""
        at = self._waiting.newest()
        return at is not None and self._clock.now() - at < WAITING

    async def post(self, destination: Destination, card: Card, reply_to: str | None) -> Posted:
        """The file first, if there is one, then the card."""
        shown = render(card)
        if _PERSON.fullmatch(destination.chat_id):
            channel = await self._opened(destination.chat_id)
            raise ChatMoved(f"The direct chat with {destination.chat_id} is {channel}.", new_chat_id=channel)
        self._limits.take("chat.postMessage")
        file_ts = await self._file(destination, card.attachment) if card.attachment is not None else None
        ts = await _translated(self._sent(_message_body(destination, shown), destination, reply_to), as_send_error)
        if card.attachment is not None:
            self._files.pop(file_key(destination, card.attachment))
        if card.rows:
            self._waiting.put((destination.chat_id, ts), self._clock.now())
        return Posted(ts, order_of(ts), file_ts)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Text and buttons anew. Edits are one budget over all channels, which may be used up."""
        body = _content(render(card)) | {"channel": destination.chat_id, "ts": message_id}
        if card.rows:
            self._waiting.put((destination.chat_id, message_id), self._clock.now())
        else:
            self._waiting.pop((destination.chat_id, message_id))
        self._limits.take("chat.update")
        await _translated(self._web.call("chat.update", body), as_edit_error)

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Already gone is success."""
        self._waiting.pop((destination.chat_id, message_id))
        self._limits.take("chat.delete")
        try:
            body = {"channel": destination.chat_id, "ts": message_id}
            await _translated(self._web.call("chat.delete", body), as_edit_error)
        except MessageGone:
            return

    async def _sent(self, body: dict[str, Any], destination: Destination, reply_to: str | None) -> str:
        """Post; a reply whose message is gone stands in the channel itself. The message's timestamp."""
        thread = destination.thread_id
        root = None
        if thread is None and reply_to is not None and is_group(destination):
            root = self._threads.root_of(destination.chat_id, reply_to)
        try:
            return await self._message(body, destination.chat_id, thread or root)
        except Refused as error:
            if root is None or error.code not in _NO_THREAD:
                raise
        return await self._message(body, destination.chat_id, None)

    async def _message(self, body: dict[str, Any], channel: str, thread: str | None) -> str:
        answer = await self._web.call("chat.postMessage", body | ({"thread_ts": thread} if thread else {}))
        ts = answer.get("ts")
        if not isinstance(ts, str):
            raise AnswerLost("the answer names no message")
        self._threads.posted(channel, ts)
        self._posted(channel, ts)
        return ts

    async def say(self, place: Destination, shown: Rendered) -> None:
        """Post what nobody will edit. Raises `AdapterError`."""
        self._limits.take("chat.postMessage")
        body = _message_body(place, shown)
        await _translated(self._message(body, place.chat_id, place.thread_id), as_send_error)

    async def share_privately(self, message: Message, attachment: Attachment) -> None:
        """Put a file where only the writer of `message` sees it: into the direct chat. Raises `AdapterError`."""
        channel = message.destination.chat_id if message.direct else await self._opened(message.person.user_id)
        await self._share(Destination(message.destination.platform, channel), attachment)

    async def share(self, message: Message, attachment: Attachment) -> None:
        """Put a file where `message` stands. Raises `AdapterError`."""
        await self._share(message.destination, attachment)

    async def _share(self, place: Destination, attachment: Attachment) -> None:
        await _translated(self._uploaded(place, attachment, file_key(place, attachment)), _as_file_error)
        self._files.pop(file_key(place, attachment))

    async def _opened(self, user: str) -> str:
        """The direct chat with a person, which has an id of its own."""
        known = self._direct.get(user)
        if known is not None:
            return known
        answer = await _translated(self._web.call("conversations.open", {"users": user}), as_edit_error)
        try:
            channel = str(answer["channel"]["id"])
        except (KeyError, TypeError):
            raise AdapterUnavailable("Slack named no direct chat.") from None
        self._direct.put(user, channel)
        return channel

    # --- files -----------------------------------------------------------------------------------

    async def _file(self, destination: Destination, attachment: Attachment) -> str | None:
        """Share the file, unless an earlier try of the same card got so far; the message it stands in, if that shows
        in time. The errors speak of the card, which surely was not sent."""
        key = file_key(destination, attachment)
        known = self._files.get(key)
        if known is None or (ts := await self._shown_at(known, destination, limit_s=0.0)) is None:
            file_id = await _translated(self._uploaded(destination, attachment, key), _as_file_error)
            ts = await self._shown_at(file_id, destination, limit_s=self._config.file_shown_s)
        if ts is not None:
            self._threads.posted(destination.chat_id, ts)
        return ts

    async def _uploaded(self, destination: Destination, attachment: Attachment, key: tuple[str, ...]) -> str:
        self._limits.take("files.getUploadURLExternal")
        wanted = {"filename": attachment.name, "length": len(attachment.content)}
        given = await self._web.call("files.getUploadURLExternal", query=wanted)
        file_id, url = str(given["file_id"]), str(given["upload_url"])
        await self._web.upload(url, attachment.content)
        self._files.put(key, file_id)
        named = msgspec.json.encode([{"id": file_id, "title": attachment.name}]).decode()
        query = {"files": named, "channel_id": destination.chat_id}
        if destination.thread_id is not None:
            query["thread_ts"] = destination.thread_id
        await self._web.call("files.completeUploadExternal", query=query)
        return file_id

    async def _shown_at(self, file_id: str, destination: Destination, *, limit_s: float) -> str | None:
        """The timestamp of the file's message. Slack shares a file some time after it said so."""
        loop = asyncio.get_running_loop()
        deadline, pause_s = loop.time() + limit_s, FIRST_LOOK_S
        while True:
            try:
                answer = await self._web.call("files.info", query={"file": file_id})
                shares = msgspec.convert(answer.get("file"), _File).shares
            except (CallFailed, msgspec.ValidationError):
                return None
            for places in (shares.public, shares.private):
                for share in places.get(destination.chat_id, ()):
                    return share.ts
            if loop.time() + pause_s > deadline:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_LOOK_S)


def is_group(destination: Destination) -> bool:
    """Channels and group conversations; direct chats have ids that begin with D, people with U or W."""
    return destination.chat_id[:1] not in ("D", "U", "W")


def _content(shown: Rendered) -> dict[str, Any]:
    return {"text": shown.text, "blocks": shown.blocks, "parse": "none", "link_names": False}


def _message_body(destination: Destination, shown: Rendered) -> dict[str, Any]:
    dead = {"mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    return _content(shown) | {"channel": destination.chat_id} | dead


async def _translated(call: Awaitable[_Result], meaning: Callable[[CallFailed], AdapterError]) -> _Result:
    """The call's result; its errors as the core knows them."""
    try:
        return await call
    except CallFailed as error:
        raise meaning(error) from error
    except KeyError as error:
        raise meaning(AnswerLost(f"the answer lacks {error}")) from error


def _as_file_error(error: CallFailed) -> AdapterError:
    return as_file_error(as_send_error(error), _ABOUT_THE_FILE)
