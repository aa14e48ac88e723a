"""`python -m tests.platforms.slack --port 0 --control`: prints `{"url", "control_url"}` and serves until ended."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

import msgspec

from .budgets import RateLimits
from .model import LimitsMode
from .server import SlackServer


def end_at_eof(ended: asyncio.Event) -> None:
    """Set `ended` once standard input has ended; whatever is written there is ignored."""
    if not os.read(sys.stdin.fileno(), 1024):
        ended.set()


async def serve(port: int, control: bool, mode: LimitsMode, until_eof: bool) -> None:
    """Serve until SIGTERM or SIGINT, or with `until_eof` until standard input ends."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if until_eof:
        loop.add_reader(sys.stdin.fileno(), end_at_eof, ended)
    async with SlackServer(port=port, control=control, limits=RateLimits(mode=mode)) as server:
        print(msgspec.json.encode(server.where()).decode(), flush=True)
        await ended.wait()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="A Slack workspace on loopback, for tests.")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--control", action="store_true", help="open the control API")
    parser.add_argument("--limits", choices=["enforce", "count", "off"], default="enforce", help="rate limits")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input does, as with its parent")
    chosen = parser.parse_args()
    asyncio.run(serve(chosen.port, chosen.control, chosen.limits, chosen.until_eof))


if __name__ == "__main__":
    main()
