"""Running one approved program: the argv as typed, without a shell, with signals passed on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

PASSED_ON = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")
    if hasattr(signal, name)
)
_FROM_TERMINAL = {"SIGINT", "SIGQUIT", "SIGWINCH"}


async def run_child(argv: Sequence[str], cwd: str | None) -> int:
    """Run it with our own standard streams; its exit code, 128 and the number for one that a signal ended.

    Raises OSError when it cannot be started.
    """
    loop = asyncio.get_running_loop()
    early: list[int] = []
    child: asyncio.subprocess.Process | None = None

    def pass_on(number: int) -> None:
        if child is None:
            early.append(number)
        elif child.returncode is None and not _sent_by_terminal(number):
            child.send_signal(number)

    if sys.platform != "win32":
        for number in PASSED_ON:
            loop.add_signal_handler(number, pass_on, number)
    child = await asyncio.create_subprocess_exec(*argv, cwd=cwd)
    for number in early:
        pass_on(number)
    code = await child.wait()
    return 128 - code if code < 0 else code


def _sent_by_terminal(number: int) -> bool:
    """Whether the terminal sends this signal to the whole foreground group, so that the child has it already."""
    if signal.Signals(number).name not in _FROM_TERMINAL:
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
