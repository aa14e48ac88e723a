"""What time does by itself: deadlines, lapses, leases. Each enters the store like a tap and races it fairly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from signoff.changes import bypassing, claiming, delivering, ending, expiring, sending, staging, stopping
from signoff.changes.bypassing import Bypass
from signoff.changes.common import followers, plus, unsure
from signoff.model import ApprovalRequest, Card, Copy, Notifier, Session, Turn, replace
from signoff.ports import Tx
from signoff.rows import request_key
from signoff.settings import SessionSettings


def sweep_requests(tx: Tx, keys: Iterable[str]) -> list[ApprovalRequest]:
    """End, start or check what is due among these requests; returns the kept actions that became unknown."""
    lost = []
    for key in keys:
        row = tx.get(ApprovalRequest, key)
        changed = _sweep_request(tx, row) if row is not None else None
        if changed is not None and unsure(changed):
            lost.append(changed)
    return lost


def _sweep_request(tx: Tx, row: ApprovalRequest) -> ApprovalRequest | None:
    """The row after its approval or claim lapsed; None for every other change."""
    now = tx.now
    if row.outcome == "approved" and row.claim_by is not None and row.claim_by <= now:
        return claiming.lapse(tx, row, cause=staging.lapse_cause(row) if row.stages is not None else None)
    if row.outcome is not None:
        return None
    if row.expires_at is not None and row.expires_at <= now:
        _expire(tx, row)
    elif row.notify_by is not None and row.notify_by <= now:
        delivering.check_notified(tx, row)
    elif row.window_by is not None and row.window_by <= now:
        tx.put(delivering.start_window(tx, row))
    return None


def _expire(tx: Tx, row: ApprovalRequest) -> None:
    """The window is over: nobody answered, or nobody was asked, since the card never got its turn."""
    leader = tx.get(ApprovalRequest, request_key(row.profile, row.leader_id)) if row.leader_id is not None else row
    if leader is None or not delivering.unseen(tx, leader):
        if row.leader_id is not None:
            ending.leave(tx, row)
        ending.expire(tx, row)
        return
    error = f"the rate limit of {leader.destinations[0]} left no room for the card in time"
    for follower in followers(tx, row):
        if follower.expires_at is not None and follower.expires_at <= tx.now:
            _never_asked(tx, follower, error)
    fresh = tx.get(ApprovalRequest, request_key(row.profile, row.request_id))
    _never_asked(tx, row if fresh is None else fresh, error)


def _never_asked(tx: Tx, row: ApprovalRequest, error: str) -> None:
    if row.leader_id is not None:
        ending.leave(tx, row)
    ending.undeliverable(tx, row, error)


def sweep_turns(tx: Tx, keys: Iterable[str], seen: Mapping[str, datetime]) -> list[str]:
    """Lapse turns whose lease is over; `seen` (key -> instant) renews those that are being waited for."""
    lapsed = []
    for key in keys:
        turn = tx.get(Turn, key)
        if turn is None or turn.ended_at is not None or turn.lease_until > tx.now:
            continue
        renewed = plus(seen[key], turn.lease_s) if key in seen else None
        if renewed is not None and renewed > tx.now:
            tx.put(replace(turn, lease_until=renewed))
        else:
            stopping.end_turn(tx, turn, "requester_gone", None)
            lapsed.append(key)
    return lapsed


def sweep_notifiers(tx: Tx, keys: Iterable[str]) -> None:
    """Forget answer clients that did not come back in time."""
    for key in keys:
        notifier = tx.get(Notifier, key)
        if notifier is not None and notifier.gone_at is not None and notifier.gone_at <= tx.now:
            stopping.notifier_gone(tx, notifier)


def sweep_sessions(
    tx: Tx, keys: Iterable[str], card: Callable[[Bypass], Card], settings: Mapping[str, SessionSettings]
) -> None:
    """Ask again in sessions whose bypass is over, and post `card` where people were told of it; start those anew that
    have expired. `settings` by profile."""
    for key in keys:
        session = tx.get(Session, key)
        if session is not None and bypassing.expire(tx, session, card):
            session = tx.get(Session, key)
        if session is not None:
            expiring.sweep(tx, session, settings.get(session.profile, SessionSettings()), card)


def arm_sessions(tx: Tx, keys: Iterable[str], settings: SessionSettings) -> None:
    """Have these sessions expire as the settings say from now on."""
    for key in keys:
        session = tx.get(Session, key)
        if session is not None:
            expiring.arm(tx, session, settings)


_DEADLINES = ("expires_at", "notify_by", "window_by", "claim_by")


SHOWN_FROM = timedelta(seconds=5)
"""Cards tell a deadline that moved by more than this anew; a quick restart does not edit them all."""


def shift(tx: Tx, keys: Mapping[type[Struct], Iterable[str]], by: timedelta) -> None:
    """Move the deadlines of these rows on by the time in which no gateway was up, so that agents find their requests
    pending and a tap made meanwhile counts. By a negative time where the clock was set back.

    Of requests, turns, notifiers and copies. What was allowed or kept until a time of the clock, as a time box, a
    bypass or an idle session, ends at that time.
    """
    moves: dict[type[Struct], Callable[[Tx, str, timedelta], None]] = {
        ApprovalRequest: _shift_request,
        Turn: _shift_turn,
        Notifier: _shift_notifier,
        Copy: _shift_copy,
    }
    for row, those in keys.items():
        for key in those:
            moves[row](tx, key, by)


def _shift_request(tx: Tx, key: str, by: timedelta) -> None:
    row = tx.get(ApprovalRequest, key)
    if row is None:
        return
    times = {
        name: when + by
        for name in _DEADLINES
        # An executor's claim lives as long as its claimant; what waits for its start goes on waiting.
        if not (name == "claim_by" and row.stages is not None and row.execution.state == "claimed")
        if (when := getattr(row, name)) is not None
    }
    moved = replace(row, **times)
    tx.put(moved)
    if row.outcome is None and row.leader_id is None and abs(by) > SHOWN_FROM:
        sending.touch(tx, moved)


def _shift_turn(tx: Tx, key: str, by: timedelta) -> None:
    turn = tx.get(Turn, key)
    if turn is not None and turn.ended_at is None:
        tx.put(replace(turn, lease_until=turn.lease_until + by))


def _shift_notifier(tx: Tx, key: str, by: timedelta) -> None:
    notifier = tx.get(Notifier, key)
    if notifier is not None and notifier.gone_at is not None:
        tx.put(replace(notifier, gone_at=notifier.gone_at + by))


def _shift_copy(tx: Tx, key: str, by: timedelta) -> None:
    copy = tx.get(Copy, key)
    if copy is not None and copy.due_at is not None:
        lease = copy.lease_until + by if copy.lease_until is not None else None
        tx.put(replace(copy, due_at=copy.due_at + by, lease_until=lease))
