"""Secrets known by the name beside them: `DB_PASSWORD=…`, `--token …`, `"api_key": "…"`, `Authorization: …`.

A name alone never hides what could run. The value of a variable stays visible when the text runs that variable,
directly or through another (`a=$TOKEN; $a`, `X=TOKEN; ${!X}`, `printenv TOKEN | sh`). It also stays visible when it
could name a program (a plain small-letter word or path of at most 20 characters, or a word that the text has as a
command) and the text has any means to run a value: `$`, a backtick, `eval`, `declare`, a shell or an interpreter. The
word behind an option (`--token rm`) stays visible whenever it could name a program, since xargs and its kin run the
words that follow. All other values are masked: with a digit or a capital in it, a word is taken for a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signoff.randomness import could_be_program, looks_like_path, looks_random

Span = tuple[int, int]

NAME_PARTS: Final = ("secret", "token", "pass", "pwd", "key", "credential", "auth")
"""Each name that says secret has one of these in it, in small letters or capitals."""
# For text in small letters, sorted by the first one: so the scan passes quickly over whatever begins otherwise.
_HINT: Final = re.compile(
    r"a(?:(?:pi|ccess|uth|ccount)[-_.]?key|uthorization)|credential|encryption[-_.]?key"
    r"|p(?:ass(?:w|phrase|code)|wd|rivate[-_.]?key)|s(?:ecret|(?:igning|ession)[-_.]?key)|token|_auth"
)
_NAME_CHAR: Final = re.compile(r"[A-Za-z0-9_.-]{0,64}")
_NAME_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_MAX_NAME: Final = 64
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_NAME: Final = re.compile(
    r"_(?:[a-z0-9]*(?:secret|token|password|passwd|passphrase|passcode|apikey)|pwd|credentials?|authorization|secrets"
    r"|(?:api|access|private|secret|auth|signing|session|account|encryption)_key)(?:_|\Z)"
)
_AUTH_NAME: Final = re.compile(r"_(?:rediscli_auth|_auth|npm_config__auth)\Z")
# The last part of a name that speaks about a secret without being one.
_ABOUT: Final = frozenset(
    re.findall(
        r"\w+",
        "count counts limit type types mode file files path paths dir url uri endpoint name names id ids length len "
        "size max min ttl expiry expires expiration timeout policy enabled disabled required field header headers "
        "format version index stdin store backend provider manager class env var hash algorithm rotation",
    )
)
_SEPARATOR: Final = re.compile(
    r"(?:\\?[\"'])?\]?"
    r"(?:=(?![=>])|[ \t]{1,4}:?=(?![=>])[ \t]{1,4}|[ \t]{0,4}=>[ \t]{0,4}|[ \t]{0,4}:(?![:=/])[ \t]{0,4})"
)
_FLAG_SEPARATOR: Final = re.compile(r"[ \t]{1,4}(?![-;|&<>])|\\?[\"'],[ \t]{0,4}(?=\\?[\"'])")
_SCHEME: Final = re.compile(r"(?:bearer|basic|token|digest|apikey|bot|negotiate)[ \t]{1,4}", re.IGNORECASE)
_OPEN_QUOTE: Final = re.compile(r"\\?([\"'])")
_BARE: Final = re.compile(r"(?:[^\s;|&<>()\"'`,\\]|\\[^\sA-Za-z0-9\"'])++")
_MAX_QUOTED: Final = 4096
_EXPANSION: Final = re.compile(r"\$[A-Za-z_{(]|`")
_EXPANSION_SIGN: Final = re.compile(r"[$`]")
_COMMAND_SUBSTITUTION: Final = re.compile(r"\$[{(]|`")
_UNSAFE_PHRASE: Final = re.compile(r"[;|&<>(){}$`\\]|(?:^|\s)[-./~]|/")
_NO_SECRET: Final = frozenset({"true", "false", "null", "none", "nil", "yes", "no", "undefined"})
_CODE: Final = re.compile(r"(?:self|this|os|process|config|settings|args|env|secrets|var|local|data)\.[A-Za-z_.]+\Z")
_MAX_JUDGED: Final = 128

_VARIABLE: Final = re.compile(r"\$\{?[!#]?([A-Za-z_][A-Za-z0-9_]*)")
_RUN_VARIABLE: Final = re.compile(
    r"(?:^|[\n;|&(`{!]|\b(?:eval|sudo|doas|exec|xargs|command|time|nohup|env|then|do|else)[ \t]|[ \t]-[a-z]{0,3}c[ \t])"
    r"[ \t\"'\\]*+\$\{?[!#]?([A-Za-z_][A-Za-z0-9_]*)"
)
_ASSIGNED: Final = re.compile(
    r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]{0,63})\+?=[\"']?(?:\$\{?[!#]?)?([A-Za-z_][A-Za-z0-9_]{0,63})(?![A-Za-z0-9_=])"
)
_SHELL: Final = r"(?:ba|da|z|k|mk|a|fi|c|tc)?sh"
_PIPED: Final = re.compile(rf"\|&?[ \t]*(?:[\w./-]+[ \t]+){{0,3}}(?:/[\w./-]*/)?{_SHELL}(?![\w.-])", re.ASCII)
_PRINTED: Final = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:echo|printenv|printf[ \t]+\S{1,40})[ \t]+[\"']*\$?\{?[!#]?([A-Za-z_][A-Za-z0-9_]*)"
)
_PRINTED_AND_RUN: Final = re.compile(
    r"(?:^|[\n;|&({!]|\beval[ \t])[ \t\"']*+(?:\$\(|`)[ \t]*+(?:echo|printenv)[ \t]+[\"']*"
    r"\$?\{?[!#]?([A-Za-z_][A-Za-z0-9_]*)"
)
# What can turn a value into a program, beside `$` and a backtick. A file's ending (`run.sh`) is none of these. The set
# at the front has the first letters of all: so the scan passes quickly over the others.
_RUNNER: Final = re.compile(
    rf"(?=[abcdefiklmnprstwxz])(?<![A-Za-z0-9_.-])(?:{_SHELL}|eval|printenv|declare|typeset|local|source|xargs|parallel|watch|ssh|su"
    r"|python[0-9.]*|perl|ruby|node|php|awk|lua|cmd|powershell|pwsh|iex)(?![A-Za-z0-9_-])"
)
_COMMAND_WORD: Final = re.compile(r"(?:^|[\n;|&(`{!])[ \t]*+([A-Za-z0-9_./-]{1,40})(?![A-Za-z0-9_./=-])")


def says_secret(name: str) -> bool:
    """Tell whether a variable, key, header or option of this name carries a secret."""
    if name in ("PWD", "OLDPWD"):  # the shell's working directories
        return False
    joined = "_" + _CAMEL.sub("_", name.lstrip("-.")).lower().replace("-", "_").replace(".", "_")
    if joined.rpartition("_")[2] in _ABOUT:
        return False
    return bool(_SECRET_NAME.search(joined) or _AUTH_NAME.search(joined))


def _small(text: str) -> str:
    """The text in small letters, each character in its place, and no letter a to z that was none before: the sign for
    Kelvin would become one, and the capital I with a dot two characters."""
    return (text if text.isascii() else text.replace("\u212a", "?").replace("\u0130", "?")).lower()


def _found(pattern: re.Pattern[str], text: str) -> set[str]:
    """What the pattern's group holds, wherever it matches. One by one: `findall` keeps all other threads waiting."""
    return {match[1] for match in pattern.finditer(text)}


