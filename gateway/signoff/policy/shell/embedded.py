"""Shell text that stands inside texts of other languages: awk, sed, editors, debuggers, scripting languages.

Each reader yields the shell texts it sees, with `UNKNOWN` for what is computed there, and none of them raises. They
look for the usual ways to start a program, not for every way: the text as a whole is kept for the rules to judge.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from signoff.policy.shell.model import UNKNOWN
from signoff.policy.shell.quoting import requote

MAX_CHARS = 8 * 1024
"""Longer texts are not searched; they count as one text that is not known."""

MAX_FOUND = 64
"""So many texts are taken from one; it keeps the search linear, and one that is not known stands for the rest."""

_NEAR = 256
"""How many tokens around a pipe of awk belong to its command."""

_AWK_TOKEN = re.compile(r'"((?:[^"\\\n]|\\.)*)"|/(?:[^/\\\n]|\\.)+/|#[^\n]*|\|\|?|[;{}()\n]|\w+|[^\w\s]|[ \t]+', re.S)
_ESCAPE = re.compile(r"\\(.)", re.S)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_CALL = re.compile(
    r"(?<![\w$])(?:system|exec|execl|execlp|execv|execvp|execSync|execFile|execFileSync|spawn|spawnSync|popen|popen2"
    r"|popen3|shell_exec|passthru|proc_open|pcntl_exec|qx|capture2|capture2e|capture3|system2|os\.execute|io\.popen|run"
    r"|doShellScript|command)\b\s*+[(\[{]?(?=[^\n]{0,200}['\"`])"
)
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|`((?:[^`\\]|\\.)*)`", re.S)
_BACKTICKS = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`|(?:%x|\bqx)([({\[/|!])((?:[^)}\]/|!\\]|\\.)*)", re.S)
_INTERPOLATED = re.compile(r"#\{[^}]{0,200}\}|\$\{[^}]{0,200}\}|(?<!\\)[$@]\w+")


def shell_texts(language: str, text: str) -> list[str]:
    """The shell texts that a text of this language hands to a shell or starts as a program."""
    reader = _READERS.get(language)
    if reader is None or not text:
        return []
    if len(text) > MAX_CHARS:
        return [UNKNOWN]
    read = list(islice(reader(text), MAX_FOUND + 1))
    found = list(dict.fromkeys(read[:MAX_FOUND]))
    return found if len(read) <= MAX_FOUND else [*found, UNKNOWN]


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _LETTERS.get(match.group(1), match.group(1)), text)


def _awk(text: str) -> Iterator[str]:
    """`system(...)`, `print | "..."` and `"..." | getline`."""
    tokens = _awk_tokens(text)
    if tokens is None:
        yield UNKNOWN
        return
    words = [token.group() for token in tokens]
    for place, word in enumerate(words):
        if word == "system" and words[place + 1 : place + 2] == ["("]:
            yield _awk_value(tokens[place + 2 : place + _NEAR], ")")
        elif word == "|":
            after = place + 1 + (words[place + 1 : place + 2] == ["&"])
            if words[after : after + 1] == ["getline"]:
                start = place
                while start and place - start < _NEAR and words[start - 1] not in {";", "{", "}", "(", "\n", "="}:
                    start -= 1
                yield _awk_value(tokens[start:place], "")
            else:
                yield _awk_value(tokens[after : after + _NEAR], "")


_MAX_LONE_MARKS = 32
"""How many quotes and slashes without a partner a text of awk may have before it counts as not known: each is looked
for in all that follows."""


def _awk_tokens(text: str) -> list[re.Match[str]] | None:
    found: list[re.Match[str]] = []
    lone = 0
    for match in _AWK_TOKEN.finditer(text):
        token = match.group()
        lone += token in {'"', "/"}
        if lone > _MAX_LONE_MARKS:
            return None
        if token.strip(" \t"):
            found.append(match)
    return found


def _awk_value(tokens: list[re.Match[str]], end: str) -> str:
    """The value of a concatenation: its strings, and what is not known between them."""
    parts: list[str] = []
    depth = 0
    for token in tokens:
        word = token.group()
        if depth == 0 and (word == end or (not end and word in {";", "}", "\n", "|", ")"})):
            break
        depth += (word == "(") - (word == ")")
        if token.group(1) is not None:
            parts.append(_unescaped(token.group(1)))
        elif word not in {"(", ")"}:
            parts.append(UNKNOWN)
    return "".join(parts)


_MAX_MENDED = 16
"""How many brackets without an end a script of sed may have before it counts as not known: each costs a second look."""


class _Sed:
    """Goes through a script of sed, looking for what GNU sed executes: `e`, and the flag `e` of `s`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.mended = 0

    def run(self) -> Iterator[str]:
        while self.at < len(self.text):
            if self.mended > _MAX_MENDED:
                yield UNKNOWN
                return
            self._skip(" \t\n;{}")
            self._addresses()
            if self.at >= len(self.text):
                return
            letter = self.text[self.at]
            self.at += 1
            if letter in "sy":
                yield from self._substitution(letter)
            elif letter == "e":
                yield self._line().strip() or UNKNOWN
            elif letter in "aicrRwW#":
                self._line(continued=letter in "aic")
            elif letter in "btT:":
                self._word()

    def _skip(self, characters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1

    def _addresses(self) -> None:
        while self.at < len(self.text) and self.mended <= _MAX_MENDED:
            mark = self.text[self.at]
            if mark in "0123456789$,~+! \t":
                self.at += 1
            elif mark == "/" or (mark == "\\" and self.at + 1 < len(self.text)):
                self.at += mark == "\\"
                delimiter = self.text[self.at]
                self.at += 1
                self._segment(delimiter)
                self._skip("IM")
            else:
                return

    def _segment(self, delimiter: str) -> str:
        start, inside = self.at, False
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark == "\\":
                self.at += 2
                continue
            if mark == delimiter and not inside:
                break
            inside = (inside and mark != "]") or (mark == "[" and not inside and delimiter != "[")
            self.at += 1
        else:
            if inside:  # a bracket without an end is a plain character
                self.mended += 1
                found = self.text.find(delimiter, start)
                self.at = found if found >= 0 else len(self.text)
        text = self.text[start : self.at]
        self.at += 1
        return text

    def _substitution(self, letter: str) -> Iterator[str]:
        if self.at >= len(self.text):
            return
        delimiter = self.text[self.at]
        self.at += 1
        self._segment(delimiter)
        start = self.at
        while self.at < len(self.text) and self.text[self.at] != delimiter:
            self.at += 2 if self.text[self.at] == "\\" else 1
        replacement = self.text[start : self.at]
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] not in "; \t\n}":
            flag = self.text[self.at]
            self.at += 1
            if flag == "w":
                self._line()
            elif flag == "e" and letter == "s":
                yield re.sub(r"\\[\d&]|(?<!\\)&", UNKNOWN, replacement).replace("\\", "")

    def _line(self, *, continued: bool = False) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] != "\n":
            self.at += 2 if continued and self.text[self.at] == "\\" else 1
        return self.text[start : self.at]

    def _word(self) -> None:
        while self.at < len(self.text) and self.text[self.at] not in ";\n":
            self.at += 1


