"""Which tests the quick suite leaves to the heavy run, and what is printed at the end."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.scenarios.matrix import Matrix
from tests.services.postgres import PostgresRun

# How long an example takes says how busy the machine is. The checks on a bare machine draw the same examples each time,
# so that they never fail by chance; a developer's own runs look further.
settings.register_profile(
    "signoff",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="SIGNOFF_TESTS_REPEATABLE" in os.environ,
)
settings.load_profile("signoff")

# Compiled code is kept, also where the environment says otherwise: hundreds of processes are started, and they and the
# workers would all compile the same.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

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
    """Register the markers, and in the process that prints the summary the matrix of stories and transports."""
    config.addinivalue_line("markers", "quick: among slow tests, for the quick suite all the same")
    config.addinivalue_line("markers", "heavy_on(*transports): a story left to the heavy run on these transports")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Matrix(config))
        config.pluginmanager.register(PostgresRun())


def _import_share(config: pytest.Config) -> None:
    """Where workers collect everything at the same time, each first imports other tests than the rest do, and finds
    what they have compiled when it comes to theirs: pytest's asserts take most of the time until a first test runs."""
    worker = getattr(config, "workerinput", None)
    if worker is None or [Path(name).resolve() for name in config.args] != [HERE]:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted(HERE.rglob("test_*.py"))[number::count]:
        # What cannot be imported, or skips itself, is told when it is collected.
        with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
            importlib.import_module(".".join(path.relative_to(HERE.parent).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones before marks are selected by."""
    slow = {path: any(path.is_relative_to(place) for place in SLOW) for path in {item.path for item in items}}
    for item in items:
        if slow[item.path] and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.heavy)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without the garbage collector: it would look through all the tests again and again, which takes a third
    of the time, and none of them is garbage. They stay until the end, so it never looks at them later either."""
    gc.disable()
    try:
        _import_share(session.config)
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
