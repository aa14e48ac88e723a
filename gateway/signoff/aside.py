"""Judges and masks long texts beside the event loop: what takes a tenth of a second must not stop everybody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from signoff.digest import digest_of
from signoff.judging import judged_text
from signoff.model import Action, ApprovalRequest, Command, FileWrite

LONG_CHARS = 4096
"""Shorter texts are judged within some 5 ms (measured) and at once; a thread takes 0.1 ms by itself."""

_Found = TypeVar("_Found")


async def judged(action: Action, work: Callable[[], _Found]) -> _Found:
    """What `work` makes of the action; on a thread where there is much to read. Raises what `work` raises."""
    return await asyncio.to_thread(work) if size_of(action) > LONG_CHARS else work()


async def digested(action: Action, host: str | None) -> str:
    """The action's digest; on a thread where there is much to write out. Raises `InvalidInput` as `digest_of` does."""
    work = partial(digest_of, action, host)
    return await asyncio.to_thread(work) if _is_long(action) else work()


async def shown(row: ApprovalRequest, work: Callable[[], _Found]) -> _Found:
    """What `work` makes of the request for people, who read it masked; on a thread where there is much to mask."""
    return await asyncio.to_thread(work) if is_long(row) else work()


async def masked(texts: Iterable[str | None], work: Callable[[], _Found]) -> _Found:
    """What `work` makes of these texts; on a thread where they are long together."""
    chars = sum(len(text or "") for text in texts)
    return await asyncio.to_thread(work) if chars > LONG_CHARS else work()


def is_long(row: ApprovalRequest) -> bool:
    """Whether there is much to mask in its action or in what a person filled in: counted over all texts in them, and
    no further than that is certain. Its other texts are short."""
    return _is_long(row.action, row.content)


def _is_long(*values: Any) -> bool:
    chars, todo = 0, list(values)
    while todo and chars <= LONG_CHARS:
        value: Any = todo.pop()
        if isinstance(value, str):
            chars += len(value)
        elif isinstance(value, dict):
            chars += len(value)
            todo += value.values()
            todo += value.keys()
        elif isinstance(value, (list, tuple)):
            chars += len(value)
            todo += value
        elif isinstance(value, Struct):
            todo += astuple(value)
    return chars > LONG_CHARS


def size_of(action: Action) -> int:
    """How many characters of an action are read to judge it."""
    size = len(judged_text(action))
    if isinstance(action, FileWrite):
        size += len(action.diff or "")
    elif isinstance(action, Command):
        size += sum(len(value) for value in (action.env or {}).values())
    return size
