"""Slack: cards as messages with buttons, over the Web API, by Socket Mode or signed HTTP requests.

It stands on `slack_sdk`, the base of slack-bolt: its client of the Web API and its signature check. Bolt's own layer is
left out, because it acknowledges by a listener that runs unwatched (a stop loses the acknowledgement), looks for that
acknowledgement every 10 ms and does not recognise an event that is delivered twice; the SDK's socket client retries a
single-use address for ever, and its `connect` never says that it failed. Both jobs are small and done here, where they
can be watched.
"""

from __future__ import annotations

from .adapter import SlackAdapter
from .config import SlackConfig

__all__ = ["SlackAdapter", "SlackConfig"]
