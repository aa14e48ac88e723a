"""How often people who may not decide are answered where everybody reads it.

Answers stand before cards in a chat's queue, and a chat takes few messages. Without a limit anybody in a group could
keep its cards waiting until they end.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime, timedelta

from signoff.authorize import Refused, person_may
from signoff.model import Message
from signoff.ports import Clock
from signoff.settings import Profile

ANSWERS = 3
"""Posted answers to strangers in a chat within `WINDOW`; a group takes about twenty messages a minute of a bot."""
WINDOW = timedelta(seconds=60)
CHATS = 1000
"""Chats kept in memory; of more the one that was answered longest ago is forgotten."""


class Strangers:
    """Counts the answers that were posted for people who may not decide, by chat."""

    def __init__(self, clock: Clock, profile_of: Callable[[str], Profile]) -> None:
        self._clock = clock
        self._profile_of = profile_of
        self._answered: OrderedDict[tuple[str, str, str], deque[datetime]] = OrderedDict()

    def silenced(self, profile: str, message: Message) -> bool:
        """Whether its writer is a stranger and the chat has had its answers for now."""
        told = self._answered.get(_chat(profile, message))
        full = told is not None and len(told) == ANSWERS and self._clock.now() - told[0] < WINDOW
        return full and self._is_stranger(profile, message)

    def may_be_answered(self, profile: str, message: Message) -> bool:
        """Whether an answer to it may be posted now. For a stranger that answer is counted; approvers always may."""
        if not self._is_stranger(profile, message):
            return True
        if self.silenced(profile, message):
            return False
        chat = _chat(profile, message)
        self._answered.setdefault(chat, deque(maxlen=ANSWERS)).append(self._clock.now())
        self._answered.move_to_end(chat)
        while len(self._answered) > CHATS:
            self._answered.popitem(last=False)
        return True

    def _is_stranger(self, profile: str, message: Message) -> bool:
        return isinstance(person_may(self._profile_of(profile), message.person, "decide", None, "command"), Refused)


def _chat(profile: str, message: Message) -> tuple[str, str, str]:
    """Threads share their chat's budget of messages."""
    return profile, message.destination.platform, message.destination.chat_id
