"""The main use case: a question is asked, decided once, waited for, claimed and reported.

Every method checks its input, then runs one change of `signoff.changes` through the store. Nothing here holds a lock
or a decision: the row does.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from signoff import aside, checking, coverage, elicitation
from signoff.actions import one_line
from signoff.changes import asking, claiming, deciding, ending, expiring, grants, repeats
from signoff.changes.common import load_request
from signoff.changes.deciding import Decided, Ruling
from signoff.checking import Checked
from signoff.clipping import cut_reason
from signoff.drafting import Ask, Drafts, check_words, is_choice, offered_kinds
from signoff.errors import (
    Busy,
    ChoiceNotOffered,
    ClaimRefused,
    Conflict,
    InvalidInput,
    NotPermitted,
    RequestNotFound,
    StoreError,
)
from signoff.gate_pass import read_pass
from signoff.ids import REQUEST_ID, is_short, new_id
from signoff.model import (
    Action,
    Actor,
    ApprovalRequest,
    Cause,
    Grant,
    Operand,
    Session,
    replace,
)
from signoff.pacing import Pace
from signoff.ports import Clock, Store, Tx
from signoff.reviewing import Review, Reviews, reviewed
from signoff.rows import joined, request_key, turn_key
from signoff.settings import Profile
from signoff.waiters import Waiters

__all__ = ["Ask", "Asked", "Broker", "Recollect", "is_choice", "offered_kinds", "same_person"]

log = logging.getLogger(__name__)

Recollect = Callable[[Action], Awaitable[tuple[Operand, ...] | None]]
"""Reads the files an action names, as they are now."""

MAX_JUDGED = 20
"""So often an action is judged again because its session changed meanwhile. Once is rare."""


class Asked(Struct, frozen=True):
    """The stored record, and whether the same question was stored before."""

    row: ApprovalRequest
    repeated: bool = False


class Broker:
    """Submit, decide, cancel, wait, claim, report and undo. `served` names a profile's connected platforms."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        profiles: Mapping[str, Profile],
        served: Callable[[str], AbstractSet[str]],
        reviews: Reviews | None = None,
    ) -> None:
        """`reviews` is needed where a profile's mode is `smart`."""
        self._store = store
        self._reviews = reviews or Reviews(profiles)
        self._pace = Pace()
        self._asking: Counter[str] = Counter()
        """How many callers of `ask` a question has, by the key of its row."""
        self.waiters = Waiters(store, clock)
        self.drafts = Drafts(store, profiles, served, self.waiters.now)

    def profile(self, name: str) -> Profile:
        """The settings of a profile; raises `InvalidInput` for an unknown one."""
        return self.drafts.profile(name)

    # --- asking ------------------------------------------------------------------------------

    async def submit(self, profile_name: str, ask: Ask) -> Asked:
        """Validate, judge, route and insert; returns the record, perhaps already ended.

        Raises `InvalidInput`, `SessionNotFound`, `TurnNotFound`, `IdempotencyConflict`, `TooManyKept`,
        `GatePassRefused`, `Busy`.
        """
        return await self._submit(profile_name, ask, [])

    async def _submit(self, profile_name: str, ask: Ask, taken: list[bool]) -> Asked:
        """As `submit`; `taken` is filled once the row is this question, which also the caller's cancellation does not
        prevent."""
        profile = self.profile(profile_name)
        await self._pace.turn()
        check_words(ask)
        gate_pass = read_pass(ask.gate_token) if ask.gate_token is not None else None
        digest = await aside.digested(ask.action, ask.host)
        review: Review | None = None
        stale = 0
        while stale < MAX_JUDGED:
            draft, judged = await self.drafts.draft(profile, ask, digest)
            if review is not None:
                draft = reviewed(draft, review)
            change = partial(
                asking.ask,
                draft=draft,
                judged=judged,
                claim_within_s=profile.approvals.claim_within_s,
                gate_pass=gate_pass,
                may_keep=ask.may_keep,
            )
            change = partial(_taken, change=expiring.used(change, profile, ask.session_id), taken=taken)
            try:
                asked = await self._store.transact(change)
            except asking.StaleFacts:
                stale += 1
                continue
            except asking.ReviewFirst:
                review = await self._reviews.review(draft)
                continue
            return Asked(asked.row, asked.repeated)
        raise Busy

    async def ask(
        self, profile_name: str, ask: Ask, *, recollect: Recollect | None = None, pass_sha256: str = ""
    ) -> ApprovalRequest:
        """Submit and wait for the end; an approval is claimed inside, so `may_run` of the answer is permission.

        `recollect` reads the action's files again for the claim; without it, an action with files is refused as
        changed. `pass_sha256` is as for `claim`. When the caller is cancelled the question is withdrawn, or what
        it claimed is reported as not run; a question that another caller also asks stands. Raises `ClaimRefused` when
        the same question was asked twice and the other caller has started it.
        """
        request_id = ask.request_id or new_id("req")
        key = request_key(profile_name, request_id)
        future = self.waiters.register(key)
        taken: list[bool] = []
        try:
            row = (await self._submit(profile_name, replace(ask, request_id=request_id), taken)).row
            del ask  # this frame lives as long as the question waits, and the store has both
            if row.outcome is None:
                wait = self.waiters.waiting(turn_key(profile_name, row.turn_id) if row.turn_id else None)
                del row
                with wait, self._asked(key):
                    row = await future
        except asyncio.CancelledError:
            await self._interrupted(profile_name, request_id, taken)
            raise
        finally:
            self.waiters.forget(key, future)
        if row.outcome != "approved":
            return row
        claim_id = new_id("claim")
        try:
            with self._asked(key):
                return await self._claim_once(row, claim_id, recollect, pass_sha256)
        except asyncio.CancelledError:
            await self._interrupted(profile_name, request_id, taken, claim_id)
            raise

    @contextmanager
    def _asked(self, key: str) -> Iterator[None]:
        """While inside, the question has this caller."""
        self._asking[key] += 1
        try:
            yield
        finally:
            self._asking[key] -= 1
            if not self._asking[key]:
                del self._asking[key]

    async def _claim_once(
        self, row: ApprovalRequest, claim_id: str, recollect: Recollect | None, pass_sha256: str
    ) -> ApprovalRequest:
        operands = await recollect(row.action) if recollect is not None else None
        try:
            return await self.claim(row.profile, row.request_id, row.digest, claim_id, operands, pass_sha256)
        except ClaimRefused:
            row = await self.get(row.profile, row.request_id)
            if row.may_run:
                raise  # it is somebody else's claim, which is no permission for this caller
            return row

    async def _interrupted(
        self, profile_name: str, request_id: str, taken: list[bool], claim_id: str | None = None
    ) -> None:
        """The caller will run nothing: not what waits, what is approved, nor what it claimed under that id. What was
        never `taken` is another's question under the same id."""
        shared = self._asking[request_key(profile_name, request_id)] > 0
        change = partial(
            _given_up, profile=profile_name, request_id=request_id, claim_id=claim_id, taken=taken, shared=shared
        )
        try:
            await self._store.transact(change)
        except RequestNotFound:
            return
        except StoreError as error:  # the caller was cancelled, and is to hear that and nothing else
            log.error("request %s could not be withdrawn: %s", request_id, error)

    async def check(
        self,
        profile_name: str,
        action: Action,
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        agent: str | None = None,
        host: str | None = None,
        undeclared: Session | None = None,
    ) -> Checked:
        """What would become of an action if it were asked for now; nothing is asked and nothing stored.

        `host` is the one it would run on: a denial holds for that one. Without a session it is judged as if somebody
        could answer. `undeclared` stands for the session where nobody declared it yet. Raises `InvalidInput`,
        `SessionNotFound`.
        """
        profile = self.profile(profile_name)
        await self._pace.turn()
        if session_id is None:
            alone = partial(checking.alone, action, profile, self.waiters.now(), agent=agent)
            return await aside.judged(action, alone)
        ask = Ask(action=action, session_id=session_id, turn_id=turn_id, agent=agent, host=host)
        check_words(ask)
        return await checking.in_session(self.drafts, self._store, profile, ask, session=undeclared)

    # --- reading -----------------------------------------------------------------------------

    async def get(self, profile: str, request_id: str) -> ApprovalRequest:
        """The record by its id; raises `RequestNotFound`."""
        row = await self._store.get(ApprovalRequest, request_key(profile, request_id))
        if row is None:
            raise RequestNotFound
        return row

    async def find(self, profile: str, reference: str) -> ApprovalRequest:
        """The record by its id or, in any case, its short id (the newest that bears it).

        What looks like a short id is one first: ids are chosen by agents, and one that was spelt like the short id of
        another question would draw to itself the answer that a person types to that one. Raises `RequestNotFound`.
        """
        if is_short(reference):
            rows = await self._store.find(ApprovalRequest, "short", joined(profile, reference.upper()))
            if rows:
                return rows[-1]
        return await self.get(profile, reference)

    async def pending(
        self, profile: str, *, limit: int | None = 200, after: str | None = None
    ) -> list[ApprovalRequest]:
        """What waits in the whole profile, oldest first; with `limit` None all of it."""
        return await self._store.find(ApprovalRequest, "pending_profile", profile, limit=limit, after=after)

    async def wait(self, profile: str, request_id: str, timeout_s: float | None = None) -> ApprovalRequest:
        """The record once it has ended, or as it stands after `timeout_s` seconds. Raises `RequestNotFound`."""
        key = request_key(profile, request_id)
        future = self.waiters.register(key)
        try:
            row = await self.get(profile, request_id)
            if row.outcome is not None:
                return row
            wait = self.waiters.waiting(turn_key(profile, row.turn_id) if row.turn_id else None)
            del row  # as above
            with wait:
                if timeout_s is None:
                    return await future
                done, _ = await asyncio.wait({future}, timeout=timeout_s)
                return future.result() if done else await self.get(profile, request_id)
        finally:
            self.waiters.forget(key, future)

    def keep_turn(self, profile: str, turn_id: str) -> AbstractAsyncContextManager[None]:
        """While inside, the turn counts as waited for, so that its lease does not lapse."""
        return self.waiters.keeping(turn_key(profile, turn_id))

    # --- deciding ----------------------------------------------------------------------------

    async def decide(
        self,
        profile_name: str,
        request_id: str,
        choice: str,
        by: Actor,
        *,
        reason: str | None = None,
        copy_id: str | None = None,
        upto: int | None = None,
        content: dict[str, Any] | None = None,
    ) -> Decided:
        """Apply one authorised answer. `how` of the result is `lost` when something else had ended the request.

        A server's question is also answered with `accept` and `decline`, and accepted with the `content` of its fields.
        Raises `RequestNotFound`, `ChoiceNotOffered`, `InvalidInput`.
        """
        row = await self.get(profile_name, request_id)
        choice = elicitation.choice_of(row.action, choice)
        ruling = self.ruling(profile_name, choice, by, reason=reason, copy_id=copy_id, upto=upto)
        ruling = replace(self.ruled_for(row, ruling), content=content)
        change = partial(deciding.decide, profile=profile_name, request_id=request_id, ruling=ruling)
        return await self._store.transact(change)

    def ruling(
        self,
        profile_name: str,
        choice: str,
        by: Actor,
        *,
        reason: str | None = None,
        copy_id: str | None = None,
        upto: int | None = None,
    ) -> Ruling:
        """An answer with the profile's periods, its reason cut; `ruled_for` adds what depends on the request."""
        if not is_choice(choice):
            raise ChoiceNotOffered(
                f"{choice!r} is not a choice. Choices: once, once_all, session, always, deny, or a time box "
                "from 1m to 24h such as 30m.",
                param="choice",
            )
        return Ruling(
            choice=choice,
            by=by,
            reason=None if reason is None else cut_reason(reason).text,
            copy_id=copy_id,
            upto=upto,
            claim_within_s=self.profile(profile_name).approvals.claim_within_s,
        )

    def ruled_for(self, row: ApprovalRequest, ruling: Ruling) -> Ruling:
        """The ruling with the request's own facts: what its profile offers for this kind now, its masked text."""
        allowed = offered_kinds(self.profile(row.profile), row.action)
        shown = "" if ruling.choice in ("once", "once_all", "deny") else one_line(row.action)
        exact = coverage.exact_text(row.action) if ruling.choice == "always" else None
        return replace(ruling, allowed=allowed, shown=shown, exact=exact)

    async def cancel(
        self, profile: str, request_id: str, cause: Cause, by: Actor | None, *, agent: str | None = None
    ) -> ApprovalRequest:
        """Withdraw a pending question, or take an unclaimed approval back; ended ones are returned as they are."""

        def change(tx: Tx) -> ApprovalRequest:
            row = load_request(tx, profile, request_id)
            if agent is not None and row.agent != agent:
                raise RequestNotFound
            return _withdrawn(tx, row, cause, by)

        return await self._store.transact(change)

    async def let_ask(self, profile: str, request_id: str, by: Actor) -> ApprovalRequest | None:
        """End a person's denial, so that the action is asked anew; it decides nothing. None where nobody denied it.

        Raises `RequestNotFound`.
        """
        return await self._store.transact(partial(repeats.let_ask, profile=profile, request_id=request_id, by=by))

    async def undo(self, profile: str, request_id: str, by: Actor, *, any_person: bool = False) -> ApprovalRequest:
        """Take an approval back before its claim. Only who decided may, or an operator (`any_person`).

        Raises `NotPermitted`, `UndoTooLate`, `RequestNotFound`.
        """
        row = await self.get(profile, request_id)
        if not any_person and not any(same_person(by, decider) for decider in row.decided_by):
            raise NotPermitted("Only who approved this can undo it.", row=row)
        return await self._store.transact(partial(deciding.undo, profile=profile, request_id=request_id, by=by))

    # --- running -----------------------------------------------------------------------------

    async def claim(
        self,
        profile: str,
        request_id: str,
        digest: str,
        claim_id: str,
        operands: tuple[Operand, ...] | None = None,
        pass_sha256: str = "",
    ) -> ApprovalRequest:
        """Start the action, once. `pass_sha256` is the hash of a token of the tool gate for this run. Raises
        `ClaimRefused` with its code, `RequestNotFound`."""
        if not REQUEST_ID.fullmatch(claim_id):
            raise InvalidInput("claim_id must be 1 to 64 of A-Z, a-z, 0-9, _ and -.", param="claim_id")
        change = partial(
            claiming.claim,
            profile=profile,
            request_id=request_id,
            digest=digest,
            claim_id=claim_id,
            operands=operands,
            pass_sha256=pass_sha256,
        )
        row = await self._store.transact(change)
        if row.execution.claim_id != claim_id:
            refused = claiming.refusal(row)
            raise refused or Conflict(row=row)
        return row

    async def result(
        self,
        profile: str,
        request_id: str,
        status: Literal["succeeded", "failed", "not_run"],
        exit_code: int | None = None,
    ) -> ApprovalRequest:
        """Report how a claimed action went. Raises `Conflict`, `RequestNotFound`."""
        change = partial(claiming.result, profile=profile, request_id=request_id, status=status, exit_code=exit_code)
        return await self._store.transact(change)

    # --- grants ------------------------------------------------------------------------------

    async def grants(self, profile: str) -> list[Grant]:
        """All live grants of a profile, oldest first."""
        rows = await self._store.find(Grant, "live_profile", profile)
        now = self.waiters.now()
        return [row for row in rows if grants.in_force(row, now)]

    async def revoke(self, profile: str, grant_id: str, by: Actor) -> Grant:
        """End a grant at once. Raises `GrantNotFound`."""
        change = partial(grants.revoke, profile=profile, grant_id=grant_id.upper(), by=by)
        return await self._store.transact(change)


