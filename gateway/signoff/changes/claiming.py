"""The approved action is started, once, and how it went. A claim is the only permission to run."""

from __future__ import annotations

import hmac
from typing import Literal

from signoff.changes import alike
from signoff.changes.common import FINAL, OTHER, RUNNING_AFTER_S, UNDO_AFTER_S, emit, load_request, moved, plus, show
from signoff.errors import ClaimRefused, Conflict
from signoff.model import Actor, ApprovalRequest, Cause, Command, Operand, Turn, replace
from signoff.ports import Tx
from signoff.rows import turn_key

RESULT_WITHIN_S = 86400.0
"""A claim without a turn and without a result becomes unknown after this long."""

Withdrawn = Literal["changed_since_review", "forbidden_now", "executor_changed"]
"""Why an approval is found void when its action is to start."""
RESULT_EVENTS = {"succeeded": "succeed", "failed": "fail", "not_run": "skip"}


def claim(
    tx: Tx,
    profile: str,
    request_id: str,
    *,
    digest: str,
    claim_id: str,
    operands: tuple[Operand, ...] | None,
    pass_sha256: str = "",
) -> ApprovalRequest:
    """Start the action: succeeds once while the approval stands. The same `claim_id` again gets the same answer while
    it runs; a result, a stop or a turn's end makes every further claim `already_claimed`. `pass_sha256` is the hash of
    the one-time token with which this run may go through another gate.

    Raises `ClaimRefused` with `not_approved`, `already_claimed`, `digest_mismatch`, `changed_since_review`,
    `cancelled` or `lapsed`. Files that changed since the review take the approval away in this same commit, so the
    row is returned with `not_run` then, and the caller refuses.
    """
    row = load_request(tx, profile, request_id)
    if not hmac.compare_digest(row.digest, digest):
        raise ClaimRefused(
            "This is not the action that was approved. Ask for this one.", code="digest_mismatch", row=row
        )
    if row.stages is not None:
        raise ClaimRefused(f"Executor {row.executor} runs this kept action, nobody else.", code="not_approved", row=row)
    if row.execution.claim_id == claim_id and row.execution.state == "claimed":
        return _with_pass(tx, row, pass_sha256)
    _check_claimable(tx, row)
    if changed(row, operands):
        return withdraw_approval(tx, row, "changed_since_review", None)
    execution = moved(row.execution, "claim", claim_id=claim_id, claimed_at=tx.now)
    limit = None if row.turn_id else plus(tx.now, RESULT_WITHIN_S)
    done = replace(row, execution=execution, claim_by=limit, card_version=row.card_version + 1, pass_sha256=pass_sha256)
    tx.put(done)
    emit(tx, "approval.execution", done, state="claimed")
    undo_shown = row.decided_at is not None and tx.now >= plus(row.decided_at, UNDO_AFTER_S)
    show(tx, done, priority=OTHER, at=tx.now if undo_shown else plus(tx.now, RUNNING_AFTER_S))
    alike.moved_on(tx, row, done)
    return done


def _with_pass(tx: Tx, row: ApprovalRequest, pass_sha256: str) -> ApprovalRequest:
    """The claim's answer may have been lost, and its token with it: the new one stands, unless the old one was used."""
    if not pass_sha256 or row.pass_used_by is not None:
        return row
    renewed = replace(row, pass_sha256=pass_sha256)
    tx.put(renewed)
    return renewed


def refusal(row: ApprovalRequest) -> ClaimRefused | None:
    """The refusal that a row not to be run stands for, if it does."""
    if row.outcome != "approved":
        return ClaimRefused("This action is not approved.", code="not_approved", row=row)
    state, cause = row.execution.state, row.execution.cause
    if state == "lapsed":
        return ClaimRefused(
            "It was approved, but not started in time. The approval is used up.", code="lapsed", row=row
        )
    if state == "not_run" and cause == "changed_since_review":
        return ClaimRefused("A file changed after a person looked at it.", code="changed_since_review", row=row)
    if state == "not_run" and row.execution.claim_id is None:
        return ClaimRefused("The approval was taken back before it was started.", code="cancelled", row=row)
    if state != "none":
        return ClaimRefused("This approval was used once. Do not run it again.", code="already_claimed", row=row)
    return None


