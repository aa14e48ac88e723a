"""What is wrong with a TOML file that a person wrote: the line, and plain words for the slips that are made."""

from __future__ import annotations

import re

_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_SLIPS = (
    ("Illegal character '\\n'", "a text is not closed by its quote on this line"),
    ("Unterminated string", "a text is not closed by its quote"),
    ("Unclosed array", "a list is not closed by ], or a comma is missing in it"),
    ("Expected '='", "there is no = behind the name"),
    ("Invalid value", "the value is neither a text in quotes nor a number, true, false or a list"),
    ("Cannot overwrite a value", "this name stands there twice"),
    ("Cannot declare", "this section stands there twice"),
)
"""How the parser's words begin, and what a person did."""
FORM = "A line reads NAME = VALUE; text stands in quotes, a list in brackets."


def toml_problem(problem: str, text: str) -> tuple[int, str]:
    """The line, and what is wrong in it, of what the parser said of `text`."""
    at = _LINE.search(problem)
    line = int(at.group(1)) if at else text.count("\n") + 1
    what = _LINE.sub("", problem).replace("(at end of document)", "").strip()
    return line, next((words for said, words in _SLIPS if what.startswith(said)), what)
