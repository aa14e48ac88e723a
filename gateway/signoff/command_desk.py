"""What every typed command needs: who asks and where, whether they may, and what waits there."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from msgspec import Struct

from signoff.authorize import Allowed, Operation, Refused, person_may
from signoff.broker import Broker
from signoff.changes import places
from signoff.changes.places import Look
from signoff.command_replies import Listing
from signoff.model import Actor, ApprovalRequest, Message, Session
from signoff.ports import AdapterInfo, Clock, Store
from signoff.refusals import Refusals
from signoff.settings import Profile
from signoff.wording import safe_name, t

Reply = list[str] | Listing
"""Lines for who asked, or a listing."""


class Asked(Struct, frozen=True, kw_only=True):
    """One command and where it came from."""

    profile: Profile
    message: Message
    info: AdapterInfo
    now: datetime

    @property
    def prefix(self) -> str:
        """What stands before a typed command here."""
        return self.info.prefix_at(self.message.destination, self.message.reply_to)


class Desk:
    """Authorisation and look-ups of typed commands."""

    def __init__(self, broker: Broker, store: Store, clock: Clock) -> None:
        self._broker = broker
        self._store = store
        self.refusals = Refusals(store, clock)

    def may(self, asked: Asked, operation: Operation, session: Session | None = None) -> Actor | Refused:
        allowed = person_may(asked.profile, asked.message.person, operation, session, "command")
        return allowed.actor if isinstance(allowed, Allowed) else allowed

    async def refuse(
        self,
        asked: Asked,
        refused: Refused,
        operation: str,
        row: ApprovalRequest | None = None,
        session: Session | None = None,
    ) -> list[str]:
        """Record who tried what, and tell them how to become somebody who may."""
        person = asked.message.person
        await self.refusals.record(
            asked.profile.name,
            person,
            asked.message.destination,
            why=refused.why,
            operation=operation,
            row=row,
            session_id=session.session_id if session is not None else None,
        )
        user = safe_name(person.user_id)
        if session is not None:
            return [t("stop.not_yours", user=user)]
        if refused.why == "nobody":
            return [t("tap.nobody_may", user=user, platform=person.platform)]
        if refused.why == "guest":
            return [t("tap.guest")]
        return [t("reply.not_allowed", user=user)]

    async def look(self, asked: Asked) -> Look:
        change = partial(places.look, profile=asked.profile.name, message=asked.message)
        return await self._store.transact(change, bulk=True)
