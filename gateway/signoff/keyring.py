"""The secrets that sign buttons: one file, 0600. The previous key is accepted for 30 days."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from signoff.errors import ConfigError
from signoff.tokens import Signer

SECRET_BYTES = 32
ACCEPTED_FOR = timedelta(days=30)
"""Buttons signed with a retired key work for this long: longer than any request may wait by default."""


class RingKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One secret; `retired_at` is set once a newer one signs."""

    id: int
    secret: str
    retired_at: datetime | None = None


class Ring(Struct, frozen=True):
    """The file's content; the last key signs."""

    keys: tuple[RingKey, ...]


class Marks(Struct, frozen=True, kw_only=True):
    """What may be told of a ring: marks from which no secret can be found, since each is drawn from 256 random bits."""

    signs: str
    """Of the key that signs."""
    accepts: frozenset[str]
    """Of all whose buttons work."""


def load_signer(path: Path, now: datetime) -> Signer:
    """The signer of this file, which is made where it does not exist.

    Raises `ConfigError` for a file that cannot be read or that others may read.
    """
    ring = _read(path) if path.exists() else _create(path)
    live = {key.id: base64.b64decode(key.secret) for key in ring.keys if _is_live(key, now)}
    return Signer(live, ring.keys[-1].id)


def marks(path: Path, now: datetime) -> Marks:
    """The marks of the keys in this file. Raises `ConfigError` where it is not there or cannot be read."""
    keys = _read(path).keys
    return Marks(signs=_mark(keys[-1]), accepts=frozenset(_mark(key) for key in keys if _is_live(key, now)))


def rotate(path: Path, now: datetime) -> int:
    """Sign with a new key from now on; returns its id. Running gateways take it up when they start again."""
    ring = _read(path) if path.exists() else _create(path)
    last = ring.keys[-1]
    kept = [key for key in ring.keys[:-1] if key.retired_at is not None and now - key.retired_at < ACCEPTED_FOR]
    new = RingKey(id=(last.id + 1) % 256, secret=_secret())
    retired = msgspec.structs.replace(last, retired_at=now)
    _write(path, Ring((*kept, retired, new)))
    return new.id


def _is_live(key: RingKey, now: datetime) -> bool:
    return key.retired_at is None or now - key.retired_at < ACCEPTED_FOR


def _mark(key: RingKey) -> str:
    # The number is part of it: a button names its key by that.
    named = f"signoff token key {key.id}\n".encode() + base64.b64decode(key.secret)
    return hashlib.sha256(named).hexdigest()[:16]


def _secret() -> str:
    return base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def _create(path: Path) -> Ring:
    ring = Ring((RingKey(id=1, secret=_secret()),))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    _write(draft, ring)
    try:
        # Linking fails where another gateway made the file meanwhile; then both must use that one.
        os.link(draft, path)
    except FileExistsError:
        return _read(path)
    finally:
        draft.unlink()
    return ring


def _write(path: Path, ring: Ring) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(ring)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _read(path: Path) -> Ring:
    try:
        mode = path.stat().st_mode & 0o077
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"gateway.token_key_file {path} cannot be read: {error.strerror}.") from None
    if mode:
        raise ConfigError(f"gateway.token_key_file {path} can be read by others. Mend: chmod 600 {path}")
    try:
        ring = msgspec.json.decode(raw, type=Ring)
        for key in ring.keys:
            base64.b64decode(key.secret, validate=True)
    except (msgspec.MsgspecError, ValueError):
        raise ConfigError(
            f"gateway.token_key_file {path} is damaged. Restore it; without it the buttons of open cards are dead."
        ) from None
    if not ring.keys:
        raise ConfigError(f"gateway.token_key_file {path} holds no key. Remove it to have one made.")
    return ring
