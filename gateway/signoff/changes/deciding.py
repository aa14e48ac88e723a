"""A person answers: the vote, the decision, its grant and all that both settle, in one commit."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from signoff.changes import claiming, ending, grants
from signoff.changes.common import FINAL, emit, load_request, plus, show
from signoff.elicitation import content_for, needs_fields
from signoff.errors import ChoiceNotOffered, UndoTooLate
from signoff.model import Actor, ApprovalRequest, Elicitation, Grant, Vote, replace
from signoff.ports import Tx
from signoff.rows import joined, session_key


class Ruling(Struct, frozen=True, kw_only=True):
    """What a person answered, and where."""

    choice: str
    by: Actor
    reason: str | None = None
    copy_id: str | None = None
    upto: int | None = None
    """For `once_all`: the followers counted on the revision that was tapped; None: all who wait now."""
    counted: int | None = None
    """How many followers that revision counted."""
    claim_within_s: float = 300.0
    shown: str = ""
    """The masked action on one line, for a grant."""
    exact: str | None = None
    """A command's whole text, for a permanent grant."""
    allowed: tuple[str, ...] | None = None
    """The profile's present choices for this kind of action; None: the record's own."""
    content: dict[str, Any] | None = None
    """What was filled into the fields of a server's question."""


class Decided(Struct, frozen=True, kw_only=True):
    """How the request stands now, and whether this answer made it so."""

    row: ApprovalRequest
    how: Literal["won", "vote", "lost"]
    grants: tuple[Grant, ...] = ()
    """What the answer leaves behind, the one that people are told of first."""
    settled: tuple[str, ...] = ()
    """Other requests that the new grants settled."""

    @property
    def grant(self) -> Grant | None:
        """The grant that people are told of."""
        return self.grants[0] if self.grants else None


def offered(row: ApprovalRequest) -> tuple[str, ...]:
    """The choices on offer for this record now."""
    choices = _answers(row)
    if row.waiters and "once" in choices and _for_many(row):
        choices = (*choices, "once_all")
    return choices


def _answers(row: ApprovalRequest) -> tuple[str, ...]:
    """The choices that the record has now, `once_all` apart."""
    if row.severity == "critical" or row.once_only:
        return tuple(choice for choice in row.choices if choice in ("once", "deny"))
    return row.choices


def _among(choice: str, choices: tuple[str, ...]) -> bool:
    """Whether these allow it: a time box wherever `session` is, and where it is named itself."""
    return choice in choices or ("session" in choices and grants.time_box(choice) is not None)


def _for_many(row: ApprovalRequest) -> bool:
    """Whether one answer may be meant for all that wait: not what is critical, nor what is answered with content."""
    return row.severity != "critical" and not isinstance(row.action, Elicitation)


def check_offered(
    row: ApprovalRequest,
    choice: str,
    allowed: tuple[str, ...] | None,
    *,
    counted: int | None = None,
    content: dict[str, Any] | None = None,
) -> None:
    """Raise `ChoiceNotOffered` unless the record and the profile both offer this choice now.

    `counted`: how many followers the tapped card counted; what it offered then it still means. `content`: what was
    filled into the fields of a server's question, without which some cannot be accepted.
    """
    base = "once" if choice == "once_all" else choice
    many = choice == "once_all" and (not _for_many(row) or not (row.waiters or counted))
    if many or not _among(base, _answers(row)) or (allowed is not None and not _among(base, allowed)):
        ways = ", ".join(each for each in offered(row) if allowed is None or _among(each.removesuffix("_all"), allowed))
        said = f"“{choice}” is not on offer for this request; on offer: {ways}. Nothing was decided."
        raise ChoiceNotOffered(said, param="choice", choice=choice)
    if base != "deny" and content is None and needs_fields(row.action):
        raise ChoiceNotOffered(
            "It asks for fields to be filled in: answer it in the console, or send content "
            "(`signoff approve ID --content`). Nothing was decided.",
            param="content",
        )


def decide(tx: Tx, profile: str, request_id: str, ruling: Ruling) -> Decided:
    """Apply one person's answer. The loser of a race gets `lost` with the row as the winner left it.

    A deadline that has passed at commit wins over the answer. Raises `RequestNotFound`, `ChoiceNotOffered`,
    and `InvalidInput` for content that does not fit.
    """
    row = load_request(tx, profile, request_id)
    if row.outcome is None and row.expires_at is not None and row.expires_at <= tx.now:
        ending.leave(tx, row)
        return Decided(row=ending.expire(tx, row), how="lost")
    if row.outcome is not None:
        return Decided(row=row, how="lost")
    check_offered(row, ruling.choice, ruling.allowed, counted=ruling.counted, content=ruling.content)
    content = content_for(row.action, ruling.choice, ruling.content)
    if content is not None or row.content is not None:
        row = replace(row, content=content)
    voted = _voted(tx, row, ruling)
    if not _carries(voted):
        return Decided(row=_counted(tx, voted), how="vote")
    if voted.leader_id is not None:
        ending.leave(tx, voted)
    return _deny(tx, voted, ruling) if ruling.choice == "deny" else _approve(tx, voted, ruling)


