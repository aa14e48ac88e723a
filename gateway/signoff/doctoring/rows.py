"""A finding with the part of the gateway it is about, and keeping secrets out of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from signoff.config import Config, Secret
from signoff.ports import Finding

LEAST_SECRET_CHARS = 4
"""A shorter value is no secret, and hiding it would tear words apart."""


class Row(Struct, frozen=True, kw_only=True):
    """A line of the report."""

    part: str
    """`gateway`, `store`, a platform such as `telegram`, or `profile/platform` beside the default profile."""
    level: Literal["ok", "warning", "problem"]
    about: str
    text: str
    mend: str = ""


def rows_of(part: str, findings: Iterable[Finding]) -> list[Row]:
    """The findings about one part."""
    return [Row(part=part, level=each.level, about=each.about, text=each.text, mend=each.mend) for each in findings]


def without_secrets(rows: Iterable[Row], config: Config) -> list[Row]:
    """The rows with every secret of the configuration hidden: platforms may quote what they were sent."""
    secrets = sorted(set(_secrets(config)), key=len, reverse=True)
    return [_hidden(row, secrets) for row in rows]


def _hidden(row: Row, secrets: list[str]) -> Row:
    text, mend = row.text, row.mend
    for secret in secrets:
        text, mend = text.replace(secret, "…"), mend.replace(secret, "…")
    return Row(part=row.part, level=row.level, about=row.about, text=text, mend=mend)


def _secrets(config: Config) -> Iterator[str]:
    values: list[Any] = [config.gateway.store, *map(Secret, _passwords(config.gateway.store))]
    for profile in config.profiles.values():
        values.append(profile.approvals.smart.api_key)
        for settings in profile.platforms.values():
            values += settings.values()
    for value in values:
        if isinstance(value, Secret) and len(value) >= LEAST_SECRET_CHARS:
            yield str(value)


def _passwords(url: str) -> list[str]:
    """The password in a URL, as it is written there and as it is meant."""
    try:
        found = urlsplit(url).password
    except ValueError:
        return []
    return [found, unquote(found)] if found else []
