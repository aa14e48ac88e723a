"""Presses that wait for their answer: each may be answered once, within a short time."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from .clock import ServerClock, moment
from .model import Answer, JsonObject, PressState
from .refusal import QUERY_TOO_OLD, bad_request

ANSWER_WITHIN_S = 15.0
"""How long a query id lives. The documentation gives no figure; bot authors measured about 15 s."""
KEPT_PRESSES = 5_000


@dataclass(kw_only=True)
class Press:
    """One press: who, where, what, and what it was answered."""

    query_id: str
    bot_id: int
    user_id: int
    chat_id: int
    message_id: int
    data: str
    pressed_at: float
    content: JsonObject
    update_id: int = 0
    answer: Answer | None = None


class PressBook:
    """All presses, the oldest forgotten first."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._presses: OrderedDict[str, Press] = OrderedDict()

    def add(self, press: Press) -> None:
        """Remember a press."""
        self._presses[press.query_id] = press
        if len(self._presses) > KEPT_PRESSES:
            self._presses.popitem(last=False)

    def get(self, query_id: str) -> Press:
        """The press; LookupError when it is unknown or forgotten."""
        if query_id not in self._presses:
            raise LookupError(f"no press {query_id}")
        return self._presses[query_id]

    def chat_of(self, query_id: object) -> int | None:
        """Chat of a press, for faults and logs; none for an unknown id."""
        press = self._presses.get(query_id) if isinstance(query_id, str) else None
        return None if press is None else press.chat_id

    def answer(self, bot_id: int, query_id: str, text: str, show_alert: bool) -> None:
        """Show the answer to whoever pressed; Refused when the id is unknown, another bot's, answered or too old."""
        press = self._presses.get(query_id)
        now = self._clock.now()
        if press is None or press.bot_id != bot_id or press.answer is not None:
            raise bad_request(QUERY_TOO_OLD)
        if now - press.pressed_at > ANSWER_WITHIN_S:
            raise bad_request(QUERY_TOO_OLD)
        press.answer = Answer(text=text, show_alert=show_alert, at=moment(now))

    def state(self, query_id: str) -> PressState:
        """The press as tests see it; LookupError when it is unknown."""
        press = self.get(query_id)
        return PressState(
            query_id=query_id,
            update_id=press.update_id,
            user_id=press.user_id,
            chat_id=press.chat_id,
            message_id=press.message_id,
            data=press.data,
            pressed_at=moment(press.pressed_at),
            answer=press.answer,
        )
