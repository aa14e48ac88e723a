"""Opening the gateway in a temporary folder, letting the script play, and ending cleanly whenever the person wants."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from rich.text import Text

from signoff.demo.keyboard import typed_lines
from signoff.demo.pages import Pages, open_pages
from signoff.demo.pages import show as show_page
from signoff.demo.screen import Screen, Terminal
from signoff.demo.script import AGENT, SCENES
from signoff.demo.show import Show, Stage, stage_config
from signoff.demo.terminal import PLACE, TerminalAdapter
from signoff.gateway import Gateway
from signoff.record import Approval

AUTO_PAUSE_S = 1.2
"""How long a card stands before it is answered by itself, on a terminal, where somebody looks on."""
LOOK_S = 30.0
"""After the last answer the console stays so long, so that the page does not break under the person's finger."""
LOOK_EVERY_S = 0.2
LEFT_AFTER_S = 2.0
"""Without an open page for so long, the person has left; going from page to page takes less."""
UNREACHABLE = 75
"""The exit code when the chat cannot be reached: nobody could be asked."""
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


async def perform(folder: Path, stage: Stage, *, auto: bool = False, browser: bool = False) -> int:
    """Run the demonstration; the exit code. Files are written to `folder` alone. `browser`: open the console in one."""
    # What the adapters log is told here in sentences of its own.
    logging.getLogger("signoff_adapters").addHandler(logging.NullHandler())
    console = Terminal(highlight=False)
    screen = Screen(console, interactive=stage.in_terminal and not auto)
    adapter = TerminalAdapter(screen, folder) if stage.in_terminal else None
    adapters = {("default", PLACE.platform): adapter} if adapter is not None else None
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(Gateway(stage_config(stage, folder), adapters=adapters))
        pages = await stack.enter_async_context(open_pages(gateway)) if stage.in_console else None
        _welcome(screen, stage, pages, auto=auto, browser=browser)
        refused = _refused(gateway, stage)
        if refused:
            screen.put([Text(f"{stage.title} cannot be reached: {refused}", "bold red")])
            return UNREACHABLE
        pause_s = AUTO_PAUSE_S if console.is_terminal else 0.0
        show = Show(gateway, screen, stage, auto=adapter if auto else None, pause_s=pause_s)
        playing = asyncio.create_task(show.play(SCENES))
        typing = asyncio.create_task(_typing(adapter, screen)) if adapter is not None and not auto else None
        if pages is not None and browser:
            show_page(pages.link)
        code = await _until_over(playing, typing)
        screen.close()
        whole = playing.done() and not playing.cancelled()
        _farewell(screen, await show.ended(), whole=whole)
        if pages is not None and whole and pages.watched:
            screen.put([Text(f"The pages stay for {LOOK_S:g} s, or until you close them. Ctrl-C ends now.", "dim")])
            await _until_nobody_looks(pages)
    _next_steps(screen, whole=whole, named_a_file=adapter is not None and adapter.named_a_file)
    return code


async def _typing(adapter: TerminalAdapter, screen: Screen) -> None:
    """Hand in what is typed, until standard input ends."""
    screen.prompt()
    async for line in typed_lines():
        screen.entered()
        await adapter.typed(line)
        screen.prompt()


async def _until_over(playing: asyncio.Task[None], typing: asyncio.Task[None] | None) -> int:
    """Wait for the last scene, the end of the input, or a signal; what is still asked then is withdrawn."""
    tasks = [task for task in (playing, typing) if task is not None]
    with _signals() as signalled:
        waited: list[asyncio.Future[None] | asyncio.Future[int]] = [*tasks, signalled]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
    return 128 + signalled.result() if signalled.done() else 0


async def _until_nobody_looks(pages: Pages) -> None:
    """Let the person look at the pages once more, until they close them, send a signal, or `LOOK_S` is over."""
    unwatched_s = 0.0
    with _signals() as signalled:
        for _ in range(int(LOOK_S / LOOK_EVERY_S)):
            await asyncio.wait([signalled], timeout=LOOK_EVERY_S)
            unwatched_s = 0.0 if pages.watched else unwatched_s + LOOK_EVERY_S
            if unwatched_s > LEFT_AFTER_S or signalled.done():
                return