def _run_variables(text: str) -> set[str]:
    """Names of variables whose value the text runs, also by way of another variable, a reference or a pipe."""
    run = _found(_RUN_VARIABLE, text) | _found(_PRINTED_AND_RUN, text) if _EXPANSION_SIGN.search(text) else set()
    if _PIPED.search(text):
        run |= _found(_PRINTED, text)
    if not run:
        return run
    leads_to: dict[str, set[str]] = {}
    for match in _ASSIGNED.finditer(text):
        leads_to.setdefault(match[1], set()).add(match[2])
    todo = list(run)
    while todo:
        found = leads_to.pop(todo.pop(), set()) - run
        run |= found
        todo += found
    return run


class NamedSecrets:
    """Finds the values beside secret names in one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._looked = False
        self._bare_end = 0
        self._stop = -1

    def _look_around(self) -> None:
        """Look up what the text does beside naming a secret. Few texts name one, so it is done only then."""
        text = self._text
        self._looked = True
        # A value that the same text expands may be run by it, and a mask would hide what runs.
        self._expanded = _found(_VARIABLE, text)
        self._can_run = _EXPANSION_SIGN.search(text) is not None or _RUNNER.search(text) is not None
        self._run = _run_variables(text) if self._can_run else set()
        self._commands = _found(_COMMAND_WORD, text) if self._can_run else set()

    def spans(self) -> Iterator[Span]:
        """Yield spans of values, in order; each lies inside one line."""
        text, name_end, value_end = self._text, 0, 0
        for hint in _HINT.finditer(_small(text)):
            if hint.end() <= name_end or hint.start() < value_end:
                continue
            name_match = _NAME_CHAR.match(text, hint.end())
            name_end = name_match.end() if name_match else hint.end()
            near = text[max(0, hint.start() - _MAX_NAME) : hint.start()]
            start = hint.start() - len(near) + len(near.rstrip(_NAME_CHARS))
            name = text[start:name_end]
            if not says_secret(name):
                continue
            if not self._looked:
                self._look_around()
            at = self._value_start(name, start, name_end)
            for span in self._value(name, at) if at >= 0 else ():
                value_end = max(value_end, span[1])
                if not self._may_run(name, at, span):
                    yield span

    def _may_run(self, name: str, at: int, span: Span) -> bool:
        """Tell whether a mask over this value could hide what runs."""
        first = self._text[span[0] : min(span[1], span[0] + _MAX_JUDGED)].split(maxsplit=1)[:1]
        if not first:
            return False
        behind_option = name.startswith("-") and self._text[at - 1] in " \t,"
        if behind_option and could_be_program(first[0]):
            return len(first[0]) == span[1] - span[0] or self._can_run
        return self._can_run and (could_be_program(first[0]) or first[0] in self._commands)

    def _value_start(self, name: str, start: int, end: int) -> int:
        """Return where the value of a name begins, or -1 where none does."""
        if name in self._run or (start >= 2 and self._text[start - 2 : start] == "${"):
            return -1
        separator = _SEPARATOR.match(self._text, end)
        if separator is None and name.startswith("-"):
            separator = _FLAG_SEPARATOR.match(self._text, end)
        if separator is None:
            return -1
        scheme = _SCHEME.match(self._text, separator.end())
        return scheme.end() if scheme else separator.end()

    def _value(self, name: str, at: int) -> Iterator[Span]:
        text = self._text
        quote = _OPEN_QUOTE.match(text, at)
        if quote:
            start = quote.end()
            scheme = _SCHEME.match(text, start)
            start = scheme.end() if scheme else start
            end = text.find(quote[1], start, start + _MAX_QUOTED)
            if end >= 0 and "\n" not in text[start:end]:
                end -= end > start and text[end - 1] == "\\"
                # JSON and YAML expand nothing in double quotes; a shell does, and what it expands is no secret.
                literal = quote[1] == "'" or ":" in text[max(0, at - 2) : at]
                return self._quoted(name, start, end, literal=literal)
            at = start
        return self._bare(at)

    def _bare(self, at: int) -> Iterator[Span]:
        text = self._text
        # Values can nest (`a_token=/x?b_token=…`); a run and its first expansion are looked up once for all of them.
        if at >= self._bare_end:
            run = _BARE.match(text, at)
            self._bare_end = run.end() if run else at
            self._stop = -1
        if at > self._stop:
            expansion = _EXPANSION.search(text, at, self._bare_end)
            self._stop = expansion.start() if expansion else self._bare_end
        end = self._stop
        if end > at and not (text[end : end + 1] in ("(", "[") or text[at] == "@"):
            yield from self._word(at, end)

    def _quoted(self, name: str, start: int, end: int, *, literal: bool) -> Iterator[Span]:
        inner = self._text[start:end]
        if len(inner.split()) > 1:
            if name not in self._expanded and not _UNSAFE_PHRASE.search(inner):
                yield start, end
            return
        stop = (_COMMAND_SUBSTITUTION if literal else _EXPANSION).search(inner)
        yield from self._word(start, start + stop.start() if stop else end)

    def _word(self, start: int, end: int) -> Iterator[Span]:
        judged = self._text[start : min(end, start + _MAX_JUDGED)]
        if not judged or judged.lower() in _NO_SECRET or _CODE.match(judged):
            return
        if judged.startswith(("/", "./", "../", "~")) and (looks_like_path(judged) or not looks_random(judged)):
            return
        yield start, end