def _voted(tx: Tx, row: ApprovalRequest, ruling: Ruling) -> ApprovalRequest:
    """The row with this answer; a second answer of the same person replaces the first."""
    others = tuple(v for v in row.votes if _who(v.by) != _who(ruling.by)) if row.votes else ()
    vote = Vote(choice=ruling.choice, by=ruling.by, at=tx.now, reason=ruling.reason)
    return replace(row, votes=(*others, vote))


def _counted(tx: Tx, voted: ApprovalRequest) -> ApprovalRequest:
    """Keep and show an answer that does not decide yet."""
    voted = replace(voted, card_version=voted.card_version + 1)
    tx.put(voted)
    emit(tx, "approval.vote", voted, votes=len(voted.votes))
    show(tx, voted, priority=FINAL)
    return voted


def _carries(row: ApprovalRequest) -> bool:
    """A denial, or as many approvals as the request's threshold, decides."""
    if any(v.choice == "deny" for v in row.votes):
        return True
    return sum(v.choice != "deny" for v in row.votes) >= row.threshold


def _who(actor: Actor) -> str:
    return joined(actor.principal or "", "" if actor.principal else f"{actor.platform}:{actor.user_id}")


def _deny(tx: Tx, row: ApprovalRequest, ruling: Ruling) -> Decided:
    done = ending.deny(tx, row, by=_deciders(row), reason=ruling.reason, copy_id=ruling.copy_id)
    return Decided(row=done, how="won")


def _approve(tx: Tx, row: ApprovalRequest, ruling: Ruling) -> Decided:
    made: tuple[Grant, ...] = ()
    if ruling.choice not in ("once", "once_all"):
        made = grants.make(tx, row, ruling.choice, ruling.by, ruling.shown, ruling.exact)
    upto = row.last_follow_no if ruling.upto is None else ruling.upto
    done = ending.approve(
        tx,
        row,
        choice=ruling.choice,
        by=_deciders(row),
        claim_within_s=ruling.claim_within_s,
        copy_id=ruling.copy_id,
        grant=made[0] if made else None,
        upto=upto,
        counted=ruling.counted,
    )
    settled = _settle(tx, made, done, ruling.claim_within_s) if made else ()
    return Decided(row=done, how="won", grants=made, settled=settled)


def _settle(tx: Tx, made: tuple[Grant, ...], done: ApprovalRequest, claim_within_s: float) -> tuple[str, ...]:
    """New grants also settle the pending requests of their scope that they cover."""
    settled = []
    for row, found in grants.covered_pending(tx, made, done):
        if row.expires_at is not None and row.expires_at <= tx.now:
            ending.expire(tx, row)
            continue
        choice = done.choice or "session"
        by = grants.actors(found)
        grants.used(tx, found)
        ending.approve(tx, row, choice=choice, by=by, claim_within_s=claim_within_s, grant=found[0])
        settled.append(row.request_id)
    return tuple(settled)


def _deciders(row: ApprovalRequest) -> tuple[Actor, ...]:
    """Those whose votes made the decision."""
    denied = tuple(v.by for v in row.votes if v.choice == "deny")
    return denied or tuple(v.by for v in row.votes)


def undo(tx: Tx, profile: str, request_id: str, by: Actor) -> ApprovalRequest:
    """The decider takes an approval back before its claim; its grants are revoked in the same commit, and of an answer
    for several runs each that has not started is taken back with it.

    Raises `UndoTooLate` when it was started, ended or was never an approval.
    """
    row = load_request(tx, profile, request_id)
    if row.outcome != "approved" or row.execution.state != "none":
        raise UndoTooLate(row=row)
    if row.grant_id and any(a.type == "person" for a in row.decided_by):
        for grant in grants.made_with(tx, profile, row.grant_id):
            grants.end(tx, grant, by)
    if row.runs > 1:
        for other in tx.find(ApprovalRequest, "live_session", session_key(profile, row.session_id)):
            alike = other.leader_id == row.request_id and other.decided_at == row.decided_at
            if alike and other.outcome == "approved" and other.execution.state == "none":
                claiming.withdraw_approval(tx, other, "undone", by)
    return claiming.withdraw_approval(tx, row, "undone", by)


def extend(tx: Tx, profile: str, request_id: str, until_s: float, *, limit_s: float, once: bool) -> ApprovalRequest:
    """Let the window last until `until_s` seconds from now at least, never past `limit_s` after creation.

    `once`: only the first time (an opened panel); otherwise each call adds.
    """
    row = load_request(tx, profile, request_id)
    if row.outcome is not None or row.expires_at is None or (once and row.extended):
        return row
    if row.expires_at <= tx.now:
        return ending.expire(tx, row)
    target = min(plus(tx.now, until_s), plus(row.created_at, limit_s))
    if target <= row.expires_at:
        return row
    changed = replace(
        row,
        expires_at=target,
        extended=row.extended or once,
        stretched_s=row.stretched_s + (target - row.expires_at).total_seconds(),
        card_version=row.card_version + 1,
    )
    tx.put(changed)
    show(tx, changed, priority=FINAL)
    return changed
