"""Which tests the quick suite leaves to the heavy run, and what is printed at the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.scenarios.matrix import Matrix

# How long an example takes says how busy the machine is. The checks on a bare machine draw the same examples each time,
# so that they never fail by chance; a developer's own runs look further.
settings.register_profile(
    "signoff",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="SIGNOFF_TESTS_REPEATABLE" in os.environ,
)
settings.load_profile("signoff")

HERE = Path(__file__).parent
SLOW = tuple(
    HERE / name
    for name in (
        "browser",
        "unit/init/test_init.py",
        "unit/doctor/test_doctor.py",
        "unit/doctor/test_mistakes.py",
        "unit/drill/test_drill.py",
        "unit/policy/test_costs.py",
        "unit/policy/test_properties.py",
        "unit/cli/test_cli.py",
        "unit/demo/test_demo.py",
        "unit/terminal/test_prompts.py",
        "platforms/test_telegram_network.py",
        "scenarios/test_several.py",
        "scenarios/test_several_deaf.py",
    )
)
"""Where each test starts processes or a browser, or tries very many texts: only those marked `quick` are in the quick
suite."""


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