def _withdrawn(tx: Tx, row: ApprovalRequest, cause: Cause, by: Actor | None) -> ApprovalRequest:
    """The row after what is pending, or approved and unclaimed, was taken back; others as they are."""
    if row.outcome is None:
        return ending.withdraw(tx, row, cause, by)
    if row.outcome == "approved" and row.execution.state == "none":
        return claiming.withdraw_approval(tx, row, cause, by)
    return row


def _taken(tx: Tx, *, change: Callable[[Tx], asking.Asked], taken: list[bool]) -> asking.Asked:
    """Note in `taken` that this question was stored, or was before."""
    asked = change(tx)
    taken.append(True)
    return asked


def _given_up(
    tx: Tx, *, profile: str, request_id: str, claim_id: str | None, taken: list[bool], shared: bool
) -> ApprovalRequest:
    """The row after its asker was cancelled, which had claimed it under that id or not come so far."""
    row = load_request(tx, profile, request_id)
    if not taken:
        return row
    if claim_id is not None and row.execution.claim_id == claim_id and row.execution.state in ("claimed", "unknown"):
        return claiming.result(tx, profile, request_id, status="not_run", exit_code=None)
    return row if shared else _withdrawn(tx, row, "turn_interrupted", None)


def same_person(one: Actor, other: Actor) -> bool:
    """Whether two deeds are of one person: the same principal, else the same account."""
    if one.principal or other.principal:
        return one.principal == other.principal
    return (one.platform, one.user_id) == (other.platform, other.user_id)
