"""The programs that executors start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from signoff.ports import Finding
from signoff.settings import Profile


def program_findings(profile: Profile) -> Iterator[Finding]:
    """A problem for each program that could not be started, so that what people approve would not run."""
    for name, executor in profile.executors.items():
        if executor.command and shutil.which(executor.command[0]) is None:
            yield Finding.problem(
                f"executors.{name}.command",
                f"{executor.command[0]} is no program that can be started: what people approve for it is not run.",
                "Install it, or name it by its whole path.",
            )