_PLAIN_SED = re.compile(r"(?:\d++(?:,(?:\d++|\$))?|\$)?(?:[pdq=]|s/[^/\\\[\n]*+/[^/\\\n]*+/[gpiI\d]*+)", re.A)
"""The scripts of every day, which execute nothing: one command that prints, deletes or replaces."""


def _sed(text: str) -> Iterator[str]:
    if _PLAIN_SED.fullmatch(text) is None:
        yield from _Sed(text).run()


_VI_SHELL = re.compile(
    r"(?:^|[|:\n])[ \t]*+(?:(?:silent|sil|exe\w*+)!?[^\S\n]++['\"]?)*+[\d%.,$'<>+-]*+[^\S\n]*+"
    r"(?:read|re|r|write|w)?+[^\S\n]*+!+(.+)"
)
_VI_TERMINAL = re.compile(r"(?:^|[|:\n])[ \t]*(?:ter|term|terminal|sh|shell|make|grep)\b!?\s*(?:\+\+\w+\s+)*(.*)")
_VI_CALL = re.compile(r"\b(?:system|systemlist|termopen|jobstart|job_start)\(\s*(['\"])(.*?)\1")


def _vi(text: str) -> Iterator[str]:
    """`:!command` and its kin in the commands of vi, ed, more and less."""
    for match in _VI_SHELL.finditer(text):
        yield match.group(1)
    for match in _VI_TERMINAL.finditer(text):
        yield match.group(1)
    for match in _VI_CALL.finditer(text):
        yield match.group(2)
    if text[:1] == "|" and text[2:].strip():
        yield text[2:]  # less pipes what it shows from a mark on: `|$command`


