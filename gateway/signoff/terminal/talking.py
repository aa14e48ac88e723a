"""The talk about one question at a terminal: show it, take an answer that is on offer, and never take less for one."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from signoff.display import shown
from signoff.elicitation import from_text
from signoff.errors import AlreadyResolved, ChoiceNotOffered, InvalidInput
from signoff.shown_card import FormField, ShownCard, Way
from signoff.terminal.drawing import KEYS, REASON, WHOLE, Drawing
from signoff.terminal.tty import Tty

COUNTED = "Your answer was counted; more people must agree."
YES = "yes"
"""What is typed in a second step, whole: one letter is pressed too easily."""


class Reply(Struct, frozen=True, kw_only=True):
    """What a person answered."""

    choice: str
    reason: str | None = None
    content: dict[str, Any] | None = None


class Side(Protocol):
    """The answering side of a gateway: what shows a question, and takes the answer of the person at this terminal."""

    async def card(self, request_id: str) -> ShownCard:
        """The card as it stands. Raises `RequestNotFound`."""
        ...

    async def decide(self, request_id: str, reply: Reply) -> str:
        """Answer as the person at this terminal; how it stands then. Raises `AlreadyResolved`, `ChoiceNotOffered`,
        `InvalidInput`."""
        ...


async def converse(tty: Tty, side: Side, request_id: str) -> bool:
    """Put one question to the person at this terminal; True once their answer decided it, False where it had ended.

    Raises `Ended` where reading ends without an answer, OSError where nothing can be shown, and what `side` raises.
    """
    drawing = Drawing(tty.out)
    card = await side.card(request_id)
    drawing.card(card)
    if not card.pending:
        return False
    talk = _Talk(tty, drawing, card)
    drawing.ways(card)
    while True:
        reply = await talk.reply()
        if reply is None:
            continue
        try:
            told = await side.decide(card.request_id, reply)
        except AlreadyResolved:
            return False
        except (ChoiceNotOffered, InvalidInput) as error:
            drawing.line(shown(error.message, prose=True))  # it may name a field, whose name is the server's
            continue
        drawing.line(told, "bold")
        return True


class _Talk:
    def __init__(self, tty: Tty, drawing: Drawing, card: ShownCard) -> None:
        self._tty = tty
        self._drawing = drawing
        self._card = card
        self._ways: dict[str, Way] = {KEYS.get(way.choice, way.choice): way for way in card.ways}
        self._seen_whole = not card.whole
        no = self._ways[KEYS["deny"]].label
        keys = [key for each in self._ways for key in ((each, REASON) if each == KEYS["deny"] else (each,))]
        keys += [WHOLE] if card.whole else []
        self._prompt = f"Answer {'/'.join(keys)} (Enter alone: {no}. Ctrl-C: no answer): "

    async def reply(self) -> Reply | None:
        """What one typed line means; None where it decides nothing, which is said."""
        word = (await self._tty.ask(self._prompt)).strip().lower() or KEYS["deny"]
        if word == WHOLE and self._card.whole:
            self._drawing.whole(self._card)
            self._seen_whole = True
            return None
        if word == REASON:
            reason = (await self._tty.ask("Why not? The agent reads this: ")).strip()
            return Reply(choice="deny", reason=reason or None)
        way = self._ways.get(word)
        if way is None:
            self._drawing.line(f"{word[:20]!a} is no answer here. Nothing was decided.")
            return None
        return Reply(choice="deny") if way.choice == "deny" else await self._yes(way)

    async def _yes(self, way: Way) -> Reply | None:
        if not self._seen_whole:
            self._drawing.line(f"Not all of it was shown yet: {WHOLE} shows the whole text. Nothing was decided.")
            return None
        if way.confirm:
            self._drawing.line(way.confirm)
            if (await self._tty.ask(f"Type {YES} to agree: ")).strip().lower() != YES:
                self._drawing.line("Nothing was decided.")
                return None
        if not self._card.fields:
            return Reply(choice=way.choice)
        return Reply(choice=way.choice, content=await self._filled())

    async def _filled(self) -> dict[str, Any]:
        """The fields of a server's question, one after another."""
        content = {}
        for each in self._card.fields:
            value = await self._field(each)
            if value is not None:
                content[each.field.name] = value
        return content

    async def _field(self, each: FormField) -> Any:
        """The value of one field; None where it was left out."""
        self._drawing.quoted(each.hint)
        while True:
            several = " (commas between several)" if each.field.kind == "choices" else ""
            text = await self._tty.ask(f"{each.label}{several}: ")
            if not text.strip() and not each.field.required:
                return None
            try:
                return from_text(each.field, text)
            except InvalidInput:
                self._drawing.line("That does not fit: it must be as the line above says.")
