"""What was seen and posted lately. Bounded, and lost at a restart, which only costs a question to Slack or a nicety."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

from .wire import order_of

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


class Threads:
    """Which messages are ours, in which threads others stand, both by channel and timestamp, and Slack's time."""

    def __init__(self) -> None:
        self.newest = 0
        """The highest place of a message known so far, in any channel."""
        self._posted: Recent[tuple[str, str], None] = Recent()
        self._roots: Recent[tuple[str, str], str] = Recent()

    def posted(self, channel: str, ts: str) -> None:
        """We posted this message."""
        self._posted.put((channel, ts), None)
        self.passed(ts)

    def passed(self, ts: str | None) -> None:
        """A message with this timestamp exists."""
        self.newest = max(self.newest, order_of(ts))

    def ours(self, channel: str, ts: str) -> bool:
        """Whether we are known to have posted it."""
        return (channel, ts) in self._posted

    def said(self, channel: str, ts: str, root: str) -> None:
        """Somebody wrote this message in the thread of `root`."""
        self._roots.put((channel, ts), root)

    def root_of(self, channel: str, ts: str) -> str:
        """What a reply to this message must name: Slack has no threads in threads."""
        return self._roots.get((channel, ts)) or ts
