"""A call goes through a second gate with the token of the first, which is used up by that."""

from __future__ import annotations

import hmac

from signoff.errors import GatePassRefused
from signoff.gate_pass import GatePass
from signoff.model import Actor, ApprovalRequest, Session, replace
from signoff.ports import Tx
from signoff.rows import request_key, session_key

_PARAM = {"param": "gate_token"}
GATED = "tool_gate"
"""The rule that is named, with the first gate's request, where a token let a call through."""
MAX_GATES = 4
"""Programs hand a call on through a few others at most, and each may have a gate."""


def through(tx: Tx, row: ApprovalRequest, given: GatePass) -> ApprovalRequest:
    """The row as approved by the first gate, whose token is used up in this same commit.

    Raises `GatePassRefused` for a token that is unknown, used, of another call, or whose call does not run (any more).
    """
    first = use(tx, row.profile, given, row.digest, used_by=row.request_id)
    by = Actor(type="policy", rule=f"{GATED}:{first.request_id}")
    return replace(row, outcome="approved", choice="once", decided_by=(by,), rung=GATED, executor=None)


def use(tx: Tx, profile: str, given: GatePass, digest: str, *, used_by: str) -> ApprovalRequest:
    """Use the token up for a call of that digest; the request of the first gate. Raises `GatePassRefused`."""
    first = tx.get(ApprovalRequest, request_key(profile, given.request_id))
    if first is None or not first.pass_sha256 or not hmac.compare_digest(first.pass_sha256, given.sha256):
        raise GatePassRefused(**_PARAM)
    if first.digest != digest:
        raise GatePassRefused("This token stands for another call, with other arguments or on another host.", **_PARAM)
    if first.pass_used_by is not None:
        raise GatePassRefused("This token was used already; it stands for one call.", **_PARAM)
    _check_runs(tx, first)
    used = replace(first, pass_used_by=used_by)
    tx.put(used)
    return used


def _check_runs(tx: Tx, row: ApprovalRequest) -> None:
    """Refuse where the call, or one of those above it that let it through, does not run; so that one yes is no right to
    call again and again, by a token of a token of a token. What was stopped runs on at its own risk."""
    line = [row]
    while (above := _above(tx, line[-1])) is not None and len(line) <= MAX_GATES:
        line.append(above)
    if len(line) > MAX_GATES:
        raise GatePassRefused(f"A call goes through {MAX_GATES} gates with tokens at most.", **_PARAM)
    for each in line:
        session = tx.get(Session, session_key(each.profile, each.session_id))
        stopped = each.stages is None and (session is None or session.generation != each.generation)
        if stopped or each.outcome != "approved" or each.execution.state != "claimed":
            raise GatePassRefused("The call that this token was given for does not run (any more).", **_PARAM)


def _above(tx: Tx, row: ApprovalRequest) -> ApprovalRequest | None:
    """The request of the gate that let this one through; None where it was asked about itself."""
    rule = row.decided_by[0].rule or "" if row.rung == GATED and row.decided_by else ""
    gate, _, request_id = rule.partition(":")
    return tx.get(ApprovalRequest, request_key(row.profile, request_id)) if gate == GATED and request_id else None
