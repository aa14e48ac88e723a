"""Who sits at the console: log-ins, one-time links, and how often a wrong key may be tried.

A log-in is kept in the store under the hash of its cookie, so that it outlives a restart and a stolen store opens
nothing. All of a profile are one row, which is small (the newest 500) and changes only when somebody comes or goes:
many log-ins in one profile put nobody out in another.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from msgspec import Struct

from signoff.authorize import console_actor
from signoff.errors import InvalidInput
from signoff.model import Actor, Key, Note, Scope
from signoff.ports import Clock, Store, Tx
from signoff.settings import Profile

SEAT_FOR = timedelta(hours=12)
"""A working day: who decides in the morning need not log in again before the evening."""
LINK_FOR = timedelta(minutes=10)
MOST_KEPT = 500
"""Log-ins, and unused links, that are kept of a profile; the oldest go first."""
MOST_OF_A_KEY = 20
"""Log-ins made with one key; its oldest go first. More than one person's browsers, and few enough of `MOST_KEPT` that
no key puts the others out."""
TRIES, TRIES_WITHIN_S = 10, 60.0
"""Wrong keys or links of one address that are told so. Guessing 256 bits is hopeless; beyond, a guess gets 429."""
MOST_ADDRESSES = 2000

_SEATS, _LINKS = "console:seats", "console:links"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}", re.ASCII)


class Seat(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One log-in. `name` is the hash of its cookie."""

    name: str
    profile: str
    scope: Scope
    principal: str | None = None
    key_id: str | None = None
    bond: str | None = None
    """The hash of what forms of this log-in must carry beside its cookie: a secret that the browser keeps for this
    origin alone, its port included, while it hands the cookie to every port of the host. None for a browser that runs
    no script."""
    until: datetime

    @property
    def actor(self) -> Actor:
        """How deeds from here are recorded."""
        return console_actor(self.principal, self.key_id)


