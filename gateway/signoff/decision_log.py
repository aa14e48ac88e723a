"""A line in the log for each question that ended, each refusal, and each run that did not succeed.

Actions, reasons and names that people give themselves are in none of them. What a rule or a setting allowed without
asking has no line either; the record of it is in the history.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from signoff.model import Actor, ApprovalRequest, Change
from signoff.visible import visible

log = logging.getLogger("signoff.decisions")

EVERY_S = 1.0
"""Calls that are refused make a line at most so often: whoever has no key may send any number of them."""

_TROUBLE = frozenset({"failed", "not_run", "unknown", "lapsed"})


def heard(changes: Sequence[Change]) -> None:
    """A commit's changes."""
    if not log.isEnabledFor(logging.INFO):
        return
    for change in changes:
        event, row = change.event, change.request
        if event.type == "approval.resolved" and row is not None:
            if not _allowed_unasked(row):
                _say(_ended(row))
        elif event.type == "approval.execution" and row is not None:
            if row.execution.state in _TROUBLE:
                cause = f" ({row.execution.cause})" if row.execution.cause else ""
                _say(f"{row.profile}: the run of {row.short_id} is {row.execution.state}{cause}")
        elif event.type == "tap.refused":
            about = row.short_id if row is not None else "no question of ours"
            why = event.data.get("why", "unknown")
            who = f"{event.data.get('platform', 'somebody')}:{event.data.get('user_id', '')}".rstrip(":")
            _say(f"{event.profile}: what {who} did to {about} decided nothing ({why})")


def _say(text: str) -> None:
    """One line, whatever an id that somebody chose holds."""
    log.info("%s", visible(" ".join(text.split())))


def _allowed_unasked(row: ApprovalRequest) -> bool:
    return row.outcome == "approved" and not any(by.type == "person" for by in row.decided_by)


def _ended(row: ApprovalRequest) -> str:
    cause = f" ({row.cause})" if row.cause else ""
    by = ", ".join(map(_named, row.decided_by))
    asker = f", asked by {row.agent}" if row.agent else ""
    return f"{row.profile}: {row.short_id} {row.outcome}{cause}{f' by {by}' if by else ''}{asker} in {row.session_id}"


def _named(by: Actor) -> str:
    """By what the settings or the platform know them, not by a name that they chose."""
    account = f"{by.platform}:{by.user_id}" if by.platform and by.user_id else None
    key = f"key {by.key_id}" if by.key_id else None
    who = by.principal or account or by.rule or by.setting or by.grant_id or key or by.type
    return f"{who} via {by.via}" if by.via else who


class RefusedCalls:
    """Lines about calls that were refused, few whatever is sent. `now_s` counts seconds."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._silent_until = float("-inf")
        self._left_out = 0

    def tell(self, code: str, what: str, address: str | None) -> None:
        """A call was refused: by which error, what it was, and where it came from."""
        now_s = self._now_s()
        if now_s < self._silent_until:
            self._left_out += 1
            return
        more = f"; {self._left_out} more since the last such line" if self._left_out else ""
        self._silent_until, self._left_out = now_s + EVERY_S, 0
        _say(f"refused {what} from {address or 'the local socket'}: {code}{more}")
