"""Typed commands: what a message in a chat asks for is done, and answered where it stood.

Without an id a command means the card it replies to, else the only question of its place whose card came before it.
Two rules hold for critical questions, whose buttons take a second tap: typing the id is that second step, so without
the id an approval decides nothing and the id is shown. What a person typed is applied in one commit and answered
after it, so a command that is delivered again finds its own result and says so.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from signoff import aside
from signoff.answers import not_offered
from signoff.authorize import Refused, person_may
from signoff.broker import Broker, same_person
from signoff.bypass_commands import BypassCommands
from signoff.changes import answering_all, places
from signoff.changes.answering_all import QUIET_OVER, AllOf, Answered
from signoff.changes.deciding import Decided, Ruling
from signoff.changes.places import Look, Waiting
from signoff.command_desk import Asked, Desk, Reply
from signoff.command_replies import (
    Listing,
    all_listing,
    decided_text,
    grants_listing,
    help_lines,
    listing_card,
    not_understood,
    pending_line,
    pending_listing,
    revoked_text,
    several_listing,
    threads_foot,
    unknown_id,
)
from signoff.dispatcher import Dispatcher
from signoff.durations import clock as clock_text
from signoff.elicitation import needs_somebody
from signoff.endings import lost_answer, person_name
from signoff.errors import (
    ChoiceNotOffered,
    GrantNotFound,
    NotPermitted,
    RequestNotFound,
    UndoTooLate,
)
from signoff.grammar import (
    Approve,
    Deny,
    Loose,
    NotACommand,
    Other,
    Typed,
    Unclear,
    Unknown,
    Verb,
    Yolo,
    is_command,
    loose_answer,
    parse,
)
from signoff.last_ended import LastEnded
from signoff.model import (
    Actor,
    ApprovalRequest,
    Copy,
    Destination,
    Grant,
    Message,
    Person,
    Session,
    Suggestion,
    replace,
)
from signoff.model import Reply as Shown
from signoff.ports import AdapterInfo, Clock, Store, Tx
from signoff.rows import request_key, session_key
from signoff.sessions import Sessions
from signoff.settings import Profile
from signoff.stop_commands import StopCommands
from signoff.strangers import Strangers
from signoff.whys import why_lines
from signoff.wording import agent_name, people, safe_name, t

OLDEST = timedelta(days=1)
"""Platforms deliver nothing that is older; what seems to be tells of a clock that is wrong."""
REMEMBERED = 10_000
"""Cards kept in memory that were answered to a loose word already."""


class Commands:
    """The use case behind an adapter's `inbox.message`, for one gateway."""

    def __init__(
        self,
        broker: Broker,
        sessions: Sessions,
        dispatcher: Dispatcher,
        store: Store,
        clock: Clock,
        title: Callable[[str], str],
    ) -> None:
        self._broker = broker
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._store = store
        self._clock = clock
        self._title = title
        self._desk = Desk(broker, store, clock)
        self._stopping = StopCommands(self._desk, sessions, store, clock)
        self._bypassing = BypassCommands(self._desk, sessions, store, clock)
        self._ended = LastEnded(store, clock)
        self._told: OrderedDict[str, None] = OrderedDict()
        self.strangers = Strangers(clock, broker.profile)

    def close(self) -> None:
        """Stop listening to the store."""
        self._ended.close()

    async def handle(self, profile: str, message: Message, info: AdapterInfo) -> Shown | None:
        """Do what the message asks for and answer it; conversation is passed over in silence. The answer is posted, or
        returned where the adapter shows it. To people who may not decide only a few answers are posted.

        Raises `StoreError` when nothing could be saved, so that the platform delivers the message again.
        """
        typed = parse(message.text, addressed=message.addressed)
        asked = Asked(profile=self._broker.profile(profile), message=message, info=info, now=self._clock.now())
        if isinstance(typed, Loose) and self.strangers.silenced(profile, message):
            return None  # the hint on its card is kept for somebody who is answered
        reply = await self._reply(asked, typed)
        if not reply:
            return None
        listing = reply if isinstance(reply, Listing) else Listing(head=tuple(reply))
        make = partial(listing_card, listing, info.max_text_units)
        # Masking thousands of actions takes a while, which taps should not have to wait for.
        card = await asyncio.to_thread(make) if len(listing.lines) > QUIET_OVER else make()
        if message.replies == "all" or (message.replies == "private" and not listing.public):
            return Shown(card, private=not listing.public)
        if not self.strangers.may_be_answered(profile, message):
            return None
        await self._dispatcher.say(profile, message.destination, card, reply_to=message.message_id)
        return None

    def may_answer(self, profile: str, message: Message) -> bool:
        """Whether this message, which is no command, can decide something: a loose word, where the profile lets it."""
        return _loosely(self._broker.profile(profile), message) is not None

    async def pending(self, profile: str, place: Destination, person: Person) -> list[Suggestion]:
        """What waits in a place, for completing a half-typed id; nothing for somebody who may not decide."""
        if isinstance(person_may(self._broker.profile(profile), person, "decide", None, "command"), Refused):
            return []
        message = Message(destination=place, message_id="", order=0, person=person, text="")
        change = partial(places.look, profile=profile, message=message)
        waiting = (await self._store.transact(change, bulk=True)).waiting
        now = self._clock.now()
        return [Suggestion(each.row.short_id, pending_line(each.row, now)) for each in waiting]

    async def _second_hand(self, asked: Asked) -> Reply:
        """Forwarded, edited or anonymous: it decides nothing, and is recorded."""
        message = asked.message
        await self._desk.refusals.record(
            asked.profile.name, message.person, message.destination, why="second_hand", operation="command"
        )
        return [t("reply.not_first_hand")]

    async def _reply(self, asked: Asked, typed: Typed) -> Reply | None:
        if isinstance(typed, NotACommand):
            return None
        if asked.message.unattributable:
            return await self._second_hand(asked) if is_command(typed) else None
        if isinstance(typed, Loose):
            return await self._loose(asked, typed)
        if isinstance(typed, Unknown):
            ours = typed.near is not None or asked.message.direct or asked.message.addressed
            return [not_understood(typed, asked.prefix)] if ours else None
        if isinstance(typed, Unclear):
            return await self._unclear(asked, typed)
        if isinstance(typed, Approve | Deny):
            return await (self._all(asked, typed) if typed.everything else self._one(asked, typed))
        if isinstance(typed, Yolo):
            reply = await self._bypassing.answer(asked, typed)
            self._dispatcher.wake()
            return reply
        return await self._other(asked, typed)

    async def _other(self, asked: Asked, typed: Other) -> Reply:
        if typed.verb == "help":
            return self._help(asked)
        if typed.verb in ("stop", "new"):
            reply = await self._stopping.end(asked, typed.verb)
            self._dispatcher.wake()
            return reply
        if typed.verb == "undo":
            return await self._undo(asked, typed)
        actor = self._desk.may(asked, "revoke" if typed.verb == "revoke" else "read")
        if isinstance(actor, Refused):
            return await self._desk.refuse(asked, actor, typed.verb)
        if typed.verb == "pending":
            return self._pending(asked, await self._desk.look(asked))
        if typed.verb == "why":
            return await self._why(asked, typed)
        if typed.verb == "revoke" and (typed.target or typed.word):
            return await self._revoke(asked, typed.target, typed.word, actor)
        return grants_listing(await self._grants_here(asked), asked.now, asked.prefix)

    # --- which one ---------------------------------------------------------------------------

    async def _find(self, asked: Asked, target: str) -> ApprovalRequest | None:
        try:
            return await self._broker.find(asked.profile.name, target)
        except RequestNotFound:
            return None

    async def _meant(self, asked: Asked, target: str | None, verb: Verb) -> ApprovalRequest | Reply:
        """The request that is meant, or the answer that none was decided."""
        if target is not None:
            found = await self._find(asked, target)
            return found if found is not None else [unknown_id(target, (await self._desk.look(asked)).waiting)]
        look = await self._desk.look(asked)
        row, shown = look.replied, look.waiting
        if row is None and not shown:
            return self._none_waits(asked, look)
        if row is None and not look.unsure and len(shown) == 1 and _came_first(shown[0], asked.message, verb):
            row = shown[0].row
        if row is None:
            return several_listing(shown, verb, asked.now, asked.prefix)
        if verb == "approve" and row.outcome is None and row.severity == "critical":
            here = any(each.row.request_id == row.request_id for each in shown)
            return several_listing(shown if here else (Waiting(row=row, copies=()),), verb, asked.now, asked.prefix)
        return row

    def _none_waits(self, asked: Asked, look: Look) -> list[str]:
        last = self._ended.at(asked.profile.name, asked.message.destination)
        if last is None:
            return [t("pending.none"), *threads_foot(look.in_threads)]
        outcome, when = t(f"outcome_word.{last.word}"), clock_text(last.at, now=asked.now)
        told = t("pending.none_last", id=last.short_id, outcome=outcome, clock=when)
        return [told, *threads_foot(look.in_threads)]

    # --- approve and deny --------------------------------------------------------------------

    async def _one(self, asked: Asked, typed: Approve | Deny) -> Reply:
        refused = self._desk.may(asked, "decide")
        if isinstance(refused, Refused):
            return await self._desk.refuse(asked, refused, "decide")
        row = await self._meant(asked, typed.target, "approve" if isinstance(typed, Approve) else "deny")
        if not isinstance(row, ApprovalRequest):
            return row
        session = await self._store.get(Session, session_key(row.profile, row.session_id))
        actor = self._desk.may(asked, "decide", session)
        if isinstance(actor, Refused):
            return await self._desk.refuse(asked, actor, "decide", row)
        if isinstance(typed, Approve) and row.outcome is None and not await self._whole_shown(row):
            return [f"{row.short_id}: {t('fact.not_attached')}"]
        return await self._decide(asked, typed, row, actor)

    async def _whole_shown(self, row: ApprovalRequest) -> bool:
        """Whether the whole action is in reach on some card; without any card it is shown elsewhere."""
        copies = await self._store.find(Copy, "request", request_key(row.profile, row.leader_id or row.request_id))
        cards = [copy for copy in copies if copy.kind == "card" and (copy.message_id or (copy.digest and copy.sent_at))]
        return not cards or any(copy.whole_shown for copy in cards)

    async def _decide(self, asked: Asked, typed: Approve | Deny, row: ApprovalRequest, actor: Actor) -> Reply:
        choice, reason, cut = "deny", None, 0
        if isinstance(typed, Approve):
            choice = typed.choice or "once"
        else:
            reason, cut = typed.reason, typed.cut
        try:
            decided = await self._broker.decide(asked.profile.name, row.request_id, choice, actor, reason=reason)
        except ChoiceNotOffered as error:
            return [not_offered(error)]
        self._dispatcher.wake()
        if decided.how == "lost":
            if row.outcome == "denied" and choice != "deny":
                await self._broker.let_ask(row.profile, row.request_id, actor)
            return [self._lost(asked, decided, choice)]
        told = [decided_text(decided, self._clock.now(), asked.prefix)]
        return _public(*told, t("tap.done.reason_too_long", count=cut)) if cut else _public(*told)

    def _lost(self, asked: Asked, decided: Decided, choice: str) -> str:
        row, now = decided.row, self._clock.now()
        by = row.decided_by[-1] if row.decided_by else None
        if choice != "deny" and row.outcome == "denied" and by is not None and by.type == "person":
            when = clock_text(row.decided_at or now, now=now)
            return t("reply.after_denial", person=people(row.decided_by), id=row.short_id, clock=when)
        person = asked.message.person
        text = lost_answer(row, person, now, platform_title=self._title, prefix=asked.prefix)
        return f"{row.short_id}: {text}"

    async def _all(self, asked: Asked, typed: Approve | Deny) -> Reply:
        actor = self._desk.may(asked, "decide")
        if isinstance(actor, Refused):
            return await self._desk.refuse(asked, actor, "decide")
        choice = (typed.choice or "once") if isinstance(typed, Approve) else "deny"
        reason = typed.reason if isinstance(typed, Deny) else None
        profile, message = asked.profile.name, asked.message

        def may(row: ApprovalRequest, session: Session | None) -> Actor | None:
            who = self._desk.may(asked, "decide", session)
            if isinstance(who, Refused):
                return None
            return who if choice == "deny" else replace(who, via="approve_all")

        def ruled(row: ApprovalRequest, by: Actor) -> Ruling:
            return self._broker.ruled_for(row, self._broker.ruling(profile, choice, by, reason=reason))

        change = partial(answering_all.answer_all, may=may, ruled=ruled)
        answered = await self._store.transact(
            partial(self._seen_by, change=change, profile=profile, message=message), bulk=True
        )
        self._dispatcher.wake()
        look = await self._desk.look(asked)
        if not answered.lines:
            return self._none_waits(asked, look)
        listing = replace(all_listing(answered, actor, choice, look.in_threads, self._clock.now()), public=True)
        if isinstance(typed, Deny) and typed.cut:
            return replace(listing, foot=(*listing.foot, t("tap.done.reason_too_long", count=typed.cut)))
        return listing

    def _seen_by(self, tx: Tx, *, change: Callable[..., Answered], profile: str, message: Message) -> Answered:
        """Do it to what whoever wrote the message had seen by then."""
        written = self._written(message, tx.now)
        all_of = AllOf(profile=profile, place=message.destination, before=message.order, written=written)
        return change(tx, all_of=all_of)

    def _written(self, message: Message, now: datetime) -> datetime | None:
        """When it was written, by the store's time, which is `now`; None for just now. How long ago that is, the
        machine's clock says: the store's may be another, and does not go back where that one was set back."""
        if message.at is None:
            return None
        ago = self._clock.wall() - message.at
        return now - ago if timedelta(0) <= ago <= OLDEST else None

    # --- lists -------------------------------------------------------------------------------

    def _pending(self, asked: Asked, look: Look) -> Reply:
        if not look.waiting:
            return self._none_waits(asked, look)
        return pending_listing(look.waiting, look.in_threads, asked.now)

    async def _why(self, asked: Asked, typed: Other) -> Reply:
        if typed.word is not None:
            return [unknown_id(typed.word, (await self._desk.look(asked)).waiting)]
        row = await self._meant(asked, typed.target, "why")
        if not isinstance(row, ApprovalRequest):
            return row
        lines = await aside.shown(row, partial(why_lines, row, asked.profile))
        return Listing(lines=tuple(lines), file="why.txt")

    async def _grants_here(self, asked: Asked) -> list[Grant]:
        """The live grants that act in every session, or that were asked for in this place."""
        profile, place, found = asked.profile.name, asked.message.destination, []
        for grant in await self._broker.grants(profile):
            row = await self._store.get(ApprovalRequest, request_key(profile, grant.request_id))
            if grant.session_id is None or (row is not None and place in (*row.destinations, *row.delivered_to)):
                found.append(grant)
        return found

    async def _revoke(self, asked: Asked, target: str | None, word: str | None, actor: Actor) -> Reply:
        try:
            grant = await self._broker.revoke(asked.profile.name, target or "", actor)
        except GrantNotFound:
            return [t("reply.revoke_unknown", grant=target or safe_name(word or ""), prefix=asked.prefix)]
        return _public(revoked_text(grant, self._clock.now()))

    def _help(self, asked: Asked) -> list[str]:
        person = asked.message.person
        actor = self._desk.may(asked, "decide")
        name = None if isinstance(actor, Refused) else person_name(actor)
        return help_lines(asked.prefix, asked.info.platform, person.user_id, name)

    # --- undo --------------------------------------------------------------------------------

    async def _undo(self, asked: Asked, typed: Other) -> Reply:
        """Take back the named approval, else the replied card's, else the one this person gave last here."""
        actor = self._desk.may(asked, "decide")
        if isinstance(actor, Refused):
            return await self._desk.refuse(asked, actor, "undo")
        if typed.word is not None:
            return [unknown_id(typed.word, (await self._desk.look(asked)).waiting)]
        row = await self._to_undo(asked, typed.target, actor)
        if row is None and typed.target is not None:
            return [unknown_id(typed.target, (await self._desk.look(asked)).waiting)]
        if row is None:
            return [t("reply.undo_none")]
        return _public(f"{row.short_id}: {await self._undone(asked, row, actor)}")

    async def _to_undo(self, asked: Asked, target: str | None, actor: Actor) -> ApprovalRequest | None:
        if target is not None:
            return await self._find(asked, target)
        replied = (await self._desk.look(asked)).replied
        if replied is not None:
            return replied
        place = asked.message.destination
        mine = partial(same_person, actor)
        change = partial(places.undoable, profile=asked.profile.name, place=place, mine=mine)
        return await self._store.transact(change, bulk=True)

    async def _undone(self, asked: Asked, row: ApprovalRequest, actor: Actor) -> str:
        if row.outcome != "approved":
            return t("reply.undo_none")
        try:
            await self._broker.undo(asked.profile.name, row.request_id, actor)
        except NotPermitted:
            return t("tap.undo_not_yours", person=people(row.decided_by))
        except UndoTooLate:
            fresh = await self._broker.get(asked.profile.name, row.request_id)
            if fresh.execution.claimed_at is None:
                return t("tap.undo_ended")
            when = clock_text(fresh.execution.claimed_at, now=self._clock.now())
            return t("tap.undo_late", agent=agent_name(fresh), clock=when, prefix=asked.prefix)
        self._dispatcher.wake()
        return t("tap.undone")

    # --- what is no command ------------------------------------------------------------------

    async def _loose(self, asked: Asked, typed: Loose) -> Reply | None:
        """An answer, where the profile lets it be one. Else say how to answer, once a card; that is remembered in this
        process only, so a restart may say it again."""
        look = await self._desk.look(asked)
        answer = _answer_of(asked, look)
        if answer is not None:
            return await self._one(asked, answer)
        order = asked.message.order
        copies = [copy.copy_id for each in look.waiting for copy in each.copies if 0 < copy.order < order]
        if all(copy_id in self._told for copy_id in copies):
            return None
        for copy_id in copies:
            self._told[copy_id] = None
            self._told.move_to_end(copy_id)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return [t("reply.loose_word", word=typed.word, prefix=asked.prefix)]

    async def _unclear(self, asked: Asked, typed: Unclear) -> list[str]:
        if typed.like_id:
            return [unknown_id(typed.word, (await self._desk.look(asked)).waiting)]
        return [t("reply.bad_scope", word=safe_name(typed.word))]


