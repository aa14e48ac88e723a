"""The one way from an agent's text to what a person reads: secrets masked, everything invisible written out.

Both are decided on the raw text. Secrets are found first, also behind invisible characters, because an escape in the
middle of a token would hide it from the search. Then the stretches between the masks are escaped; the masks are put in
last, unescaped. So a bracket `⟨` on a card is always Signoff's: those of the text are shown as `⟨U+27E8⟩`.
"""

from __future__ import annotations

from functools import lru_cache

from signoff.masking import masks
from signoff.visible import visible

REMEMBERED_CHARS = 2048
"""Longer texts are rare, and remembering many of them would cost memory: with 2,048 texts at most 16 MB."""


def shown(text: str, *, prose: bool = False) -> str:
    """Return what people see of `text`. Not for a result of this function: its brackets would be escaped again.

    `prose` is for reasons, names and descriptions, where no first word is a command. One question shows the same text
    on its card, in its record and on each edit, so the last ones are remembered.
    """
    return _remembered(text, prose) if len(text) <= REMEMBERED_CHARS else _shown(text, prose)


def _shown(text: str, prose: bool) -> str:
    pieces: list[str] = []
    at = 0
    for covered in masks(text, prose=prose):
        pieces += [visible(text[at : covered.start], line_start=at == 0), covered.shown]
        at = covered.end
    pieces.append(visible(text[at:], line_start=at == 0))
    return "".join(pieces)


_remembered = lru_cache(maxsize=2048)(_shown)
