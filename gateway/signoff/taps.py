"""Taps: verify, authorise, decide, answer. A tap is always answered, privately, with what is true after it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from signoff import drills
from signoff.answers import not_offered
from signoff.authorize import Refused, groups_on, listed_on, person_may
from signoff.broker import Broker
from signoff.cards import REASONS, reason_cut
from signoff.catching_up import CatchUps
from signoff.changes import tapping
from signoff.changes.common import RUN_AGAIN, unsure
from signoff.changes.digests import Listed
from signoff.changes.repeats import ASK_AGAIN
from signoff.changes.tapping import Button, Meaning
from signoff.clipping import REASON_UNITS
from signoff.digest_taps import DigestTaps, is_digests
from signoff.dispatcher import Dispatcher
from signoff.durations import clock as clock_text
from signoff.endings import done_answer, lost_answer
from signoff.errors import ChoiceNotOffered, NotPermitted, SaveUnknown, StoreError, UndoTooLate
from signoff.kept_taps import KeptTaps
from signoff.kept_words import DID_RUN
from signoff.model import Actor, Answer, ApprovalRequest, Card, Copy, Dialog, Message, Session, Tap
from signoff.ports import AdapterInfo, Clock, Store
from signoff.refusals import Refusals
from signoff.rows import joined, message_key, session_key
from signoff.tokens import Signer, TokenParts
from signoff.wording import agent_name, people, safe_name, t

DECISIONS = frozenset({"once", "once_all", "session", "always", "30m", "deny", "confirm", "typed", *REASONS})


class PanelMaker(Protocol):
    """Renders cards and panels, and names platforms."""

    def title(self, platform: str) -> str:
        """A platform's name for people."""
        ...

    async def card(self, copy: Copy, row: ApprovalRequest | None, *, attach: bool) -> Card:
        """What a copy shows."""
        ...

    async def digest_list(self, digest: Copy, listed: Sequence[Listed], skip: int) -> Card:
        """The list of a digest from one of its places on."""
        ...


