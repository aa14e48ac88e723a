"""The message after an absence: what ended meanwhile or is kept, a line and a button each. It is never edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from signoff.changes.catching_up import LINES, Absence, Entry, absence_of, lacked_executor, unattended_setting
from signoff.clipping import clip, units
from signoff.durations import clock
from signoff.kept_words import what
from signoff.model import Actor, ApprovalRequest, Block, Button, Card, Copy, Span
from signoff.tokens import Signer
from signoff.wording import agent_name, t

WANT_ASKED, OPEN = "want_asked", "open"
"""The choices on it. The revision in a button's token is the place of its line."""
ROOM_UNITS = 300
"""What the lines leave free of a message, for its head and the platform's markup."""
CLOCK_UNITS = 16
"""A clock that the reader's app localises takes so many in the message."""
ACTION_UNITS = 60
PER_ROW = 2


def catch_up_card(
    copy: Copy,
    rows: Mapping[str, ApprovalRequest],
    signer: Signer,
    *,
    now: datetime,
    max_units: int,
    console: str | None = None,
) -> Card:
    """The message. `rows`: the requests it speaks of, by id; `console`: the console's public origin."""
    absence = absence_of(copy)
    known = [entry for entry in shown_entries(absence) if entry.request_id in rows]
    lines: list[Block] = []
    room = max_units - ROOM_UNITS
    for entry in known:
        line = entry_line(entry, rows[entry.request_id], now)
        room -= sum(CLOCK_UNITS if span.style == "clock" else units(span.text) for span in line.spans) + 1
        if room < 0:
            break
        lines.append(line)
    kept = known[: len(lines)]
    rest = sum(absence.counts.values()) - len(kept)
    buttons = [_button(copy, absence, entry, rows[entry.request_id], signer) for entry in kept]
    return Card(
        blocks=(
            head(absence, now),
            Block("text", (Span(counted(absence.counts), "bold"),)),
            *lines,
            *_more(rest, console),
        ),
        rows=tuple(tuple(buttons[at : at + PER_ROW]) for at in range(0, len(buttons), PER_ROW)),
    )


def shown_entries(absence: Absence) -> Sequence[Entry]:
    """What the message shows one by one: what still waits for somebody first, then the newest, in the order of time."""
    kept = sorted(absence.entries, key=lambda entry: (entry.kind == "staged", entry.at))[-LINES:]
    return sorted(kept, key=lambda entry: entry.at)


def head(absence: Absence, now: datetime) -> Block:
    """From when until when, and whether somebody could have answered."""
    text = t("catch_up.away" if absence.away else "catch_up.nobody", since="\x01", until="\x02")
    before, rest = text.split("\x01")
    between, after = rest.split("\x02")
    since, until = (Span(clock(at, now=now), "clock", at=at) for at in (absence.since, absence.until))
    return Block("text", (Span(before, "bold"), since, Span(between, "bold"), until, Span(after, "bold")))


def counted(counts: Mapping[str, int]) -> str:
    """`2 timeout, 1 blocked`."""
    return ", ".join(t(f"catch_up.count.{kind}", count=count) for kind, count in counts.items())


def entry_line(entry: Entry, row: ApprovalRequest, now: datetime) -> Block:
    """One that ended or is kept: id, how, when, why, what, who asked."""
    before, after = entry_text(entry, row, clock="\x01").split("\x01")
    when = Span(clock(entry.at, now=now), "clock", at=entry.at)
    return Block("text", (Span(before), when, Span(after)))


def entry_text(entry: Entry, row: ApprovalRequest, *, clock: str) -> str:
    """The same as one text."""
    action = clip(
        what(row),
        head_units=ACTION_UNITS - 20,
        tail_units=20,
        max_lines=1,
        note=lambda n: t("clip.hidden_short", count=n),
    ).text
    values = {"id": row.short_id, "clock": clock, "action": action, "agent": agent_name(row)}
    if entry.kind != "blocked":
        return t(f"catch_up.{entry.kind}", **values)
    if lacked_executor(row):
        return t("catch_up.blocked_executor", **values)
    setting = unattended_setting(row.decided_by[0] if row.decided_by else Actor(type="policy"))
    if setting is None:
        return t("catch_up.blocked_protected", **values)
    return t("catch_up.blocked", setting=setting[0], value=setting[1], **values)


def _more(rest: int, console: str | None) -> tuple[Block, ...]:
    if rest <= 0:
        return ()
    if console is None:
        return (Block("text", (Span(t("catch_up.more", count=rest)),)),)
    address = f"{console}/console/catch-up"
    before, after = t("catch_up.more_at", count=rest, address="\x01").split("\x01")
    return (Block("text", (Span(before), Span(address, "link", href=address), Span(after))),)


def _button(copy: Copy, absence: Absence, entry: Entry, row: ApprovalRequest, signer: Signer) -> Button:
    key, choice = ("open", OPEN) if entry.kind == "staged" else ("ask_again", WANT_ASKED)
    place, label = copy.destination, t(f"catch_up.{key}", id=row.short_id)
    number = absence.entries.index(entry)
    token = signer.token(copy.copy_id, number, choice, place.platform, place.chat_id)
    return Button(label, token, read_as=label)
