"""The matrix of stories and transports at the end of a run, gathered from the reports of all worker processes.

In a run of all marks (`-m "heavy or not heavy"`) no cell may be missing or skipped: such a run fails.
"""

from __future__ import annotations

import pytest

CELL = "cell"
COLUMNS = [
    "telegram-poll x sqlite",
    "telegram-webhook x sqlite",
    "discord-gateway x sqlite",
    "discord-http x sqlite",
    "slack-socket x sqlite",
    "slack-http x sqlite",
    "console x sqlite",
]
EVERYTHING = "heavy or not heavy"


class Matrix:
    """A pytest plugin of the process that prints the summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._cells: dict[tuple[str, str], list[str]] = {}
        self._everything = config.option.markexpr == EVERYTHING

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Fill in the cell that a report names."""
        for name, value in report.user_properties:
            if name == CELL and isinstance(value, (list, tuple)):
                story, column = value
                self._cells.setdefault((story, column), []).append(report.outcome)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run of everything in which a cell is missing has failed."""
        words = {self._word(story, column) for story in self._stories() for column in COLUMNS}
        if self._everything and any(word.startswith(("MISSING", "SKIPPED")) for word in words):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print it."""
        stories = self._stories()
        if not stories:
            return
        width = max(map(len, stories))
        terminalreporter.section("stories x transports")
        terminalreporter.line(f"{'':{width}}  {'  '.join(COLUMNS)}")
        for story in stories:
            row = "  ".join(f"{self._word(story, column):{len(column)}}" for column in COLUMNS)
            terminalreporter.line(f"{story:{width}}  {row}")

    def _stories(self) -> list[str]:
        return sorted({story for story, _ in self._cells})

    def _word(self, story: str, column: str) -> str:
        """How a cell ended: all of its parts count."""
        ends = self._cells.get((story, column), [])
        if not ends:
            return "MISSING" if self._everything else "in the other run"
        passed = ends.count("passed")
        if passed == len(ends):
            return f"passed {passed}/{len(ends)}" if len(ends) > 1 else "passed"
        return f"SKIPPED {ends.count('skipped')}" if "skipped" in ends else f"FAILED {len(ends) - passed}/{len(ends)}"
