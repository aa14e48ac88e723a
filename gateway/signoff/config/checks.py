"""What a setting's value may be. Each check returns the typed value or raises `Wrong` saying what belongs there.

The text of a `Wrong` follows the setting's name: "must be …; write …".
"""

from __future__ import annotations

import base64
import ipaddress
import math
import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfoNotFoundError

from signoff.changes.expiring import zone_of
from signoff.changes.grants import time_box
from signoff.destinations import parse_destination
from signoff.errors import InvalidInput
from signoff.loopback import is_loopback
from signoff.model import Destination
from signoff.policy.ruleset import RuleSet, problems_of, shipped

Check = Callable[[Any], Any]

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9])?")
_TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_SHOWN_CHARS = 60


class Wrong(ValueError):
    """A value that a setting cannot take."""


def shown(value: Any) -> str:
    """A short, one-line rendering of a value in TOML's own notation, for an error."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(shown(item) for item in value[:3])}{', …' if len(value) > 3 else ''}]"
    if isinstance(value, str):
        escaped = value.encode("unicode_escape").decode()
        cut = escaped if len(escaped) <= _SHOWN_CHARS else escaped[:_SHOWN_CHARS] + "…"
        return f'"{cut}"'
    return str(value)


def text(value: Any) -> str:
    """Any text that is not empty and has no control characters."""
    if not isinstance(value, str):
        raise Wrong(f"must be text in quotes, not {shown(value)}")
    if not value.strip():
        raise Wrong("is empty; give it a value or remove the line")
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise Wrong("holds a line break or another control character; write it on one line")
    return value


def secret(value: Any) -> str:
    """A token: one word. Its value never stands in an error."""
    if not isinstance(value, str):
        raise Wrong("must be text in quotes")
    if not value.strip():
        raise Wrong("is empty; give it the token, or name a file that holds it")
    if any(char.isspace() or not char.isprintable() for char in value.strip()):
        raise Wrong("holds a blank or a line break; a token is one word")
    return value.strip()


def boolean(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise Wrong(f"must be true or false without quotes, not {shown(value)}")
    return value


def seconds(least: float, most: float) -> Check:
    """A number of seconds above 0 and within bounds."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Wrong(f"must be a number of seconds without quotes or unit, not {shown(value)}; for example 300")
        if math.isnan(value) or not least <= value <= most:
            raise Wrong(f"must be {least:g} to {most:,.10g} seconds, not {shown(value)}")
        return float(value)

    return check


def hours(least: float, most: float) -> Check:
    """A number of hours within bounds."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Wrong(f"must be a number of hours without quotes or unit, not {shown(value)}; for example 72")
        if math.isnan(value) or not least <= value <= most:
            raise Wrong(f"must be {least:.2g} to {most:g} hours, not {shown(value)}")
        return float(value)

    return check


def argv(value: Any) -> tuple[str, ...]:
    """A program and its arguments, each an item of its own: no shell reads them."""
    if isinstance(value, str):
        raise Wrong('must be a list: the program and each argument in quotes, such as ["/usr/bin/mailer", "--send"]')
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise Wrong(f"must be a list of texts, not {shown(value)}")
    if not value or not value[0].strip() or any("\0" in item for item in value):
        raise Wrong("names no program; write the program first")
    return tuple(value)


def time_of_day(value: Any) -> str:
    """`HH:MM`."""
    word = text(value)
    if _TIME_OF_DAY.fullmatch(word) is None:
        raise Wrong(f'is {shown(value)}, which is no time of day; write hours and minutes, for example "04:00"')
    return word


def time_zone(value: Any) -> str:
    """The name of a time zone that this machine knows."""
    word = text(value)
    try:
        zone_of(word)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Wrong(
            f'is {shown(value)}, which this machine knows no time zone by; write for example "UTC" or "Europe/Madrid" '
            "(where even those are not known: pip install tzdata)"
        ) from None
    return word


def port(value: Any) -> int:
    """A TCP port; 0 picks a free one."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong(f"must be a port number without quotes, not {shown(value)}; for example 8787")
    if not 0 <= value <= 65535:
        raise Wrong(f"must be a port from 0 (any free one) to 65535, not {value}")
    return value


def one_of(*words: str) -> Check:
    """One of a few words."""

    def check(value: Any) -> str:
        if value not in words:
            raise Wrong(f"must be {alternatives(words)}, not {shown(value)}")
        return str(value)

    return check


