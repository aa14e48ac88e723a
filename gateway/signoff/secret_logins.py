"""Secrets that only their command or header makes ones: `mysql -pSECRET`, `zip -P SECRET`, `Cookie: a=SECRET`.

Each finder yields half-open spans `(start, end)` of the text and walks it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signoff.randomness import could_be_program
from signoff.secret_names import may_run_text

Span = tuple[int, int]

LOGIN_MARKS: Final = (
    *("mysql", "mariadb", "-cli", "login", "curl", "wget", "openssl", "http", "zip", "7z", "rar ", "ldap", "smb"),
    *("rpcclient", "ftp", "freerdp", "net use", "mongo", "sqlcmd", "plink", "pscp", "cookie"),
)
"""In small letters, one is in each text that has such a secret, unless a part of a secret's name is in it."""
_HINTS: Final = (
    *(mark for mark in LOGIN_MARKS if mark not in {"http", "cookie"}),
    *("http ", "https ", "sshpass", "keytool", "jarsigner", "ssh-keygen", "htpasswd", "secret", "-password", "nmcli"),
    *("wpa_", "config"),
)
"""One is in the name of each command of these."""

_JUDGED: Final = 128
_SIMPLE_COMMAND: Final = re.compile(r"[^\n;|&(`]+")
_REST: Final = r"([^\s\"'$`<>()]++)"
_PLAIN: Final = r"[\"']?([^\s\"'$`<>()-][^\s\"'$`<>()]*)"
_GAP: Final = r"[ \t]{1,8}"
_WORD: Final = r"[^\s\"'$`<>()]{1,128}"
_HTPASSWD: Final = rf"(?:{_GAP}-\w{{1,8}}){{0,4}}{_GAP}{_WORD}{_GAP}"

_ROWS: Final = (
    (r"mysql(?:dump|admin|import|sh)?|mariadb(?:-dump|-admin|-import)?", rf"-p{_PLAIN}"),
    (r"sshpass", rf"-p[ \t]?{_PLAIN}"),
    (r"(?:redis|valkey)-cli", rf"-a[ \t]{_PLAIN}"),
    (r"(?:docker|podman|skopeo|helm[ \t]registry|buildah|az|oc)[ \t]login", rf"-p[ \t]{_PLAIN}"),
    (r"curl|wget", rf"(?:-u|-U|--user|--proxy-user)[ \t=]?[\"']?[^\s:\"'$`-][^\s:\"'$`]*+:{_REST}"),
    (r"https?(?= )", rf"(?:-a|--auth)[ \t=][\"']?[^\s:\"'$`-][^\s:\"'$`]*+:{_REST}"),
    (r"openssl", rf"(?:-pass(?:in|out|word)?[ \t]pass:|-[kK][ \t](?!-)[\"']?){_REST}"),
    (r"zip|unzip", rf"-[A-Za-z]{{0,8}}?P[ \t]?{_PLAIN}"),
    (r"7z[arz]?|(?:un)?rar(?= )", rf"-h?p{_PLAIN}"),
    (r"ldappasswd", rf"-[asw][ \t]?{_PLAIN}"),
    (r"ldap[a-z]{3,8}", rf"-w[ \t]?{_PLAIN}"),
    (r"smb[a-z]{3,10}|rpcclient", rf"(?:-U|--user)[ \t=]?[\"']?[^\s%\"'$`]{{1,128}}%{_REST}"),
    (r"l?ftp", rf"-u[ \t]?[\"']?[^\s,\"'$`]{{1,128}},{_REST}"),
    (r"(?:xfreerdp|wlfreerdp|sdl-freerdp|freerdp)3?", rf"/(?:g?p|password):[\"']?{_REST}"),
    (r"mongo(?:sh|dump|restore|export|import|stat|top|files)?", rf"-p[ \t]?{_PLAIN}"),
    (r"keytool|jarsigner", rf"-(?:src|dest|new)?(?:store|key)?pass{_GAP}{_PLAIN}"),
    (r"ssh-keygen", rf"-[NP][ \t]?{_PLAIN}"),
    (r"gh[ \t]secret[ \t]set", rf"(?:-b|--body)[ \t=]?{_PLAIN}"),
    (r"(?:fly|flyctl|supabase|doppler)[ \t]secrets set", rf"[A-Za-z_]\w{{0,64}}=[\"']?{_REST}"),
    (r"secrets?", rf"--from-literal[ \t=][\"']?[\w.-]{{1,128}}=[\"']?{_REST}"),
    (r"htpasswd", rf"-(?=[A-Za-z]{{0,8}}n)[A-Za-z]{{0,8}}b[A-Za-z]{{0,8}}{_HTPASSWD}{_PLAIN}"),
    (r"htpasswd", rf"-(?![A-Za-z]{{0,8}}n)[A-Za-z]{{0,8}}b[A-Za-z]{{0,8}}{_HTPASSWD}{_WORD}{_GAP}{_PLAIN}"),
    (r"net use", rf"/user:{_WORD}{_GAP}(?!/){_PLAIN}"),
    (r"net use", rf"\\\\{_WORD}{_GAP}(?!/){_PLAIN}"),
    (r"net user", rf"(?!/){_WORD}{_GAP}(?!/){_PLAIN}"),
    (r"sqlcmd", rf"-P[ \t]?{_PLAIN}"),
    (r"plink|pscp|psftp", rf"-pw[ \t]{_PLAIN}"),
    (r"nmcli", rf"password[ \t]{_PLAIN}"),
    (r"wpa_passphrase", rf"{_WORD}{_GAP}{_PLAIN}"),
    (r"add-(?:generic|internet)-password", rf"-w[ \t]?{_PLAIN}"),
    (r"con(?:figure|fig)[ \t]set", rf"[\w:/.-]{{0,64}}?(?:secret|token|password|_auth)\w{{0,32}}{_GAP}{_PLAIN}"),
)
"""Commands, and what in front of the password makes it one. Both stand in one simple command; where two of the names
fit, the first one counts."""

