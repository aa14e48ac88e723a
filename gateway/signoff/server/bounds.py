"""How much of the server its callers may take, so that none of them keeps the others from being served."""

from __future__ import annotations

import resource

from msgspec import Struct


class Bounds(Struct, frozen=True, kw_only=True):
    """Upper bounds of one server. Times are in seconds."""

    streams_per_agent_key: int = 16
    """An agent reads one stream, or one for each of a few sessions."""
    streams_per_key: int = 64
    """An approver's client reads one for each session that it shows."""
    streams: int = 512
    """Half of the connections, so that asking and answering still get through."""
    pending_per_agent: int = 5000
    """Questions of one agent that wait: more than people answer in a day."""
    kept_per_agent: int = 1000
    """Actions of one agent that are kept for a later yes: they wait for days, and count for themselves."""
    connections: int = 1024
    """Open connections of one listener."""
    head_within_s: float = 10.0
    """From a connection's start to its first complete request head, which is a few packets."""
    idle_s: float = 75.0
    """A connection between two requests; proxies keep theirs for 60 s and should be the first to let go."""


def fitting(connections: int) -> int:
    """As many connections as asked for, or half of the file descriptors that this process may open, if that is less."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if most == resource.RLIM_INFINITY else max(1, min(connections, most // 2))
