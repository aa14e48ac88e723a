"""The one way from an agent's text to what a person reads: secrets masked, everything invisible written out.

Both are decided on the raw text. Secrets are found first, also behind invisible characters, because an escape in the
middle of a token would hide it from the search. Then the stretches between the masks are escaped; the masks are put in
last, unescaped. So a bracket `⟨` on a card is always Signoff's: those of the text are shown as `⟨U+27E8⟩`.
"""

from __future__ import annotations

from functools import lru_cache

from signoff.masking import Mask, masks, masks_before
from signoff.visible import visible

REMEMBERED_CHARS = 2048
"""Longer texts are rare, and remembering many of them would cost memory: with 2,048 texts at most 16 MB."""
LONGER_CHARS = 32_768
"""Up to here the last 64 are remembered, beyond the last 4: a request's longest text (1 MB) takes some 0.4 s, and its
card, its file, its record and each edit show the same."""
WINDOW_CHARS = 512
"""So much behind the beginning of a long text is looked at too: a secret that goes on across the cut is known for one
by then. No form takes more than 100 characters to be certain of, but for a longer password in an address."""


def shown(text: str, *, prose: bool = False) -> str:
    """Return what people see of `text`. Not for a result of this function: its brackets would be escaped again.

    `prose` is for reasons, names and descriptions, where no first word is a command. One question shows the same text
    on its card, in its record and on each edit, so the last ones are remembered.
    """
    if len(text) <= REMEMBERED_CHARS:
        return _remembered(text, prose)
    return _longer(text, prose) if len(text) <= LONGER_CHARS else _longest(text, prose)


def shown_beginning(text: str, chars: int, *, prose: bool = False) -> str:
    """Return what people see of the first `chars` characters of `text`, however long it is: no more of it is looked at
    than these and a window behind them. A secret across the cut is masked as far as the window."""
    return shown(text, prose=prose) if len(text) <= chars else _beginning(text[: chars + WINDOW_CHARS], prose, chars)


def _shown(text: str, prose: bool) -> str:
    return _written(text, masks(text, prose=prose), len(text))


def _written(text: str, covering: list[Mask], end: int) -> str:
    """The text before `end`, with these masks in it."""
    if not covering:
        return visible(text[:end])
    pieces: list[str] = []
    at = 0
    for covered in covering:
        pieces += [visible(text[at : covered.start], line_start=at == 0), covered.shown]
        at = covered.end
    pieces.append(visible(text[at:end], line_start=at == 0))
    return "".join(pieces)


@lru_cache(maxsize=2048)
def _beginning(text: str, prose: bool, chars: int) -> str:
    return _written(text, masks_before(chars, text, prose=prose), chars)


_remembered = lru_cache(maxsize=2048)(_shown)
_longer = lru_cache(maxsize=64)(_shown)
_longest = lru_cache(maxsize=4)(_shown)
