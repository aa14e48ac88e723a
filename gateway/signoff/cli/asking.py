"""What `ask` and `run` share: which session asks, the live countdown, and the answer in words."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
import msgspec
from msgspec import UNSET, Struct

from signoff.cli.connect import ASK_PATIENCE_S, Place, reachable
from signoff.cli.exits import INTERRUPTED
from signoff.cli.output import span, span_left, summary
from signoff.client import ApprovalRecord, Client
from signoff.client.asking import Seen
from signoff.client.turns import to_the_end
from signoff.context import current
from signoff.errors import InvalidInput
from signoff.ids import new_id
from signoff.model import Action, SessionKind
from signoff.presence import JOBS
from signoff.visible import visible

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

ASKED_CHARS = 120
"""An action in a line is cut here, with the count of what is left out."""
CLEAR_S = 2.0
"""How long the end of a session made for one question may take."""
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Wish(Struct, frozen=True, kw_only=True):
    """How the question is to be asked."""

    session_id: str | None = None
    to: str | None = None
    reason: str | None = None
    timeout_s: float | None = None
    here: bool = False


def asking_options(command: F) -> F:
    """The options that `ask` and `run` share."""
    for option in (
        click.option("--timeout", "timeout_s", type=click.FloatRange(min=0, min_open=True), help="Seconds to wait."),
        click.option("--reason", help="Why it should be done, in the asker's words."),
        click.option("--here", is_flag=True, help="Ask on this terminal (too), as in a session of kind cli."),
        click.option("--to", metavar="DESTINATION", help="Ask there: platform:chat[/thread]."),
        click.option("--session", "session_id", envvar="SIGNOFF_SESSION_ID", help="Ask in this declared session."),
    ):
        command = option(command)
    return command


def until_interrupted(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run `work` to its exit code. SIGINT, SIGTERM and SIGHUP cancel it, which withdraws what it asks."""
    caught: list[int] = []

    async def go() -> int:
        task = asyncio.ensure_future(work())
        loop = asyncio.get_running_loop()

        def cancel(number: int) -> None:
            caught.append(number)
            task.cancel()

        if sys.platform != "win32":
            for number in _ENDING:
                loop.add_signal_handler(number, cancel, number)
        try:
            return await task
        except asyncio.CancelledError:
            return 128 + caught[0] if caught else INTERRUPTED

    try:
        return asyncio.run(go())
    except KeyboardInterrupt:
        return INTERRUPTED


@asynccontextmanager
async def asked(place: Place, wish: Wish, action: Action) -> AsyncIterator[tuple[Client, ApprovalRecord]]:
    """The end of the question about `action`, claimed where it may run, and the client to report the result with.

    Without a session one is declared for this question alone, at `wish.to` or the profile's fallback destination, and
    ended with it, so that nothing granted for "this session" outlives the command. It is a job's where a job started
    this command. In a session of kind `cli`, which `wish.here` declares, it is also asked on the terminal of this
    process.
    """
    check_texts(wish, action)
    async with place.client(ASK_PATIENCE_S) as client:
        session_id = wish.session_id
        if wish.to is not None or not session_id or await _strange(client, session_id):
            session_id = new_id("cli")
            await client.session(session_id, kind=_kind(wish), destination=wish.to)
        try:

            async def asking(seen: Seen | None) -> ApprovalRecord:
                return await client.request(
                    action,
                    session_id=session_id,
                    reason=wish.reason,
                    timeout_s=UNSET if wish.timeout_s is None else wish.timeout_s,
                    seen=seen,
                )

            yield client, await _answered(place, client, session_id, wish, asking)
        finally:
            if session_id != wish.session_id:
                await to_the_end(client.clear(session_id), CLEAR_S)


def _kind(wish: Wish) -> SessionKind:
    """What the session of one question is. What a job starts is part of it, whatever place or terminal it names."""
    found = current().kind
    if found is not None and found in JOBS:
        return found
    return "cli" if wish.here else "api"


async def _strange(client: Client, session_id: str) -> bool:
    """Whether a job started this command, and that session is none of a job: there it would be asked about and wait."""
    if current().kind not in JOBS:
        return False
    return (await client.find_session(session_id)).kind not in (*JOBS, "child")


