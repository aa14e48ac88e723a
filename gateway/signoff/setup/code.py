"""The one-time code by which somebody in a chat proves to be the one at the terminal. No I/O."""

from __future__ import annotations

import hmac
import re
import secrets
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from signoff.ids import ALPHABET

LENGTH = 8
"""40 bits, of which five tries guess nothing."""
VALID_FOR = timedelta(minutes=10)
TRIES = 5
_TYPED = re.compile(rf"\s*(?:[/!]?[A-Za-z]+(?:@\w+)?\s+)?([{ALPHABET}]{{{LENGTH}}})\s*", re.IGNORECASE)
"""A code alone, or after one command: a word of eight letters inside a sentence is none."""

Verdict = Literal["none", "wrong", "group", "right"]


class Code(Struct, frozen=True, kw_only=True):
    """A code, and what became of it: it is used up by success, by the fifth wrong try, and by being read by others."""

    text: str
    expires_at: datetime
    tries_left: int = TRIES
    ended: Literal["", "used", "tries", "group"] = ""

    def live(self, now: datetime) -> bool:
        """Whether it may still be used."""
        return not self.ended and now < self.expires_at


def new_code(now: datetime) -> Code:
    """A random code that is valid from now on."""
    return Code(text="".join(secrets.choice(ALPHABET) for _ in range(LENGTH)), expires_at=now + VALID_FOR)


def judged(code: Code, typed: str, now: datetime, *, direct: bool, first_hand: bool) -> tuple[Verdict, Code]:
    """What a message means for the code. `first_hand`: its writer wrote it, and may be bound at all.

    A message without the form of a code means nothing. In a group the right one ends it, since others read it there,
    and a wrong one is passed over but counts as a try.
    """
    found = _TYPED.fullmatch(typed)
    if found is None:
        return "none", code
    if not code.live(now):
        return ("wrong" if direct else "none"), code
    right = hmac.compare_digest(found[1].upper(), code.text)
    if right and not direct:
        return "group", _ended(code, "group")
    if right and first_hand:
        return "right", _ended(code, "used")
    left = code.tries_left - 1
    after = Code(text=code.text, expires_at=code.expires_at, tries_left=left, ended="" if left else "tries")
    return ("wrong" if direct else "none"), after


def _ended(code: Code, how: Literal["used", "group"]) -> Code:
    return Code(text=code.text, expires_at=code.expires_at, tries_left=code.tries_left, ended=how)
