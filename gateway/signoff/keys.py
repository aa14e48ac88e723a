"""API keys: who calls, for which profile, and how much the caller may do. Only a hash of the secret is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from signoff.errors import InvalidInput, KeyNotFound
from signoff.model import Actor, Event, Key, Scope, replace
from signoff.ports import Store, Tx
from signoff.settings import Profile

SCOPES: tuple[Scope, ...] = ("agent", "approver", "ops", "admin")
_LETTERS = string.ascii_letters + string.digits
_ID_CHARS, _SECRET_CHARS = 12, 43
"""43 letters and digits carry 256 bits; a double click selects such a key as one word."""
_FORM = re.compile(rf"sk_([A-Za-z0-9]{{{_ID_CHARS}}})_([A-Za-z0-9]{{{_SECRET_CHARS}}})", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}", re.ASCII)
_NOBODY = "0" * 64


class NewKey(Struct, frozen=True, kw_only=True):
    """A key just made. `text` is shown this once and kept nowhere."""

    key: Key
    text: str


class Keys:
    """Create, list, revoke and verify API keys."""

    def __init__(self, store: Store, profiles: Mapping[str, Profile]) -> None:
        self._store = store
        self._profiles = profiles

    async def create(
        self,
        profile: str,
        scope: Scope,
        *,
        agent: str | None = None,
        principal: str | None = None,
        by: Actor | None = None,
    ) -> NewKey:
        """Make a key. An `approver` key belongs to a principal, who is recorded as deciding.

        An `agent` key without a name gets one of its own, so that no two such keys share their sessions.
        Raises `InvalidInput`.
        """
        self._check(profile, scope, agent, principal)
        key_id, secret = _drawn(_ID_CHARS), _drawn(_SECRET_CHARS)
        name = (agent or f"key-{key_id}") if scope == "agent" else None

        def change(tx: Tx) -> Key:
            key = Key(
                key_id=key_id,
                profile=profile,
                scope=scope,
                secret_sha256=_sha256(secret),
                agent=name,
                principal=principal,
                created_at=tx.now,
            )
            tx.put(key)
            tx.emit(_event(tx, "key.created", key, by))
            return key

        return NewKey(key=await self._store.transact(change), text=f"sk_{key_id}_{secret}")

    async def list(self, profile: str, *, limit: int | None = None, after: str | None = None) -> list[Key]:
        """The keys of a profile, revoked ones too, oldest first; those after the one of that id. Raises
        `InvalidInput` where that is none of the profile's."""
        last = None if after is None else await self._store.get(Key, after)
        if after is not None and (last is None or last.profile != profile):
            raise InvalidInput("There is no such key to continue after.", param="after")
        return await self._store.find(Key, "profile", profile, limit=limit, after=after)

    async def revoke(self, profile: str, key_id: str, by: Actor | None = None) -> Key:
        """End a key at once; again, it stays as it was revoked. Raises `KeyNotFound`, for another profile's key too."""
        return await self._store.transact(partial(_revoke, profile=profile, key_id=key_id, by=by))

    async def verify(self, text: str) -> Key | None:
        """The live key that `text` spells, or None. An unknown id takes as long as a wrong secret."""
        form = _FORM.fullmatch(text)
        if form is None:
            hmac.compare_digest(_NOBODY, _sha256(text))
            return None
        key = await self._store.get(Key, form[1])
        right = hmac.compare_digest(key.secret_sha256 if key is not None else _NOBODY, _sha256(form[2]))
        if key is None or not right or key.revoked_at is not None or key.profile not in self._profiles:
            return None
        return key

    def _check(self, profile: str, scope: str, agent: str | None, principal: str | None) -> None:
        if profile not in self._profiles:
            raise InvalidInput(f"There is no profile {profile!r}.", param="profile")
        if scope not in SCOPES:
            raise InvalidInput(f"{scope!r} is not a scope. Scopes: {', '.join(SCOPES)}.", param="scope")
        if scope == "approver" and not principal:
            raise InvalidInput("An approver key belongs to a person: name the principal.", param="principal")
        if scope in ("agent", "ops") and principal:
            raise InvalidInput("Only approver and admin keys have a principal.", param="principal")
        if scope != "agent" and agent:
            raise InvalidInput("Only an agent key names an agent.", param="agent")
        for name, value in (("agent", agent), ("principal", principal)):
            if value is not None and not _NAME.fullmatch(value):
                raise InvalidInput(
                    f"{name} must be 1 to 64 letters, digits, or any of _ . @ + -, beginning with a letter or digit.",
                    param=name,
                )


def _revoke(tx: Tx, profile: str, key_id: str, by: Actor | None) -> Key:
    key = tx.get(Key, key_id)
    if key is None or key.profile != profile:
        raise KeyNotFound
    if key.revoked_at is not None:
        return key
    ended = replace(key, revoked_at=tx.now)
    tx.put(ended)
    tx.emit(_event(tx, "key.revoked", ended, by))
    return ended


def _event(tx: Tx, kind: str, key: Key, by: Actor | None) -> Event:
    data = {"key_id": key.key_id, "scope": key.scope, "agent": key.agent, "principal": key.principal, "by": by}
    return Event(profile=key.profile, type=kind, at=tx.now, data={k: v for k, v in data.items() if v is not None})


def _drawn(size: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(size))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
