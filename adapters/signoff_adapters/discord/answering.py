"""One interaction's answer: the first one within 3 s, neutral if need be, and what is to be told after that.

Discord takes one first answer an interaction, within 3 s of it; then for 15 min what was shown can be replaced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from signoff.errors import SendRefused
from signoff.model import Answer, Attachment, Block, Card, Dialog, Reply, Span

from ..failures import AnswerLost, CallFailed, NotSent, ServerTrouble
from ..words import RECEIVED, TOO_SLOW
from .calls import Calls, Rejected
from .codes import ALREADY_ACKNOWLEDGED
from .render import EPHEMERAL, SUPPRESS_EMBEDS, edit_body, message_body, plain
from .wire import COMMAND, Interaction, Me

MESSAGE, DEFERRED_UPDATE, UPDATE, CHOICES, MODAL = 4, 6, 7, 8, 9
"""API, interaction callback types."""
TITLE_MAX, PLACEHOLDER_MAX = 45, 100
"""API, modal title and text input label; text input placeholder."""
_log = logging.getLogger(__name__)

First = Callable[[dict[str, Any], Attachment | None], Awaitable[bool]]
"""Gives an interaction's first answer; whether Discord took it. Never raises."""


class Conversation:
    """The answers to one interaction."""

    def __init__(
        self, interaction: Interaction, calls: Calls, me: Callable[[], Me], first: First | None = None
    ) -> None:
        """`first`: another way for the first answer than a call, where the interaction was posted to us."""
        self.interaction = interaction
        self._calls = calls
        self._me = me
        self._first = first or self._callback
        self._lock = asyncio.Lock()
        self._begun = False
        self._taken = False

    async def neutral(self) -> None:
        """Say that it was received, unless something was said already. A panel is left as it is."""
        async with self._lock:
            if self._begun:
                return
            self._begun = True
            on_panel = self.interaction.on_panel and self.interaction.type != COMMAND
            self._taken = await self._first({"type": DEFERRED_UPDATE} if on_panel else _private(RECEIVED), None)

    async def tell(self, answer: Answer) -> bool:
        """The answer to a press or a dialog; whether the person got it."""
        async with self._lock:
            if not self._begun:
                self._begun = True
                return await self._first(answer_body(answer, on_panel=self.interaction.on_panel), None)
            if not self._taken:
                return False
            if answer.dialog is not None:
                answer = Answer(TOO_SLOW)
            if answer.panel is None and not answer.text:
                return True
            return await self._later(_content(answer), None)

    async def reply(self, reply: Reply) -> bool:
        """The answer to a command; whether it was shown."""
        try:
            body = message_body(reply.card, ephemeral=reply.private)
        except SendRefused as error:
            body, reply = _private(error.message)["data"], Reply(Card(blocks=()), private=True)
        file = reply.card.attachment
        async with self._lock:
            if not self._begun:
                self._begun = True
                return await self._first({"type": MESSAGE, "data": body}, file)
            if not self._taken:
                return False
            if reply.private:
                return await self._later({key: value for key, value in body.items() if key != "flags"}, file)
            return await self._follow_up(body, file)

    async def choose(self, choices: list[dict[str, str]]) -> bool:
        """What the menu offers."""
        async with self._lock:
            if self._begun:
                return False
            self._begun = True
            return await self._first({"type": CHOICES, "data": {"choices": choices}}, None)

    # --- calls ---------------------------------------------------------------------------------

    async def _callback(self, body: dict[str, Any], file: Attachment | None) -> bool:
        interaction = self.interaction
        path = f"/interactions/{interaction.id}/{interaction.token}/callback"
        return await self._try(lambda: self._calls.call("POST", path, body, file=file, with_token=False))

    async def _later(self, body: dict[str, Any], file: Attachment | None) -> bool:
        """Put this in the place of what was shown first, a file too: without the list a repeated call adds another."""
        if file is not None:
            body = body | {"attachments": [{"id": 0, "filename": file.name}]}
        path = f"/webhooks/{self._me().application_id}/{self.interaction.token}/messages/@original"
        return await self._try(lambda: self._calls.call("PATCH", path, body, file=file, with_token=False))

    async def _follow_up(self, body: dict[str, Any], file: Attachment | None) -> bool:
        """A message for all, after a first answer for one. Discord knows no nonce here, so one that may be there
        already is not sent again."""
        path = f"/webhooks/{self._me().application_id}/{self.interaction.token}"
        send = partial(self._calls.call, "POST", path, body, file=file, with_token=False)
        return await self._try(send, repeatable=False)

    async def _try(self, call: Callable[[], Awaitable[bytes]], *, repeatable: bool = True) -> bool:
        """Once more after a failure that says nothing; where a call is `repeatable` though it may have been taken, the
        second finds out if it was."""
        for again in (True, False):
            try:
                await call()
            except (AnswerLost, ServerTrouble, NotSent) as error:
                if again and (repeatable or isinstance(error, NotSent)):
                    continue
                _log.info("discord did not take an answer: %s", error)
                return False
            except CallFailed as error:
                # Answered before: by the first of two tries, or by the process that stopped before it could keep that.
                if isinstance(error, Rejected) and error.code == ALREADY_ACKNOWLEDGED:
                    return True
                _log.info("discord did not take an answer: %s", error)
                return False
            else:
                return True
        return False


def answer_body(answer: Answer, *, on_panel: bool) -> dict[str, Any]:
    """The first answer to a press. On a private panel it takes the panel's place."""
    if answer.dialog is not None:
        return {"type": MODAL, "data": _modal(answer.dialog)}
    if answer.panel is None and not answer.text:
        return {"type": DEFERRED_UPDATE}
    if on_panel:
        return {"type": UPDATE, "data": _content(answer)}
    return {"type": MESSAGE, "data": _content(answer) | {"flags": EPHEMERAL | SUPPRESS_EMBEDS}}


def _content(answer: Answer) -> dict[str, Any]:
    if answer.panel is None:
        return {"content": plain(answer.text), "components": [], "allowed_mentions": {"parse": []}}
    card = answer.panel
    if answer.text:
        card = Card(blocks=(Block("text", (Span(answer.text),)), *card.blocks), rows=card.rows)
    try:
        return edit_body(card)
    except SendRefused as error:
        return {"content": plain(error.message), "components": [], "allowed_mentions": {"parse": []}}


def _private(text: str) -> dict[str, Any]:
    data = {"content": plain(text), "flags": EPHEMERAL | SUPPRESS_EMBEDS, "allowed_mentions": {"parse": []}}
    return {"type": MESSAGE, "data": data}


def _modal(dialog: Dialog) -> dict[str, Any]:
    field = {
        "type": 4,
        "custom_id": "text",
        "style": 2,
        "label": dialog.label[:TITLE_MAX],
        "placeholder": dialog.placeholder[:PLACEHOLDER_MAX],
        "min_length": 1,
        "max_length": dialog.max_units,
        "required": True,
    }
    return {
        "title": dialog.title[:TITLE_MAX],
        "custom_id": dialog.token,
        "components": [{"type": 1, "components": [field]}],
    }
