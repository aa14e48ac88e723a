"""Quote removal: what a quoted stretch means to the shell."""

import re

_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.S)
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DOUBLE = re.compile(r'\\([$`"\\\n])')
_BACKTICK = re.compile(r"\\([$`\\])")
_BARE = re.compile(r"((?:\\.)+)|([^\\]+)|\\$", re.S)


def _ansi_value(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else ""
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF) if int(code, 8) & 0xFF else ""
    if code[0] == "c" and len(code) > 1:
        return chr(ord(code[1]) & 0x1F)
    return _ANSI_LETTERS.get(code, code if code in "\\'\"?" else "\\" + code)


def ansi_c(body: str) -> str:
    """The value of the inside of `$'...'`."""
    return _ANSI.sub(_ansi_value, body)


def double_quoted(body: str) -> str:
    """The value of literal text between double quotes: only `$`, backtick, quote, backslash and newline are escaped."""
    return _DOUBLE.sub(lambda match: "" if match.group(1) == "\n" else match.group(1), body)


def heredoc(body: str) -> str:
    """The value of literal text in an unquoted here-document: as between double quotes, but a quote is not escaped."""
    return backticked(body)


def backticked(body: str) -> str:
    """The code inside an old-style substitution."""
    return "".join(_BACKTICK.split(body))  # all but the backslashes, without a call for each


def bare(text: str) -> list[tuple[str, bool]]:
    """Unquoted text as (stretch, quoted) pairs: what stands behind a backslash is quoted."""
    if "\\" not in text:
        return [(text, False)]
    found: list[tuple[str, bool]] = []
    for match in _BARE.finditer(text):
        if match.group(1) is not None:
            found.append((match.group(1)[1::2], True))
        elif match.group(2):
            found.append((match.group(2), False))
        else:
            found.append(("\\", True))
    return found


def requote(text: str) -> str:
    """`text` as one shell word in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"
