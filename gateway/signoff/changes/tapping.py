"""A verified tap, in one commit: what its button still means, the message it teaches us, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from signoff.changes import answering_all, deciding, digests, ending, sending
from signoff.changes.answering_all import AllOf, Answered
from signoff.changes.common import RUN_AGAIN, close_panel, copies_of, touch_digest, unsure
from signoff.changes.copies import new_panel
from signoff.changes.deciding import Decided, Ruling
from signoff.changes.digests import Listed
from signoff.ids import row_id
from signoff.model import Actor, ApprovalRequest, Copy, Face, replace
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
    stands = copy if copy.digest is None else tx.get(Copy, copy.digest)
    if stands is None or (known := _learned(tx, stands, button)) is None:
        return Meaning(status="unknown")
    if copy.digest is None:
        copy = known
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


def _learned(tx: Tx, copy: Copy, button: Button) -> Copy | None:
    """The copy whose message bears the button, with the message's id; None for another message."""
    if copy.message_id is not None and button.message_id is not None and copy.message_id != button.message_id:
        return None
    if copy.message_id is None and button.message_id is not None and not copy.private:
        return sending.learn(tx, copy, button.message_id, button.order)
    return copy


def open_listed(tx: Tx, profile: str, button: Button) -> tuple[Meaning, Literal["opened", "stands"] | None]:
    """Post the own card of a question that a digest lists; None where the button means nothing any more."""
    meaning = read(tx, profile, button)
    if meaning.status != "live" or meaning.row is None or meaning.row.outcome is not None or meaning.copy is None:
        return meaning, None
    return meaning, digests.open_card(tx, meaning.copy)


class OnDigest(Struct, frozen=True, kw_only=True):
    """What a button of a digest or of its panel means now."""

    status: Literal["live", "unknown", "others"]
    copy: Copy | None = None
    digest: Copy | None = None
    revision: int = 0
    """The digest's revision that is meant."""
    panel: Copy | None = None
    """The panel that was opened."""
    runs: int = 0
    """How many runs it would approve."""


def read_digest(tx: Tx, profile: str, button: Button) -> OnDigest:
    """Look up a button of a digest, or of the panel opened on one, and learn its message's id."""
    copy = tx.get(Copy, button.copy_id)
    if copy is None or copy.profile != profile:
        return OnDigest(status="unknown")
    known = _learned(tx, copy, button)
    digest = known if copy.kind == "digest" else tx.get(Copy, copy.parent_copy or "")
    if known is None or digest is None or not known.faces:
        return OnDigest(status="unknown")
    if copy.owner_id is not None and copy.owner_id != button.user_id:
        return OnDigest(status="others", copy=known, digest=digest)
    revision = known.faces[-1].revision if copy.kind == "panel" else button.revision
    return OnDigest(status="live", copy=known, digest=digest, revision=revision)


def list_digest(tx: Tx, profile: str, button: Button) -> tuple[OnDigest, tuple[Listed, ...]]:
    """Everything that a digest lists, for whoever opens its list."""
    meaning = read_digest(tx, profile, button)
    if meaning.status != "live" or meaning.digest is None:
        return meaning, ()
    return meaning, digests.entries(tx, meaning.digest)


def answer_digest(
    tx: Tx,
    profile: str,
    button: Button,
    *,
    may: answering_all.May,
    ruled: Callable[[ApprovalRequest, Actor], Ruling],
) -> tuple[OnDigest, Answered | None]:
    """Answer all that the pressed revision of a digest lists; the digest tells it at once."""
    meaning = read_digest(tx, profile, button)
    if meaning.status != "live" or meaning.digest is None or meaning.copy is None:
        return meaning, None
    digest = meaning.digest
    all_of = AllOf(profile=profile, place=digest.destination, digest=digest.copy_id, revision=meaning.revision)
    answered = answering_all.answer_all(tx, all_of=all_of, may=may, ruled=ruled)
    if meaning.copy.kind == "panel":
        close_panel(tx, meaning.copy)
    touch_digest(tx, digest.copy_id, at_once=True)
    return meaning, answered


def open_digest_panel(tx: Tx, profile: str, button: Button, *, limit_s: float, private: bool) -> OnDigest:
    """Ask the person who pressed once more before many runs are approved. It replaces an open one of theirs, and
    stretches the short windows of what it would approve once."""
    meaning = read_digest(tx, profile, button)
    digest = meaning.digest
    if meaning.status != "live" or digest is None or not digest.whole_shown:
        return meaning
    for copy in digests.panels(tx, digest):
        if copy.owner_id == button.user_id:
            close_panel(tx, copy)
    opened = new_panel(
        row_id(),
        digest,
        panel="all",
        owner_id=button.user_id,
        owner_name=button.user_name,
        now=tx.now,
        private=private,
        face=Face(meaning.revision),
    )
    runs = 0
    for each in digests.entries(tx, digest):
        face = digests.face_at(each.copy, meaning.revision)
        if face is not None and digests.approvable(each.row):
            deciding.extend(tx, profile, each.row.request_id, PANEL_WINDOW_S, limit_s=limit_s, once=True)
            runs += face.shown + 1
    if runs:
        tx.put(opened)
    return replace(meaning, panel=opened, runs=runs)


def close_digest_panel(tx: Tx, profile: str, button: Button) -> OnDigest:
    """Remove the panel this button stands on."""
    meaning = read_digest(tx, profile, button)
    if meaning.status == "live" and meaning.copy is not None and meaning.copy.kind == "panel":
        close_panel(tx, meaning.copy)
    return meaning


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
    if meaning.status != "live" or row is None or card is None:
        return meaning
    if not (unsure(row) if choice == RUN_AGAIN else row.outcome is None):
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
