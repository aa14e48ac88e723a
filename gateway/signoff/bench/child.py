"""One round of one measurement, in a process of its own: `python -m signoff.bench.child NAME SIZES`."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys

import msgspec
from msgspec import Struct

from signoff.bench.figures import NotMeasured
from signoff.bench.rows import MEASURES, Sizes


class Result(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one round found, or why it found nothing."""

    values: dict[str, float] = {}
    why: str | None = None


async def measured(name: str, sizes: Sizes) -> Result:
    """Run the measurement of that name."""
    measure = next(each for each in MEASURES if each.name == name)
    module, _, function = measure.place.partition(":")
    run = getattr(importlib.import_module(f"signoff.bench.{module}"), function)
    task = asyncio.current_task()
    if task is not None:
        # So that what this process started is ended by it, also when it is ended itself.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return Result(values=await run(sizes))
    except NotMeasured as reason:
        return Result(why=str(reason))


def main() -> None:
    """Print the result as JSON."""
    name, sizes = sys.argv[1:3]
    result = asyncio.run(measured(name, msgspec.json.decode(sizes, type=Sizes)))
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")


if __name__ == "__main__":
    main()
