"""The signed token in a button: 47 characters that fit every platform's smallest field (64 bytes).

Layout, 35 bytes as base64url: version 1, key id 1, copy id 12, revision 4, choice 1, MAC 16. The MAC is over the
first 19 bytes plus the platform and chat, so a token moved to another chat is worth nothing. It names a copy and a
revision, never a request: what it may still decide is read from the store.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import struct
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

VERSION = 1
TOKEN_LENGTH = 47
MAC_BYTES = 16

CHOICES: dict[str, int] = {
    "once": 1,
    "once_all": 2,
    "session": 3,
    "always": 4,
    "30m": 5,
    "deny": 6,
    "more": 7,
    "because": 8,
    "why": 9,
    "close": 10,
    "wait": 11,
    "undo": 12,
    "confirm": 13,
    "type": 14,
    "too_risky": 15,
    "wrong_target": 16,
    "not_now": 17,
    "smaller_steps": 18,
    "typed": 19,
    "open": 20,
    "all_once": 21,
    "all_deny": 22,
    "ask_again": 23,
    "list": 24,
    "seen": 40,
    "want_asked": 41,
    "did_run": 42,
    "run_again": 43,
}
"""Choice names and their byte in a token. A number is never given to another choice."""

_NAMES = {number: name for name, number in CHOICES.items()}
_HEAD = struct.Struct(">BB12sIB")
_copy_bytes = lru_cache(maxsize=64)(base64.urlsafe_b64decode)
"""All buttons of a card name the same copy."""


class TokenParts(Struct, frozen=True):
    """What a verified token says."""

    copy_id: str
    revision: int
    choice: str


class Signer:
    """Makes and checks tokens. `keys` maps a key id (0-255) to its secret; `current` signs, all verify."""

    def __init__(self, keys: Mapping[int, bytes], current: int) -> None:
        # A hash that was begun with the key and is copied costs a third of one that begins anew.
        self._macs = {key_id: hmac.new(secret, digestmod="sha256") for key_id, secret in keys.items()}
        self._current = current

    def token(self, copy_id: str, revision: int, choice: str, platform: str, chat_id: str) -> str:
        """A token for one button of one revision of a copy, bound to its platform and chat."""
        head = _HEAD.pack(VERSION, self._current, _copy_bytes(copy_id), revision, CHOICES[choice])
        mac = _mac(self._macs[self._current], head, platform, chat_id)
        return base64.urlsafe_b64encode(head + mac).rstrip(b"=").decode()

    def verify(self, token: str, platform: str, chat_id: str) -> TokenParts | None:
        """What the token says, or None if it is forged, cut, from elsewhere or of an unknown key."""
        if len(token) != TOKEN_LENGTH or not token.isascii():
            return None
        try:
            raw = base64.b64decode(token + "=", altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != token:
            return None  # the last character has two bits to spare: only one spelling is ours
        head, mac = raw[: _HEAD.size], raw[_HEAD.size :]
        version, key_id, copy, revision, number = _HEAD.unpack(head)
        begun = self._macs.get(key_id)
        if version != VERSION or begun is None:
            return None
        if not hmac.compare_digest(mac, _mac(begun, head, platform, chat_id)):
            return None
        choice = _NAMES.get(number)
        if choice is None:
            return None
        return TokenParts(base64.urlsafe_b64encode(copy).decode(), revision, choice)


def _mac(begun: hmac.HMAC, head: bytes, platform: str, chat_id: str) -> bytes:
    mac = begun.copy()
    mac.update(head + f"{platform}\x00{chat_id}".encode())
    return mac.digest()[:MAC_BYTES]