class Link(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A one-time link that was not used yet. `name` is the hash of its token."""

    name: str
    profile: str
    scope: Scope
    principal: str | None = None
    until: datetime


E = TypeVar("E", Seat, Link)


class Seats:
    """Opens, finds and closes log-ins."""

    def __init__(self, store: Store, clock: Clock, profiles: Mapping[str, Profile]) -> None:
        self._store = store
        self._clock = clock
        self._profiles = profiles
        self._read: dict[str, tuple[str, list[Seat]]] = {}

    async def open(
        self, *, profile: str, scope: Scope, principal: str | None, key_id: str | None, bond: str = ""
    ) -> str:
        """Log somebody in; the cookie's text, which is kept nowhere. `bond`: the secret that forms will carry."""
        secret = secrets.token_urlsafe(32)

        def change(tx: Tx) -> None:
            _put_seat(tx, secret, profile, scope, principal, key_id, bond)

        await self._store.transact(change)
        return secret

    async def find(self, secret: str) -> Seat | None:
        """The live log-in of a cookie. A revoked key ends the log-ins made with it."""
        name = _hash(secret)
        seat = None
        for profile in self._profiles:
            found = _match(await self._seats(profile), name)
            if found is not None and found.profile == profile:
                seat = found
        if seat is None or seat.until <= self._clock.now():
            return None
        if seat.key_id is not None:
            key = await self._store.get(Key, seat.key_id)
            if key is None or key.revoked_at is not None:
                return None
        return seat

    async def close(self, seat: Seat) -> None:
        """Log out."""

        def change(tx: Tx) -> None:
            row = _row(_SEATS, seat.profile)
            kept = [each for each in _load(tx.get(Note, row), Seat) if each.name != seat.name]
            tx.put(_note(row, kept))

        await self._store.transact(change)

    async def make_link(self, *, profile: str, principal: str | None, view: bool) -> str:
        """A token that logs somebody in once, within 10 minutes. Raises `InvalidInput`."""
        if not view and not principal:
            raise InvalidInput("A link for deciding belongs to a person: name the principal.", param="principal")
        if principal is not None and not _NAME.fullmatch(principal):
            raise InvalidInput(
                "principal must be 1 to 64 letters, digits, or any of _ . @ + -, beginning with a letter or digit.",
                param="principal",
            )
        token = secrets.token_urlsafe(32)

        def change(tx: Tx) -> None:
            link = Link(
                name=_hash(token),
                profile=profile,
                scope="ops" if view else "approver",
                principal=principal,
                until=tx.now + LINK_FOR,
            )
            row = _row(_LINKS, profile)
            kept = [each for each in _load(tx.get(Note, row), Link) if each.until > tx.now]
            tx.put(_note(row, [*kept, link][-MOST_KEPT:]))

        await self._store.transact(change)
        return token

    async def link(self, token: str) -> Link | None:
        """What a link would open. Looking does not use it up, so a preview of the address does no harm."""
        name = _hash(token)
        for profile in self._profiles:
            found = _match(_load(await self._store.get(Note, _row(_LINKS, profile)), Link), name)
            if found is not None and found.profile == profile:
                return found if found.until > self._clock.now() else None
        return None

    async def use_link(self, token: str, bond: str = "") -> str | None:
        """Log in by a link, once: the cookie's text, or None where the link is used up, too old or unknown."""
        secret = secrets.token_urlsafe(32)
        known = await self.link(token)
        if known is None:
            return None
        row = _row(_LINKS, known.profile)

        def change(tx: Tx) -> str | None:
            links = _load(tx.get(Note, row), Link)
            found = _match(links, known.name)
            if found is None or found.until <= tx.now:
                return None
            tx.put(_note(row, [each for each in links if each.name != found.name]))
            _put_seat(tx, secret, found.profile, found.scope, found.principal, None, bond)
            return secret

        return await self._store.transact(change)

    async def _seats(self, profile: str) -> list[Seat]:
        note = await self._store.get(Note, _row(_SEATS, profile))
        value = note.value if note is not None else "[]"
        read = self._read.get(profile)
        if read is None or value != read[0]:
            read = self._read[profile] = (value, _load(note, Seat))
        return read[1]


class Tries:
    """Counts wrong log-ins by address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, deque[datetime]] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """How long wrong ones of this address go on being too many; 0 for not at all."""
        wrong = self._wrong.get(address)
        if wrong is None:
            return 0.0
        now = self._clock.now()
        while wrong and (now - wrong[0]).total_seconds() >= TRIES_WITHIN_S:
            wrong.popleft()
        return TRIES_WITHIN_S - (now - wrong[0]).total_seconds() if len(wrong) >= TRIES else 0.0

    def wrong(self, address: str) -> None:
        """It tried one that is not right."""
        self._wrong.setdefault(address, deque(maxlen=TRIES)).append(self._clock.now())
        self._wrong.move_to_end(address)
        while len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)


def form_token(secret: str) -> str:
    """What the forms of a log-in carry. Made of its cookie, which no other site can read."""
    return hmac.new(secret.encode(), b"signoff console form", hashlib.sha256).hexdigest()


def bound(seat: Seat, bond: str) -> bool:
    """Whether a form with that secret comes from the browser that logged in."""
    return seat.bond is None or hmac.compare_digest(seat.bond, _hash(bond))


def _put_seat(
    tx: Tx, secret: str, profile: str, scope: Scope, principal: str | None, key_id: str | None, bond: str
) -> None:
    seat = Seat(
        name=_hash(secret),
        profile=profile,
        scope=scope,
        principal=principal,
        key_id=key_id,
        bond=_hash(bond) if bond else None,
        until=tx.now + SEAT_FOR,
    )
    row = _row(_SEATS, profile)
    kept = [each for each in _load(tx.get(Note, row), Seat) if each.until > tx.now]
    if key_id is not None:
        own = [each.name for each in kept if each.key_id == key_id]
        over = set(own[: max(0, len(own) - (MOST_OF_A_KEY - 1))])
        kept = [each for each in kept if each.name not in over]
    tx.put(_note(row, [*kept, seat][-MOST_KEPT:]))


def _row(name: str, profile: str) -> str:
    """The name of a profile's row."""
    return name if profile == "default" else f"{name}:{profile}"


def _match(rows: list[E], name: str) -> E | None:
    """The row of that name; every one is compared, in constant time."""
    found = None
    for row in rows:
        if hmac.compare_digest(row.name, name):
            found = row
    return found


def _load(note: Note | None, kind: type[E]) -> list[E]:
    if note is None:
        return []
    return msgspec.json.decode(note.value, type=list[kind])  # type: ignore[valid-type]  # built at run time


def _note(name: str, rows: list[E]) -> Note:
    return Note(name=name, value=msgspec.json.encode(rows).decode())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
