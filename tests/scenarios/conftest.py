"""The transports every story is told on, and the matrix at the end of a run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest

from tests.scenarios import gateways
from tests.scenarios.on_telegram import TelegramPoll, TelegramWebhook
from tests.scenarios.transport import Transport

TRANSPORTS: tuple[type[Transport], ...] = (TelegramPoll, TelegramWebhook)
STORES = ("sqlite",)
_COLUMNS = [f"{transport.name} x {store}" for transport in TRANSPORTS for store in STORES]
_HERE = Path(__file__).parent
_cells = pytest.StashKey[dict[tuple[str, str], list[str]]]()
"""By story and column: how each of its cells ended."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of this suite."""
    config.addinivalue_line("markers", "heavy_on(*transports): left to the heavy run on these transports")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every story is told on every transport. One marked `heavy_on` is left to the heavy run on those it names."""
    if "chat" not in metafunc.fixturenames:
        return
    left = metafunc.definition.get_closest_marker("heavy_on")
    rows = []
    for transport, column in zip(TRANSPORTS, _COLUMNS, strict=True):
        marks = [pytest.mark.heavy] if left is not None and transport.name in left.args else []
        rows.append(pytest.param(transport, id=column.replace(" ", ""), marks=marks))
    metafunc.parametrize("chat", rows, indirect=True)


@pytest.fixture
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    """A fresh platform."""
    async with request.param.opened() as transport:
        yield transport


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """Each story begins without logs of others."""
    gateways.LOGS.clear()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print the gateways' logs with a story that failed, and fill in its cell."""
    report = yield
    if not item.path.is_relative_to(_HERE):
        return report
    if report.failed:
        report.sections += gateways.log_sections(gateways.LOGS)
    column = _column_of(item)
    if column is not None and (call.when == "call" or not report.passed):
        cells = item.config.stash.setdefault(_cells, {})
        cells.setdefault((_story_of(item), column), []).append(report.outcome)
    return report


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember the cells of another run."""
    for item in items:
        if item.path.is_relative_to(_HERE) and (column := _column_of(item)) is not None:
            cells = item.config.stash.setdefault(_cells, {})
            cells.setdefault((_story_of(item), column), []).append("elsewhere")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The matrix of stories and transports."""
    cells = config.stash.get(_cells, {})
    told = {story for (story, _), ends in cells.items() if set(ends) != {"elsewhere"}}
    if not told:
        return
    width = max(map(len, told))
    terminalreporter.section("stories x transports")
    terminalreporter.line(f"{'':{width}}  {'  '.join(_COLUMNS)}")
    for story in sorted(told):
        row = "  ".join(f"{_word(cells.get((story, column), [])):{len(column)}}" for column in _COLUMNS)
        terminalreporter.line(f"{story:{width}}  {row}")


def _word(ends: list[str]) -> str:
    """How a cell ended: all of its parts count."""
    told = [end for end in ends if end != "elsewhere"]
    if not told:
        return "in the other run" if ends else "MISSING"
    passed = told.count("passed")
    if passed == len(told):
        return f"passed {passed}/{len(told)}" if len(told) > 1 else "passed"
    return f"SKIPPED {told.count('skipped')}" if "skipped" in told else f"FAILED {len(told) - passed}/{len(told)}"


def _story_of(item: pytest.Item) -> str:
    name: str = getattr(item, "originalname", item.name)
    return f"{item.path.stem.removeprefix('test_')}: {name.removeprefix('test_').replace('_', ' ')}"


def _column_of(item: pytest.Item) -> str | None:
    params = getattr(getattr(item, "callspec", None), "params", {})
    chat = params.get("chat")
    return next((column for column in _COLUMNS if chat is not None and column.startswith(chat.name + " ")), None)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder with a short name: a socket's path may have about 100 bytes, and pytest's own names are long."""
    folder = Path(tempfile.mkdtemp(prefix="signoff-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
