"""Taps: verify, authorise, decide, answer. A tap is always answered, privately, with what is true after it."""

from __future__ import annotations

from functools import partial

from signoff import drills
from signoff.answers import not_offered
from signoff.authorize import Refused, groups_on, listed_on, person_may
from signoff.broker import Broker
from signoff.cards import REASONS, reason_cut
from signoff.catching_up import CatchUps
from signoff.changes import tapping
from signoff.changes.common import RUN_AGAIN, unsure
from signoff.changes.repeats import ASK_AGAIN
from signoff.changes.tapping import Button, Meaning
from signoff.clipping import REASON_UNITS
from signoff.digest_taps import DigestTaps, PanelMaker, is_digests
from signoff.dispatcher import Dispatcher
from signoff.durations import clock as clock_text
from signoff.endings import done_answer, lost_answer
from signoff.errors import ChoiceNotOffered, NotPermitted, SaveUnknown, StoreError, UndoTooLate
from signoff.kept_taps import KeptTaps
from signoff.kept_words import DID_RUN
from signoff.model import Answer, ApprovalRequest, Copy, Dialog, Message, Session, Tap
from signoff.ports import AdapterInfo, Clock, Store
from signoff.press import Press
from signoff.refusals import Refusals
from signoff.rows import joined, message_key, session_key
from signoff.tokens import Signer, TokenParts
from signoff.wording import agent_name, people, safe_name, t

