"""What a form of the pages does: decide one question or all that are listed, take back, wait longer.

A form carries the digest of the action it stood beside, and the followers it counted. It decides what it showed: where
the question has gone over to another card, or its action is another one, it decides nothing and says so.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct

from signoff.actions import one_line
from signoff.answers import done_answer, lost_answer
from signoff.broker import Broker
from signoff.cards import REASONS, reason_cut
from signoff.changes import deciding
from signoff.changes.deciding import Decided, Ruling
from signoff.changes.tapping import WAIT_LONGER_S
from signoff.console.cards import needs_second_step, stays
from signoff.console.reading import Reading
from signoff.durations import clock as clock_text
from signoff.elicitation import from_texts
from signoff.elicitation_form import fields_to_show
from signoff.errors import ChoiceNotOffered, InvalidInput, NotPermitted, RequestNotFound, UndoTooLate
from signoff.model import Actor, ApprovalRequest, Elicitation, Person, replace
from signoff.ports import Tx
from signoff.rows import request_key
from signoff.server.core import Core
from signoff.wording import agent_name, answer_word, people, person_name, t

PREFIX = "/"


class Asked(Struct, frozen=True, kw_only=True):
    """One answer, as a form gives it."""

    request_id: str
    choice: str
    digest: str
    counted: int = 0
    upto: int = 0
    reason: str = ""
    reason_choice: str = ""
    confirmed: bool = False
    filled: tuple[tuple[int, str], ...] = ()
    """What was filled into the fields of a server's question, by their places: of a choice of several each option."""


class Told(Struct, frozen=True, kw_only=True):
    """What the person is told: `done`, `late` (something else was first), `refused`, or `confirm` (a second step)."""

    how: str
    text: str = ""
    row: ApprovalRequest | None = None


