"""What `ask` and `run` share: which session asks, the wait for its end, and the answer in words."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import click
import msgspec
from msgspec import UNSET, Struct

from signoff.cli.connect import ASK_PATIENCE_S, Place, reachable, returned
from signoff.cli.exits import INTERRUPTED
from signoff.cli.lengths import Length
from signoff.cli.waiting import Teller
from signoff.client import ApprovalRecord, Client
from signoff.client.asking import Seen
from signoff.client.jobs import why_not
from signoff.client.turns import to_the_end
from signoff.context import current
from signoff.errors import InvalidInput, SessionNotFound
from signoff.ids import one_question_session
from signoff.model import Action, SessionKind
from signoff.presence import JOBS

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

ONE_QUESTION = ("once", "always")
"""What may be answered in a session that ends with its question: an answer for the session would promise too much."""
UNATTENDED_MODE = "unattended_mode"
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
        click.option(
            "--timeout", "timeout_s", type=Length(), metavar="LENGTH", help="How long to wait: 90 (seconds), 5m, 2h."
        ),
        click.option("--reason", help="Why it should be done, in the asker's words."),
        click.option("--here", is_flag=True, help="Ask on this terminal (too), as in a session of kind cli."),
        click.option("--to", metavar="DESTINATION", help="Ask there: platform:chat[/thread]."),
        click.option(
            "--session",
            "session_id",
            metavar="NAME",
            envvar="SIGNOFF_SESSION_ID",
            help="Ask in this session, so that answers for a session hold for the next command in it.",
        ),
    ):
        command = option(command)
    return command


def on_ending(act: Callable[[], object]) -> None:
    """From now on SIGINT, SIGTERM and SIGHUP call `act` in the running loop, where the system has signals."""
    if sys.platform != "win32":
        for number in _ENDING:
            asyncio.get_running_loop().add_signal_handler(number, act)


def until_interrupted(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run `work` to its exit code. SIGINT, SIGTERM and SIGHUP cancel it, which withdraws what it asks."""

    async def go() -> int:
        task = asyncio.ensure_future(work())
        on_ending(task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            click.echo("signoff: interrupted; what was asked is withdrawn.", err=True)
            return INTERRUPTED

    try:
        return asyncio.run(go())
    except KeyboardInterrupt:
        return INTERRUPTED


@asynccontextmanager
async def asked(place: Place, wish: Wish, action: Action) -> AsyncIterator[tuple[Client, ApprovalRecord]]:
    """The end of the question about `action`, claimed where it may run, and the client to report the result with.

    Without a session one is declared for this question alone, at `wish.to` or the profile's fallback destination, and
    ended with it, so that nothing granted for "this session" outlives the command. What is denied in it holds for the
    next one of the same user in the same folder. It is a job's where a job started this command. In a session of kind
    `cli`, which `wish.here` declares, it is also asked on the terminal of this process.
    """
    check_texts(wish, action)
    teller = None if place.as_json else Teller(place, live=sys.stderr.isatty())
    await returned(place, _nothing if teller is None else teller.missing)
    async with place.client(ASK_PATIENCE_S, None if teller is None else teller.outage) as client:
        session_id = wish.session_id
        own = wish.to is not None or not session_id or await _strange(client, session_id)
        if own or not session_id:
            session_id = one_question_session(_asker(), os.path.basename(working_folder() or ""), socket.gethostname())
            await client.session(session_id, kind=_kind(wish), destination=wish.to)
        elif session_id != os.environ.get("SIGNOFF_SESSION_ID"):
            await _declared(client, session_id, wish)
        try:

            async def asking(seen: Seen | None) -> ApprovalRecord:
                timeout_s = UNSET if wish.timeout_s is None else wish.timeout_s
                ask = partial(
                    client.request, action, session_id=session_id, reason=wish.reason, timeout_s=timeout_s, seen=seen
                )
                try:
                    return await ask(choices=ONE_QUESTION if own else None)
                except InvalidInput as error:
                    if not own or error.param != "choices":
                        raise
                    return await ask()  # this profile lets people approve for a session only

            yield client, await _answered(place, client, session_id, wish, asking, teller)
        finally:
            if own:
                await to_the_end(client.clear(session_id), CLEAR_S)


async def _declared(client: Client, session_id: str, wish: Wish) -> None:
    """Declare a session that somebody named on the command line and that is not known yet. It stays: what is answered
    for it holds for the next command that names it. One that an agent told of is the agent's to declare."""
    try:
        await client.find_session(session_id)
    except SessionNotFound:
        await client.session(session_id, kind=_kind(wish))


def _nothing() -> None:
    """Nobody is told."""


def _asker() -> str:
    """Who asks, so that a denial holds for the same asked again: this user, here. The gateway adds whose key it is."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return "\n".join((str(user), socket.gethostname(), working_folder() or ""))


def _kind(wish: Wish) -> SessionKind:
    """What the session of one question is. What a job starts is part of it, whatever place or terminal it names."""
    found = current().kind
    if found is not None and found in JOBS:
        return found
    return "cli" if wish.here else "api"


async def _strange(client: Client, session_id: str) -> bool:
    """Whether a job started this command, and that session is none of a job: there it would be asked about and wait."""
    job = current().kind
    return job in JOBS and await why_not(job, session_id, client.find_session) is not None


async def _answered(
    place: Place,
    client: Client,
    session_id: str,
    wish: Wish,
    asking: Callable[[Seen | None], Coroutine[Any, Any, ApprovalRecord]],
    teller: Teller | None,
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
    if teller is None:
        return await asking(None)
    with teller.counting():
        return await asking(teller.seen)


def told(record: ApprovalRecord) -> str:
    """How it ended, for people, on one line, with the mend where there is one."""
    said = record.user_summary or record.message or record.outcome or "pending"
    if not record.may_run and record.outcome == "approved":
        said = record.message.removeprefix("BLOCKED: ")
    return " ".join(f"{said} {_mend(record)}".split())


def _mend(record: ApprovalRecord) -> str:
    if record.repeat_of is not None and sys.stderr.isatty():  # an agent that reads it is to leave it
        return f"`signoff approve {record.short_id} --choice ask_again` lets it be asked again."
    if record.outcome == "notify_failed":
        return "`signoff doctor` says what keeps messages from being taken there."
    if record.outcome == "timeout" and sys.stderr.isatty():
        return "Ask again with --timeout to wait longer; `signoff doctor` says whether people can be reached."
    settings = [who.setting or "" for who in record.decided_by]
    if record.outcome == "blocked" and record.kind == "api" and any(UNATTENDED_MODE in each for each in settings):
        return "There is no place to ask: set approvals.fallback_destination, or name one with --to."
    return ""


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
