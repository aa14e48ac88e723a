"""The page that a tool server asks a person to open: an address in plain letters, never fetched by Signoff. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from signoff.errors import InvalidInput
from signoff.loopback import is_loopback
from signoff.model import ApprovalRequest, Elicitation

MAX_ADDRESS_CHARS = 2000
"""A longer one is taken by no platform as a link."""
_PLAIN = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
"""What an address may hold. Letters of other scripts come percent-encoded, and in a host as `xn--…`, so that no host
looks like another one and nothing in it is invisible."""
_NAME = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.?")


def check_page(address: str) -> None:
    """Raise `InvalidInput` for an address that cannot be put to a person."""
    if not _PLAIN.fullmatch(address):
        raise _bad("it may hold plain letters only; encode others with %, and those of a host as xn--")
    if len(address) > MAX_ADDRESS_CHARS:
        raise _bad(f"it is longer than {MAX_ADDRESS_CHARS} characters")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise _bad("it is no address") from None
    if "@" in parts.netloc:
        raise _bad("it has a name or password before its host, which hides where it leads")
    if not _NAME.fullmatch(host) and not _is_ip(host):
        raise _bad("it names no host")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise _bad("it must be https, or http on this machine")


def page_of(row: ApprovalRequest) -> str:
    """The page to open: of a server's question that waits or was accepted; empty for all others."""
    if not isinstance(row.action, Elicitation) or row.outcome not in (None, "approved"):
        return ""
    return row.action.url or ""


def leads_away(address: str) -> bool:
    """Whether it can be opened from anywhere: a page of a machine itself can be opened there alone."""
    return not is_loopback(urlsplit(address).hostname or "")


def host_of(address: str) -> str:
    """Where it leads: the host, with a port that is not the usual one."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if _port(parts) is None else f"{host}:{parts.port}"


def _port(parts: SplitResult) -> int | None:
    return None if parts.port == {"https": 443, "http": 80}.get(parts.scheme) else parts.port


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _bad(why: str) -> InvalidInput:
    return InvalidInput(f"This page cannot be put to a person: {why}.", param="action.url")
