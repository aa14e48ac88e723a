"""A process that runs kept actions of a store on disk: one of many that race, or one that is killed at a step.

It is told in JSON on its standard input, prints `ready`, begins with the next line it reads, and prints in JSON what
became of each action.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from signoff.broker import Broker
from signoff.changes import staging
from signoff.clock import SystemClock
from signoff.errors import ActionRefused
from signoff.executing import Executing
from signoff.executors import Call, Executors
from signoff.ports import Store, Tx
from signoff.settings import ExecutorSettings, Profile
from signoff.staged import Staged
from signoff.stores.open import open_store

T = TypeVar("T")
STEPS = ("before the claim", "after the claim", "while it runs", "before the result")


def profile_with(executor: ExecutorSettings) -> Profile:
    """What a racer is registered for."""
    return Profile(executors={"writer": executor})


class Order(Struct):
    """What a racer is told."""

    url: str
    ids: list[str]
    lines: str
    """The file that the executor's function appends to."""
    executor: ExecutorSettings = ExecutorSettings(tools=("write",))
    """A program or an address; without either it is the function of this process."""
    shuffled: bool = True
    """Each racer tries the actions in an order of its own."""
    pause: str = ""
    """The step at which it stands still until it is killed."""
    reached: str = ""
    """The file that says that it got there."""


class Racer:
    """The executor's part of a gateway."""

    def __init__(self, order: Order) -> None:
        self.order = order

    def stand(self, step: str) -> None:
        """Stand still for ever at the step that was ordered."""
        if self.order.pause == step:
            Path(self.order.reached).touch()
            while True:
                sys.stdin.readline()

    def write(self, call: Call) -> None:
        """Append one line, in one write."""
        self.stand(STEPS[1])
        with open(self.order.lines, "ab", buffering=0) as file:
            file.write(f"{call.id} {os.getpid()}\n".encode())
        self.stand(STEPS[2])

    async def race(self) -> dict[str, int]:
        """Try to run every action; how often each answer came."""
        clock = SystemClock()
        store: Store = open_store(self.order.url, clock)
        watched: Any = Watched(store, self) if self.order.pause else store
        profiles = {"default": profile_with(self.order.executor)}
        executors = Executors(profiles, clock)
        if not executors.has("default", "writer"):
            executors.register("default", "writer", self.write)
        broker = Broker(watched, clock, profiles, lambda _: frozenset())
        staged = Staged(watched, broker, Executing(watched, clock, executors), clock)
        try:
            return dict(Counter([await _answer(staged, each) for each in self.order.ids]))
        finally:
            broker.waiters.close()
            await store.aclose()


async def _answer(staged: Staged, action_id: str) -> str:
    try:
        return staging.state_of(await staged.replay("default", action_id))
    except ActionRefused as error:
        return error.code


class Watched:
    """A store before whose commits the racer may stand still."""

    def __init__(self, store: Store, racer: Racer) -> None:
        self._store, self._racer = store, racer
        self._commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def transact(self, change: Callable[[Tx], T], *, bulk: bool = False) -> T:
        """Commit; the first is the claim, the second the result."""
        self._commits += 1
        self._racer.stand(STEPS[0] if self._commits == 1 else STEPS[3])
        return await self._store.transact(change, bulk=bulk)


def main() -> None:
    """Race."""
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    if order.shuffled:
        random.shuffle(order.ids)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(asyncio.run(Racer(order).race())), flush=True)


if __name__ == "__main__":
    main()
