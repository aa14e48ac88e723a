"""Discord's error codes that mean something to us (API reference, JSON error codes)."""

from __future__ import annotations

UNKNOWN_CHANNEL = 10003
UNKNOWN_GUILD = 10004
UNKNOWN_MESSAGE = 10008
UNKNOWN_USER = 10013
OLD_EDITS = 30046
"""Too many edits of messages older than an hour."""
TOO_LARGE = 40005
ALREADY_ACKNOWLEDGED = 40060
REFUSED_ON_THE_WAY = 40333
"""Something in front of Discord blocks the request, mostly for its User-Agent."""
NO_ACCESS = 50001
NO_DIRECT_MESSAGES = 50007
NO_MESSAGES_HERE = 50008
NO_PERMISSION = 50013
INVALID_RECIPIENTS = 50033
THREAD_ARCHIVED = 50083
THREAD_LOCKED = 160005
