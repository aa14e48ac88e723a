"""An action is kept for a later yes, and run by an executor once somebody gave it: at most once, else `unknown`.

The asker's own record ends as `staged` and never changes. Beside it, in the same commit, stands the question about the
kept action: a request of its own, without a turn, that people answer like any other. `stages` leads from it to the
staged one, `kept_as` back.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from signoff.changes import claiming, deciding
from signoff.changes.bypassing import root_of
from signoff.changes.common import (
    FINAL,
    NEW,
    OTHER,
    RUNNING_AFTER_S,
    close_panel,
    copies_of,
    emit,
    fresh_short,
    load_request,
    moved,
    plus,
    show,
)
from signoff.changes.copies import new_card, new_word
from signoff.changes.deciding import Ruling
from signoff.errors import ActionRefused
from signoff.ids import new_id, row_id
from signoff.model import Actor, ApprovalRequest, Copy, Destination, Execution, Face, Operand, Session, replace
from signoff.ports import Tx
from signoff.presence import JOBS
from signoff.rows import session_key

CHOICES = ("once", "deny")
"""What a kept action can be answered with: it is one call, so nothing standing can come of it."""
LEASE_S = 60.0
"""A claim of an executor holds this long and is renewed while it runs; after that its claimant is taken for dead."""

LOST_CLAIMANT = "executor_stopped"
"""The cause of an execution whose claimant stopped while it ran."""
NOT_STARTED = "not_started_in_time"
"""The cause of an execution that lapsed: in the time that the question had, no gateway started it."""

TakenBack = Literal["forbidden_now", "executor_changed"]
"""Why settings that changed since take an approval away."""

State = Literal[
    "waits", "approved", "running", "succeeded", "failed", "not_run", "unknown", "denied", "expired", "gone"
]
"""Where a kept action stands, in one word; `gone`: withdrawn, or taken back before it started."""


def lost_ids(row: ApprovalRequest) -> str:
    """A run of which nobody knows how it ended, for the log."""
    return f"{row.short_id} ({row.request_id}) of profile {row.profile}, executor {row.executor}: {row.execution.cause}"


class Ran(Struct, frozen=True, kw_only=True):
    """What an executor says of one run. `cause` says why it did not start, or why nobody knows how it ended."""

    state: Literal["succeeded", "failed", "not_run", "unknown"]
    exit_code: int | None = None
    cause: str | None = None


def stage(tx: Tx, draft: ApprovalRequest) -> ApprovalRequest:
    """The staged row of `draft`, not stored yet, with the question about it stored beside it and its cards queued.

    The draft names the executor, the places of the cards and, as `timeout_s`, how long the question stands; its
    window runs from now on, whether a card could be sent or not.
    """
    kept = ApprovalRequest(
        request_id=new_id("kept"),
        profile=draft.profile,
        short_id=fresh_short(tx, draft.profile),
        session_id=draft.session_id,
        generation=draft.generation,
        tool_call_id=draft.tool_call_id,
        agent=draft.agent,
        kind=draft.kind,
        requested_by=draft.requested_by,
        claimed_for=draft.claimed_for,
        host=draft.host,
        action=draft.action,
        digest=draft.digest,
        agent_reason=draft.agent_reason,
        description=draft.description,
        severity=draft.severity,
        rule_keys=draft.rule_keys,
        why=draft.why,
        rung=draft.rung,
        choices=CHOICES,
        threshold=draft.threshold,
        destinations=draft.destinations,
        timeout_s=draft.timeout_s,
        created_at=tx.now,
        expires_at=None if draft.timeout_s is None else plus(tx.now, draft.timeout_s),
        stages=draft.request_id,
        executor=draft.executor,
    )
    tx.put(kept)
    for destination in kept.destinations:
        tx.put(new_card(row_id(), kept, destination, tx.now, NEW))
    own = _own_place(tx, kept)
    if own is not None and kept.destinations and own not in kept.destinations:
        tx.put(new_word(row_id(), kept, own, kept.destinations[0], tx.now))
    emit(tx, "approval.requested", kept, stages=kept.stages)
    return replace(draft, kept_as=kept.request_id, kept_short=kept.short_id)


def _own_place(tx: Tx, row: ApprovalRequest) -> Destination | None:
    """Where people follow the session, or the one that it is a child of; a job has no such place, whatever it was
    declared with."""
    session = tx.get(Session, session_key(row.profile, row.session_id))
    if session is None:
        return None
    root = root_of(tx, session)
    return None if session.kind in JOBS or root.kind in JOBS else root.destination


def lapse_cause(row: ApprovalRequest) -> str:
    """Why an approved action whose time is over lapses: nobody started it, or whoever did stopped."""
    return LOST_CLAIMANT if row.execution.state == "claimed" else NOT_STARTED


def state_of(row: ApprovalRequest) -> State:
    """Where a kept action stands."""
    if row.outcome is None:
        return "waits"
    if row.outcome != "approved":
        return "denied" if row.outcome == "denied" else "expired" if row.outcome == "timeout" else "gone"
    state = row.execution.state
    if state == "none":
        return "approved"
    if state == "claimed":
        return "running"
    if state == "not_run" and row.execution.claim_id is None:
        return "gone"
    return "not_run" if state == "lapsed" else state


def refusal(row: ApprovalRequest) -> ActionRefused | None:
    """Why the kept action cannot be started now; None where it can."""
    state = state_of(row)
    if state == "approved":
        return None
    code, words = _REFUSALS[state]
    if row.execution.cause in _TAKEN_BACK:
        code, words = row.execution.cause, _TAKEN_BACK[row.execution.cause]
    if row.execution.state == "lapsed":
        code, words = "lapsed", "No gateway started it in time, so the approval is used up. It must be asked again."
    if state == "unknown" and row.superseded_by is not None:
        code, words = "already_run", f"A person wanted it run once more, as {row.again_as}; look at that one."
    return ActionRefused(words, code=code, row=row)


_TAKEN_BACK = {
    "changed_since_review": "A file that it names changed after a person looked at it; it was not run.",
    "forbidden_now": "A deny rule or a floor forbids it by now; it was not run.",
    "executor_changed": "Its executor is not registered for it any more; it was not run. It must be asked again.",
}
_REFUSALS: dict[State, tuple[str, str]] = {
    "waits": ("not_approved", "Nobody has approved it yet. Approve it, and it is run."),
    "running": ("running", "It is running now. It is not started a second time."),
    "succeeded": ("already_run", "It was run already and succeeded. It is not run a second time."),
    "failed": ("already_run", "It was run already and failed. It is not run a second time."),
    "not_run": ("not_run", "Its executor did not start it. It must be asked again."),
    "unknown": (
        "unknown",
        "Its executor stopped while it ran, so it may have run. Say that it did run, or that it is to run again.",
    ),
    "denied": ("denied", "It was denied, so it is not run."),
    "expired": ("expired", "Nobody answered in time, so it is not run. It must be asked again."),
    "gone": ("cancelled", "It was taken back before it was started. It must be asked again."),
}


def start(
    tx: Tx,
    profile: str,
    request_id: str,
    claim_id: str,
    *,
    pass_sha256: str = "",
    operands: tuple[Operand, ...] | None = None,
    withdrawn: TakenBack | None = None,
) -> ApprovalRequest:
    """Claim an approved action for one run; succeeds once, whoever else tries. The claim holds `LEASE_S`.

    `operands` are the files it names, as they are now, and `withdrawn` is why the settings of now do not let it run:
    where files changed since people looked at it, or there is such a cause, the row comes back as `not_run`, and is not
    to be run; as `lapsed` where its time is over. Raises `ActionRefused`, `RequestNotFound`.
    """
    row = load_request(tx, profile, request_id)
    refused = refusal(row)
    if refused is not None:
        raise refused
    if row.claim_by is not None and row.claim_by <= tx.now:
        return claiming.lapse(tx, row, cause=NOT_STARTED)
    if withdrawn is not None:
        return claiming.withdraw_approval(tx, row, withdrawn, None)
    if claiming.changed(row, operands):
        return claiming.withdraw_approval(tx, row, "changed_since_review", None)
    execution = moved(row.execution, "claim", claim_id=claim_id, claimed_at=tx.now)
    done = replace(
        row,
        execution=execution,
        claim_by=plus(tx.now, LEASE_S),
        card_version=row.card_version + 1,
        pass_sha256=pass_sha256,
    )
    tx.put(done)
    emit(tx, "approval.execution", done, state="claimed")
    show(tx, done, priority=OTHER, at=plus(tx.now, RUNNING_AFTER_S))
    return done


def renew(tx: Tx, profile: str, request_id: str, claim_id: str) -> bool:
    """The claimant lives: its claim holds `LEASE_S` more. False once the claim is not its own any more."""
    row = load_request(tx, profile, request_id)
    if row.execution.state != "claimed" or row.execution.claim_id != claim_id:
        return False
    tx.put(replace(row, claim_by=plus(tx.now, LEASE_S)))
    return True


def settle(tx: Tx, profile: str, request_id: str, claim_id: str, ran: Ran) -> ApprovalRequest:
    """Keep what the claimant says of its run; also late, after its claim lapsed to `unknown`, unless a person has said
    meanwhile what became of it."""
    row = load_request(tx, profile, request_id)
    execution = row.execution
    if execution.claim_id != claim_id or execution.state not in ("claimed", "unknown"):
        return row
    if ran.state == "unknown":
        return row if execution.state == "unknown" else claiming.lapse(tx, row, cause=ran.cause)
    event = {"succeeded": "succeed", "failed": "fail", "not_run": "skip"}[ran.state]
    return _ended(tx, row, event, exit_code=ran.exit_code, cause=ran.cause, ended_at=tx.now)


def did_run(tx: Tx, profile: str, request_id: str, by: Actor) -> ApprovalRequest:
    """A person says of a run whose end nobody knows that it did run. Raises `ActionRefused`, `RequestNotFound`."""
    row = load_request(tx, profile, request_id)
    _check_unknown(row)
    return _ended(tx, row, "succeed", ended_by=by, ended_at=tx.now, cause=None)


def run_again(tx: Tx, profile: str, request_id: str, ruling: Ruling) -> ApprovalRequest:
    """A person wants an action run once more of which nobody knows whether it ran: a new request, which takes the cards
    over and is answered by `ruling`. Where several people must agree it waits for the others, like the first one.

    Once only for each run. Raises `ActionRefused`, `ChoiceNotOffered`, `RequestNotFound`.
    """
    row = load_request(tx, profile, request_id)
    _check_unknown(row)
    again = replace(
        row,
        request_id=new_id("kept"),
        short_id=fresh_short(tx, profile),
        created_at=tx.now,
        expires_at=None if row.timeout_s is None else plus(tx.now, row.timeout_s),
        extended=False,
        stretched_s=0.0,
        outcome=None,
        choice=None,
        votes=(),
        decided_by=(),
        decided_at=None,
        decided_copy=None,
        execution=Execution(),
        claim_by=None,
        pass_sha256="",
        pass_used_by=None,
        card_version=row.card_version + 1,
        again_of=row.short_id,
    )
    tx.put(again)
    named = {"superseded_by": again.request_id, "again_as": again.short_id}
    tx.put(replace(row, **named, claim_by=None, card_version=row.card_version + 1))
    for copy in copies_of(tx, row):
        _hand_over(tx, copy, again)
    emit(tx, "approval.requested", again, stages=again.stages, again_of=row.request_id)
    return deciding.decide(tx, profile, again.request_id, ruling).row


def _hand_over(tx: Tx, copy: Copy, again: ApprovalRequest) -> None:
    """The card goes on as the new request's; older buttons on it are answered 'replaced'."""
    if copy.kind != "card":
        close_panel(tx, copy)
        return
    if copy.state in ("final", "failed"):
        return
    revision = copy.faces[-1].revision + 1 if copy.faces else 0
    due = tx.now if copy.state in ("sent", "queued") else copy.due_at
    faces = (*copy.faces, Face(revision))
    tx.put(replace(copy, request_id=again.request_id, valid_from=revision, faces=faces, shown_version=-1, due_at=due))


def _check_unknown(row: ApprovalRequest) -> None:
    state = state_of(row)
    if state != "unknown" or row.superseded_by is not None:
        raise refusal(row) or ActionRefused(
            "It has not run yet; it is run as soon as its executor is there.", code="not_run_yet", row=row
        )


def _ended(tx: Tx, row: ApprovalRequest, event: str, **facts: object) -> ApprovalRequest:
    execution = moved(row.execution, event, **facts)
    done = replace(row, execution=execution, claim_by=None, card_version=row.card_version + 1)
    tx.put(done)
    emit(tx, "approval.execution", done, state=execution.state, exit_code=execution.exit_code)
    show(tx, done, priority=FINAL)
    return done
