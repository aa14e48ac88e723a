"""A verified tap, in one commit: what its button still means, the message it teaches us, and what it does."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from signoff.changes import deciding, ending, sending
from signoff.changes.common import close_panel, copies_of
from signoff.changes.copies import new_panel
from signoff.changes.deciding import Decided, Ruling
from signoff.ids import row_id
from signoff.model import ApprovalRequest, Copy, Face, replace
from signoff.ports import Tx
from signoff.rows import request_key

PANEL_WINDOW_S = 120.0
"""Opening a panel lets a nearly expired question wait this long, once."""
WAIT_LONGER_S = 900.0


class Button(Struct, frozen=True, kw_only=True):
    """A verified button: the copy and revision it was on, and where it stood."""

    copy_id: str
    revision: int
    message_id: str | None
    order: int
    user_id: str
    user_name: str | None = None


class Meaning(Struct, frozen=True, kw_only=True):
    """What a button means now. `card` is the card it belongs to (a panel's parent, else the copy itself)."""

    status: Literal["live", "unknown", "replaced", "others"]
    copy: Copy | None = None
    card: Copy | None = None
    row: ApprovalRequest | None = None
    face: Face | None = None
    panel: Copy | None = None
    """The private panel that was opened."""


def read(tx: Tx, profile: str, button: Button) -> Meaning:
    """Look a button up and learn its message's id. It is `replaced` when its leader or revision is gone, `others` on
    somebody else's panel, `unknown` when the token stands on another message than the one it was posted with."""
    copy = tx.get(Copy, button.copy_id)
    if copy is None or copy.profile != profile or copy.request_id is None:
        return Meaning(status="unknown")
    if copy.message_id is not None and button.message_id is not None and copy.message_id != button.message_id:
        return Meaning(status="unknown")
    if copy.message_id is None and button.message_id is not None and not copy.private:
        copy = sending.learn(tx, copy, button.message_id, button.order)
    card = tx.get(Copy, copy.parent_copy) if copy.parent_copy else copy
    row = tx.get(ApprovalRequest, request_key(profile, copy.request_id or ""))
    if card is None or row is None:
        return Meaning(status="unknown")
    if row.outcome is None and row.expires_at is not None and row.expires_at <= tx.now:
        row = ending.expire(tx, row)
    if copy.owner_id is not None and copy.owner_id != button.user_id:
        return Meaning(status="others", copy=copy, card=card, row=row)
    if copy.kind == "card" and (button.revision < copy.valid_from or not copy.faces):
        return Meaning(status="replaced", copy=copy, card=card, row=row)
    if copy.kind != "card" and card.request_id != copy.request_id:
        return Meaning(status="replaced", copy=copy, card=card, row=row)
    face = next((f for f in copy.faces if f.revision == button.revision), None) if copy.kind == "card" else Face(0)
    if face is None:
        return Meaning(status="unknown")
    return Meaning(status="live", copy=copy, card=card, row=row, face=face)


def press(tx: Tx, profile: str, button: Button, ruling: Ruling) -> tuple[Meaning, Decided | None]:
    """Decide by a button: None where it means nothing any more. `once_all` is bound to what its face counted."""
    meaning = read(tx, profile, button)
    if meaning.status != "live" or meaning.row is None or meaning.card is None or meaning.face is None:
        return meaning, None
    if ruling.choice != "deny" and not meaning.card.whole_shown:
        return replace(meaning, status="unknown"), None
    bound = replace(ruling, copy_id=meaning.card.copy_id, upto=meaning.face.upto, counted=meaning.face.shown)
    decided = deciding.decide(tx, profile, meaning.row.request_id, bound)
    return meaning, decided


def open_panel(
    tx: Tx,
    profile: str,
    button: Button,
    panel: str,
    *,
    limit_s: float,
    choice: str | None = None,
    private: bool = False,
) -> Meaning:
    """Open a panel for the person who tapped; it replaces an open one of theirs and stretches a short window once."""
    meaning = read(tx, profile, button)
    row, card = meaning.row, meaning.card
    if meaning.status != "live" or row is None or card is None or row.outcome is not None:
        return meaning
    for copy in copies_of(tx, row):
        if copy.kind in ("panel", "prompt") and copy.owner_id == button.user_id:
            close_panel(tx, copy)
    opened = new_panel(
        row_id(),
        card,
        panel=panel,
        owner_id=button.user_id,
        owner_name=button.user_name,
        now=tx.now,
        choice=choice,
        prompt=panel == "type",
        private=private,
    )
    tx.put(opened)
    extended = deciding.extend(tx, profile, row.request_id, PANEL_WINDOW_S, limit_s=limit_s, once=True)
    return replace(meaning, row=extended, panel=opened)


def close(tx: Tx, profile: str, button: Button) -> Meaning:
    """Remove the panel this button stands on."""
    meaning = read(tx, profile, button)
    if meaning.status == "live" and meaning.copy is not None and meaning.copy.kind != "card":
        close_panel(tx, meaning.copy)
    return meaning


def wait_longer(tx: Tx, profile: str, button: Button, *, limit_s: float) -> Meaning:
    """Let the question wait 15 minutes longer than it would, within the profile's longest window."""
    meaning = read(tx, profile, button)
    row = meaning.row
    if meaning.status != "live" or row is None or row.outcome is not None or row.expires_at is None:
        return meaning
    left_s = (row.expires_at - tx.now).total_seconds()
    changed = deciding.extend(tx, profile, row.request_id, left_s + WAIT_LONGER_S, limit_s=limit_s, once=False)
    return replace(meaning, row=changed)
