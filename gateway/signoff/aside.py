"""Judges and masks long texts beside the event loop: what takes a tenth of a second must not stop everybody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from signoff.actions import plain_text
from signoff.judging import judged_text
from signoff.model import Action, Command, FileWrite

LONG_CHARS = 4096
"""Shorter texts are judged within some 5 ms (measured) and at once; a thread takes 0.1 ms by itself."""

_Found = TypeVar("_Found")


async def judged(action: Action, work: Callable[[], _Found]) -> _Found:
    """What `work` makes of the action; on a thread where there is much to read. Raises what `work` raises."""
    return await asyncio.to_thread(work) if size_of(action) > LONG_CHARS else work()


async def shown(action: Action, work: Callable[[], _Found]) -> _Found:
    """What `work` makes of the action for people, who read it masked; on a thread where there is much to mask."""
    return await asyncio.to_thread(work) if len(plain_text(action)) > LONG_CHARS else work()


def size_of(action: Action) -> int:
    """How many characters of an action are read to judge it."""
    size = len(judged_text(action))
    if isinstance(action, FileWrite):
        size += len(action.diff or "")
    elif isinstance(action, Command):
        size += sum(len(value) for value in (action.env or {}).values())
    return size