@contextlib.contextmanager
def _signals() -> Iterator[asyncio.Future[int]]:
    """A future that a signal which means to end resolves with its number; for a second one counts what stood before."""
    loop = asyncio.get_running_loop()
    signalled: asyncio.Future[int] = loop.create_future()
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)
        before.clear()

    def once(number: int) -> None:
        restore()
        if number not in (signal.SIGINT, signal.SIGTERM):
            # A terminal that is closed may say so twice, itself and by its shell.
            signal.signal(number, signal.SIG_IGN)
        signalled.set_result(number)

    for number in _ENDING:
        handler = signal.getsignal(number)
        if handler == signal.SIG_IGN and number != signal.SIGINT:
            continue
        with contextlib.suppress(NotImplementedError):  # Windows has its own way
            loop.add_signal_handler(number, once, number)
            before[number] = handler
    try:
        yield signalled
    finally:
        restore()


def _refused(gateway: Gateway, stage: Stage) -> str | None:
    """Why a real platform cannot be reached, if so."""
    platform = stage.destination.platform
    adapter = gateway.adapters.get(("default", platform))
    if adapter is None:
        return f"its library is not installed: pip install 'signoff[{platform}]'"
    health = adapter.health()
    return None if health.state == "ready" else health.detail or health.state


def _welcome(screen: Screen, stage: Stage, pages: Pages | None, *, auto: bool, browser: bool) -> None:
    lines: list[Text | str] = [
        Text.assemble(("Signoff", "bold"), " asks people before an agent acts. You are the person."),
        f"The agent, {AGENT}, follows a script: it runs nothing and says what it would run.",
    ]
    if pages is not None:
        how = "Your browser opens this page. If it does not, open it yourself" if browser else "Open this in a browser"
        # Whole on one line, so that it can be copied.
        lines += [f"{how}, and press Log in there:", Text(pages.link, "cyan", no_wrap=True)]
        lines.append("The link works once, within 10 minutes.")
        lines.append("Answer there; watch here what the agent makes of it. Ctrl-C ends.")
    elif not stage.in_terminal:
        lines.append(f"Its cards go to {stage.title}: answer there. Ctrl-C ends.")
    elif auto:
        lines.append("The buttons are pressed by themselves (--auto).")
    else:
        lines.append("Type a button's number and Enter, or /approve, /deny reason, /pending, /help.")
        lines.append("Ctrl-D ends. In a browser instead: signoff demo --no-browser prints a link.")
    screen.put(lines)


def _farewell(screen: Screen, records: Sequence[Approval], *, whole: bool) -> None:
    """What became of all of it, from the record."""
    withdrawn = [record.short_id for record in records if record.outcome == "cancelled"]
    head = "What the record says" if whole else "Ended early"
    head += f". Withdrawn, not run: {', '.join(withdrawn)}" if withdrawn else ""
    screen.put([Text("─" * screen.width, "dim"), Text(head, "bold")], gap=True)
    for record, more in _alike(records):
        room = max(screen.width - 8, 20)
        shown = str(getattr(record.action, "command", "")).split("\n", 1)[0]
        shown = shown if len(shown) <= room else f"{shown[: room - 1]}…"
        ids = ", ".join((record.short_id, *more))
        named = Text.assemble((ids, "bold"), " ", (shown, "cyan"))
        summary = Text(record.user_summary).wrap(screen.console, room)
        screen.put([named, *(Text.assemble("      ", line) for line in summary)])
    if not records:
        screen.put(["Nothing was asked."])


def _alike(records: Sequence[Approval]) -> list[tuple[Approval, list[str]]]:
    """Each with the short ids of those that waited on its card and ended with it, by the same answer."""
    found: dict[str, tuple[Approval, list[str]]] = {}
    for record in records:
        first = found.get(record.leader_id or "")
        if first is not None and _answer(first[0]) == _answer(record):
            first[1].append(record.short_id)
        else:
            found[record.request_id] = (record, [])
    return list(found.values())


def _answer(record: Approval) -> tuple[object, ...]:
    return record.outcome, record.decided_at, record.execution.state


def _next_steps(screen: Screen, *, whole: bool, named_a_file: bool) -> None:
    """Where to go from here."""
    file = " So is the file that a card named." if named_a_file else ""
    screen.put([f"Nothing was run. The store and its folder are removed.{file}"], gap=True)
    if whole:
        screen.put(
            [
                "Next: signoff init sets up Telegram, Discord, Slack or just the console; signoff serve starts it.",
                "Then `signoff run -- rm -rf build` waits for a person; what is harmless runs at once.",
            ]
        )
