"""Posts, edits and deletes cards. Nothing is repeated here but for looks: when to try again is the core's to say."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from telegram import Bot, LinkPreviewOptions, Message, ReplyParameters
from telegram.error import BadRequest, TelegramError

from signoff.errors import AdapterError, MessageGone, SendRefused
from signoff.model import Attachment, Card, Destination, Posted

from ..files import FILES_REMEMBERED, as_file_error, file_key
from ..recent import Recent
from .calls import UNREADABLE, AnswerLost, as_edit_error, as_send_error, known
from .render import Detail, Rendered, keyboard, markup, render

GENERAL_TOPIC = "1"
"""Clients know a forum's General topic by this id; the Bot API refuses it in a send."""
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_ABOUT_THE_FILE = frozenset({"refused", "no_rights"})
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Sender:
    """Sends for one bot."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._no_clocks = False
        self._files: Recent[tuple[str, ...], int] = Recent(FILES_REMEMBERED)

    async def post(self, destination: Destination, card: Card, reply_to: str | None) -> Posted:
        """The file first, if there is one, then the card in reply to it."""
        chat, thread, group = _chat(destination), _thread(destination), is_group(destination)
        buttons, forms = markup(card, group=group), self._forms(card)
        file_id = await self._file(destination, card.attachment, silent=card.silent) if card.attachment else None
        replies_to = file_id if file_id is not None else int(reply_to) if reply_to is not None else None
        answers = None
        if replies_to is not None:
            answers = ReplyParameters(replies_to, allow_sending_without_reply=True)

        async def send(form: Rendered) -> Message:
            return await self._bot.send_message(
                chat,
                form.text,
                entities=form.entities,
                reply_markup=buttons,
                message_thread_id=thread,
                disable_notification=card.silent,
                link_preview_options=_NO_PREVIEW,
                reply_parameters=answers,
            )

        sent = await _translated(self._plainer(forms, send), as_send_error)
        if card.attachment is not None:
            self._files.pop(file_key(destination, card.attachment))
        return Posted(str(sent.message_id), sent.message_id, str(file_id) if file_id is not None else None)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Text and buttons anew; a message that already is as asked is success."""
        chat, number = _chat(destination), int(message_id)
        buttons = keyboard(card)

        async def edit(form: Rendered) -> None:
            try:
                await self._bot.edit_message_text(
                    form.text,
                    chat,
                    number,
                    entities=form.entities,
                    reply_markup=buttons,
                    link_preview_options=_NO_PREVIEW,
                )
            except BadRequest as error:
                if "message is not modified" not in error.message.lower():
                    raise

        await _translated(self._plainer(self._forms(card), edit), as_edit_error)

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Already gone is success."""
        try:
            await _translated(self._bot.delete_message(_chat(destination), int(message_id)), as_edit_error)
        except MessageGone:
            return

    def _forms(self, card: Card) -> list[Rendered]:
        """The card in the forms to try, the fullest first."""
        forms = [render(card, Detail.NO_CLOCKS if self._no_clocks else Detail.FULL)]
        if forms[0].has_clocks:
            forms.append(render(card, Detail.NO_CLOCKS))
        if forms[0].entities:
            forms.append(render(card, Detail.CODE_ONLY))
        return forms

    async def _plainer(self, forms: list[Rendered], call: Callable[[Rendered], Awaitable[_Result]]) -> _Result:
        """Call with each form until one is not refused for its looks; a server without clocks is remembered."""
        for number, form in enumerate(forms[:-1]):
            try:
                result = await call(form)
            except BadRequest as error:
                if known(error):
                    raise
                _log.info("telegram refused the formatting, trying with less: %s", error.message)
            else:
                self._no_clocks = self._no_clocks or (forms[0].has_clocks and number == 1)
                return result
        return await call(forms[-1])

    async def _file(self, destination: Destination, attachment: Attachment, *, silent: bool) -> int:
        """Send the file, unless an earlier try of the same card got so far; its message id."""
        key = file_key(destination, attachment)
        if (message_id := self._files.get(key)) is not None:
            return message_id
        upload = self._bot.send_document(
            _chat(destination),
            attachment.content,
            filename=attachment.name,
            message_thread_id=_thread(destination),
            disable_notification=silent,
            disable_content_type_detection=True,
        )
        sent = await _translated(upload, _as_file_error)
        self._files.put(key, sent.message_id)
        return sent.message_id


def is_group(destination: Destination) -> bool:
    """Groups have ids below 0."""
    return destination.chat_id.startswith("-")


async def _translated(call: Awaitable[_Result], meaning: Callable[[TelegramError], AdapterError]) -> _Result:
    """The call's result; its errors as the core knows them."""
    try:
        return await call
    except TelegramError as error:
        raise meaning(error) from error
    except UNREADABLE as error:
        raise meaning(AnswerLost(f"unreadable: {type(error).__name__}")) from error


def _as_file_error(error: TelegramError) -> AdapterError:
    return as_file_error(as_send_error(error), _ABOUT_THE_FILE)


def _chat(destination: Destination) -> int:
    return _number(destination, destination.chat_id)


def _thread(destination: Destination) -> int | None:
    thread = destination.thread_id
    return None if thread is None or thread == GENERAL_TOPIC else _number(destination, thread)


def _number(destination: Destination, text: str) -> int:
    """A chat's public name is refused too: buttons are signed for the chat, and presses come from its number."""
    if not _NUMBER.fullmatch(text):
        words = f"{destination} is no place on Telegram: ids are numbers."
        raise SendRefused(words, reason="chat_not_found")
    return int(text)
