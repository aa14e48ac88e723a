"""Routes of the allowlist, where the store has its lines. For operators alone: a line lets a command run unasked."""

from __future__ import annotations

from signoff.allowlist_rows import AllowlistRows, of_entry, of_grant
from signoff.allowlisting import Allowlisting
from signoff.changes.allowlist import Line
from signoff.errors import AllowlistInFile, InvalidInput
from signoff.server.routes import ADMIN, Call, Reply, Route, route
from signoff.server.views import AllowlistChange, AllowlistLines, line_view
from signoff.server.wire import AllowlistBody, AllowlistQuery


async def _lines(call: Call) -> Reply:
    query: AllowlistQuery = call.query
    lines = await _rows(call).lines(call.who.profile, removed=query.removed)
    return Reply(AllowlistLines(data=tuple(map(line_view, lines))))


async def _change(call: Call) -> Reply:
    body: AllowlistBody = call.body
    add = [Line(list="commands", text=text) for text in body.commands]
    add += [Line(list="unattended_commands", text=text) for text in body.unattended_commands]
    changed = await _rows(call).change(
        call.who.profile, add, body.remove, call.who.actor, source=body.source, again=body.again
    )
    return Reply(
        AllowlistChange(
            added=tuple(line_view(of_entry(entry)) for entry in changed.added),
            removed=(
                *(line_view(of_entry(entry)) for entry in changed.removed),
                *(line_view(of_grant(grant)) for grant in changed.ended),
            ),
            left=tuple(line_view(of_entry(entry)) for entry in changed.left),
        )
    )


def _rows(call: Call) -> AllowlistRows:
    """The allowlists of a store that has them. Raises `AllowlistInFile`."""
    found = call.core.allowlisting
    if isinstance(found, Allowlisting):
        path = found.path(call.who.profile)
        raise AllowlistInFile(f"With this store {path} is the allowlist: edit that file, which is followed at once.")
    return found


ROUTES: tuple[Route, ...] = (
    route(
        name="allowlist",
        method="GET",
        path="/v1/allowlist",
        handler=_lines,
        scopes=ADMIN,
        query=AllowlistQuery,
        answer=AllowlistLines,
        errors=(AllowlistInFile,),
        text="The profile's allowlist, where the store has it. Texts are not masked.",
    ),
    route(
        name="change_allowlist",
        method="POST",
        path="/v1/allowlist",
        handler=_change,
        scopes=ADMIN,
        body=AllowlistBody,
        answer=AllowlistChange,
        errors=(AllowlistInFile, InvalidInput),
        text="Add lines to the allowlist and take others out, in one commit. What stands there already is passed over.",
    ),
)