def _check_claimable(tx: Tx, row: ApprovalRequest) -> None:
    refused = refusal(row)
    if refused is not None:
        raise refused
    if row.claim_by is not None and row.claim_by <= tx.now:
        raise ClaimRefused("It was approved, but not started in time. The approval is used up.", code="lapsed", row=row)
    if row.turn_id:
        turn = tx.get(Turn, turn_key(row.profile, row.turn_id))
        if turn is None or turn.ended_at is not None:
            raise ClaimRefused("The turn that asked has ended.", code="cancelled", row=row)


def changed(row: ApprovalRequest, operands: tuple[Operand, ...] | None) -> bool:
    """Whether the files that were reviewed are not those about to be used. Files not named again count as changed."""
    reviewed = row.action.operands if isinstance(row.action, Command) else ()
    if not reviewed:
        return False
    return {(o.path, o.sha256) for o in reviewed} != {(o.path, o.sha256) for o in operands or ()}


def result(
    tx: Tx,
    profile: str,
    request_id: str,
    *,
    status: Literal["succeeded", "failed", "not_run"],
    exit_code: int | None,
) -> ApprovalRequest:
    """How the claimed action went; late after `unknown` is welcome. The same result again changes nothing.

    Raises `Conflict` for what was never claimed or has another result already.
    """
    row = load_request(tx, profile, request_id)
    execution = row.execution
    if row.stages is not None:
        raise Conflict(f"Executor {row.executor} runs this kept action and reports how it went.", row=row)
    if execution.state == status and execution.exit_code == exit_code and execution.claim_id:
        return row
    if row.outcome != "approved" or execution.state not in ("claimed", "unknown"):
        raise Conflict(f"Nothing is running for this request: its execution is {execution.state}.", row=row)
    moved_to = moved(execution, RESULT_EVENTS[status], exit_code=exit_code, ended_at=tx.now)
    done = replace(row, execution=moved_to, claim_by=None, card_version=row.card_version + 1)
    tx.put(done)
    emit(tx, "approval.execution", done, state=status, exit_code=exit_code)
    show(tx, done, priority=OTHER, at=alike.told_at(tx, done))
    alike.moved_on(tx, row, done)
    return done


def withdraw_approval(tx: Tx, row: ApprovalRequest, cause: Cause | Withdrawn, by: Actor | None) -> ApprovalRequest:
    """Take an unclaimed approval away: the outcome stays, the execution becomes `not_run`."""
    row = alike.newest(tx, row)
    execution = moved(row.execution, "withdraw", cause=cause, ended_by=by, ended_at=tx.now)
    done = replace(row, execution=execution, claim_by=None, card_version=row.card_version + 1)
    tx.put(done)
    emit(tx, "approval.execution", done, state="not_run", cause=cause)
    show(tx, done, priority=FINAL)
    alike.moved_on(tx, row, done)
    return done


def lapse(tx: Tx, row: ApprovalRequest, cause: str | None = None) -> ApprovalRequest:
    """What was not claimed in time lapses; what was claimed and never reported becomes unknown."""
    row = alike.newest(tx, row)
    event = "lapse" if row.execution.state == "none" else "lose"
    execution = moved(row.execution, event, ended_at=tx.now, cause=cause)
    done = replace(row, execution=execution, claim_by=None, card_version=row.card_version + 1)
    tx.put(done)
    emit(tx, "approval.execution", done, state=execution.state, cause=cause)
    show(tx, done, priority=FINAL)
    alike.moved_on(tx, row, done)
    return done
