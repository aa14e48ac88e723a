"""Time limits of real seconds that are over at once, and not before a test says so.

A short limit is a race: on a machine that stands still for two seconds it is over before what it limits has begun. So
a test sets a long one, waits until what it limits is under way, and lets the loop's clock leap beyond it.
"""

from __future__ import annotations

import asyncio


def leap(seconds: float) -> None:
    """Move the clock of the running loop on: what waits there for no longer than `seconds` is due. So is the test's own
    `asyncio.timeout`, unless it is longer."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]  # a loop is made for each test