class Answering:
    """The use cases behind the forms."""

    def __init__(self, core: Core, reading: Reading) -> None:
        self._core = core
        self._reading = reading

    @property
    def _broker(self) -> Broker:
        return self._core.broker

    async def decide(self, profile: str, asked: Asked, actor: Actor) -> Told:
        """Decide one question. Raises `RequestNotFound`."""
        row = await self._broker.get(profile, asked.request_id)
        replaced = await self._replaced(row, asked.digest)
        if replaced is not None:
            return replaced
        choice, reason, hidden = _reason(asked)
        if row.outcome is None and needs_second_step(row, choice) and not asked.confirmed:
            return Told(how="confirm", row=row)
        try:
            decided = await self._decided(row, choice, reason, actor, asked)
        except (ChoiceNotOffered, InvalidInput) as error:
            return Told(how="refused", text=error.message, row=row)
        if decided.how == "lost":
            return Told(how="late", text=self._lost(decided.row, actor), row=decided.row)
        text = done_answer(decided, self._core.clock.now(), PREFIX)
        if hidden:
            text = f"{text} {t('tap.done.reason_too_long', count=hidden)}"
        return Told(how="done", text=text, row=decided.row)

    async def _replaced(self, row: ApprovalRequest, digest: str) -> Told | None:
        """The answer for a form that stood beside something else than what waits now."""
        if row.digest != digest:
            return Told(how="late", text=t("tap.changed_question", id=row.short_id), row=row)
        if row.leader_id is None or row.outcome is not None:
            return None
        leader = await self._reading.get(row.profile, row.leader_id)
        return Told(how="late", text=t("tap.replaced", id=(row if leader is None else leader).short_id), row=row)

    async def _decided(self, row: ApprovalRequest, choice: str, reason: str, actor: Actor, asked: Asked) -> Decided:
        ruling = self._ruling(row, choice, actor, reason=reason, upto=asked.upto, counted=asked.counted)
        ruling = replace(ruling, content=_content(row, choice, asked.filled))
        change = partial(deciding.decide, profile=row.profile, request_id=row.request_id, ruling=ruling)
        return await self._core.store.transact(change)

    def _ruling(
        self, row: ApprovalRequest, choice: str, actor: Actor, *, reason: str, upto: int, counted: int
    ) -> Ruling:
        ruling = self._broker.ruling(row.profile, choice, actor, reason=reason or None, upto=upto)
        return replace(self._broker.ruled_for(row, ruling), counted=counted)

    def _lost(self, row: ApprovalRequest, actor: Actor) -> str:
        yours = any(by.principal == actor.principal and actor.principal for by in row.decided_by)
        person = None
        if yours and row.decided_by:
            by = row.decided_by[-1]
            person = Person(platform=by.platform or "", user_id=by.user_id or "")
            if by.platform is None and row.stages is None:
                return self._yours(row)
        return lost_answer(row, person, self._core.clock.now(), platform_title=self._reading.title, prefix=PREFIX)

    def _yours(self, row: ApprovalRequest) -> str:
        now = self._core.clock.now()
        return t(f"tap.already_yours_{answer_word(row)}", clock=clock_text(row.decided_at or now, now=now))

    # --- other forms -------------------------------------------------------------------------

    async def undo(self, profile: str, request_id: str, actor: Actor, *, operator: bool) -> Told:
        """Take an approval back before it starts. Raises `RequestNotFound`."""
        try:
            row = await self._broker.undo(profile, request_id, actor, any_person=operator)
        except NotPermitted:
            row = await self._broker.get(profile, request_id)
            return Told(how="refused", text=t("tap.undo_not_yours", person=people(row.decided_by)), row=row)
        except UndoTooLate:
            row = await self._broker.get(profile, request_id)
            started = row.execution.claimed_at
            if started is None:
                return Told(how="late", text=t("tap.undo_ended"), row=row)
            when = clock_text(started, now=self._core.clock.now())
            return Told(how="late", text=t("console.told.undo_late", agent=agent_name(row), clock=when), row=row)
        return Told(how="done", text=t("tap.undone"), row=row)

    async def wait(self, profile: str, request_id: str, actor: Actor) -> Told:
        """Let a question wait 15 min longer. Raises `RequestNotFound`."""
        limit_s = self._broker.profile(profile).approvals.max_timeout_s
        before = await self._broker.get(profile, request_id)

        def change(tx: Tx) -> ApprovalRequest:
            row = tx.get(ApprovalRequest, request_key(profile, request_id))
            if row is None:
                raise RequestNotFound
            if row.outcome is not None or row.expires_at is None:
                return row
            left_s = (row.expires_at - tx.now).total_seconds()
            return deciding.extend(tx, profile, request_id, left_s + WAIT_LONGER_S, limit_s=limit_s, once=False)

        row = await self._core.store.transact(change)
        if row.outcome is not None:
            return Told(how="late", text=self._lost(row, actor), row=row)
        if row.expires_at is None:
            return Told(how="refused", text=t("tap.extend_none"), row=row)
        until = clock_text(row.expires_at, now=self._core.clock.now())
        key = "tap.extended" if row.expires_at != before.expires_at else "tap.extend_limit"
        return Told(how="done", text=t(key, clock=until), row=row)

    # --- all that are listed -----------------------------------------------------------------

    async def all(self, profile: str, choice: str, listed: list[Asked], actor: Actor) -> list[str]:
        """Answer every question of a list, in one commit; a line for each says what became of it."""

        def change(tx: Tx) -> list[tuple[ApprovalRequest | None, str, Decided | None]]:
            return [(*self._one(tx, profile, choice, each, actor),) for each in listed]

        done = await self._core.store.transact(change, bulk=True)
        lines = [self._line(row, why, decided) for row, why, decided in done if row is not None]
        runs = [0 if each is None or each.how != "won" else each.row.runs for _, _, each in done]
        good = sum(runs)
        # A denial also means those that joined a card since it was listed.
        count = sum(max(1 + asked.counted, ended) for asked, ended in zip(listed, runs, strict=True))
        now = self._core.clock.now()
        who, when = person_name(actor), clock_text(now, now=now)
        if choice == "deny":
            return [t("all.title_deny", person=who, clock=when, denied=good, count=count), *lines]
        return [t("all.title_approve", person=who, clock=when, approved=good, count=count), *lines]

    def _one(
        self, tx: Tx, profile: str, choice: str, asked: Asked, actor: Actor
    ) -> tuple[ApprovalRequest | None, str, Decided | None]:
        """The row, why it was left (empty: it was answered), and the decision."""
        row = tx.get(ApprovalRequest, request_key(profile, asked.request_id))
        if row is None or row.digest != asked.digest or (row.leader_id is not None and row.outcome is None):
            return row, "not_shown", None
        if row.outcome is not None:
            return row, "ended", None
        why = stays(row) if choice != "deny" else None
        if why is not None:
            return row, why, None
        word = "once_all" if choice != "deny" and asked.counted and row.waiters else choice
        ruling = self._ruling(row, word, actor, reason="", upto=asked.upto, counted=asked.counted)
        try:
            return row, "", deciding.decide(tx, profile, row.request_id, ruling)
        except ChoiceNotOffered:
            return row, "own", None

    def _line(self, row: ApprovalRequest, why: str, decided: Decided | None) -> str:
        name = row.short_id
        if decided is not None and decided.how == "won":
            word = answer_word(decided.row)
            runs = decided.row.runs
            many = {"count": runs} if runs > 1 else {}
            return t(f"all.{word}{'_runs' if many else ''}", id=name, action=one_line(row.action), **many)
        if decided is not None and decided.how == "vote":
            agreed = sum(vote.choice != "deny" for vote in decided.row.votes)
            return t("all.left_votes", id=name, agreed=agreed, needed=row.threshold)
        ended = decided.row if decided is not None else row
        if why in ("", "ended"):
            return t("all.left_ended", id=name, outcome=t(f"outcome_word.{answer_word(ended)}"))
        return t(f"console.left.{why}", id=name)


def _content(row: ApprovalRequest, choice: str, filled: tuple[tuple[int, str], ...]) -> dict[str, Any] | None:
    """What was filled into the form of a server's question. Raises `InvalidInput` naming the field."""
    if not isinstance(row.action, Elicitation) or choice == "deny":
        return None
    texts: dict[int, list[str]] = {}
    for place, text in filled:
        texts.setdefault(place, []).append(text)
    fields = enumerate(fields_to_show(row.action.schema))
    content = {field.name: from_texts(field, texts.get(place, ())) for place, field in fields}
    return {name: value for name, value in content.items() if value is not None}


def _reason(asked: Asked) -> tuple[str, str, int]:
    """The choice with its reason, and how many characters of it were cut. Giving a reason is denying."""
    if asked.reason_choice in REASONS:
        return "deny", t(f"reason.{asked.reason_choice}"), 0
    if asked.choice == "deny" and asked.reason:
        text, hidden = reason_cut(asked.reason)
        return "deny", text, hidden
    return asked.choice, "", 0
