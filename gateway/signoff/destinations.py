"""How people and platforms name a place, and the destination that is meant."""

from __future__ import annotations

from signoff.errors import InvalidInput
from signoff.model import Destination

GENERAL_THREADS = {"telegram": "1"}
"""A forum's General topic: the platform reports no thread there, so neither do we."""


def parse_destination(text: str, param: str | None = None) -> Destination:
    """Read `platform:chat[/thread]` or `platform:user:ID`; raises `InvalidInput`."""
    platform, _, rest = text.partition(":")
    chat, slash, thread = rest.partition("/")
    chat = chat.removeprefix("user:")
    if not platform or not chat or (slash and not thread) or any(c.isspace() for c in text):
        raise InvalidInput(
            f"{text!r} is not a destination. Write platform:chat, platform:chat/thread or platform:user:ID, "
            "for example telegram:-1001234567/7.",
            param=param,
        )
    return at_place(platform, chat, thread or None)


def at_place(platform: str, chat_id: str, thread_id: str | None) -> Destination:
    """A destination as its platform names it; the General topic of a forum is the chat itself."""
    general = thread_id is not None and GENERAL_THREADS.get(platform) == thread_id
    return Destination(platform, chat_id, None if general else thread_id)
