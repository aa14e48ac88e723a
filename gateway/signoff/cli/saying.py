"""What a command says of a gateway's refusal: the gateway speaks to programs, a command to whoever typed it."""

from __future__ import annotations

import os

from signoff.errors import (
    GrantNotFound,
    KeyNotFound,
    RequestNotFound,
    SessionNotFound,
    SignoffError,
    TurnNotFound,
    Unauthenticated,
)

_TYPED: dict[type[SignoffError], str] = {
    RequestNotFound: "No question with this id is known here. `signoff pending` lists those that wait; --profile "
    "reaches another profile.",
    SessionNotFound: "No session with this id is known here. Its agent declares it; `signoff pending` names those with "
    "open questions; --profile reaches another profile.",
    TurnNotFound: "No turn with this id is known here. Without SIGNOFF_TURN_ID a question opens one of its own.",
    GrantNotFound: "No standing permission with this id is in force here. `signoff grants` lists them.",
    KeyNotFound: "No API key with this id is known here. `signoff key list` lists them.",
    Unauthenticated: "SIGNOFF_KEY holds no valid key of this gateway. `signoff key create` makes one.",
}


def said(error: SignoffError) -> str:
    """The error's words; where it came without words of its own, those of the command line."""
    typed = _TYPED.get(type(error))
    if isinstance(error, Unauthenticated) and not os.environ.get("SIGNOFF_KEY"):
        typed = (
            "SIGNOFF_KEY is not set, and this gateway answers no call without a key. `signoff key create` makes one."
        )
    return typed if typed is not None and error.message == type(error)().message else error.message
