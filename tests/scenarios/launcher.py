"""A gateway that dies, stops or fails at a named hop. `python -m tests.scenarios.launcher --help`.

It is `signoff serve` with its store and adapters wrapped. Nothing happens at a hop before the file `armed` stands
beside the configuration, so that a story can set its scene first. The file `arrivals` grows by a byte with each call
that comes to the hop then.

Hops are `before NAME` and `after NAME`. NAME is a change of the store such as `asking.ask`, or `post` and `update`,
which are the adapter's calls.

One that ends by itself writes what the gateway left behind into the file `left`, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

import signoff.gateway as root
from signoff import catching_up, dispatcher, executing
from signoff.changes import staging
from signoff.config import load_config
from signoff.console.answering import Answering, Asked
from signoff.console_adapter import ConsoleAdapter
from signoff.inbox import ProfileInbox
from signoff.model import Actor
from signoff.ports import Clock, Store, Tx
from signoff.serving import Addresses, run_gateway
from signoff.stores.open import open_store
from signoff_adapters.slack import limits
from tests.scenarios.embedded import open_files
from tests.scenarios.leaping import LeapingClock

Call = Callable[..., Awaitable[Any]]


class Hops:
    """Where the process is to end (`kill`), or to go no further while it is armed (`hold`)."""

    def __init__(self, folder: Path, kill: str | None, hold: str | None) -> None:
        self._armed, self._reached, self._arrivals = folder / "armed", folder / "reached", folder / "arrivals"
        self._kill, self._hold = kill, hold

    async def reach(self, hop: str) -> None:
        """Pass a hop, or not."""
        if hop not in (self._kill, self._hold) or not self._armed.exists():
            return
        # Whoever looks sees the whole word or no file, and may end this process as soon as it does.
        whole = self._reached.with_suffix(".whole")
        whole.write_text(hop)
        whole.replace(self._reached)
        self._count()
        if hop == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        while self._armed.exists():  # noqa: ASYNC110  # the file's owner tells nobody
            await asyncio.sleep(0.01)

    def _count(self) -> None:
        with self._arrivals.open("ab") as arrivals:
            arrivals.write(b".")


class HoppingStore:
    """A store whose changes are hops."""

    def __init__(self, store: Store, hops: Hops) -> None:
        self._store, self._hops = store, hops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def transact(self, change: Callable[[Tx], Any], *, bulk: bool = False) -> Any:
        """Commit between two hops."""
        name = name_of(change)
        await self._hops.reach(f"before {name}")
        value = await self._store.transact(change, bulk=bulk)
        await self._hops.reach(f"after {name}")
        return value


def name_of(change: Callable[[Tx], Any]) -> str:
    """`module.function` of a change; of one that another goes around, its own."""
    function: Any = change
    while isinstance(function, functools.partial):
        function = function.keywords.get("change", function.func)
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def hopping(call: Call, name: str, hops: Hops) -> Call:
    """An adapter's method between two hops."""

    async def wrapped(*arguments: Any, **named: Any) -> Any:
        await hops.reach(f"before {name}")
        value = await call(*arguments, **named)
        await hops.reach(f"after {name}")
        return value

    return wrapped


def poisoned(call: Call, poison: str) -> Call:
    """The inbox's handler of messages, which fails at those that contain `poison`."""

    async def wrapped(inbox: ProfileInbox, message: Any) -> Any:
        if poison in message.text:
            raise RuntimeError(f"{poison} cannot be handled")
        return await call(inbox, message)

    return wrapped


def poisoned_form(call: Call, poison: str) -> Call:
    """The console's answering of a form, which fails at a reason that contains `poison`."""

    async def wrapped(answering: Answering, profile: str, asked: Asked, actor: Actor) -> Any:
        if poison in asked.reason:
            raise RuntimeError(f"{poison} cannot be handled")
        return await call(answering, profile, asked, actor)

    return wrapped


def prepare(options: argparse.Namespace) -> None:
    """Wrap what the gateway will be made of."""
    hops = Hops(options.config.parent, options.kill, options.hold)
    vars(dispatcher)["LEASE_S"] = options.lease
    vars(staging)["LEASE_S"] = options.claim
    vars(executing)["RENEW_EVERY"] = timedelta(seconds=options.claim / 3)
    if options.away is not None:
        # One value for both: what counts as being away, and how long the news of it is waited for afterwards.
        vars(catching_up)["AWAY_FOR"] = vars(catching_up)["SETTLE"] = timedelta(seconds=options.away)

    def opened(url: str, clock: Clock) -> Any:
        return HoppingStore(open_store(url, clock), hops)

    vars(root)["open_store"] = opened
    for adapter in (ConsoleAdapter, *(point.load() for point in entry_points(group="signoff.adapters"))):
        for name in ("post", "update"):
            setattr(adapter, name, hopping(getattr(adapter, name), name, hops))
        if options.fast:
            adapter.info = msgspec.structs.replace(
                adapter.info, per_second=10_000, per_chat_s=0.001, group_per_minute=1_000_000
            )
    if options.fast:
        limits.PER_MINUTE.update(dict.fromkeys(limits.PER_MINUTE, 1_000_000))
    if options.poison:
        setattr(ProfileInbox, "message", poisoned(ProfileInbox.message, options.poison))  # noqa: B010  # a method
        setattr(Answering, "decide", poisoned_form(Answering.decide, options.poison))  # noqa: B010


async def serve(options: argparse.Namespace) -> list[str]:
    """Run until SIGTERM; the tasks that outlived the gateway."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    if options.leaps:
        clock = LeapingClock(options.config.parent)
        vars(root)["SystemClock"] = lambda: clock
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, clock.read)

    def ready(addresses: Addresses) -> None:
        print(f"listening on {addresses.api}", flush=True)

    await run_gateway(load_config(options.config), on_ready=ready, stop=stop)
    return [task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}]


def report_left(folder: Path, tasks: list[str], threads: set[threading.Thread], files: set[str]) -> None:
    """Tell what is there now beside the `threads` and `files` of before the start. Nothing is collected for it: a
    connection that only the garbage collector closes is one that was left open."""
    left = {
        "tasks": tasks,
        "threads": [thread.name for thread in set(threading.enumerate()) - threads],
        "files": sorted(open_files() - files),
    }
    (folder / "left").write_text(json.dumps(left))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--kill", help="the hop at which the process ends itself by SIGKILL")
    parser.add_argument("--hold", help="the hop at which it waits while it is armed")
    parser.add_argument("--poison", help="a text that the gateway cannot handle")
    parser.add_argument("--lease", type=float, default=dispatcher.LEASE_S, help="how long what is under way is held, s")
    parser.add_argument("--claim", type=float, default=staging.LEASE_S, help="how long an executor's claim holds, s")
    parser.add_argument("--away", type=float, help="from how many seconds on it counts that a platform was away")
    parser.add_argument("--leaps", action="store_true", help="go by a clock that the story moves on")
    parser.add_argument("--fast", action="store_true", help="send as fast as the platform takes it")
    options = parser.parse_args()
    logging.basicConfig(level="WARNING", stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    prepare(options)
    threads, files = set(threading.enumerate()), open_files()
    tasks = asyncio.run(serve(options))
    report_left(options.config.parent, tasks, threads, files)


if __name__ == "__main__":
    main()
