"""A call goes through a second gate with the token of the first, which is used up by that."""

from __future__ import annotations

import hmac

from signoff.errors import GatePassRefused
from signoff.gate_pass import GatePass
from signoff.model import Actor, ApprovalRequest, replace
from signoff.ports import Tx
from signoff.rows import request_key

_PARAM = {"param": "gate_token"}
GATED = "tool_gate"
"""The rule that is named, with the first gate's request, where a token let a call through."""


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
    if first.outcome != "approved" or first.execution.state != "claimed":
        raise GatePassRefused("The call that this token was given for does not run (any more).", **_PARAM)
    used = replace(first, pass_used_by=used_by)
    tx.put(used)
    return used
