"""Whether our clock agrees with a platform's: deadlines, signatures and the times on cards depend on it."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp

from signoff.ports import Finding

WITHIN_S = 10.0
ALLOWED_S, TOO_MUCH_S = 5.0, 60.0
"""A Date header counts whole seconds and travels a while; Slack refuses signatures that are 300 s off."""


async def clock_finding(url: str, title: str) -> Finding | None:
    """Compare our clock with the Date of an answer; None where there is none to compare with."""
    try:
        timeout = aiohttp.ClientTimeout(total=WITHIN_S)
        began = datetime.now(UTC)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, allow_redirects=False) as answer:
            given = answer.headers.get("Date", "")
        theirs = parsedate_to_datetime(given)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None
    if theirs.tzinfo is None:
        return None
    return judged(began + (datetime.now(UTC) - began) / 2, theirs, title)


def judged(ours: datetime, theirs: datetime, title: str) -> Finding:
    """The finding for two readings of the same moment."""
    ahead_s = (ours - theirs).total_seconds()
    if abs(ahead_s) <= ALLOWED_S:
        return Finding.fine("clock", f"Our clock agrees with {title}'s.")
    text = f"Our clock is {abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} {title}'s."
    mend = "Set this machine's clock, for example with a time service (NTP)."
    return Finding.problem("clock", text, mend) if abs(ahead_s) > TOO_MUCH_S else Finding.warning("clock", text, mend)
