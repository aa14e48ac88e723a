"""Words of pieces that touch each other: the shell sees one word, whatever it is made of."""

from __future__ import annotations

import random

PIECES = (
    *("a", "-b", ".", "/", "=", ":", ",", "+", "%", "@", "#", "!", "^", "_", "-", "7", "[", "]", "{", "}"),
    *("$", "\\ ", "\\$", "\\;", "\\#", "\\\\", "'q'", "$'n'", "$'\\\\'", "$''", '""'),
    *("$v", "$x", "${w}", "$IFS", "$$", "$?", '"$x"', '"a$x-b$w/"', '"$v\\ $w"', "${v:-d}", "${v#a}", "$((1+1))"),
    *("$(echo z)", "`echo z`", '"$(echo z)"', '"$`echo z`"'),
)
"""Stretches of a word: plain, quoted, escaped, and such as expand."""


def word(source: random.Random) -> str:
    """Two to seven pieces side by side."""
    return "".join(source.choice(PIECES) for _piece in range(source.randint(2, 7)))
