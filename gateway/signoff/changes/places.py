"""What a place shows: its open questions, the card a message replies to, the approvals that can still be undone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from msgspec import Struct

from signoff.model import Actor, ApprovalRequest, Copy, Destination, Message, Session
from signoff.ports import Tx
from signoff.rows import joined, message_key, place_key, request_key, session_key


class Waiting(Struct, frozen=True, kw_only=True):
    """A pending question with its cards in one place."""

    row: ApprovalRequest
    copies: tuple[Copy, ...]

    def before(self, order: int) -> bool:
        """Whether a card stood in the chat before that place in the chat's order."""
        return any(0 < copy.order < order for copy in self.copies)

    @property
    def doubtful(self) -> bool:
        """Whether a card may stand in the chat whose place there is not known."""
        return any(copy.order == 0 and copy.state == "ambiguous" for copy in self.copies)


class Look(Struct, frozen=True, kw_only=True):
    """What a typed message may mean: where it stands and what it replies to."""

    replied: ApprovalRequest | None = None
    waiting: tuple[Waiting, ...] = ()
    """In the order of their cards; last those whose card is still to be sent."""
    in_threads: int = 0
    """Runs that wait in threads of this chat, when the place is the chat itself."""
    elsewhere: bool = False
    """Whether anything waits in another place of this chat: its threads, or the chat beside this thread."""
    unsure: bool = False
    """It replies to a message that may be a card whose sending was not answered, perhaps of a question that ended."""


def look(tx: Tx, profile: str, message: Message) -> Look:
    """The open questions of the message's place, and the request whose card it replies to."""
    place = message.destination
    copies = tx.find(Copy, "open_chat", joined(profile, place.platform, place.chat_id))
    here: dict[str, list[Copy]] = {}
    others: dict[str, ApprovalRequest] = {}
    rows: dict[str, ApprovalRequest] = {}
    for copy in copies:
        row = _pending(tx, copy)
        if row is None:
            continue
        if copy.destination == place:
            rows[row.request_id] = row
            here.setdefault(row.request_id, []).append(copy)
        else:
            others[row.request_id] = row
    waiting = [Waiting(row=rows[request_id], copies=tuple(own)) for request_id, own in here.items()]
    waiting.sort(key=lambda each: chat_order(each.copies))
    elsewhere = sum(row.waiters + 1 for request_id, row in others.items() if request_id not in here)
    replied = _replied(tx, profile, message, copies)
    unsure = message.reply_to is not None and replied is None and any(_unknown_card(copy, place) for copy in copies)
    in_threads = elsewhere if place.thread_id is None else 0
    return Look(replied=replied, waiting=tuple(waiting), in_threads=in_threads, elsewhere=elsewhere > 0, unsure=unsure)


def chat_order(copies: Iterable[Copy]) -> float:
    """Where the first of these cards stands in the chat; last where that is not known."""
    return min((copy.order for copy in copies if copy.order > 0), default=math.inf)


def _unknown_card(copy: Copy, place: Destination) -> bool:
    """Whether a card of this place may stand in the chat as a message that we do not know."""
    return copy.kind == "card" and copy.destination == place and copy.state in ("sending", "ambiguous")


def _pending(tx: Tx, copy: Copy) -> ApprovalRequest | None:
    """The open question that a card asks."""
    if copy.kind != "card" or copy.request_id is None:
        return None
    row = tx.get(ApprovalRequest, request_key(copy.profile, copy.request_id))
    return row if row is not None and row.outcome is None else None


def _replied(tx: Tx, profile: str, message: Message, copies: list[Copy]) -> ApprovalRequest | None:
    """The request of the card, panel or attached file that the message replies to."""
    if message.reply_to is None:
        return None
    found = tx.find(Copy, "message", message_key(profile, message.destination, message.reply_to))
    files = [copy for copy in copies if copy.file_id == message.reply_to]
    for copy in (*found, *files):
        if copy.request_id is not None:
            return tx.get(ApprovalRequest, request_key(profile, copy.request_id))
    return None


def undoable(tx: Tx, profile: str, place: Destination, mine: Callable[[Actor], bool]) -> ApprovalRequest | None:
    """The approval of this place that somebody (`mine`) gave last and that nobody has started."""
    rows: dict[str, ApprovalRequest] = {}
    for copy in tx.find(Copy, "place", place_key(profile, place)):
        row = tx.get(ApprovalRequest, request_key(profile, copy.request_id or ""))
        if row is not None:
            rows[row.request_id] = row
    # Cards that a summary spoke for are closed; their requests are found through their sessions.
    for session in tx.find(Session, "place", place_key(profile, place)):
        for row in tx.find(ApprovalRequest, "live_session", session_key(profile, session.session_id)):
            rows[row.request_id] = row
    mine_now = [row for row in rows.values() if _undoable(row) and any(mine(by) for by in row.decided_by)]
    return max(mine_now, key=lambda row: (row.decided_at or row.created_at, row.request_id), default=None)


def _undoable(row: ApprovalRequest) -> bool:
    by_person = any(by.type == "person" for by in row.decided_by)
    return row.outcome == "approved" and row.execution.state == "none" and row.leader_id is None and by_person