def alternatives(words: Iterable[str]) -> str:
    """`"a", "b" or "c"`."""
    quoted = [f'"{word}"' for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def many(item: Check, example: str) -> Check:
    """A list whose items all pass `item`; kept as a tuple."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise Wrong(f"must be a list in brackets, not {shown(value)}; for example {example}")
        items = []
        for number, each in enumerate(value, 1):
            try:
                items.append(item(each))
            except Wrong as wrong:
                raise Wrong(f"(item {number}) {wrong}") from None
        repeated = [each for each in items if items.count(each) > 1]
        if repeated:
            raise Wrong(f"names {shown(repeated[0] if isinstance(repeated[0], str) else str(repeated[0]))} twice")
        return tuple(items)

    return check


def identifier(value: Any) -> str:
    """A platform's id: text, since ids may have leading zeros, signs or more digits than a number keeps."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise Wrong(f'is a number; ids are text: write "{value}" in quotes')
    return text(value)


def destination(value: Any) -> Destination:
    """`platform:chat[/thread]` or `platform:user:ID`."""
    try:
        return parse_destination(text(value))
    except InvalidInput:
        raise Wrong(
            f"is {shown(value)}, which is no destination; write platform:chat, platform:chat/thread or "
            'platform:user:ID, for example "telegram:-1001234567/7"'
        ) from None


def place_or_platform(value: Any) -> str:
    """A destination, or a platform's name alone for all of its chats."""
    word = text(value)
    return str(destination(word)) if ":" in word else word


def choice(value: Any) -> str:
    """A choice that a card may offer."""
    if value in ("once", "session", "always", "deny") or (isinstance(value, str) and time_box(value)):
        return str(value)
    raise Wrong(f'is {shown(value)}; write "once", "session", "always", "deny" or a time box from "1m" to "24h"')


def choices(value: Any) -> tuple[str, ...]:
    """Choices that leave a way to say yes and a way to say no."""
    offered: tuple[str, ...] = many(choice, '["once", "session", "always", "deny"]')(value)
    needed = {"once": "a critical action can be approved", "deny": "a person can say no"}
    for word, why in needed.items():
        if word not in offered:
            raise Wrong(f'must contain "{word}", so that {why}')
    return offered


def host(value: Any) -> str:
    """A host name or an IP address to listen on."""
    word = text(value)
    try:
        return str(ipaddress.ip_address(word))
    except ValueError:
        if _HOST.fullmatch(word) is None or ":" in word:
            raise Wrong(
                f'is {shown(value)}; write a host name or an IP address alone, for example "127.0.0.1"'
            ) from None
        return word


def origin(value: Any) -> str:
    """`http(s)://host[:port]` without a path."""
    word = web_address(value)
    if urlsplit(word).path:
        raise Wrong(f'is {shown(value)}; write the origin alone, for example "https://api.telegram.org"')
    return word


def socket_address(value: Any) -> str:
    """An absolute ws or wss URL."""
    word = text(value)
    try:
        parts = urlsplit(word)
        usable = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(char.isspace() for char in word):
        raise Wrong(f'is {shown(value)}; write a whole WebSocket address, for example "wss://gateway.discord.gg/"')
    return word


def hex_key(value: Any) -> str:
    """An Ed25519 public key: 32 bytes in hexadecimal."""
    word = text(value)
    if len(word) != 64 or any(char not in "0123456789abcdefABCDEF" for char in word):
        raise Wrong("is no public key; copy the 64 hexadecimal characters from the application's general page")
    return word.lower()


def token_of(prefix: str, name: str) -> Callable[[Any], str]:
    """A token of one kind, told by how it begins: the wrong one in its place is a frequent mistake."""

    def check(value: Any) -> str:
        word = secret(value)
        if not word.startswith(prefix):
            raise Wrong(f"is no {name}: that begins with {prefix}")
        return word

    return check


def web_address(value: Any) -> str:
    """An absolute http or https URL without query, fragment or a closing slash."""
    word = text(value)
    try:
        parts = urlsplit(word)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable or parts.query or parts.fragment or any(char.isspace() for char in word):
        raise Wrong('must be an address such as "https://signoff.example.org", without a query')
    if parts.username is not None or parts.password is not None:
        raise Wrong("must not carry a user or a password")
    return word.rstrip("/")


def hook_address(value: Any) -> str:
    """Where a webhook is posted: https, or http on this machine. It may carry a query, as some receivers want."""
    word = text(value)
    try:
        parts = urlsplit(word)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable or parts.fragment or any(char.isspace() for char in word):
        raise Wrong('must be an address such as "https://audit.example.org/signoff"')
    if parts.username is not None or parts.password is not None:
        raise Wrong("must not carry a user or a password; the signature proves who sends")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise Wrong("must begin with https:// where it leads away from this machine: it tells what agents do")
    return word


def hook_secret(value: Any) -> str:
    """`whsec_` and the key in base64, as receivers' libraries read it. Its value never stands in an error."""
    word = secret(value)
    try:
        size = len(base64.b64decode(word.removeprefix("whsec_"), validate=True))
    except ValueError:
        size = 0
    if not word.startswith("whsec_") or not 24 <= size <= 64:
        raise Wrong('must be "whsec_" and 24 to 64 bytes in base64; make one: echo "whsec_$(openssl rand -base64 32)"')
    return word


def account(value: Any) -> str:
    """`platform:user_id`."""
    word = identifier(value)
    platform, _, user_id = word.partition(":")
    if not platform or not user_id or any(char.isspace() for char in word):
        raise Wrong(f'is {shown(value)}; write platform:user_id, for example "telegram:123456789"')
    return word


def pattern(value: Any) -> str:
    """A deny rule: words in which `*` alone is special."""
    word = text(value)
    if not word.strip("* "):
        raise Wrong(f"is {shown(value)}, which would block everything; name at least one word")
    return word


def rules(value: Any) -> RuleSet | None:
    """The operator's own rules before those of the package; None for an empty list."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise Wrong("must be [[rules]] tables, each with a key, a verdict and what it is about")
    problems = problems_of(value)
    if problems:
        raise Wrong(f"cannot be used: {problems[0]}")
    return shipped().with_own(value) if value else None
