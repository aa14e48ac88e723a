"""Secrets that are known by their own form, wherever they stand.

Each finder yields half-open spans `(start, end)` of the text and walks it once: a pattern either begins only where a
run begins, or gives up after a bounded number of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signoff.randomness import MIN_WORD, could_be_program, looks_like_path, looks_random

Span = tuple[int, int]

# Prefixes as their issuers document them; shorter than issued ones, so that a clipped token is masked as well.
_ISSUED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[pousr]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}|gl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_.-]{8,}"
    r"|xox[abceoprs]-[A-Za-z0-9.-]{8,}|xapp-[A-Za-z0-9-]{8,}|A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}"
    r"|sk-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{12,}|[srp]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{8,}"
    r"|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{16,}|do[opr]_v1_[A-Za-z0-9]{16,}"
    r"|hv[sb]\.[A-Za-z0-9_-]{16,}|dckr_pat_[A-Za-z0-9_-]{8,}|shp(?:at|ca|pa|ss)_[A-Za-z0-9]{8,}|ya29\.[A-Za-z0-9_-]{8,}"
    r"|SG\.[A-Za-z0-9_-]{8,64}\.[A-Za-z0-9_-]{8,}|lin_api_[A-Za-z0-9]{8,}"
    r")"
)
_JWT: Final = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?")
_BOT_TOKEN: Final = re.compile(r"(?<![0-9])[0-9]{6,12}:([A-Za-z0-9_-]{30,})")
_HOOK: Final = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_]{1,32}/[A-Za-z0-9_]{1,32}/"
    r"|discord(?:app)?\.com/api/webhooks/[0-9]{1,24}/)([A-Za-z0-9_-]+)"
)
# User and password end at whatever could begin a command, so that no mask covers an operator's other side.
_USERINFO: Final = re.compile(
    r"(?<![A-Za-z0-9_+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://"
    r"[^\s/:@\"'<>;|&{},!()$`\\]*+:([^\s/@\"'<>;|&{},!()$`\\]++)@"
)
_SCHEME: Final = re.compile(r"\b(?:bearer|basic)[ \t]{1,4}([A-Za-z0-9_+/=.-]{8,})", re.IGNORECASE | re.ASCII)
_LONG: Final = re.compile(rf"(?<![A-Za-z0-9_+/.-])[A-Za-z0-9_+/.-]{{{MIN_WORD - 2},}}={{0,2}}")
_LONG_ENOUGH: Final = re.compile(rf"[A-Za-z0-9_+/=.-]{{{MIN_WORD - 2}}}")
# What follows a token in an address that goes on: `…/getMe`.
_NAMED_TAIL: Final = re.compile(r"/[a-z]{2,}+(?:[A-Z][a-z]++)*+\Z")
_LONGEST_TAIL: Final = 40

_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = "-----END"
_PEM_WORD: Final = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
_PEM_LINE: Final = 16
_JUDGED: Final = 128

# A command with an option that carries a password. Both are looked for inside one simple command.
_SIMPLE_COMMAND: Final = re.compile(r"[^\n;|&(`]+")
LOGIN_PROGRAMS: Final = ("mysql", "mariadb", "sshpass", "redis-cli", "login", "curl", "wget", "openssl")
"""In the name of each command that takes a password by an option of its own."""
_LOGIN_WORD: Final = re.compile("|".join(LOGIN_PROGRAMS))
_PLAIN: Final = r"[\"']?([^\s\"'$`<>()-][^\s\"'$`<>()]*)"
_LOGINS: Final = tuple(
    (re.compile(rf"(?<![A-Za-z0-9_.-])(?:{command})(?![A-Za-z0-9_.-])"), re.compile(rf"(?<=[ \t]){option}"))
    for command, option in (
        (r"mysql(?:dump|admin|import|sh)?|mariadb(?:-dump|-admin|-import)?", rf"-p{_PLAIN}"),
        (r"sshpass", rf"-p[ \t]?{_PLAIN}"),
        (r"redis-cli", rf"-a[ \t]{_PLAIN}"),
        (r"(?:docker|podman|skopeo|helm[ \t]registry|buildah|az|oc)[ \t]login", rf"-p[ \t]{_PLAIN}"),
        (r"curl|wget", r"(?:-u|-U|--user|--proxy-user)[ \t=]?[\"']?[^\s:\"'$`-][^\s:\"'$`]*+:([^\s\"'$`<>()]++)"),
        (r"openssl", r"-pass(?:in|out)?[ \t]pass:([^\s\"'$`<>()]++)"),
    )
)


def may_stand_alone(text: str) -> bool:
    """Tell whether a word of the text could be a secret by itself: with a prefix, or so long that it is looked at."""
    return any(pattern.search(text) for pattern in (_LONG_ENOUGH, _ISSUED, _JWT))


def issued(text: str) -> Iterator[Span]:
    """Yield tokens with a prefix of their issuer, and JSON web tokens."""
    for pattern in (_ISSUED, _JWT):
        for match in pattern.finditer(text):
            yield match.span()


def addressed(text: str) -> Iterator[Span]:
    """Yield passwords in addresses, secret parts of hook addresses, bot tokens, and words after Bearer and Basic."""
    for pattern in (_BOT_TOKEN, _HOOK, _USERINFO):
        for match in pattern.finditer(text):
            yield match.span(1)
    for match in _SCHEME.finditer(text):
        # Prose goes on with words ("basic authentication"); credentials have digits or capitals.
        word = match[1][:_JUDGED]
        if any(char.isdigit() for char in word) or not (word.islower() or word.istitle()):
            yield match.span(1)


def random_words(text: str) -> Iterator[Span]:
    """Yield long words that look drawn by lot; in a path nothing, in an address the parts between its slashes."""
    for match in _LONG.finditer(text):
        word, start = match[0], match.start()
        if start and text.startswith("://", start - 1):
            yield from _random_parts(word, start)
        elif looks_random(word) and not looks_like_path(word):
            tail = _NAMED_TAIL.search(word, max(0, len(word) - _LONGEST_TAIL))
            yield start, tail.start() if tail else match.end()


def _random_parts(word: str, start: int) -> Iterator[Span]:
    for part in re.finditer(r"[^/]+", word):
        if looks_random(part[0]):
            yield start + part.start(), start + part.end()


def private_keys(text: str) -> Iterator[Span]:
    """Yield the words of the bodies of private keys in PEM, line by line.

    A body's lines mix capitals, small letters and digits, and the last is as long as base 64 makes it: a command that
    stands between the two marks stays readable. A block without its end is left to `random_words`.
    """
    begin = _PEM.search(text)
    while begin:
        end = text.find(_PEM_END, begin.end())
        if end < 0:
            return
        in_body = False
        for match in _PEM_WORD.finditer(text, begin.end(), end):
            in_body = _is_key_line(match[0], in_body)
            if in_body:
                yield match.span()
        begin = _PEM.search(text, end)


def _is_key_line(word: str, in_body: bool) -> bool:
    kinds = (any(map(str.isupper, word)), any(map(str.islower, word)), any(map(str.isdigit, word)))
    if len(word) >= _PEM_LINE:
        return all(kinds) and not (word.startswith("/") and looks_like_path(word))
    return in_body and len(word) % 4 == 0 and (word.endswith("=") or (kinds[0] and any(kinds[1:])))


def logins(text: str) -> Iterator[Span]:
    """Yield passwords given by an option that only its command makes one: `mysql -pSECRET`, `curl -u ana:SECRET`."""
    for command in _SIMPLE_COMMAND.finditer(text):
        if not _LOGIN_WORD.search(text, command.start(), command.end()):
            continue
        for name, option in _LOGINS:
            named = name.search(text, command.start(), command.end())
            if named:
                for match in option.finditer(text, named.end(), command.end()):
                    if not _may_run(text, named.end(), match):
                        yield match.span(1)


def _may_run(text: str, named_end: int, match: re.Match[str]) -> bool:
    """Tell whether the value is a word of its own that another program would run: `sshpass -e xargs -p rm`."""
    apart = text[match.start(1) - 1] in " \t\"'"
    return apart and match.start() > named_end + 1 and could_be_program(match[1][:_JUDGED])
