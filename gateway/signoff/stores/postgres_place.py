"""Where the database is, from its URL: what to connect with, and what may be shown of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from signoff.errors import ConfigError

CONNECT_S = 5
"""How long one connection attempt may take, for each host of the URL."""
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT_S,
    "application_name": "signoff",
    # With several hosts, the one that can be written; a standby alone is refused with that reason.
    "target_session_attrs": "read-write",
    # A path that silently stopped forwarding is noticed by the system within about 15 s.
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


_FORM = "postgresql://user:password@host:5432/database"


class Place:
    """One database. `shown` names it for people, without the password."""

    def __init__(self, url: str) -> None:
        """Raises `ConfigError` for a URL that libpq cannot read, or reads as something else than it looks."""
        given = _read(url)
        if given is None:
            # The driver's own words may hold a part of the password, so they stand nowhere behind this error either.
            raise ConfigError(
                f"gateway.store is a PostgreSQL URL that cannot be read; write {_FORM}, with the special characters of"
                " the password as %XX.",
                param="gateway.store",
            )
        if not given.get("dbname"):
            raise ConfigError(f"gateway.store names no database; write {_FORM}.", param="gateway.store")
        self.options: dict[str, Any] = {**_DEFAULTS, **given, "client_encoding": "utf8"}
        host, port = given.get("host") or given.get("hostaddr") or "the local socket", str(given.get("port") or "")
        self.shown = f"the database {given['dbname']} at {host}" + (f":{port}" if port.isdigit() else "")


def _read(url: str) -> dict[str, Any] | None:
    try:
        given = conninfo_to_dict(url)
        urlsplit(url)
    except (psycopg.Error, ValueError):
        return None
    ports = str(given.get("port") or "").split(",")
    if not all(port == "" or (port.isascii() and port.isdigit()) for port in ports):
        return None
    # A password whose @ or / was not written as %XX ends up in one of these.
    if any(sign in str(given.get("dbname") or "") for sign in "@/") or "@" in str(given.get("host") or ""):
        return None
    return dict(given)
