"""Which addresses stay on this machine."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether that address, or `localhost`, is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def leads_away(url: str) -> bool:
    """Whether the URL is that of another machine: a proxy of the environment is for those alone."""
    return not is_loopback(urlsplit(url).hostname or "")
