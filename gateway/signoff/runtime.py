"""How the interpreter itself is set up for serving."""

from __future__ import annotations

import gc

YOUNG = 10_000
"""New objects between two collections of the youngest. Python's 700 collects several times a millisecond of a busy
gateway, and nearly all it looks at is rows that refer to nothing but their own parts. Each takes 5 ms."""
MIDDLE, OLD = 8, 500
"""Collections of one generation before the next older one is collected: the middle one, 80,000 objects, takes 30 ms
when nothing of it is garbage, as while very many requests come in."""


def settle_memory() -> None:
    """Take everything that exists now out of garbage collection and collect the rest seldom.

    To be called once, when the modules are loaded and the open requests are read, before serving. Rows form no cycles:
    counting references frees them, and the collector is only needed for tracebacks and tasks. A full collection visits
    every object that is not frozen, on the event loop: 95 ms for 100,000 requests (CPython 3.11), nothing once frozen.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
