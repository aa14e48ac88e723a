"""Executors that approved actions wait for, and that no gateway has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signoff.ports import Finding
from signoff.staged import MOST_WAITING


def absent_findings(executors: dict[str, Any]) -> Iterator[Finding]:
    """A problem for each, as the running gateway tells them by `profile/name`."""
    for key, facts in executors.items():
        waiting = int(facts.get("waiting", 0))
        many = f"{waiting} or more" if waiting >= MOST_WAITING else str(waiting)
        yield Finding.problem(
            f"executor {key}",
            f"No gateway has it now, and {many} approved action{' waits' if waiting == 1 else 's wait'} for it.",
            "Start the program that has it, or name it in the settings; `signoff actions` lists what waits.",
        )
