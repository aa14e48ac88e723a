"""A store that gateways share, opened by a command that only reads: it is never made, nor brought up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from signoff.clock import SystemClock
from signoff.errors import StoreError
from signoff.ports import Store
from signoff.stores.open import open_store


@contextmanager
def looking(url: str) -> Iterator[tuple[Store, asyncio.Runner]]:
    """The open store, and what runs its calls. Raises `StoreError` where there is none yet or an older one."""
    _check(url)
    with asyncio.Runner() as runner:
        store = runner.run(_opened(url))
        try:
            yield store, runner
        finally:
            runner.run(store.aclose())


async def _opened(url: str) -> Store:
    return open_store(url, SystemClock())


def _check(url: str) -> None:
    """What opening would make or change is left to a gateway."""
    if urlsplit(url).scheme not in ("postgresql", "postgres"):
        return
    from signoff.stores.postgres_migrate import look, migrations
    from signoff.stores.postgres_place import Place

    place = Place(url)
    schema = look(place)[1]
    if schema == 0:
        raise StoreError(f"{place.shown} has no store yet: start its gateway once, which makes it.")
    if schema < max(migrations()):
        raise StoreError(f"{place.shown} is of an older version: start its gateway once, which brings it up to date.")
