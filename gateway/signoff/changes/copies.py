"""Making copies: the outbox rows that a dispatcher turns into messages."""

from __future__ import annotations

from datetime import datetime

import msgspec

from signoff.changes.common import NEW
from signoff.model import ApprovalRequest, Card, Copy, Destination, Face


def new_card(
    copy_id: str,
    row: ApprovalRequest,
    destination: Destination,
    now: datetime,
    priority: int,
    *,
    again: bool = False,
) -> Copy:
    """A card to be sent. `again`: a second copy, since the answer to the first send was lost."""
    return Copy(
        copy_id=copy_id,
        profile=row.profile,
        request_id=row.request_id,
        destination=destination,
        priority=priority,
        due_at=now,
        created_at=now,
        again=again,
        reposted=again,
    )


def new_digest(copy_id: str, profile: str, destination: Destination, now: datetime) -> Copy:
    """A digest to be sent, with nothing on it yet."""
    return Copy(
        copy_id=copy_id,
        profile=profile,
        kind="digest",
        destination=destination,
        priority=NEW,
        due_at=now,
        created_at=now,
    )


def new_word(copy_id: str, row: ApprovalRequest, own: Destination, asked_in: Destination, now: datetime) -> Copy:
    """A word in the session's own place: the question is asked elsewhere."""
    return Copy(
        copy_id=copy_id,
        profile=row.profile,
        kind="told",
        request_id=row.request_id,
        destination=own,
        note=str(asked_in),
        priority=NEW,
        due_at=now,
        created_at=now,
    )


def new_panel(
    copy_id: str,
    card: Copy,
    *,
    panel: str,
    owner_id: str,
    owner_name: str | None = None,
    now: datetime,
    choice: str | None = None,
    prompt: bool = False,
    private: bool = False,
    face: Face | None = None,
) -> Copy:
    """A small second message that obeys only `owner_id`, posted as a reply to the card. `private`: it is shown as the
    answer to a tap, so there is nothing to send. `face`: the revision of a digest that it was opened on."""
    return Copy(
        copy_id=copy_id,
        profile=card.profile,
        kind="prompt" if prompt else "panel",
        request_id=card.request_id,
        destination=card.destination,
        panel=panel,
        choice=choice,
        owner_id=owner_id,
        owner_name=owner_name,
        private=private,
        faces=(face,) if face is not None else (),
        parent_copy=card.copy_id,
        priority=0,
        state="final" if private else "queued",
        due_at=None if private else now,
        created_at=now,
    )


def new_note(
    copy_id: str,
    profile: str,
    destination: Destination,
    card: Card,
    *,
    now: datetime,
    priority: int,
    reply_to: str | None = None,
) -> Copy:
    """A message of Signoff's own words that no later state changes (a reply, a notice, a summary)."""
    return Copy(
        copy_id=copy_id,
        profile=profile,
        kind="note",
        destination=destination,
        note=msgspec.json.encode(card).decode(),
        parent_copy=None,
        panel=reply_to,
        priority=priority,
        due_at=now,
        created_at=now,
    )
