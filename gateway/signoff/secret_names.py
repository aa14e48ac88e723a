"""Secrets known by the name beside them: `DB_PASSWORD=…`, `--token …`, `"api_key": "…"`, `Authorization: …`.

A name alone never hides what could run. The value of a variable stays visible when the text runs that variable,
directly or through another (`a=$TOKEN; $a`, `X=TOKEN; ${!X}`, `printenv TOKEN | sh`). It also stays visible when it
could name a program (a plain small-letter word or path of at most 20 characters, or a word that the text has as a
command) and the text has any means to run a value: `$`, a backtick, `eval`, `declare`, a shell or an interpreter. The
word behind an option (`--token rm`) stays visible whenever it could name a program, since xargs and its kin run the
words that follow. All other values are masked: with a digit or a capital in it, a word is taken for a secret.

In YAML the value may stand below its name. In a command that line may be one that runs, so there it is masked only
where it is a single word that could be no program, and the text has no means to run it.
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
    r"|p(?:ass|wd|rivate[-_.]?key)|s(?:ecret|(?:igning|ession)[-_.]?key)|token|_auth"
)
_NAME_CHAR: Final = re.compile(r"[A-Za-z0-9_.-]{0,64}")
_NAME_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_MAX_NAME: Final = 64
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_NAME: Final = re.compile(
    r"_(?:[a-z0-9]*(?:secret|token|password|passwd|passphrase|passcode|apikey)|pwd|credentials?|authorization|secrets"
    r"|(?:api|access|private|secret|auth|signing|session|account|encryption)_key)(?:_|\Z)"
)
# What stands before `pass` in words, and in names of passes over something.
_NO_PASS: Final = frozenset(
    re.findall(
        r"\w+",
        "com by encom tres sur over under im ssh last kee keep multi one 1 first second third final 1st 2nd 3rd two "
        "single each next prev max min num did will can must should to not no all any pre post half full hall season "
        "boarding day band low high render shader depth shadow geometry lint check test tests build opt optimizer "
        "compile compiler pct percent of n is has fail",
    )
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
# The bare name is also that of a result: `pass: 12`, `pass: all tests`, `PASS: test_x`.
_PROSE: Final = (
    r"(?:all|every|each|the|an?|of|in|over|through|with|for|on|is|to|tests?|checks?|cases?|specs?)(?![\w:=-])"
)
_RESULT: Final = re.compile(
    rf"(?:[0-9][0-9.,%/]*+|ok|done)(?![\w-])|(?<=[ \t])(?:{_PROSE}[ \t]++\S|[a-z-]++[ \t]++{_PROSE})", re.IGNORECASE
)
# Where openssl and keytool find a password that does not stand here, and what stands before one that does.
_ELSEWHERE: Final = re.compile(r"(?:env|file|fd)(?:[ \t:]|\Z)")
_GIVEN: Final = re.compile(r"pass:")
_PARAMETERS: Final = re.compile(r"(?:[\w-]{1,32}[ \t]{1,4})?[\w-]{1,32}=\\?[\"\w]")
_PARAMETER: Final = re.compile(
    r"(?:response|signature|mac|token|credential|key|auth)=\\?\"?([^\s,\"'\\$`]++)", re.IGNORECASE | re.ASCII
)
_PARAMETERS_END: Final = re.compile(r"[\n'`;|&]")
_MAX_PARAMETERS: Final = 1024
_LINE_END: Final = re.compile(r"([|>][-+0-9]{0,2})?[ \t]{0,8}\r?\n")
"""What stands behind the colon in YAML where the value begins on the next line; the sign says that it has several."""
_KEY_LEAD: Final = re.compile(r"[ \t]*+(?:-[ \t]++)*+(?:\\?[\"'])?")
_DATA: Final = re.compile(r"<<|[\"']")
_NO_SCALAR: Final = re.compile(r"[-#{\[*&!|>%@]|\S*[ \t]|\S*:\Z")
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
    return bool(_SECRET_NAME.search(joined) or _AUTH_NAME.search(joined)) or _ends_in_pass(joined)


def _ends_in_pass(joined: str) -> bool:
    """Tell whether a name is one of a password: `_db_pass`, `_userpass`, not `_bypass` or `_first_pass`."""
    if not joined.endswith("pass"):
        return False
    *_, before, last = joined.split("_")
    return (last[:-4] or before) not in _NO_PASS


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


def may_run_text(text: str) -> bool:
    """Tell whether a shell or an interpreter is named, to which any other word may be a text that it runs."""
    return _RUNNER.search(text) is not None


class NamedSecrets:
    """Finds the values beside secret names in one text."""

    def __init__(self, text: str, *, prose: bool = False) -> None:
        self._text = text
        self._prose = prose
        self._below_end = 0
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
        # A line of a command is data only inside of quotes and of here-documents.
        data = _DATA.search(text)
        self._data_from = data.start() if data else len(text)
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
            if at < 0:
                continue
            below = _LINE_END.match(text, at) if ":" in text[name_end:at] else None
            for span in self._below(start, below) if below else self._beside(name, at):
                value_end = max(value_end, span[1])
                if not (self._may_run_below(span) if below else self._may_run(name, at, span)):
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

    def _may_run_below(self, span: Span) -> bool:
        """Tell the same of a line below its name. In a command, each line may be one of its own."""
        word = self._text[span[0] : min(span[1], span[0] + _MAX_JUDGED)]
        if self._prose:
            return self._can_run and could_be_program(word)
        return self._can_run or could_be_program(word)

    def _value_start(self, name: str, start: int, end: int) -> int:
        """Return where the value of a name begins, or -1 where none does."""
        if name in self._run or (start >= 2 and self._text[start - 2 : start] == "${"):
            return -1
        separator = _SEPARATOR.match(self._text, end)
        if separator is None and name.startswith("-"):
            separator = _FLAG_SEPARATOR.match(self._text, end)
        if separator is None:
            return -1
        at = separator.end()
        if name.startswith("-") and _ELSEWHERE.match(self._text, at):
            return -1
        if name.lower() == "pass" and ((name.isupper() and ":" in separator[0]) or _RESULT.match(self._text, at)):
            return -1
        scheme = _SCHEME.match(self._text, at) or (_GIVEN.match(self._text, at) if name.startswith("-") else None)
        return scheme.end() if scheme else at

    def _beside(self, name: str, at: int) -> Iterator[Span]:
        """Yield what stands beside a name. A header may have parameters, of which few are secrets."""
        found = False
        if name.lower().endswith("authorization") and _PARAMETERS.match(self._text, at):
            limit = min(len(self._text), at + _MAX_PARAMETERS)
            stop = _PARAMETERS_END.search(self._text, at, limit)
            for match in _PARAMETER.finditer(self._text, at, stop.start() if stop else limit):
                found = True
                yield match.span(1)
        if not found:
            yield from self._value(name, at)

    def _below(self, start: int, line_end: re.Match[str]) -> Iterator[Span]:
        """Yield the value of a key of YAML that stands on the lines below it, which are further in than the key."""
        text, at = self._text, line_end.end()
        lead = text[text.rfind("\n", 0, start) + 1 : start]
        if at < self._below_end or not _KEY_LEAD.fullmatch(lead) or not (self._prose or start > self._data_from):
            return
        column, limit = len(lead.rstrip("\"'\\")), min(len(text), at + _MAX_QUOTED)
        while at < limit:
            stop = text.find("\n", at, limit)
            stop = limit if stop < 0 else stop
            inner = text[at:stop].strip()
            first = text.find(inner, at) if inner else at
            if inner and first - at <= column:
                break
            if inner:
                yield from self._line(first, first + len(inner), block=line_end[1] is not None)
            at = stop + 1
            if line_end[1] is None:
                break
        self._below_end = at

    def _line(self, start: int, end: int, *, block: bool) -> Iterator[Span]:
        inner = self._text[start:end]
        if not block and inner[0] in "\"'" and inner[-1] == inner[0]:
            start, end, inner = start + 1, end - 1, inner[1:-1]
        elif not block and _NO_SCALAR.match(inner):
            return
        if len(inner.split()) == 1:
            yield from self._word(start, end)
        elif self._prose and not _UNSAFE_PHRASE.search(inner):
            yield start, end

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
