"""A gate's token that travels with the call it was given for: from the first gate down to a second one in the same
program, through tasks and threads that carry the context. It is taken out once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from signoff.digest import digest_of
from signoff.model import Action


class HeldPass:
    """A token with the call it stands for. `host` is the one whose digest it is bound to."""

    __slots__ = ("action", "host", "profile", "taken", "token")

    def __init__(self, profile: str, action: Action, host: str | None, token: str) -> None:
        self.profile, self.action, self.host, self.token = profile, action, host, token
        self.taken = False


_HELD: ContextVar[HeldPass | None] = ContextVar("signoff_held_pass", default=None)


@contextmanager
def holding(held: HeldPass) -> Iterator[None]:
    """While inside, calls below may take the token."""
    reset = _HELD.set(held)
    try:
        yield
    finally:
        _HELD.reset(reset)


def take(profile: str, action: Action) -> HeldPass | None:
    """The token for exactly this call, where the one above holds it and nobody took it yet."""
    held = _HELD.get()
    if held is None or held.taken or held.profile != profile or not isinstance(action, type(held.action)):
        return None
    # By their digests: Python takes 1, 1.0 and True for equal, and a tool may not.
    if digest_of(held.action, held.host) != digest_of(action, held.host):
        return None
    held.taken = True
    return held
