"""What every run of the suite has."""

from __future__ import annotations

import pytest

from tests.scenarios.matrix import Matrix


def pytest_configure(config: pytest.Config) -> None:
    """The process that prints the summary gathers the scenarios' matrix; workers only run."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Matrix(config))