_PSQL_BACKTICKS = re.compile(r"(?:^|\n)[ \t]*+\\\w[^\n`]*+`([^`\n]++)`")
_PSQL_PIPE = re.compile(r"\\(?:gx?|o|out|w|write)\b\s*+(?:\([^)\n]{0,200}+\)\s*+)?\|\s*+(.+)")
_SHELL_ESCAPE = re.compile(
    r"(?:^|\n)[ \t]*(?:\\!|\.shell\b|\.system\b|shell\b|platform\s+shell\b|system\b|!|pipe\b[^|\n]*\|)\s*(.+)"
)


def _escape(text: str) -> Iterator[str]:
    r"""`shell command`, `!command`, `\! command` and `.system command` of debuggers and database clients."""
    for pattern in (_SHELL_ESCAPE, _PSQL_PIPE, _PSQL_BACKTICKS):
        for match in pattern.finditer(text):
            yield match.group(1)


def _tcl(text: str) -> Iterator[str]:
    for match in re.finditer(r"(?:^|[;\n\[{])[ \t]*(?:spawn|exec|system|overlay)\s+(?:-\w+\s+)*([^\]\n;}]+)", text):
        yield match.group(1)


def _applescript(text: str) -> Iterator[str]:
    for match in re.finditer(r'do\s+shell\s+script\s+"((?:[^"\\]|\\.)*)"', text):
        yield _unescaped(match.group(1))


def _scripting(text: str) -> Iterator[str]:
    """Calls whose name says that they start a program, with the strings they are given; and backticks."""
    for match in islice(_CALL.finditer(text), MAX_FOUND + 1):
        end = min(len(text), match.end() + 2000)
        strings: list[str] = []
        position = match.end()
        while (found := _STRING.match(text, _blanks(text, position, end))) is not None:
            body = next(group for group in found.groups() if group is not None)
            strings.append(_INTERPOLATED.sub(UNKNOWN, _unescaped(body)))
            position = found.end()
        if len(strings) == 1:
            yield strings[0]
        elif strings:
            yield " ".join(string if UNKNOWN in string else requote(string) for string in strings)


def _blanks(text: str, position: int, end: int) -> int:
    while position < end and text[position] in " \t\r\n,([{.=>":
        position += 1
    return position


def _with_backticks(text: str) -> Iterator[str]:
    for match in _BACKTICKS.finditer(text):
        body = match.group(1) if match.group(1) is not None else match.group(3)
        yield _INTERPOLATED.sub(UNKNOWN, body)
    yield from _scripting(text)


_RPM = re.compile(r"%\(|%\{\??!?(?:lua|load|uncompress)[:}]")


def _rpm(text: str) -> Iterator[str]:
    """`%(command)` in macros of rpm; what they compute or load by other ways is not known."""
    end = 0
    while (match := _RPM.search(text, end)) is not None:
        start = end = match.end()
        if match.group() != "%(":
            yield UNKNOWN
            continue
        open_brackets = 1
        while end < len(text) and open_brackets:
            open_brackets += (text[end] == "(") - (text[end] == ")")
            end += 1
        yield text[start : end - (not open_brackets)]


_M4 = re.compile(r"(?:m4_)?e?syscmd(?:\s*\(([^)]*+))?")


def _m4(text: str) -> Iterator[str]:
    """`syscmd(command)` and `esyscmd(command)`."""
    for match in _M4.finditer(text):
        command = (match.group(1) or "").strip("`'[] \t")
        yield command or UNKNOWN


_MLR_PIPE = re.compile(r'\|\s*+"((?:[^"\\]|\\.)*+)"')


def _mlr(text: str) -> Iterator[str]:
    """`system("...")`, `exec("...", [...])` and `print | "..."` of Miller."""
    for match in _MLR_PIPE.finditer(text):
        yield _unescaped(match.group(1))
    yield from _scripting(text)


_READERS: dict[str, Callable[[str], Iterator[str]]] = {
    "awk": _awk,
    "sed": _sed,
    "vi": _vi,
    "escape": _escape,
    "tcl": _tcl,
    "applescript": _applescript,
    "mlr": _mlr,
    "rpm": _rpm,
    "m4": _m4,
    "perl": _with_backticks,
    "ruby": _with_backticks,
    "php": _with_backticks,
    "javascript": _scripting,
    "lua": _scripting,
    "julia": _with_backticks,
    "r": _scripting,
    "elixir": _scripting,
    "groovy": _scripting,
}
