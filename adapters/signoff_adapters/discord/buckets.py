"""What Discord's answers announce of its limits: a call that an empty bucket would refuse is not made.

Refusals count: 10,000 of them within ten minutes shut a bot out for a while.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..recent import Recent

LONGEST_S = 3600.0
"""No longer wait is believed."""
_MINOR = re.compile(r"(?<=/)\d+")


class Buckets:
    """When a call may be made again. Times are seconds by any clock that only goes on."""

    def __init__(self) -> None:
        self._filled_at: Recent[str, float] = Recent()
        """The buckets that are known to be empty."""
        self._taken_at: Recent[str, float] = Recent()
        """The messages that take no edit for now."""
        self._all_at = 0.0

    def wait_s(self, method: str, path: str, now_s: float) -> float:
        """Seconds until calls of this kind may be made; 0 now."""
        return max(0.0, self._all_at - now_s, _left_s(self._filled_at, _bucket(method, path), now_s))

    def wait_of_one_s(self, method: str, path: str, now_s: float) -> float:
        """Seconds until this very call may be made, whatever others of its kind may; 0 now."""
        return _left_s(self._taken_at, f"{method} {path}", now_s)

    def heard(self, method: str, path: str, headers: Mapping[str, str], now_s: float) -> None:
        """An answer came with these headers."""
        if headers.get("X-RateLimit-Remaining") != "0":
            return
        try:
            reset_s = float(headers.get("X-RateLimit-Reset-After", ""))
        except ValueError:
            return
        if math.isfinite(reset_s) and 0 < reset_s <= LONGEST_S:
            self._filled_at.put(_bucket(method, path), now_s + reset_s)

    def hold_all(self, wait_s: float, now_s: float) -> None:
        """A refusal spoke for the whole bot."""
        self._all_at = max(self._all_at, now_s + min(wait_s, LONGEST_S))

    def hold_one(self, method: str, path: str, wait_s: float, now_s: float) -> None:
        """A refusal spoke for this very call, about one message."""
        self._taken_at.put(f"{method} {path}", now_s + min(wait_s, LONGEST_S))


def _left_s(times: Recent[str, float], key: str, now_s: float) -> float:
    left_s = (times.get(key) or now_s) - now_s
    if left_s <= 0:
        times.pop(key)
    return max(0.0, left_s)


def _bucket(method: str, path: str) -> str:
    """The calls that share a bucket: one method and route in one channel, whichever message they are about."""
    head, slash, rest = path.partition("/messages/")
    return f"{method} {head}{slash}{_MINOR.sub(':id', f'/{rest}') if slash else ''}"
