"""The numbers by which a person presses buttons in a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from signoff.model import Button


class Numbered(Struct, frozen=True, kw_only=True):
    """A button with the number that presses it."""

    number: int
    message_id: str
    button: Button


class Board:
    """Which number presses which button.

    A number keeps its button as long as its message stands, also when the message was drawn anew with other labels:
    who types a number means what they read beside it, and the gateway judges what that may still do.
    """

    def __init__(self) -> None:
        self._by_number: dict[int, Numbered] = {}
        self._next = 1

    def place(self, message_id: str, buttons: Sequence[Button]) -> list[Numbered]:
        """Give the buttons of a message numbers: the ones they have where their labels are those shown last."""
        if not self._by_number:
            self._next = 1
        shown = [each for each in self._by_number.values() if each.message_id == message_id][-len(buttons) :]
        if [each.button.label for each in shown] == [button.label for button in buttons]:
            numbers = [each.number for each in shown]
        else:
            numbers = list(range(self._next, self._next + len(buttons)))
            self._next += len(buttons)
        placed = [
            Numbered(number=number, message_id=message_id, button=button)
            for number, button in zip(numbers, buttons, strict=True)
        ]
        self._by_number.update((each.number, each) for each in placed)
        return placed

    def drop(self, message_id: str) -> None:
        """The message has no buttons any more."""
        self._by_number = {n: each for n, each in self._by_number.items() if each.message_id != message_id}

    def at(self, number: int) -> Numbered | None:
        """The button with this number."""
        return self._by_number.get(number)

    def labelled(self, beginning: str) -> Numbered | None:
        """The newest button with this label, else the newest whose label begins so."""
        newest = list(reversed(self._by_number.values()))
        whole = (each for each in newest if each.button.label == beginning)
        return next(whole, next((each for each in newest if each.button.label.startswith(beginning)), None))