_NAMES: Final = tuple(dict.fromkeys(names for names, _option in _ROWS))
_OPTIONS: Final = tuple(
    tuple(re.compile(rf"(?<=[ \t]){option}") for given, option in _ROWS if given == names) for names in _NAMES
)
_NAME: Final = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:" + "|".join(f"({names})" for names in _NAMES) + r")(?![A-Za-z0-9_.-])"
)
"""Each of the names has a group of its own."""
_CARRIES: Final = "sshpass"
"""It runs the words behind its own, which may have options of the same name."""
_BEFORE: Final = re.compile(
    r"[ \t]*(?:[A-Za-z_]\w{0,64}=[^\s\"'$`]{0,64}[ \t]+){0,4}(?:sudo[ \t]+)?(?:[\w.~-]{0,64}/){0,8}"
)
"""What may stand in front of a command that is the first of its line."""


def logins(text: str) -> Iterator[Span]:
    """Yield passwords given by an option or a place that only their command makes one."""
    if not any(map(text.__contains__, _HINTS)):
        return
    for command in _SIMPLE_COMMAND.finditer(text):
        start, end = command.span()
        seen: set[int] = set()
        for named in _NAME.finditer(text, start, end):
            row = named.lastindex or 0
            if row in seen:
                continue
            seen.add(row)
            carries = named[0] == _CARRIES or not _BEFORE.fullmatch(text, start, named.start())
            if carries and named[0].endswith("secrets set"):
                continue  # names and values before a command set its variables
            for option in _OPTIONS[row - 1]:
                for match in option.finditer(text, named.end(), end):
                    if not (carries and _may_run(text, named.end(), match)):
                        yield match.span(1)


def _may_run(text: str, named_end: int, match: re.Match[str]) -> bool:
    """Tell whether the value is a word of its own that another program would run: `sshpass -e xargs -p rm`."""
    apart = text[match.start(1) - 1] in " \t\"'"
    return apart and match.start() > named_end + 1 and could_be_program(match[1][:_JUDGED])


_COOKIES: Final = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?:set-)?cookie2?(?:\\?[\"'])?[ \t]{0,4}:[ \t]{0,4}|--cookie[ \t=])(?:\\?([\"']))?", re.I
)
_COOKIE_OPTION: Final = re.compile(r"(?<=[ \t])-b[ \t]?([\"'])?(?=[\w.-]{1,128}=)")
_CURL: Final = re.compile(_BEFORE.pattern + r"curl(?=[ \t])")
_PAIR: Final = re.compile(r"(?<![^\s;,:=\"'`$<>()|&])([^\s;,=\"'`$<>()|&]{1,128})=\"?([^\s;,\"'`$<>()|&\\]++)")
_UNQUOTED: Final = re.compile(r"[^\s;,\"'`$<>()|&]*+")
_ATTRIBUTES: Final = frozenset({"path", "domain", "expires", "max-age", "samesite", "priority", "version"})
_STOP: Final = re.compile(r"\n|\$\(|`")
_MAX_COOKIES: Final = 8192


def cookies(text: str, *, prose: bool) -> Iterator[Span]:
    """Yield the values of cookies in a header, and those that `curl` is given.

    Outside of quotes a command ends at a semicolon, and a shell that the text starts ends one there inside of them, so
    only the first cookie is one there unless the text is `prose`.
    """
    whole: bool | None = None
    headers = _COOKIES.finditer(text) if "cookie" in text.lower() else ()
    for starts in (headers, _given_cookies(text)):
        end = 0
        for match in starts:
            if match.start() < end:
                continue
            if whole is None:
                whole = prose or not may_run_text(text)
            before = text[match.start() - 1 : match.start()]
            quote = match[1] or (before if before in {"'", '"'} else "")
            end = _cookies_end(text, match.end(), quote if whole else "", prose)
            for pair in _PAIR.finditer(text, match.end(), end):
                if pair[1].lower() not in _ATTRIBUTES:
                    yield pair.span(2)


def _given_cookies(text: str) -> Iterator[re.Match[str]]:
    """`curl -b NAME=SECRET`; without a `=` it is the name of a file."""
    if "curl" in text and "-b" in text:
        for command in _SIMPLE_COMMAND.finditer(text):
            named = _CURL.match(text, *command.span())
            if named:
                yield from _COOKIE_OPTION.finditer(text, named.end(), command.end())


def _cookies_end(text: str, start: int, quote: str, prose: bool) -> int:
    limit = min(len(text), start + _MAX_COOKIES)
    stop = _STOP.search(text, start, limit)
    line = stop.start() if stop else limit
    if quote:
        end = text.find(quote, start, line)
        return line if end < 0 else end
    if prose:
        return line
    run = _UNQUOTED.match(text, start, line)
    return run.end() if run else start
