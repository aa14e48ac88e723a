"""Ports for servers that must come back where they were, and addresses where nobody answers."""

from __future__ import annotations

import os
import random
import socket
from itertools import count

FIRST, EACH, SHARES = 20_000, 3_000, 4
"""Below those that systems give out by themselves (Linux from 32768, others from 49152), so that no connection or other
server of the machine is given one while nobody listens there yet, or any more. Each of pytest's workers has a share."""
_numbers = count(random.randrange(EACH))


def free_port() -> int:
    """A port that nobody listens on, and that nobody else is given for a long time."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = FIRST + worker % SHARES * EACH + next(_numbers) % EACH
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
