"""A program that holds a gateway itself: it asks, acts, ends, and tells what it left behind.

`python -m tests.scenarios.embedded [--pages] CONFIG PLACE COMMAND [PLACE COMMAND]...` prints one JSON object a line.
With `--pages` it also serves the web console, as a program must whose people answer there.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from signoff.config import load_config
from signoff.console import Console
from signoff.gateway import Gateway
from signoff.model import Command, Destination
from signoff.server import serve


def open_files() -> set[str]:
    """What the process has open, apart from the folder of the list itself."""
    found = set()
    for number in os.listdir("/dev/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/dev/fd/{number}')}")
        except OSError:
            continue  # the folder that is being read
    return found


def say(**facts: object) -> None:
    """One line for whoever started us."""
    print(json.dumps(facts), flush=True)


@asynccontextmanager
async def pages_of(gateway: Gateway) -> AsyncIterator[None]:
    """Serve the web console until the block is left."""
    console, settings = Console(gateway), gateway.config.gateway
    async with serve(gateway, port=settings.port, state_dir=settings.state_dir, pages=console) as bound:
        console.opened(bound.api)
        yield


async def work(config: Path, questions: list[tuple[str, str]], *, pages: bool) -> None:
    """Ask about every command at once in its place, "run" what may run, and end."""
    async with Gateway(load_config(config)) as gateway, pages_of(gateway) if pages else nullcontext():

        async def one(place: str, command: str) -> None:
            platform, _, chat = place.partition(":")
            await gateway.session(place, kind="chat", destination=Destination(platform, chat))
            record = await gateway.request(Command(command=command), session_id=place)
            if record.may_run:
                await gateway.broker.result("default", record.request_id, "succeeded", 0)
            say(command=command, outcome=record.outcome, may_run=record.may_run)

        async with asyncio.TaskGroup() as group:
            for place, command in questions:
                group.create_task(one(place, command))


async def main() -> None:
    """Compare what there was before with what is left."""
    pages = "--pages" in sys.argv
    config, *words = [word for word in sys.argv[1:] if word != "--pages"]
    before, threads = open_files(), set(threading.enumerate())
    await work(Path(config), list(zip(words[::2], words[1::2], strict=True)), pages=pages)
    await asyncio.get_running_loop().shutdown_default_executor()
    say(
        tasks=[task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}],
        threads=[thread.name for thread in set(threading.enumerate()) - threads],
        files=sorted(open_files() - before),
    )


if __name__ == "__main__":
    asyncio.run(main())