class Taps:
    """The use case behind an adapter's `inbox.tap`, for one gateway."""

    def __init__(
        self,
        broker: Broker,
        dispatcher: Dispatcher,
        store: Store,
        clock: Clock,
        signer: Signer,
        maker: PanelMaker,
        catch_ups: CatchUps | None = None,
    ) -> None:
        self._broker = broker
        self._dispatcher = dispatcher
        self._store = store
        self._clock = clock
        self._signer = signer
        self._title = maker.title
        self._maker = maker
        self._refusals = Refusals(store, clock)
        self._catch_ups = catch_ups
        self._kept = KeptTaps(broker, store, dispatcher)
        self._digests = DigestTaps(broker, dispatcher, store, maker, self._refusals)

    def approvers(self, profile: str, platform: str) -> tuple[str, ...]:
        """The users of a platform who may decide there and are named one by one."""
        return listed_on(self._broker.profile(profile), platform)

    def groups(self, profile: str, platform: str) -> tuple[str, ...]:
        """The roles and groups of a platform whose members may decide there."""
        return groups_on(self._broker.profile(profile), platform)

    async def tap(self, profile: str, tap: Tap, info: AdapterInfo) -> Answer:
        """Answer a press. Only a store that cannot save raises nothing and says so."""
        place = tap.destination
        parts = self._signer.verify(tap.token, place.platform, place.chat_id)
        if parts is None:
            return await self._refuse(profile, tap, "forged", None, t("tap.unknown"))
        try:
            return await self._verified(profile, tap, parts, info)
        except SaveUnknown:
            return Answer(t("tap.save_unknown"), alert=True)
        except StoreError:
            return Answer(t("tap.not_saved"), alert=True)

    async def _verified(self, profile: str, tap: Tap, parts: TokenParts, info: AdapterInfo) -> Answer:
        button = Button(
            copy_id=parts.copy_id,
            revision=parts.revision,
            message_id=tap.message_id,
            order=tap.order,
            user_id=tap.person.user_id,
            user_name=tap.person.name,
        )
        copy = await self._store.get(Copy, parts.copy_id)
        if copy is not None and copy.profile == profile and is_digests(copy):
            allowed = person_may(self._broker.profile(profile), tap.person, "decide", None, "button")
            if isinstance(allowed, Refused):
                return await self._refuse(profile, tap, allowed.why, None, self._refusal_text(allowed, tap))
            return await self._digests.tap(profile, tap, button, parts.choice, info)
        if copy is not None and copy.profile == profile and copy.kind == "drill":
            allowed = person_may(self._broker.profile(profile), tap.person, "decide", None, "button")
            if isinstance(allowed, Refused):
                return await self._refuse(profile, tap, allowed.why, None, self._refusal_text(allowed, tap))
            return await drills.tapped(self._store, copy.copy_id, tap, allowed)
        if copy is not None and copy.profile == profile and copy.kind == "catch_up" and self._catch_ups is not None:
            about, answer = await self._catch_ups.tapped(copy, tap, parts)
            if isinstance(answer, Refused):
                return await self._refuse(profile, tap, answer.why, about, self._refusal_text(answer, tap))
            return answer
        if copy is None or copy.profile != profile or copy.request_id is None:
            return await self._refuse(profile, tap, "unknown", None, t("tap.unknown"))
        row = await self._broker.get(profile, copy.request_id)
        allowed = person_may(self._broker.profile(profile), tap.person, "decide", None, "button")
        if isinstance(allowed, Refused):
            return await self._refuse(profile, tap, allowed.why, row, self._refusal_text(allowed, tap))
        if parts.choice in DECISIONS:
            return await self._decide(profile, tap, button, parts.choice, row, copy, allowed.actor, info)
        return await self._open(profile, tap, button, parts.choice, row, allowed.actor, info)

    # --- decisions ---------------------------------------------------------------------------

    async def _decide(
        self,
        profile: str,
        tap: Tap,
        button: Button,
        choice: str,
        row: ApprovalRequest,
        copy: Copy,
        actor: Actor,
        info: AdapterInfo,
    ) -> Answer:
        reason, hidden = None, 0
        if choice in REASONS:
            choice, reason = "deny", t(f"reason.{choice}")
        elif choice == "typed":
            choice, (reason, hidden) = "deny", reason_cut(tap.text or "")
        elif choice == "confirm" and copy.choice == RUN_AGAIN:
            meaning, told = await self._kept.run_again(profile, button, actor)
            return told or await self._late(profile, meaning, tap, info) or Answer(t("tap.unknown"))
        elif choice == "confirm":
            choice = copy.choice or "once"
        elif self._needs_confirmation(row, choice):
            return await self._confirm(profile, tap, button, choice, info)
        answer = await self._ruled(profile, tap, button, choice, reason or None, row, actor, info)
        if not hidden or answer.alert or answer.lost:
            return answer
        return Answer(f"{answer.text} {t('tap.done.reason_too_long', count=hidden)}")

    @staticmethod
    def _needs_confirmation(row: ApprovalRequest, choice: str) -> bool:
        """Critical takes a second tap for any approval; a standing grant for code or tools takes one too."""
        if row.outcome is not None or choice == "deny":
            return False
        wide = choice == "always" and row.action.__struct_config__.tag in ("code", "tool")
        return row.severity == "critical" or wide

    async def _confirm(self, profile: str, tap: Tap, button: Button, choice: str, info: AdapterInfo) -> Answer:
        told = {"always": "tap.always_first", RUN_AGAIN: "tap.kept.run_again_first"}.get(choice, "tap.critical_first")
        meaning = await self._panel(profile, button, "confirm", choice, info)
        if meaning.panel is not None:
            return await self._opened(meaning, t(told))
        return await self._late(profile, meaning, tap, info) or Answer(t("tap.unknown"))

    async def _ruled(
        self,
        profile: str,
        tap: Tap,
        button: Button,
        choice: str,
        reason: str | None,
        row: ApprovalRequest,
        actor: Actor,
        info: AdapterInfo,
    ) -> Answer:
        ruling = self._broker.ruled_for(row, self._broker.ruling(profile, choice, actor, reason=reason))
        try:
            meaning, decided = await self._store.transact(
                partial(tapping.press, profile=profile, button=button, ruling=ruling)
            )
        except ChoiceNotOffered as error:
            return Answer(not_offered(error))
        if meaning.status == "unknown" and meaning.copy is None:
            return await self._refuse(profile, tap, "moved", row, t("tap.unknown"))
        if decided is None:
            return await self._late(profile, meaning, tap, info) or Answer(t("tap.unknown"))
        now = self._clock.now()
        if decided.how == "lost":
            await self._note(profile, tap, "late", decided.row)
            return Answer(self._lost(decided.row, tap, info), lost=True)
        return Answer(done_answer(decided, now, info.prefix_at(tap.destination)))

    def _lost(self, row: ApprovalRequest, tap: Tap, info: AdapterInfo) -> str:
        prefix = info.prefix_at(tap.destination)
        return lost_answer(row, tap.person, self._clock.now(), platform_title=self._title, prefix=prefix)

    async def _late(self, profile: str, meaning: Meaning, tap: Tap, info: AdapterInfo) -> Answer | None:
        """The answer for a button that means nothing any more, which is recorded; None for a live one of a pending
        request."""
        row = meaning.row
        if meaning.status == "replaced" and row is not None:
            why, answer = "replaced", Answer(t("tap.replaced", id=row.short_id))
        elif meaning.status == "others":
            why, answer = "others_panel", Answer(t("tap.others_panel", person=self._owner(meaning)))
        elif meaning.status == "unknown" or row is None:
            why, answer = "unknown", Answer(t("tap.unknown"))
        elif row.outcome is not None:
            why, answer = "late", Answer(self._lost(row, tap, info), lost=True)
        else:
            return None
        await self._note(profile, tap, why, row)
        return answer

    @staticmethod
    def _owner(meaning: Meaning) -> str:
        copy = meaning.copy
        return _opener(copy) if copy is not None else ""

    # --- everything else ---------------------------------------------------------------------

    async def _open(
        self,
        profile: str,
        tap: Tap,
        button: Button,
        choice: str,
        row: ApprovalRequest,
        actor: Actor,
        info: AdapterInfo,
    ) -> Answer:
        if choice == "undo":
            return await self._undo(profile, button, actor, row, info.prefix_at(tap.destination))
        if choice == DID_RUN:
            meaning, told = await self._kept.did_run(profile, button, actor)
            return told or await self._late(profile, meaning, tap, info) or Answer(t("tap.unknown"))
        if choice == RUN_AGAIN:
            return await self._confirm(profile, tap, button, choice, info)
        if choice == ASK_AGAIN:
            lifted = await self._broker.let_ask(profile, row.request_id, actor)
            return Answer(t("tap.may_ask_again") if lifted is not None else t("tap.unknown"))
        if choice == "close":
            meaning = await self._store.transact(partial(tapping.close, profile=profile, button=button))
            self._dispatcher.wake()
            closed = Answer(t("panel.closed"))
            if meaning.status == "live" and meaning.row is not None and unsure(meaning.row):
                return closed
            return await self._late(profile, meaning, tap, info) or closed
        if choice == "open":
            meaning, opened = await self._digests.open(profile, button)
            return opened or await self._late(profile, meaning, tap, info) or Answer(t("tap.unknown"))
        if choice == "wait":
            return await self._wait_longer(profile, tap, button, info)
        if choice == "type" and info.dialogs:
            return await self._ask(profile, tap, button, row, info)
        meaning = await self._panel(profile, button, choice, None, info)
        if meaning.copy is None:
            return await self._refuse(profile, tap, "moved", row, t("tap.unknown"))
        return await self._late(profile, meaning, tap, info) or await self._opened(meaning, "")

    async def _ask(self, profile: str, tap: Tap, button: Button, row: ApprovalRequest, info: AdapterInfo) -> Answer:
        """Ask for a reason in a dialog, which sends it back under a token of its own."""
        meaning = await self._store.transact(partial(tapping.read, profile=profile, button=button))
        late = await self._late(profile, meaning, tap, info)
        if late is not None:
            return late
        place = tap.destination
        token = self._signer.token(button.copy_id, button.revision, "typed", place.platform, place.chat_id)
        dialog = Dialog(
            title=t("panel.dialog_title", id=row.short_id),
            label=t("panel.dialog_label"),
            placeholder=t("panel.type_prompt"),
            token=token,
            max_units=REASON_UNITS,
        )
        return Answer("", dialog=dialog)

    async def _opened(self, meaning: Meaning, told: str) -> Answer:
        """The panel itself where the platform shows it privately; elsewhere it is posted, and `told` is the answer."""
        if meaning.panel is None or not meaning.panel.private:
            return Answer(told)
        return Answer("", panel=await self._maker.card(meaning.panel, meaning.row, attach=True))

    async def _panel(self, profile: str, button: Button, panel: str, choice: str | None, info: AdapterInfo) -> Meaning:
        change = partial(
            tapping.open_panel,
            profile=profile,
            button=button,
            panel=panel,
            limit_s=self._broker.profile(profile).approvals.max_timeout_s,
            choice=choice,
            private=info.private_panels,
        )
        meaning = await self._store.transact(change)
        self._dispatcher.wake()
        return meaning

    async def _wait_longer(self, profile: str, tap: Tap, button: Button, info: AdapterInfo) -> Answer:
        limit_s = self._broker.profile(profile).approvals.max_timeout_s
        before = await self._store.transact(partial(tapping.read, profile=profile, button=button))
        late = await self._late(profile, before, tap, info)
        if late is not None:
            return late
        change = partial(tapping.wait_longer, profile=profile, button=button, limit_s=limit_s)
        meaning = await self._store.transact(change)
        self._dispatcher.wake()
        row, now = meaning.row, self._clock.now()
        if row is None or row.expires_at is None:
            return Answer(t("tap.extend_none"))
        until = clock_text(row.expires_at, now=now)
        moved = before.row is not None and before.row.expires_at != row.expires_at
        return Answer(t("tap.extended", clock=until) if moved else t("tap.extend_limit", clock=until))

    async def _undo(self, profile: str, button: Button, actor: Actor, row: ApprovalRequest, prefix: str) -> Answer:
        try:
            await self._broker.undo(profile, row.request_id, actor)
        except NotPermitted:
            return Answer(t("tap.undo_not_yours", person=people(row.decided_by)))
        except UndoTooLate:
            fresh = await self._broker.get(profile, row.request_id)
            started = fresh.execution.claimed_at
            if started is None:
                return Answer(t("tap.undo_ended"))
            when = clock_text(started, now=self._clock.now())
            return Answer(t("tap.undo_late", agent=agent_name(fresh), clock=when, prefix=prefix))
        return Answer(t("tap.undone"))

    # --- typed reasons -----------------------------------------------------------------------

    async def typed_reason(self, profile: str, message: Message, info: AdapterInfo) -> str | None:
        """If the message answers a prompt for a reason, deny with it and return what the person is told; else None."""
        prompt = await self._prompt(profile, message)
        if prompt is None or prompt.request_id is None or message.unattributable:
            return None
        row = await self._broker.get(profile, prompt.request_id)
        if prompt.owner_id != message.person.user_id:
            return t("tap.others_panel", person=_opener(prompt))
        session = await self._store.get(Session, session_key(profile, row.session_id))
        allowed = person_may(self._broker.profile(profile), message.person, "decide", session, "button")
        if isinstance(allowed, Refused):
            return t("reply.not_allowed", user=message.person.user_id)
        reason, hidden = reason_cut(message.text)
        decided = await self._broker.decide(
            profile, row.request_id, "deny", allowed.actor, reason=reason or None, copy_id=prompt.parent_copy
        )
        now, prefix = self._clock.now(), info.prefix_at(message.destination, message.reply_to)
        if decided.how == "lost":
            return lost_answer(decided.row, message.person, now, platform_title=self._title, prefix=prefix)
        told = done_answer(decided, now, prefix)
        return f"{told} {t('tap.done.reason_too_long', count=hidden)}" if hidden else told

    async def _prompt(self, profile: str, message: Message) -> Copy | None:
        if message.reply_to is None:
            return None
        key = message_key(profile, message.destination, message.reply_to)
        found = await self._store.find(Copy, "message", key)
        if found:
            return next((copy for copy in found if copy.kind == "prompt"), None)
        return await self._prompt_under_way(profile, message)

    async def _prompt_under_way(self, profile: str, message: Message) -> Copy | None:
        """A reply may come before the sending of its prompt has returned, or when the answer to it was lost. It is
        taken for this person's own newest prompt of the place whose message is not known yet."""
        place = message.destination
        chat = joined(profile, place.platform, place.chat_id)
        waiting = [
            copy
            for copy in await self._store.find(Copy, "open_chat", chat)
            if copy.kind == "prompt"
            and copy.message_id is None
            and copy.state in ("sending", "ambiguous")
            and copy.destination == place
            and copy.owner_id == message.person.user_id
        ]
        return max(waiting, key=lambda copy: copy.created_at, default=None)

    # --- refusals ----------------------------------------------------------------------------

    def _refusal_text(self, refused: Refused, tap: Tap) -> str:
        user = tap.person.user_id
        if refused.why == "nobody":
            return t("tap.nobody_may", user=user, platform=tap.destination.platform)
        if refused.why == "guest":
            return t("tap.guest")
        return t("tap.may_not", user=user)

    async def _refuse(self, profile: str, tap: Tap, why: str, row: ApprovalRequest | None, text: str) -> Answer:
        """Answer privately, and record who tried what."""
        await self._note(profile, tap, why, row)
        return Answer(text, alert=True)

    async def _note(self, profile: str, tap: Tap, why: str, row: ApprovalRequest | None) -> None:
        await self._refusals.record(
            profile, tap.person, tap.destination, why=why, operation="decide", via="button", row=row
        )


def _opener(copy: Copy) -> str:
    """Who opened a panel, for people."""
    return safe_name(copy.owner_name) if copy.owner_name else f"{copy.destination.platform} {copy.owner_id}"
