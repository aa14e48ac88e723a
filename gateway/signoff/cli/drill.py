"""`drill`: whether somebody would see a question, place by place, and how soon."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import Any

import click

from signoff.cli.connect import Place, placed, with_client
from signoff.cli.exits import OK, OTHER
from signoff.cli.output import put_json, put_rows
from signoff.client import Client
from signoff.drills import LEAST_S, MOST_S

POLL_S = 0.5
"""How often the gateway is asked. A drill is about people, who take longer."""
GRACE_S = 5.0
"""The gateway's clock may be behind ours."""
_WORDS = {"seen": "seen", "nobody": "nobody tapped", "not_sent": "not sent", "waiting": "waiting"}


@click.command()
@click.option("--to", "places", multiple=True, metavar="DESTINATION", help="Only there; may be repeated.")
@click.option(
    "--wait", "wait_s", type=click.FloatRange(LEAST_S, MOST_S), default=300.0, show_default=True, metavar="SECONDS"
)
@placed
def drill(place: Place, *, places: tuple[str, ...], wait_s: float) -> int:
    """Send a rehearsal card to every destination that the settings name, and wait until somebody tapped it.

    The cards go through the running gateway and say that nothing will run. Only who may decide counts.

    Exit codes: 0 every card was seen, 1 one was not, 2 wrong usage, 75 no gateway.
    """
    report = with_client(place, lambda client: _drilled(client, places, wait_s, progress=not place.as_json))
    if place.as_json:
        put_json(report)
    else:
        heads = ("DESTINATION", "SEEN", "BY", "AFTER", "WHY NOT")
        put_rows(heads, [_row(each) for each in report["places"]], empty="No card was sent.")
    return OK if all(each["state"] == "seen" for each in report["places"]) else OTHER


async def _drilled(client: Client, places: tuple[str, ...], wait_s: float, *, progress: bool) -> dict[str, Any]:
    report = await client.start_drill(places, wait_s=wait_s)
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
    return each["destination"], _WORDS[each["state"]], each["by"] or "", after, each["error"] or ""
