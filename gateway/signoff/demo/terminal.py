"""A chat platform in the terminal: cards are drawn as text, and typed numbers press their buttons."""

from __future__ import annotations

import asyncio
import os
from itertools import count
from pathlib import Path

from rich.text import Text

from signoff.demo import drawing
from signoff.demo.board import Board, Numbered
from signoff.demo.screen import PROMPT, Screen
from signoff.errors import MessageGone
from signoff.grammar import Loose, NotACommand, parse
from signoff.model import Card, Destination, Health, Message, Person, Posted, Tap
from signoff.ports import AdapterInfo, HookRoute, Inbox
from signoff.visible import visible

PLATFORM = "terminal"
PLACE = Destination(PLATFORM, "here")
YOU = Person(platform=PLATFORM, user_id="you", name="You")
TOLD_CHARS = 40
"""How much of a line that means nothing is repeated."""


class TerminalAdapter:
    """A `ChatAdapter` with one chat and one person. Files that go with a card are written to `folder`."""

    def __init__(self, screen: Screen, folder: Path) -> None:
        self.info = AdapterInfo(
            platform=PLATFORM,
            title="this terminal",
            per_second=1000.0,
            per_chat_s=0.0,
            group_per_minute=1000,
            resend_ambiguous=False,
        )
        self._screen = screen
        self._folder = folder
        self._board = Board()
        self._cards: dict[str, Card] = {}
        self._prompts: list[str] = []
        self._ids = count(1)
        self._changed = asyncio.Event()
        self._inbox: asyncio.Future[Inbox] = asyncio.get_running_loop().create_future()
        self._closed = asyncio.Event()
        self.named_a_file = False
        """Whether a card said that its whole text is in a file."""

    # --- what the person does ------------------------------------------------------------------

    async def typed(self, line: str) -> None:
        """One line: a button's number, a command, or the reason that was asked for. An empty one does nothing."""
        line = line.strip()
        if not line:
            self._screen.put([Text("Enter alone decides nothing. Type the number of a button, or /help.", "dim")])
            return
        if line.isdecimal() and len(line) < 4:
            found = self._board.at(int(line))
            if found is not None or not self._prompts:
                await self._press(found, line)
                return
        if not self._prompts and isinstance(parse(line), NotACommand | Loose):
            # In a chat talk is nobody's business; here whatever is typed is meant for us.
            told = visible(line)
            told = told if len(told) <= TOLD_CHARS else f"{told[: TOLD_CHARS - 1]}…"
            self._screen.put([Text(f"“{told}” decides nothing here. Type the number of a button, or /help.", "dim")])
            return
        inbox = await self._inbox
        order = next(self._ids)
        await inbox.message(
            Message(
                destination=PLACE,
                message_id=str(order),
                order=order,
                person=YOU,
                text=line,
                reply_to=self._prompts[-1] if self._prompts else None,
                direct=True,
            )
        )

    async def press(self, label: str, *, pause_s: float = 0.0) -> None:
        """Wait for a button whose label begins so, and press it as a person would after `pause_s`."""
        while (found := self._board.labelled(label)) is None:
            self._changed.clear()
            await self._changed.wait()
        await asyncio.sleep(pause_s)
        self._screen.put([Text.assemble((f"{PROMPT}{found.number}", "bold"), (f"   {found.button.label}", "dim"))])
        await self._press(found, str(found.number))

    async def _press(self, found: Numbered | None, typed: str) -> None:
        if found is None:
            self._screen.put([Text(f"No button has the number {typed} now; nothing was decided.", "dim")])
            return
        tap = Tap(
            destination=PLACE,
            message_id=found.message_id,
            person=YOU,
            token=found.button.token,
            tap_id=f"tap{next(self._ids)}",
        )
        answer = await (await self._inbox).tap(tap)
        if answer.text:
            self._screen.put([Text.assemble(("→ ", "dim"), answer.text)])

    # --- ChatAdapter -----------------------------------------------------------------------------

    async def run(self, inbox: Inbox) -> None:
        """Be connected until cancelled."""
        if not self._inbox.done():
            self._inbox.set_result(inbox)
        await self._closed.wait()

    async def ready(self) -> None:
        """Return once running."""
        await asyncio.shield(self._inbox)

    def hooks(self) -> HookRoute | None:
        """There is no webhook."""
        return None

    def is_group(self, destination: Destination) -> bool:
        """One person reads here."""
        return False

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Draw the card; its file is written first, since an approval needs the whole text in reach."""
        file_id = self._save(card)
        order = next(self._ids)
        message_id = str(order)
        self._cards[message_id] = card
        if card.prompt is not None:
            self._prompts.append(message_id)
        self._draw(message_id, card)
        return Posted(message_id, order, file_id)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Draw what is new: a terminal cannot rewrite what has scrolled by."""
        before = self._cards.get(message_id)
        if before is None:
            raise MessageGone
        self._cards[message_id] = card
        if not drawing.news(before, card) and not set(_labels(card)) - set(_labels(before)):
            self._board.drop(message_id) if not card.rows else self._place(message_id, card)
        elif card.rows and drawing.colour_of(card) == drawing.WAITING:
            self._draw(message_id, card)
        else:
            self._draw_status(message_id, card)

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Take its buttons away."""
        self._cards.pop(message_id, None)
        self._forget(message_id)

    def health(self) -> Health:
        """A terminal is always there."""
        return Health(state="ready")

    async def aclose(self) -> None:
        """End `run`."""
        self._closed.set()

    # --- inside ----------------------------------------------------------------------------------

    def _place(self, message_id: str, card: Card) -> list[Numbered]:
        placed = self._board.place(message_id, [button for row in card.rows for button in row])
        self._changed.set()
        return placed

    def _forget(self, message_id: str) -> None:
        self._board.drop(message_id)
        if message_id in self._prompts:
            self._prompts.remove(message_id)

    def _draw(self, message_id: str, card: Card) -> None:
        placed = self._place(message_id, card) if card.rows else []
        colour = drawing.colour_of(card)
        if not card.rows and card.prompt is None and colour == drawing.WAITING:
            colour = drawing.NOTE
        lines = self._file_lines(card, colour)
        lines += drawing.card_lines(card, placed, self._screen.console, self._screen.width, colour=colour)
        if card.prompt is not None:
            words = Text(f"{card.prompt} Type it and press Enter.", "bold")
            lines += drawing.barred(drawing.wrapped(words, self._screen.console, self._screen.width), colour)
        self._screen.put(lines, gap=True)

    def _file_lines(self, card: Card, colour: str) -> list[Text]:
        """Where the whole text of a clipped action is; it goes before the card, as in a chat."""
        if card.attachment is None:
            return []
        size = len(card.attachment.content.decode("utf-8", "replace"))
        words = Text(f"The whole text ({size:,} characters) is in this file until the demo ends:")
        lines = drawing.barred(drawing.wrapped(words, self._screen.console, self._screen.width), colour)
        # Whole on one line, so that it can be copied.
        path = Text.assemble(*drawing.barred([Text(str(self._folder / card.attachment.name), "cyan")], colour))
        path.no_wrap = True
        return [*lines, path]

    def _draw_status(self, message_id: str, card: Card) -> None:
        """What stands above the headline of an answered card (the paragraph before the action), and its id."""
        self._forget(message_id)
        code = next((n for n, block in enumerate(card.blocks) if block.kind == "code"), len(card.blocks))
        foot = card.blocks[-1:] if card.blocks[-1].kind == "small" else ()
        short = Card(blocks=(*card.blocks[: max(code - 1, 1)], *foot), rows=card.rows)
        placed = self._place(message_id, card) if card.rows else []
        colour = drawing.colour_of(card)
        self._screen.put(
            drawing.card_lines(short, placed, self._screen.console, self._screen.width, colour=colour), gap=True
        )

    def _save(self, card: Card) -> str | None:
        """Write the card's file, readable by this user alone; its message id."""
        if card.attachment is None:
            return None
        self.named_a_file = True
        path = self._folder / Path(card.attachment.name).name
        path.write_bytes(card.attachment.content)
        os.chmod(path, 0o600)
        return str(next(self._ids))


def _labels(card: Card) -> list[str]:
    return [button.label for row in card.rows for button in row]
