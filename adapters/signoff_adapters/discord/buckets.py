"""What Discord's answers announce of its limits: a call that an empty bucket would refuse is not made.

Refusals count: 10,000 of them within ten minutes shut a bot out for a while.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Mapping

REMEMBERED = 1000
"""Buckets that are known to be empty."""
LONGEST_S = 3600.0
"""A longer wait is not believed."""
_MINOR = re.compile(r"(?<=/)\d+")


class Buckets:
    """When each empty bucket is filled again. Times are seconds by any clock that only goes on."""

    def __init__(self) -> None:
        self._filled_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, method: str, path: str, now_s: float) -> float:
        """Seconds until this call may be made; 0 now."""
        key = _bucket(method, path)
        filled_at = self._filled_at.get(key)
        if filled_at is None:
            return 0.0
        if filled_at <= now_s:
            del self._filled_at[key]
            return 0.0
        return filled_at - now_s

    def heard(self, method: str, path: str, headers: Mapping[str, str], now_s: float) -> None:
        """An answer came with these headers."""
        if headers.get("X-RateLimit-Remaining") != "0":
            return
        try:
            reset_s = float(headers.get("X-RateLimit-Reset-After", ""))
        except ValueError:
            return
        if not (math.isfinite(reset_s) and 0 < reset_s <= LONGEST_S):
            return
        key = _bucket(method, path)
        self._filled_at[key] = now_s + reset_s
        self._filled_at.move_to_end(key)
        if len(self._filled_at) > REMEMBERED:
            self._filled_at.popitem(last=False)


def _bucket(method: str, path: str) -> str:
    """The calls that share a bucket: one method and route in one channel, whichever message they are about."""
    head, slash, rest = path.partition("/messages/")
    return f"{method} {head}{slash}{_MINOR.sub(':id', f'/{rest}') if slash else ''}"
