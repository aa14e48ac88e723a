"""What was seen lately. Bounded, and lost at a restart, which costs a question to the platform or a nicety."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
REMEMBERED = 4096


class Recent(Generic[K, V]):
    """A dictionary that forgets its oldest entries."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._kept: OrderedDict[K, V] = OrderedDict()

    def put(self, key: K, value: V) -> None:
        """Remember; an entry that is put again counts as new."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def get(self, key: K) -> V | None:
        """What was remembered, or None."""
        return self._kept.get(key)

    def pop(self, key: K) -> V | None:
        """The same, and forget it."""
        return self._kept.pop(key, None)

    def newest(self) -> V | None:
        """What was remembered last, or None."""
        return next(reversed(self._kept.values()), None)

    def __iter__(self) -> Iterator[K]:
        """The keys, the oldest first."""
        return iter(self._kept)

    def __contains__(self, key: object) -> bool:
        return key in self._kept