def _public(*lines: str) -> Listing:
    """Lines that everybody in the place reads, since they tell what changed."""
    return Listing(head=lines, public=True)


def _answer_of(asked: Asked, look: Look) -> Approve | Deny | None:
    """What a loose word decides: as the whole message, in a direct chat, about the one question that waits in it and
    whose card came before it. It approves once, and nothing that takes a second step or starts something at once."""
    message, says = asked.message, _loosely(asked.profile, asked.message)
    if says is None or len(look.waiting) != 1 or look.elsewhere or look.unsure:
        return None
    [only] = look.waiting
    row, replied = only.row, look.replied
    about_it = message.reply_to is None or (replied is not None and replied.request_id == row.request_id)
    if not about_it or not only.before(message.order):
        return None
    if says == "deny":
        return Deny(target=row.short_id)
    firm = row.severity == "critical" or row.stages is not None or needs_somebody(row.action)
    return None if firm else Approve(target=row.short_id, choice="once")


def _loosely(profile: Profile, message: Message) -> Literal["approve", "deny"] | None:
    """What a message says by a loose word, where the profile lets one answer: in a direct chat, at first hand."""
    allowed = profile.approvals.loose_words and message.direct and not message.unattributable
    return loose_answer(message.text) if allowed else None


def _came_first(only: Waiting, message: Message, verb: Verb) -> bool:
    """Whether a question without an id can be what the command is about: its card came before it. Where a doubtful
    send leaves that open, it can be denied."""
    return verb == "why" or only.before(message.order) or (verb == "deny" and only.doubtful)
