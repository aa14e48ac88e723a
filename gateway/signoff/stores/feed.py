"""The change feed inside one process: who listens, and telling them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from signoff.model import Change

log = logging.getLogger("signoff.store")

Listener = Callable[[Sequence[Change]], None]


class Feed:
    """Listeners in the order they came. All calls happen on the loop."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._listeners)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned call removes it and may be made again."""
        token = self._next
        self._next += 1
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def publish(self, changes: Sequence[Change]) -> None:
        """Tell every listener. One that raises is logged and does not keep the others from hearing."""
        if not changes:
            return
        for listener in tuple(self._listeners.values()):
            try:
                listener(changes)
            except Exception:  # a listener's defect must not unsave what is committed, nor silence the others
                log.exception("store.listener_failed", extra={"changes": len(changes)})

    def clear(self) -> None:
        """Forget every listener."""
        self._listeners.clear()
