"""How people and platforms name a place, and the destination that is meant."""

from __future__ import annotations

import re

from signoff.errors import InvalidInput
from signoff.model import Destination

NUMBERED = frozenset({"telegram"})
"""Where chats and threads have numbers alone: a name would be sent to, and presses there would come from a number."""
_NUMBER = re.compile(r"-?[0-9]{1,20}")
GENERAL_THREADS = {"telegram": "1"}
"""A forum's General topic: the platform reports no thread there, so neither do we."""


def parse_destination(text: str, param: str | None = None) -> Destination:
    """Read `platform:chat[/thread]` or `platform:user:ID`; raises `InvalidInput`."""
    platform, _, rest = text.partition(":")
    chat, slash, thread = rest.partition("/")
    if not platform or not chat or (slash and not thread) or any(c.isspace() for c in text):
        raise InvalidInput(
            f"{text!r} is not a destination. Write platform:chat, platform:chat/thread or platform:user:ID, "
            "for example telegram:-1001234567/7.",
            param=param,
        )
    return at_place(platform, chat, thread or None, param)


def at_place(platform: str, chat_id: str, thread_id: str | None, param: str | None = "chat_id") -> Destination:
    """A destination as its platform names it: a person is their direct chat, and the General topic of a forum is the
    chat itself. Raises `InvalidInput` for ids that the platform cannot have."""
    chat_id = chat_id.removeprefix("user:")
    if not chat_id:
        raise InvalidInput("A person's place is user: and their id.", param=param)
    if platform in NUMBERED and not (_NUMBER.fullmatch(chat_id) and _NUMBER.fullmatch(thread_id or "0")):
        raise InvalidInput(
            f"{platform.title()}'s ids are numbers: 123456789 for a person, -1001234567 for a group, 7 for a topic. "
            "After /start in a chat with the bot, `signoff init` shows the chat's.",
            param=param,
        )
    general = thread_id is not None and GENERAL_THREADS.get(platform) == thread_id
    return Destination(platform, chat_id, None if general else thread_id)
