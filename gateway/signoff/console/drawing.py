"""From views to HTML. Every template escapes by itself; nothing that somebody else wrote is ever markup."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape
from msgspec import Struct

from signoff.console.folding import fold
from signoff.durations import clock
from signoff.wording import t

REMEMBERED_BYTES = 8_000_000
"""Drawn questions are kept for the next reader up to this many bytes together."""
STATIC_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


class Asset(Struct, frozen=True):
    """A file of the pages, and the hash that its address carries."""

    content: bytes
    content_type: str
    version: str


@lru_cache(maxsize=1)
def assets() -> dict[str, Asset]:
    """All static files by name."""
    found = {}
    for file in resources.files("signoff.console").joinpath("static").iterdir():
        kind = STATIC_TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            found[file.name] = Asset(content, kind, hashlib.sha256(content).hexdigest()[:12])
    return found


@lru_cache(maxsize=1)
def templates() -> dict[str, str]:
    """All templates by name."""
    folder = resources.files("signoff.console").joinpath("templates")
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".html")}


class Drawing:
    """The templates, and the questions drawn last."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        # Read once, at the start: an upgrade puts other files in their place under a gateway that runs.
        assets()
        self._env = jinja2.Environment(
            loader=jinja2.DictLoader(templates()),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._env.globals.update(t=t, asset=_address, fold=fold)
        self._env.filters.update(moment=self._moment, iso=_iso, coded=_coded)
        self._kept: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        """As bytes, which are half as long: one character that is not of Latin-1 makes a whole text twice as long."""
        self._bytes = 0
        self._place = secrets.token_hex(16)
        """Stands for the reader's form token in what several readers share."""
        self._next = secrets.token_hex(16)
        """Stands there for the page to go back to."""

    def page(self, name: str, **values: Any) -> str:
        """A page or a part of one."""
        return self._env.get_template(name).render(values)

    def shared(self, key: tuple[Any, ...], make: Callable[[str, str], str]) -> str:
        """What `make` drew for this key, at most once while it is kept. It is handed what stands for the form token and
        for the page to go back to."""
        known = self._kept.get(key)
        if known is not None:
            self._kept.move_to_end(key)
            return known.decode()
        drawn = make(self._place, self._next)
        kept = self._kept[key] = drawn.encode()
        self._bytes += len(kept)
        while self._bytes > REMEMBERED_BYTES and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return drawn

    def known(self, key: tuple[Any, ...]) -> str | None:
        """What is kept for this key."""
        kept = self._kept.get(key)
        return None if kept is None else kept.decode()

    def own(self, drawn: str, token: str, following: str = "/console") -> Markup:
        """A shared drawing for one reader, who goes back to the page `following` by its forms."""
        return Markup(drawn.replace(self._place, token).replace(self._next, escape(following)))  # noqa: S704  # a template made it, which escaped everything

    def _moment(self, at: datetime | None) -> str:
        return clock(at, now=self._now()) if at is not None else ""


def _coded(text: str) -> Markup:
    """One of our own sentences, in which what stands between backticks is typed in a terminal."""
    plain, *rest = (escape(part) for part in text.split("`"))
    return plain + Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 == 0 else part for number, part in enumerate(rest)
    )


def _address(name: str) -> str:
    return f"/console/static/{name}?v={assets()[name].version}"


def _iso(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if at is not None else ""
