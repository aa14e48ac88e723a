"""`drill`: whether somebody would see a question, place by place, and how soon."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from signoff.cli.connect import Place, placed, with_client
from signoff.cli.exits import OK, OTHER
from signoff.cli.lengths import Length
from signoff.cli.output import put_json, put_rows
from signoff.client import Client
from signoff.console_adapter import PLATFORM
from signoff.drills import LEAST_S, MOST_S
from signoff.durations import window
from signoff.wording import t

POLL_S = 0.5
"""How often the gateway is asked. A drill is about people, who take longer."""
GRACE_S = 5.0
"""The gateway's clock may be behind ours."""
BUTTON = t("drill.button")
_WORDS = {"seen": "seen", "nobody": "nobody tapped", "not_sent": "not sent", "waiting": "waiting"}


@click.command()
@click.option("--to", "places", multiple=True, metavar="DESTINATION", help="Only there; may be repeated.")
@click.option(
    "--wait",
    "wait_s",
    type=Length(LEAST_S, MOST_S),
    default="5m",
    show_default=True,
    metavar="LENGTH",
    help="How long somebody has to tap: 90 (seconds), 5m, up to 1h.",
)
@placed
def drill(place: Place, *, places: tuple[str, ...], wait_s: float) -> int:
    """Send a rehearsal card to every destination that the settings name, and wait until somebody tapped it.

    The cards go through the running gateway and say that nothing will run. Only who may decide counts.

    Exit codes: 0 every card was seen, 1 one was not, 2 wrong usage, 75 no gateway.
    """
    report = with_client(place, lambda client: _drilled(place, client, places, wait_s))
    if place.as_json:
        put_json(report)
    else:
        heads = ("DESTINATION", "SEEN", "BY", "AFTER", "WHY NOT")
        put_rows(heads, [_row(each) for each in report["places"]], empty="No card was sent.")
        unseen = [each["destination"] for each in report["places"] if each["state"] == "nobody"]
        for line in next_steps(unseen, place.console_address()):
            click.echo(f"signoff: {line}", err=True)
    return OK if all(each["state"] == "seen" for each in report["places"]) else OTHER


def next_steps(unseen: Sequence[str], console: str | None) -> Iterator[str]:
    """What may help where nobody tapped."""
    if any(_on_console(each) for each in unseen):
        yield f"nobody pressed {BUTTON!r} in the console. {_way_in(console)}"
    chats = [each for each in unseen if not _on_console(each)]
    if chats:
        yield (
            f"nobody who may decide pressed {BUTTON!r} in {', '.join(chats)}. Look whether the card stands there, and "
            "whether `approvers` of that platform names the people who read it; `signoff doctor` says what is wrong."
        )


def _way_in(console: str | None) -> str:
    at = f"Open {console}, where" if console else "In the console"
    return (
        f"{at} the card stands beside what waits; `signoff console --principal NAME` prints a link that logs NAME in."
    )


def _on_console(destination: str) -> bool:
    return destination.startswith(f"{PLATFORM}:")


async def _drilled(place: Place, client: Client, places: tuple[str, ...], wait_s: float) -> dict[str, Any]:
    report = await client.start_drill(places, wait_s=wait_s)
    progress = not place.as_json
    if progress:
        where = ", ".join(each["destination"] for each in report["places"])
        click.echo(f"signoff: a card goes to {where}. Waiting up to {window(wait_s)} for a tap.", err=True)
        if any(_on_console(each["destination"]) for each in report["places"]):
            click.echo(f"signoff: {_way_in(place.console_address())}", err=True)
    until = datetime.fromisoformat(report["ends_at"]).timestamp() + GRACE_S
    told: set[str] = set()
    while True:
        waiting = [each["destination"] for each in report["places"] if each["state"] == "waiting"]
        if progress and sys.stderr.isatty():
            _tell(report, told)
        if not waiting or datetime.now(UTC).timestamp() > until:
            return report
        await asyncio.sleep(POLL_S)
        report = await client.drill(report["id"])


def _tell(report: dict[str, Any], told: set[str]) -> None:
    """A line for each card that somebody has just tapped."""
    for each in report["places"]:
        if each["state"] == "seen" and each["destination"] not in told:
            told.add(each["destination"])
            click.echo(f"{each['destination']}: seen by {each['by']} after {each['after_s']:.0f} s", err=True)


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    after = f"{each['after_s']:.0f} s" if each["after_s"] is not None else ""
    why = each["error"] or ("nobody who may decide pressed it" if each["state"] == "nobody" else "")
    return each["destination"], _WORDS[each["state"]], each["by"] or "", after, why
