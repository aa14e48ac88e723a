"""`actions`: what was kept for a later yes, and the answers to it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import click

from signoff.cli.connect import Place, placed, with_client
from signoff.cli.output import left, put_json, put_rows
from signoff.cli.summaries import summary
from signoff.client import ActionRecord, Client
from signoff.errors import RequestNotFound

_STATES = {
    "waits": "waits for an answer",
    "approved": "approved, waits for its executor",
    "running": "running",
    "succeeded": "succeeded",
    "failed": "failed",
    "not_run": "not run: its executor did not start it",
    "unknown": "unknown: it may have run",
    "denied": "denied, not run",
    "expired": "expired, not run",
    "gone": "taken back, not run",
}

_GIVING = {"WHAT": 30, "SESSION": 0, "EXECUTOR": 0}
_NOT_KEPT = (
    "No kept action with this id is known here. `signoff actions` lists them; --profile reaches another profile."
)


@click.group(invoke_without_command=True)
@placed
@click.pass_context
def actions(context: click.Context, place: Place) -> None:
    """Actions that were kept for a later yes: list, approve, reject and run them.

    Without a command it lists them.
    """
    if context.invoked_subcommand is None:
        _list(place)
    elif place.config is not None or place.as_json:
        raise click.UsageError(f"Put the options behind it: `signoff actions {context.invoked_subcommand} …`")


@actions.command("list")
@placed
def list_(place: Place) -> None:
    """List kept actions, those that ended too."""
    _list(place)


def _list(place: Place) -> None:
    rows = with_client(place, lambda client: client.actions())
    if place.as_json:
        put_json({"object": "list", "data": rows, "next": None})
        return
    heads = ("ID", "WHAT", "STATE", "EXECUTOR", "SESSION", "EXPIRES IN")
    put_rows(heads, [_row(row) for row in rows], empty="No action is kept.", giving=_GIVING)


def _row(row: ActionRecord) -> tuple[str, ...]:
    asked = row.approval
    until = asked.expires_at if row.state == "waits" else None
    return row.short_id, summary(asked), _told(row), row.executor or "", asked.session_id, left(until)


def _told(row: ActionRecord) -> str:
    told = _STATES.get(row.state, row.state)
    if row.executor_missing:
        told = f"approved, but no gateway has executor {row.executor} now"
    return f"{told}; to be run again as {row.again_as}" if row.again_as else told


@actions.command()
@click.argument("action_id", metavar="ID")
@placed
def approve(place: Place, action_id: str) -> None:
    """Approve a kept action; its executor then runs it, once."""
    _answered(place, lambda client: client.approve_action(action_id))


@actions.command()
@click.argument("action_id", metavar="ID")
@click.argument("reason", nargs=-1)
@placed
def reject(place: Place, action_id: str, reason: tuple[str, ...]) -> None:
    """Deny a kept action, with a reason; it is not run."""
    _answered(place, lambda client: client.reject_action(action_id, " ".join(reason) or None))


@actions.command()
@click.argument("action_id", metavar="ID")
@click.option("--again", is_flag=True, help="Run one once more of which nobody knows whether it ran: it may run twice.")
@click.option("--did-run", is_flag=True, help="Say of one of which nobody knows that it did run.")
@placed
def replay(place: Place, action_id: str, again: bool, did_run: bool) -> None:
    """Run an approved action that waits for its executor, or settle one that is unknown."""
    if again and did_run:
        raise click.UsageError("It either did run or is to run again: give one of --again and --did-run")
    if again:
        _answered(place, lambda client: client.run_action_again(action_id))
    elif did_run:
        _answered(place, lambda client: client.action_did_run(action_id))
    else:
        _answered(place, lambda client: client.replay_action(action_id))


def _answered(place: Place, verb: Callable[[Client], Coroutine[Any, Any, ActionRecord]]) -> None:
    try:
        row = with_client(place, verb)
    except RequestNotFound as error:
        raise RequestNotFound(_NOT_KEPT) from error
    if place.as_json:
        put_json(row)
    else:
        click.echo(f"{row.short_id}: {_told(row)}.")
