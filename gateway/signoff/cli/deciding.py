"""`pending`, `approve`, `deny`, `stop`: an operator's answers."""

from __future__ import annotations

from typing import Any

import click

from signoff.changes.grants import time_box
from signoff.cli.connect import Place, placed, with_client
from signoff.cli.output import Shown, Suggested, json_object, left, put_json, put_rows
from signoff.cli.summaries import summary
from signoff.client import ApprovalRecord, Client
from signoff.errors import AlreadyResolved, Conflict

_GIVING = {"WHAT": 30, "SESSION": 0, "AGENT": 0}
"""What a narrow terminal cuts or leaves out; `why` and --json tell the rest."""
ASK_AGAIN = "ask_again"
_APPROVING = ("once", "once_all", "session", "always", ASK_AGAIN, "accept")
"""`accept` is the word for a tool server's question."""
_KEPT = "kept: "
"""Marks an action that nobody waits for: a yes has it run."""
_ANSWERS = f"{', '.join(_APPROVING)} or a time box from 1m to 24h such as 30m"


@click.command()
@click.option("--session", "session_id", help="Only of this session.")
@placed
def pending(place: Place, session_id: str | None) -> None:
    """List what waits for an answer, a line each, cut to the terminal's width.

    --json has the whole of each, and `signoff why ID` tells why one asks.
    """
    records = with_client(place, lambda client: client.pending(session_id))
    if place.as_json:
        put_json({"object": "list", "data": records, "next": None})
        return
    rows = [
        (each.short_id, _what(each), each.session_id, each.agent or "", each.severity, left(each.expires_at))
        for each in records
    ]
    heads = ("ID", "WHAT", "SESSION", "AGENT", "SEVERITY", "EXPIRES IN")
    put_rows(heads, rows, empty="Nothing waits for an answer.", giving=_GIVING)
    if any(each.stages for each in records):
        click.echo(f"{_KEPT}its executor runs it as soon as it is approved.")


def _what(record: ApprovalRecord) -> str:
    return Shown(f"{_KEPT}{summary(record)}") if record.stages else summary(record)


class Choice(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """An answer that approves, or `ask_again`. Anything else is refused with the answers there are."""

    name = "choice"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word. Raises `UsageError`."""
        word = str(value)
        if word in ("deny", "decline"):
            raise click.UsageError("To deny, use `signoff deny`.", ctx)
        if word not in _APPROVING and time_box(word) is None:
            self.fail(f"{word!r} is no answer. Give {_ANSWERS}", param, ctx)
        return word


# What stands beside the id is refused below, with the words to say it in.
@click.command(context_settings={"allow_extra_args": True})
@click.argument("request_id", metavar="ID")
@click.option(
    "--choice",
    type=Choice(),
    metavar="ANSWER",
    default="once",
    show_default=True,
    help="once, once_all, session, always, or such as 30m. ask_again decides nothing: it ends a denial.",
)
@click.option("--content", help="What is filled into the fields of a tool server's question, a JSON object.")
@click.option("--opened", is_flag=True, help="You open the page that a tool server's question names.")
@placed
def approve(place: Place, request_id: str, choice: str, content: str | None, opened: bool) -> None:
    """Approve a request by its id."""
    context = click.get_current_context()
    if context.args:
        raise click.UsageError(f"Got {context.args[0]!r} beside the id. An answer is given with --choice: {_ANSWERS}")
    given = None if content is None else json_object(content, "--content")
    _decide(place, request_id, choice, None, given, unseen=not opened and choice != ASK_AGAIN)


@click.command()
@click.argument("request_id", metavar="ID")
@click.argument("reason", nargs=-1)
@placed
def deny(place: Place, request_id: str, reason: tuple[str, ...]) -> None:
    """Deny a request by its id, with a reason for the agent."""
    _decide(place, request_id, "deny", " ".join(reason) or None)


def _decide(
    place: Place,
    request_id: str,
    choice: str,
    reason: str | None,
    content: dict[str, Any] | None = None,
    *,
    unseen: bool = False,
) -> None:
    """`unseen`: it is a yes, and nobody said that they open a page that it is about."""

    async def work(client: Client) -> ApprovalRecord:
        if unseen:
            await _check_page(client, request_id)
        return await client.decide(request_id, choice, reason, content=content)

    try:
        record = with_client(place, work)
    except AlreadyResolved as error:
        winner: dict[str, Any] = error.facts.get("approval") or {}
        how = winner.get("user_summary")
        raise Conflict(f"{request_id} had already ended, nothing was changed: {how}") from None if how else error
    if place.as_json:
        put_json(record)
    elif choice == ASK_AGAIN:
        click.echo(f"{record.short_id}: this may be asked again. Nothing was approved.")
    else:
        told = record.user_summary or record.outcome or "recorded; it still waits"
        if record.stages and record.outcome == "approved":
            told += f". It was kept: executor {record.executor} runs it now, once; `signoff actions` tells how it goes."
        click.echo(f"{record.short_id}: {told}")


async def _check_page(client: Client, request_id: str) -> None:
    """Raise `Suggested` for a question about a page, with its whole address: a yes says that the person opens it."""
    record = await client.get(request_id)
    if record.pending and record.action.get("url"):
        card = await client.card(request_id)
        raise Suggested(
            f"{record.short_id} asks you to open {card.page}. Approving it says that you do. Open it, then type",
            f"signoff approve {record.short_id} --opened",
        )


@click.command()
@click.argument("session_id", metavar="SESSION")
@placed
def stop(place: Place, session_id: str) -> None:
    """Stop a session: its turns, questions, unstarted approvals and children end."""
    facts = with_client(place, lambda client: client.stop(session_id))
    if place.as_json:
        put_json(facts)
        return
    counts = {name: len(facts.get(name) or ()) for name in ("turns", "cancelled", "voided", "running")}
    click.echo(
        f"Stopped {session_id}: {counts['turns']} turns ended, {counts['cancelled']} questions withdrawn, "
        f"{counts['voided']} approvals taken back, {counts['running']} actions already running."
    )
