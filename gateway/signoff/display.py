"""The one way from an agent's text to what a person reads: secrets masked, everything invisible written out.

Both are decided on the raw text. Secrets are found first, also behind invisible characters, because an escape in the
middle of a token would hide it from the search. Then the stretches between the masks are escaped; the masks are put in
last, unescaped. So a bracket `⟨` on a card is always Signoff's: those of the text are shown as `⟨U+27E8⟩`.
"""

from __future__ import annotations

from signoff.masking import masks
from signoff.visible import visible


def shown(text: str, *, prose: bool = False) -> str:
    """Return what people see of `text`. Not for a result of this function: its brackets would be escaped again.

    `prose` is for reasons, names and descriptions, where no first word is a command.
    """
    pieces: list[str] = []
    at = 0
    for covered in masks(text, prose=prose):
        pieces += [visible(text[at : covered.start], line_start=at == 0), covered.shown]
        at = covered.end
    pieces.append(visible(text[at:], line_start=at == 0))
    return "".join(pieces)
