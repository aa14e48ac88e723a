"""The list of a digest as one person opens it: all that wait, a page at a time, each with a button for its own card.

Nothing is kept of it: its buttons are the digest's own, and each page is made from the rows as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.changes.digests import Listed
from signoff.clipping import units
from signoff.digest_cards import ROOM_UNITS, gravest_first, line_each, opener, title_of, turner
from signoff.model import Block, Button, Card, Copy, Span
from signoff.tokens import Signer
from signoff.wording import t

PAGE = 15
ROW = 5
"""As many buttons stand beside each other on every platform."""


def page_of(listed: Sequence[Listed], skip: int) -> tuple[list[Listed], int]:
    """What a page shows, and the place of its first one. Places count everything listed, the gravest first, so that
    none moves when others end. From the end it goes on at the start."""
    ordered = gravest_first(listed)
    places = [place for place, each in enumerate(ordered) if each.row.outcome is None]
    here = [place for place in places if place >= skip] or places
    return [ordered[place] for place in here[:PAGE]], here[0] if here else 0


def list_card(digest: Copy, listed: Sequence[Listed], signer: Signer, *, skip: int, max_units: int) -> Card:
    """The page that begins at place `skip`, or as much of it as a message holds."""
    page, first = page_of(listed, skip)
    waiting = [each for each in listed if each.row.outcome is None]
    title = title_of(waiting)
    quote, hidden = line_each(page, max_units - ROOM_UNITS - units(title), {})
    page = page[: max(1, len(page) - hidden)]
    ids = [opener(each, signer) for each in page]
    rows = [tuple(ids[at : at + ROW]) for at in range(0, len(ids), ROW)]
    return Card(
        blocks=(Block("text", (Span(title, "bold"),)), *quote),
        rows=(*rows, (*_turns(digest, listed, page, first, signer), _close(digest, signer))),
    )


def _turns(
    digest: Copy, listed: Sequence[Listed], page: Sequence[Listed], first: int, signer: Signer
) -> tuple[Button, ...]:
    """On to the rest, and from the last page to the start."""
    ordered = gravest_first(listed)
    after = ordered.index(page[-1]) + 1 if page else 0
    left = sum(each.row.outcome is None for each in ordered[after:])
    if left:
        return (turner(digest, signer, t("button.list_on", count=left), after),)
    before = any(each.row.outcome is None for each in ordered[:first])
    return (turner(digest, signer, t("button.list_start"), 0),) if before else ()


def _close(digest: Copy, signer: Signer) -> Button:
    place = digest.destination
    return Button(t("button.close"), signer.token(digest.copy_id, 0, "close", place.platform, place.chat_id))
