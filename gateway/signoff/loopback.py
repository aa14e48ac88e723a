"""Which addresses stay on this machine."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

ANSWERS_WITHIN_S = 2.0
"""A listener that says nothing for so long is taken for none of ours."""
_HEAD_BYTES = 1000


def is_loopback(host: str) -> bool:
    """Whether that address, or `localhost`, is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def from_here(host: str) -> str:
    """The address by which this machine reaches a listener on `host`: one on every address has no address itself."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared, not bound


def is_signoff(host: str, port: int) -> bool:
    """Whether what listens there answers as a gateway of ours. It holds the caller up, for some seconds at most."""
    import http.client  # clients read this module at every start, and need it never

    connection = http.client.HTTPConnection(from_here(host), port, timeout=ANSWERS_WITHIN_S)
    try:
        connection.request("GET", "/openapi.json")
        return b'"title":"Signoff"' in connection.getresponse().read(_HEAD_BYTES).replace(b" ", b"")
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def leads_away(url: str) -> bool:
    """Whether the URL is that of another machine: a proxy of the environment is for those alone."""
    return not is_loopback(urlsplit(url).hostname or "")
