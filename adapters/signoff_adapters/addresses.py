"""Addresses: as they may be shown, and as they may be set."""

from __future__ import annotations

from urllib.parse import urlsplit


def host_of(url: str) -> str:
    """An address without its path, which may hold a secret."""
    return urlsplit(url).netloc.rpartition("@")[2] or "an unknown host"


def check_address(url: str, setting: str, form: str, schemes: tuple[str, ...] = ("http", "https")) -> None:
    """Raise `ValueError` unless it is an address of these schemes; `form` says what `setting` must be."""
    parts = urlsplit(url)
    if parts.scheme not in schemes or not parts.netloc:
        raise ValueError(f"{setting} must be {form}")