async def _answered(
    place: Place,
    client: Client,
    session_id: str,
    wish: Wish,
    asking: Callable[[Seen | None], Coroutine[Any, Any, ApprovalRecord]],
) -> ApprovalRecord:
    """The end of the question: put on this terminal where the session is one of kind `cli`, else waited for."""
    if wish.here or session_id == wish.session_id:
        kind = _kind(wish) if session_id != wish.session_id else (await client.find_session(session_id)).kind
        if wish.here and kind != "cli":
            raise InvalidInput(f"--here is for sessions of kind cli; {session_id} is {kind}.", param="here")
        if kind == "cli" and (wish.here or reachable(place)):
            from signoff.cli.here import Here, answering

            async with answering(place, client) as door, Here(door, session_id).attached() as here:
                return await here.ask(asking)
    with countdown(live=sys.stderr.isatty(), quiet=place.as_json) as seen:
        return await asking(seen)


@contextmanager
def countdown(*, live: bool, quiet: bool = False) -> Any:
    """While the question waits, a line that counts down on a terminal, or one line that says so elsewhere; yields what
    to tell each state of it. `quiet`: neither."""
    if quiet or not live:
        yield None if quiet else _tell_once()
        return
    from rich.console import Console

    status = Console(stderr=True).status("Asking …")
    state: list[ApprovalRecord] = []

    async def tick() -> None:
        while True:
            if state:
                status.update(waiting_line(state[0], datetime.now(UTC)))
            await asyncio.sleep(1)

    def seen(record: ApprovalRecord) -> None:
        state[:] = [record]

    task = asyncio.ensure_future(tick())
    status.start()
    try:
        yield seen
    finally:
        status.stop()
        task.cancel()


def _tell_once() -> Seen:
    """Says once, where nothing can count down, what is asked, where, and for how long it waits."""
    told: list[str] = []

    def seen(record: ApprovalRecord) -> None:
        if record.pending and not told:
            told.append(record.request_id)
            click.echo(f"signoff: {visible(asked_line(record))}", err=True)

    return seen


def asked_line(record: ApprovalRecord) -> str:
    """`asking 7Q2MK in telegram:5 (deletes a directory tree): rm -rf build. Waiting up to 5 min for an answer.`"""
    place = f" in {', '.join(record.destinations)}" if record.destinations else ""
    what = " ".join(summary(record).split())
    if len(what) > ASKED_CHARS:
        what = f"{what[:ASKED_CHARS]}… ({len(what) - ASKED_CHARS:,} more characters)"
    waits = "until somebody answers" if record.timeout_s is None else f"up to {span(record.timeout_s)} for an answer"
    why = f" ({record.description})" if record.description else ""
    return f"asking {record.short_id}{place}{why}: {what}. Waiting {waits}."


def waiting_line(record: ApprovalRecord, now: datetime) -> str:
    """`Waiting for an answer to K7M2Q in telegram:5: 4 min left`."""
    place = f" in {', '.join(record.destinations)}" if record.destinations else ""
    time = ""
    if record.expires_at is not None:
        time = f": {span_left((record.expires_at - now).total_seconds())} left"
    # Brackets would be rich's markup.
    return visible(f"Waiting for an answer to {record.short_id}{place}{time}").replace("[", "(").replace("]", ")")


def told(record: ApprovalRecord) -> str:
    """How it ended, for people, on one line."""
    said = record.user_summary or record.message or record.outcome or "pending"
    if not record.may_run and record.outcome == "approved":
        said = record.message.removeprefix("BLOCKED: ")
    return " ".join(said.split())


def check_texts(*values: Any) -> None:
    """Raise `InvalidInput` where a text in these is not UTF-8: a person could not be shown what is asked."""
    try:
        msgspec.json.encode(values)
    except UnicodeEncodeError:
        raise InvalidInput(
            "An argument (or the working folder's name) is not UTF-8, so it cannot be shown to anybody and cannot be "
            "asked here; nobody was asked. Rename the file, or name it through a script."
        ) from None


def working_folder() -> str | None:
    """The working folder, or None where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None
