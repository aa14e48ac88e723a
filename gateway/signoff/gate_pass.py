"""The one-time token by which a second gate knows that a first one let this very call through. Pure.

It names the request of the first gate and holds a secret, of which the store keeps the hash alone. So nobody can claim
to have been asked about already: only who was handed the token can show it, once, while the first call runs.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from signoff.errors import GatePassRefused
from signoff.ids import random_text

_TOKEN = re.compile(r"sgt_([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{22})")
_SECRET_BYTES = 16


class GatePass(Struct, frozen=True):
    """What a token says: the request of the first gate, and the hash of its secret."""

    request_id: str
    sha256: str


def new_pass(request_id: str) -> tuple[str, GatePass]:
    """A token for the run of that request, and what is kept of it."""
    secret = random_text(_SECRET_BYTES)
    return f"sgt_{request_id}.{secret}", GatePass(request_id, _hash(secret))


def read_pass(token: str) -> GatePass:
    """What a token says. Raises `GatePassRefused` for a text that is none."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise GatePassRefused("This is no token of the tool gate.", param="gate_token")
    return GatePass(found[1], _hash(found[2]))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
