"""Which messages of Slack are ours, and which stand in threads."""

from __future__ import annotations

from ..recent import Recent
from .wire import order_of


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
