"""Shows people what came of what they did: privately, or in the chat where a reply is for everybody."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from signoff.errors import AdapterError, SendRefused
from signoff.model import Answer, Attachment, Destination, Dialog, Message, Reply

from ..failures import CallFailed, NotSent
from ..words import no_dialog
from .calls import Refused, Throttled, Web
from .render import Rendered, modal, render, said
from .sender import Sender
from .wire import PLATFORM, Handle, metadata

NO_DIALOG = no_dialog("Slack")
_log = logging.getLogger(__name__)


class Answers:
    """For one bot. A `response_url` takes 5 answers within 30 minutes; after that a private message does."""

    def __init__(self, web: Web, sender: Sender) -> None:
        self._web = web
        self._sender = sender

    async def show(self, handle: Handle, answer: Answer) -> bool:
        """Answer a press or a dialog; whether Slack took it. On a private panel the answer takes its place."""
        if answer.dialog is not None:
            if await self._opened(handle, answer.dialog):
                return True
            answer = Answer(NO_DIALOG)
        if answer.panel is None and not answer.text:
            return await self._dismissed(handle) if handle.panel else True
        try:
            shown = render(answer.panel, thread=handle.thread) if answer.panel is not None else said(answer.text)
        except SendRefused as error:
            _log.error("slack: an answer could not be shown: %s", error.message)
            return False
        return await self._private(handle, shown)

    async def reply(self, message: Message, reply: Reply, response_url: str | None) -> bool:
        """Answer a typed command; whether Slack took it. The file of a private list goes to the writer's direct chat,
        since no file can be shown to one person in a channel."""
        try:
            shown = render(reply.card)
        except SendRefused as error:
            _log.error("slack: a reply could not be shown: %s", error.message)
            return False
        if reply.card.attachment is not None:
            await self._file(message, reply, reply.card.attachment)
        place = message.destination
        thread = place.thread_id or message.reply_to
        handle = Handle(channel=place.chat_id, user=message.person.user_id, thread=thread, response_url=response_url)
        if reply.private or response_url is None:
            return await self._private(handle, shown)
        return await self._aloud(response_url, handle, shown)

    async def _aloud(self, response_url: str, handle: Handle, shown: Rendered) -> bool:
        """For everybody there: at the address, else as a message of ours. Where one of them may have been shown, only
        the writer is shown it once more."""
        elsewhere = msgspec.structs.replace(handle, response_url=None)
        try:
            await self._web.respond(response_url, _body(shown, response_type="in_channel"))
        except (Refused, NotSent, Throttled) as error:
            _log.info("slack did not take an answer: %s", error)
        except CallFailed as error:
            _log.info("slack may not have taken an answer: %s", error)
            return await self._private(elsewhere, shown)
        else:
            return True
        try:
            await self._sender.say(Destination(PLATFORM, handle.channel, handle.thread), shown)
        except AdapterError as error:
            _log.info("slack did not take a reply: %s", error.message)
            return await self._private(elsewhere, shown)
        return True

    async def _file(self, message: Message, reply: Reply, attachment: Attachment) -> None:
        try:
            if reply.private:
                await self._sender.share_privately(message, attachment)
            else:
                await self._sender.share(message, attachment)
        except AdapterError as error:
            _log.warning("slack: the file of a reply was not sent: %s", error.message)

    async def _opened(self, handle: Handle, dialog: Dialog) -> bool:
        view = modal(dialog, metadata(dialog.token, handle))
        try:
            await self._web.call("views.open", {"trigger_id": handle.trigger_id, "view": view})
        except CallFailed as error:
            _log.info("slack did not open a dialog: %s", error)
            return False
        return True

    async def _dismissed(self, handle: Handle) -> bool:
        return handle.response_url is None or await self._respond(handle.response_url, {"delete_original": True})

    async def _private(self, handle: Handle, shown: Rendered) -> bool:
        body = _body(shown, response_type="ephemeral", replace_original=handle.panel)
        if handle.thread is not None and not handle.panel:
            body["thread_ts"] = handle.thread
        if handle.response_url is not None and await self._respond(handle.response_url, body):
            return True
        sent: dict[str, Any] = _body(shown, channel=handle.channel, user=handle.user)
        if handle.thread is not None:
            sent["thread_ts"] = handle.thread
        try:
            await self._web.call("chat.postEphemeral", sent)
        except CallFailed as error:
            _log.info("slack did not take a private answer: %s", error)
            return False
        return True

    async def _respond(self, response_url: str, body: dict[str, Any]) -> bool:
        try:
            await self._web.respond(response_url, body)
        except CallFailed as error:
            _log.info("slack did not take an answer: %s", error)
            return False
        return True


def _body(shown: Rendered, **more: Any) -> dict[str, Any]:
    return {"text": shown.text, "blocks": shown.blocks, "parse": "none", "link_names": False, **more}
