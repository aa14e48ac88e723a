"""Which tests the quick suite leaves to the heavy run, and what is printed at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.matrix import Matrix

HERE = Path(__file__).parent
SLOW = tuple(
    HERE / name
    for name in (
        "browser",
        "unit/init/test_init.py",
        "unit/doctor/test_doctor.py",
        "unit/doctor/test_mistakes.py",
        "unit/drill/test_drill.py",
        "scenarios/test_several.py",
        "scenarios/test_several_deaf.py",
    )
)
"""Where each test starts processes or a browser: only those marked `quick` are in the quick suite."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and in the process that prints the summary the matrix of stories and transports."""
    config.addinivalue_line("markers", "quick: among slow tests, for the quick suite all the same")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Matrix(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones before marks are selected by."""
    for item in items:
        slow = any(item.path.is_relative_to(place) for place in SLOW)
        if slow and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.heavy)
