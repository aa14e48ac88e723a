"""Commands of cmd that stand behind its keywords."""

MAX_KEYWORDS = 16
"""So many keywords before one command are looked behind."""


def behind_keywords(words: list[str]) -> list[list[str]]:
    """A command of cmd, and those it runs in turn: `if exist x del x`, `do del x`, `call del x`, `@del x`."""
    found = [words]
    while words and len(found) <= MAX_KEYWORDS:
        words = [words[0].lstrip("@"), *words[1:]]
        name = words[0].casefold()
        at = _condition_words(words) if name == "if" else 1 if name in {"do", "else", "call"} or not name else 0
        if not at:
            break
        words = words[at:]
        if words:
            found.append(words)
    if words and words is not found[-1]:
        found.append(words)
    return found


def _condition_words(words: list[str]) -> int:
    """How many words `if` and its condition take: `if not exist x`, `if /i a==b`, `if a equ b`."""
    at = 1
    while at < len(words) and words[at].casefold() in {"not", "/i"}:
        at += 1
    given = words[at].casefold() if at < len(words) else ""
    if given in {"exist", "defined", "errorlevel", "cmdextversion"}:
        return at + 2
    return at + 1 if "==" in given else at + 3
