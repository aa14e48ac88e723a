"""Identifiers: random, short where people type them."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U, so that no letter is read as another."""

SHORT_LENGTH = 5
SHORT = re.compile(rf"^[{ALPHABET}]{{{SHORT_LENGTH}}}\Z")
REQUEST_ID = re.compile(r"^[A-Za-z0-9_-]{1,64}\Z")


ONE = "one"
"""The prefix of a turn that a client opens for a single question, where nobody told it of the agent's own turn."""

_OWN = "cli"
_NAME_CHARS = 40
_OF_ASKER = re.compile(rf"^{_OWN}_[0-9a-f]{{10}}\.[A-Za-z0-9_-]{{16}}(?:\.([A-Za-z0-9@_-]{{1,{_NAME_CHARS}}}))?\Z")

_Drawn = tuple[int, Callable[[int], bytes]]
_drawn: ContextVar[_Drawn | None] = ContextVar("drawn", default=None)
"""Where the ids of this moment are drawn from: the time in nanoseconds, and bytes."""


def seed() -> bytes:
    """What `repeatable` draws from."""
    return time.time_ns().to_bytes(8, "big") + secrets.token_bytes(24)


@contextmanager
def repeatable(seed: bytes) -> Iterator[None]:
    """Draw the same ids in the block each time it runs with this seed: for what may run again and must come to the
    same. Within one block they differ, and no two seeds have any in common."""
    count = 0

    def draw(size: int) -> bytes:
        nonlocal count
        count += 1
        return hashlib.blake2b(count.to_bytes(8, "big"), key=seed, digest_size=size).digest()

    token = _drawn.set((int.from_bytes(seed[:8], "big"), draw))
    try:
        yield
    finally:
        _drawn.reset(token)


def _draw() -> _Drawn:
    return _drawn.get() or (time.time_ns(), secrets.token_bytes)


def of_one_question(turn_id: str | None) -> bool:
    """Whether no turn of the agent's is known: there is none, or one for this question alone."""
    return turn_id is None or turn_id.startswith(f"{ONE}_")


def one_question_session(asker: str, folder: str = "", host: str = "") -> str:
    """An id for a session of one question. `asker` says who asks, and is no secret: what a person denies in one of an
    asker's sessions holds in the next of them, and nothing else of them is shared. People know it by the folder and the
    host where it was asked."""
    known = hashlib.blake2b(asker.encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()
    name = "@".join(part for part in (_plain(folder), _plain(host.partition(".")[0])) if part)
    return f"{_OWN}_{known}.{row_id()}{f'.{name}' if name else ''}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[: (_NAME_CHARS - 1) // 2]


def called(session_id: str) -> str:
    """What people call a session: the folder and host of one that `one_question_session` named, else its id."""
    found = _OF_ASKER.match(session_id)
    return session_id if found is None or found[1] is None else found[1]


def asker_of(session_id: str) -> str:
    """What the sessions of one asker have in common: the id itself, unless `one_question_session` made it."""
    return session_id.partition(".")[0] if _OF_ASKER.match(session_id) else session_id


def new_short() -> str:
    """A random short id that holds a digit and a letter, so that it is neither a number nor a word."""
    while True:
        drawn = int.from_bytes(_draw()[1](4), "big")
        text = "".join(ALPHABET[drawn >> shift & 31] for shift in range(0, 5 * SHORT_LENGTH, 5))
        if is_short(text):
            return text


def is_short(text: str) -> bool:
    """Whether `text` has the form of a short id, in any case."""
    if not text.isascii():
        return False
    upper = text.upper()
    return bool(SHORT.match(upper)) and any(c.isdigit() for c in upper) and any(c.isalpha() for c in upper)


def new_id(prefix: str) -> str:
    """An id of 96 bits such as `req_Zk3…`, no secret; it fits `REQUEST_ID`."""
    return f"{prefix}_{row_id()}"


def row_id() -> str:
    """16 characters of base64url that no other row bears: 32 bits of milliseconds, then 64 random bits.

    Rows that are made together get ids that lie together, so an index over them grows at few places instead of
    everywhere: measured at a fifth of a commit's cost. For secrets use `random_text`.
    """
    now_ns, draw = _draw()
    stamp = (now_ns // 1_000_000 & 0xFFFFFFFF).to_bytes(4, "big")
    return base64.urlsafe_b64encode(stamp + draw(8)).decode()


def random_text(size: int) -> str:
    """`size` random bytes as base64url without padding."""
    return base64.urlsafe_b64encode(secrets.token_bytes(size)).rstrip(b"=").decode()
