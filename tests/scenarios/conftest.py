"""The transports every story is told on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest

from tests.scenarios import gateways, matrix
from tests.scenarios.on_console import Console
from tests.scenarios.on_discord import DiscordGateway, DiscordHttp
from tests.scenarios.on_slack import SlackHttp, SlackSocket
from tests.scenarios.on_telegram import TelegramPoll, TelegramWebhook
from tests.scenarios.transport import Transport

TRANSPORTS: tuple[type[Transport], ...] = (
    TelegramPoll,
    TelegramWebhook,
    DiscordGateway,
    DiscordHttp,
    SlackSocket,
    SlackHttp,
    Console,
)
STORES = ("sqlite",)
_COLUMNS = [f"{transport.name} x {store}" for transport in TRANSPORTS for store in STORES]
assert matrix.COLUMNS == _COLUMNS, "the matrix has a column for every transport"
_HERE = Path(__file__).parent


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every story is told on every transport: in the quick run on one, which is the first for two stories of three, and
    for the third in turn one of the others.

    A story marked `heavy_on` is left to the heavy run on the transports it names. One that takes `thorough` is told
    shortly in the quick run, and at length on every transport in the heavy one.
    """
    if "chat" not in metafunc.fixturenames:
        return
    left = metafunc.definition.get_closest_marker("heavy_on")
    others = [transport.name for transport in TRANSPORTS[1:] if left is None or transport.name not in left.args]
    turn = _turn_of(metafunc)
    quick = {others[turn // 3 % len(others)] if others and turn % 3 == 0 else TRANSPORTS[0].name}
    cells = [(transport, column.replace(" ", "")) for transport, column in zip(TRANSPORTS, _COLUMNS, strict=True)]
    if "thorough" in metafunc.fixturenames:
        rows = [pytest.param(transport, False, id=cell) for transport, cell in cells if transport.name in quick]
        rows += [pytest.param(each, True, id=f"{cell}-thorough", marks=pytest.mark.heavy) for each, cell in cells]
        metafunc.parametrize(("chat", "thorough"), rows, indirect=["chat"])
        return
    marks = {transport: [] if transport.name in quick else [pytest.mark.heavy] for transport, _ in cells}
    rows = [pytest.param(transport, id=cell, marks=marks[transport]) for transport, cell in cells]
    metafunc.parametrize("chat", rows, indirect=True)


def _turn_of(metafunc: pytest.Metafunc) -> int:
    """A story's place in its file, from where another file's stories do not begin."""
    stories = [name for name in vars(metafunc.module) if name.startswith("test_")]
    return crc32(metafunc.module.__name__.encode()) + stories.index(metafunc.function.__name__)


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
    """Print the gateways' logs with a story that failed, and name its cell of the matrix."""
    report = yield
    if not item.path.is_relative_to(_HERE):
        return report
    if report.failed:
        report.sections += gateways.log_sections(gateways.LOGS)
    column = _column_of(item)
    if column is not None and (call.when == "call" or not report.passed):
        report.user_properties.append((matrix.CELL, [_story_of(item), column]))
    return report


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
