"""Every transition there is, as data. Nothing else changes an outcome or a state.

The request's table has one entry a legal (state, event) pair; what is missing is illegal. An outcome never changes:
no event leads out of one. The documentation's diagrams are drawn from these tables.
"""

from __future__ import annotations

from signoff.errors import SignoffError

Table = dict[tuple[str, str], str]

REQUEST: Table = {
    ("pending", "vote"): "pending",
    ("pending", "approve"): "approved",
    ("pending", "deny"): "denied",
    ("pending", "expire"): "timeout",
    ("pending", "withdraw"): "cancelled",
    ("pending", "undeliverable"): "notify_failed",
    ("new", "ask"): "pending",
    ("new", "allow"): "approved",
    ("new", "repeat"): "denied",
    ("new", "block"): "blocked",
    ("new", "stage"): "staged",
    ("new", "void"): "cancelled",
}
"""`new` is a request that is being inserted: it is born pending or already ended."""

EXECUTION: Table = {
    ("none", "claim"): "claimed",
    ("none", "withdraw"): "not_run",
    ("none", "lapse"): "lapsed",
    ("claimed", "succeed"): "succeeded",
    ("claimed", "fail"): "failed",
    ("claimed", "skip"): "not_run",
    ("claimed", "lose"): "unknown",
    ("unknown", "succeed"): "succeeded",
    ("unknown", "fail"): "failed",
    ("unknown", "skip"): "not_run",
}
"""`withdraw`: undone, stopped, cleared, turn ended or file changed before a claim. `lose`: no result came back."""

DELIVERY: Table = {
    ("queued", "lease"): "sending",
    ("queued", "drop"): "final",
    ("queued", "refuse"): "failed",
    ("sending", "accept"): "sent",
    ("sending", "retry"): "queued",
    ("sending", "refuse"): "failed",
    ("sending", "doubt"): "ambiguous",
    ("sending", "learn"): "sent",
    ("ambiguous", "learn"): "sent",
    ("ambiguous", "drop"): "final",
    ("sent", "close"): "final",
    ("sent", "lose"): "failed",
    ("final", "reopen"): "sent",
}
"""`learn`: a tap told us the message's id. `lose`: the message is gone. `close`: nothing more will be shown on it.
`reopen`: what was denied on it was asked again, which it tells."""

ADAPTER: Table = {
    ("starting", "hear"): "ready",
    ("starting", "fail"): "degraded",
    ("ready", "hear"): "ready",
    ("ready", "fail"): "degraded",
    ("degraded", "hear"): "ready",
    ("degraded", "fail"): "degraded",
    ("starting", "stop"): "stopped",
    ("ready", "stop"): "stopped",
    ("degraded", "stop"): "stopped",
}

TABLES: dict[str, Table] = {"request": REQUEST, "execution": EXECUTION, "delivery": DELIVERY, "adapter": ADAPTER}


class IllegalTransition(SignoffError):
    """A state was asked to change in a way that the table does not have: a defect of Signoff, not of its caller."""

    code = "illegal_transition"


def apply(table: Table, state: str, event: str) -> str:
    """The state after `event`; raises `IllegalTransition` for a pair that the table does not hold."""
    try:
        return table[state, event]
    except KeyError:
        raise IllegalTransition(f"no transition from {state!r} by {event!r}") from None


def allows(table: Table, state: str, event: str) -> bool:
    """Whether the table has this transition."""
    return (state, event) in table


def mermaid(table: Table) -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = [f"    {state} --> {after}: {event}" for (state, event), after in table.items()]
    return "stateDiagram-v2\n" + "\n".join(lines)
