"""Whether a GraphQL request changes something: a reader of its text, no client."""

import re

from signoff.policy.shell import UNKNOWN

_PART = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"|#[^\n]*|[{}()]|[A-Za-z_]\w*|[^\s]', re.S)
_CHANGES = frozenset({"mutation", "subscription"})
_READS = frozenset({"query", "fragment"})


MAX_CHARS = 64 * 1024
"""Longer requests are not read; forges take far shorter ones."""


def changes(text: str) -> bool | None:
    """True where an operation of the request is a mutation or subscription, False where all only ask.

    None where that cannot be told: the text is empty, too long, unknown outside of strings, has a string without an
    end, or starts like no request.
    """
    if len(text) > MAX_CHARS:
        return None
    depth = 0
    starting = True
    found: bool | None = None
    for match in _PART.finditer(text):
        part = match.group()
        if part.startswith('"""') and (len(part) < len('""""""') or not part.endswith('"""')):
            return None  # a string without an end
        if part[0] in '"#':
            continue
        if UNKNOWN in part:
            return None
        if part in "{(":
            if starting and part == "{":
                found = found or False
            depth, starting = depth + 1, False
        elif part in "})":
            depth -= 1
            starting = depth == 0 and part == "}"
        elif starting and depth == 0:
            if part in _CHANGES:
                return True
            if part not in _READS:
                return None
            found, starting = False, False
    return found