DECISIONS = frozenset({"once", "once_all", "session", "always", "30m", "deny", "confirm", "typed", *REASONS})


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
        """Answer a press. A store that cannot save raises nothing: the answer says so."""
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
        """Find what the button stands on, and whether this person may press it."""
        copy = await self._store.get(Copy, parts.copy_id)
        if copy is None or copy.profile != profile:
            return await self._refuse(profile, tap, "unknown", None, t("tap.unknown"))
        if copy.kind == "catch_up" and self._catch_ups is not None:
            about, answer = await self._catch_ups.tapped(copy, tap, parts)
            return await self._may_not(profile, tap, answer, about) if isinstance(answer, Refused) else answer
        row = None
        if copy.request_id is not None:
            row = await self._broker.get(profile, copy.request_id)
        elif not is_digests(copy) and copy.kind != "drill":
            return await self._refuse(profile, tap, "unknown", None, t("tap.unknown"))
        allowed = person_may(self._broker.profile(profile), tap.person, "decide", None, "button")
        if isinstance(allowed, Refused):
            return await self._may_not(profile, tap, allowed, row)
        button = Button(
            copy_id=parts.copy_id,
            revision=parts.revision,
            message_id=tap.message_id,
            order=tap.order,
            user_id=tap.person.user_id,
            user_name=tap.person.name,
        )
        press = Press(profile=profile, tap=tap, button=button, choice=parts.choice, info=info, actor=allowed.actor)
        if row is not None:
            return await (self._decide(press, row, copy) if press.choice in DECISIONS else self._open(press, row))
        if copy.kind == "drill":
            return await drills.tapped(self._store, copy.copy_id, tap, allowed)
        return await self._digests.tap(press)

    # --- decisions ---------------------------------------------------------------------------

    async def _decide(self, press: Press, row: ApprovalRequest, copy: Copy) -> Answer:
        choice, reason, hidden = press.choice, None, 0
        if choice in REASONS:
            choice, reason = "deny", t(f"reason.{choice}")
        elif choice == "typed":
            choice, (reason, hidden) = "deny", reason_cut(press.tap.text or "")
        elif choice == "confirm" and copy.choice == RUN_AGAIN:
            meaning, told = await self._kept.run_again(press)
            return told or await self._not_done(press, meaning)
        elif choice == "confirm":
            choice = copy.choice or "once"
        elif self._needs_confirmation(row, choice):
            return await self._confirm(press)
        answer = await self._ruled(press, row, choice, reason or None)
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

    async def _confirm(self, press: Press) -> Answer:
        told = {"always": "tap.always_first", RUN_AGAIN: "tap.kept.run_again_first"}
        meaning = await self._panel(press, "confirm", press.choice)
        if meaning.panel is not None:
            return await self._opened(meaning, t(told.get(press.choice, "tap.critical_first")))
        return await self._not_done(press, meaning)

    async def _ruled(self, press: Press, row: ApprovalRequest, choice: str, reason: str | None) -> Answer:
        plain = self._broker.ruling(press.profile, choice, press.actor, reason=reason)
        ruling = self._broker.ruled_for(row, plain)
        try:
            meaning, decided = await self._store.transact(
                partial(tapping.press, profile=press.profile, button=press.button, ruling=ruling)
            )
        except ChoiceNotOffered as error:
            return Answer(not_offered(error))
        if meaning.status == "unknown" and meaning.copy is None:
            return await self._moved(press, row)
        if decided is None:
            return await self._not_done(press, meaning)
        if decided.how == "lost":
            return await self._lost(press, decided.row)
        return Answer(done_answer(decided, self._clock.now(), press.prefix))

    # --- everything else ---------------------------------------------------------------------

    async def _open(self, press: Press, row: ApprovalRequest) -> Answer:
        """Do what decides nothing by itself: open a panel, wait longer, undo, settle what may have run."""
        choice = press.choice
        if choice == "undo":
            return await self._undo(press, row)
        if choice == DID_RUN:
            meaning, told = await self._kept.did_run(press)
            return told or await self._not_done(press, meaning)
        if choice == RUN_AGAIN:
            return await self._confirm(press)
        if choice == ASK_AGAIN:
            lifted = await self._broker.let_ask(press.profile, row.request_id, press.actor)
            return Answer(t("tap.may_ask_again") if lifted is not None else t("tap.unknown"))
        if choice == "close":
            return await self._close(press)
        if choice == "open":
            meaning, opened = await self._digests.open(press)
            return opened or await self._not_done(press, meaning)
        if choice == "wait":
            return await self._wait_longer(press)
        if choice == "type" and press.info.dialogs:
            return await self._ask(press, row)
        meaning = await self._panel(press, choice, None)
        if meaning.copy is None:
            return await self._moved(press, row)
        return await self._late(press, meaning) or await self._opened(meaning, "")

    async def _close(self, press: Press) -> Answer:
        meaning = await self._store.transact(partial(tapping.close, profile=press.profile, button=press.button))
        self._dispatcher.wake()
        closed = Answer(t("panel.closed"))
        if meaning.status == "live" and meaning.row is not None and unsure(meaning.row):
            return closed
        return await self._late(press, meaning) or closed

    async def _ask(self, press: Press, row: ApprovalRequest) -> Answer:
        """Ask for a reason in a dialog, which sends it back under a token of its own."""
        button, place = press.button, press.tap.destination
        meaning = await self._store.transact(partial(tapping.read, profile=press.profile, button=button))
        late = await self._late(press, meaning)
        if late is not None:
            return late
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

    async def _panel(self, press: Press, panel: str, choice: str | None) -> Meaning:
        change = partial(
            tapping.open_panel,
            profile=press.profile,
            button=press.button,
            panel=panel,
            limit_s=self._broker.profile(press.profile).approvals.max_timeout_s,
            choice=choice,
            private=press.info.private_panels,
        )
        meaning = await self._store.transact(change)
        self._dispatcher.wake()
        return meaning

    async def _wait_longer(self, press: Press) -> Answer:
        profile, button = press.profile, press.button
        limit_s = self._broker.profile(profile).approvals.max_timeout_s
        before = await self._store.transact(partial(tapping.read, profile=profile, button=button))
        late = await self._late(press, before)
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

    async def _undo(self, press: Press, row: ApprovalRequest) -> Answer:
        try:
            await self._broker.undo(press.profile, row.request_id, press.actor)
        except NotPermitted:
            return Answer(t("tap.undo_not_yours", person=people(row.decided_by)))
        except UndoTooLate:
            fresh = await self._broker.get(press.profile, row.request_id)
            started = fresh.execution.claimed_at
            if started is None:
                return Answer(t("tap.undo_ended"))
            when = clock_text(started, now=self._clock.now())
            return Answer(t("tap.undo_late", agent=agent_name(fresh), clock=when, prefix=press.prefix))
        return Answer(t("tap.undone"))

    # --- what means nothing any more ---------------------------------------------------------

    async def _late(self, press: Press, meaning: Meaning) -> Answer | None:
        """The answer for a button that means nothing any more, which is recorded; None for a live one of a pending
        request."""
        row = meaning.row
        if meaning.status == "replaced" and row is not None:
            why, answer = "replaced", Answer(t("tap.replaced", id=row.short_id))
        elif meaning.status == "others":
            opener = _opener(meaning.copy) if meaning.copy is not None else ""
            why, answer = "others_panel", Answer(t("tap.others_panel", person=opener))
        elif meaning.status == "unknown" or row is None:
            why, answer = "unknown", Answer(t("tap.unknown"))
        elif row.outcome is not None:
            return await self._lost(press, row)
        else:
            return None
        await self._note(press.profile, press.tap, why, row)
        return answer

    async def _not_done(self, press: Press, meaning: Meaning) -> Answer:
        """The answer where the button did nothing."""
        return await self._late(press, meaning) or Answer(t("tap.unknown"))

    async def _lost(self, press: Press, row: ApprovalRequest) -> Answer:
        """Somebody or something was first."""
        await self._note(press.profile, press.tap, "late", row)
        now, person = self._clock.now(), press.tap.person
        told = lost_answer(row, person, now, platform_title=self._maker.title, prefix=press.prefix)
        return Answer(told, lost=True)

    async def _moved(self, press: Press, row: ApprovalRequest) -> Answer:
        """The token stands on another message than the one that it was made for."""
        return await self._refuse(press.profile, press.tap, "moved", row, t("tap.unknown"))

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
            place, why = message.destination, allowed.why
            await self._refusals.record(profile, message.person, place, why=why, operation="decide", row=row)
            return t("reply.not_allowed", user=message.person.user_id)
        reason, hidden = reason_cut(message.text)
        decided = await self._broker.decide(
            profile, row.request_id, "deny", allowed.actor, reason=reason or None, copy_id=prompt.parent_copy
        )
        now, prefix = self._clock.now(), info.prefix_at(message.destination, message.reply_to)
        if decided.how == "lost":
            return lost_answer(decided.row, message.person, now, platform_title=self._maker.title, prefix=prefix)
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

    async def _may_not(self, profile: str, tap: Tap, refused: Refused, row: ApprovalRequest | None) -> Answer:
        """This person may not press it."""
        user = tap.person.user_id
        if refused.why == "nobody":
            text = t("tap.nobody_may", user=user, platform=tap.destination.platform)
        else:
            text = t("tap.guest") if refused.why == "guest" else t("tap.may_not", user=user)
        return await self._refuse(profile, tap, refused.why, row, text)

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
