"""What is told on standard error while a question waits: what is asked, how it is answered, and that the gateway is
away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from signoff.cli.connect import Place
from signoff.cli.output import span_left
from signoff.cli.summaries import in_a_line, summary
from signoff.client import ApprovalRecord
from signoff.console_adapter import PLATFORM
from signoff.durations import window
from signoff.visible import visible

if TYPE_CHECKING:
    from rich.status import Status

ASKED_CHARS = 120
"""An action in a line is cut here, with the count of what is left out."""


class Teller:
    """Tells of one question. `live`: on a terminal, where it also counts down and says how to answer from another one;
    else an agent may read it, which is told where people answer and no more."""

    def __init__(self, place: Place, *, live: bool) -> None:
        self._place, self._live = place, live
        self._record: ApprovalRecord | None = None
        self._status: Status | None = None

    def seen(self, record: ApprovalRecord) -> None:
        """A state of the question; the first in which it waits is told."""
        first, self._record = self._record is None, record
        if first and record.pending:
            self._say(f"signoff: {in_a_line(asked_line(record))}")
            way = answer_line(record, self._place.console_address(), commands=self._live)
            if way:
                self._say(f"signoff: {in_a_line(way)}")
            if self._status is not None:
                self._status.update(waiting_line(record, datetime.now(UTC)))

    def outage(self, away: bool) -> None:
        """The gateway does not answer any more, or answers again."""
        self._say(f"signoff: the gateway {'does not answer; it is tried again' if away else 'answers again'}.")

    def missing(self) -> None:
        """There is no gateway, and one that ran here may come back."""
        self._say("signoff: no gateway runs here now; it is waited for.")

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count down while inside, on a terminal."""
        if not self._live:
            yield
            return
        from rich.console import Console

        self._status = Console(stderr=True).status("Asking …")
        task = asyncio.ensure_future(self._tick(self._status))
        self._status.start()
        try:
            yield
        finally:
            self._status.stop()
            self._status = None
            task.cancel()

    async def _tick(self, status: Status) -> None:
        while True:
            if self._record is not None:
                status.update(waiting_line(self._record, datetime.now(UTC)))
            await asyncio.sleep(1)

    def _say(self, line: str) -> None:
        if self._status is None:
            click.echo(line, err=True)
        else:
            self._status.console.print(line, markup=False, highlight=False, soft_wrap=True)


def asked_line(record: ApprovalRecord) -> str:
    """`asking 7Q2MK in telegram:5 (deletes a directory tree): rm -rf build. Waiting up to 5 min for an answer.`"""
    place = f" in {', '.join(record.destinations)}" if record.destinations else ""
    what: str = summary(record)
    if len(what) > ASKED_CHARS:
        what = f"{what[:ASKED_CHARS]}… ({len(what) - ASKED_CHARS:,} more characters)"
    waits = "until somebody answers" if record.timeout_s is None else f"up to {window(record.timeout_s)} for an answer"
    why = f" ({record.description})" if record.description else ""
    return f"asking {record.short_id}{place}{why}: {what}. Waiting {waits}."


def answer_line(record: ApprovalRecord, console: str | None, *, commands: bool) -> str:
    """Where people answer it: each place, the console with its address, and, with `commands`, what to type for the
    rest. Empty where that is not known."""
    ways = [
        f"at {console}/r/{record.short_id}" if place.startswith(f"{PLATFORM}:") and console else f"in {place}"
        for place in record.destinations
    ]
    if not commands:
        return f"people answer it {', '.join(ways)}." if ways else ""
    ways.append(f"by `signoff approve {record.short_id}` or `signoff deny {record.short_id}` on the gateway's machine")
    line = f"answer it {', or '.join(ways)}."
    if any(place.startswith(f"{PLATFORM}:") for place in record.destinations):
        line += " `signoff console --principal NAME` there prints a link that logs you in to the console."
    return line


def waiting_line(record: ApprovalRecord, now: datetime) -> str:
    """`Waiting for an answer to K7M2Q in telegram:5: 4 min left, until 14:05`; the clock is this machine's.

    The window begins with the first card that was sent, which is soon: until that is known its end is told as a guess.
    """
    place = f" in {', '.join(record.destinations)}" if record.destinations else ""
    time, until = "", record.expires_at
    if until is None and record.timeout_s is not None:
        until = record.created_at + timedelta(seconds=record.timeout_s)
    if until is not None:
        about = "" if record.expires_at else "about "
        time = f": {span_left((until - now).total_seconds())} left, until {about}{until.astimezone():%H:%M}"
    # Brackets would be rich's markup.
    return visible(f"Waiting for an answer to {record.short_id}{place}{time}").replace("[", "(").replace("]", ")")
