"""Addresses as they may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit


def host_of(url: str) -> str:
    """An address without its path, which may hold a secret."""
    return urlsplit(url).netloc.rpartition("@")[2] or "an unknown host"
