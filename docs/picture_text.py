"""A message of a platform as runs of styled text, the way its client shows them, and those wrapped to lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import Any

from msgspec import Struct
from tests.platforms import discord, slack, telegram

Piece = tuple[str, str]
"""A run of text and its style: plain, bold, head, code, pre, quote, small, link, time."""
Line = list[Piece]
Button = tuple[str, str]
"""A label and a style: success, danger, neutral."""

IN_A_BOX = ("pre", "quote")
WIDE, NARROW = set("MWmw@—…✅⛔⌛⏹⚠🛑%"), set("iljtfrI.,:;'|!()[] ·")
SIZES = {"head": 1.42, "bold": 1.16, "small": 0.9}
"""How wide a style is beside plain text, in the widest of the fonts named."""


class Shown(Struct, frozen=True, kw_only=True):
    """One message as its readers see it."""

    platform: str
    pieces: tuple[Piece, ...]
    rows: tuple[tuple[Button, ...], ...]
    sent_at: datetime
    edited: bool


def of_telegram(message: telegram.SeenMessage) -> Shown:
    """The text with its entities, whose offsets are UTF-16 units."""
    raw = message.text.encode("utf-16-le")
    cuts = {0, len(raw) // 2}
    for entity in message.entities:
        cuts |= {entity["offset"], entity["offset"] + entity["length"]}
    pieces = []
    for start, end in pairwise(sorted(cuts)):
        inside = [e for e in message.entities if e["offset"] <= start and end <= e["offset"] + e["length"]]
        pieces.append((_localised(raw[2 * start : 2 * end].decode("utf-16-le"), inside), _style(inside)))
    rows = _rows(message.buttons, {"success": "success", "danger": "danger"})
    return Shown(
        platform="telegram", pieces=tuple(pieces), rows=rows, sent_at=message.sent_at, edited=bool(message.edits)
    )


def _style(entities: list[dict[str, Any]]) -> str:
    names = {"bold": "bold", "code": "code", "pre": "pre", "blockquote": "quote", "text_link": "link"}
    return next((names[e["type"]] for e in entities if e["type"] in names), "plain")


def _localised(text: str, entities: list[dict[str, Any]]) -> str:
    """A clock as a client writes it: relative, or the reader's time of day; here the reader lives in UTC."""
    for entity in entities:
        if entity["type"] == "date_time":
            form = entity.get("date_time_format", "")
            return "in 5 minutes" if form == "r" else _clock(text)
    return text


def _clock(text: str) -> str:
    return text.removeprefix("at ").removesuffix(" UTC")


# --- Discord ---------------------------------------------------------------------------------------

_INLINE = re.compile(
    r"""\*\*(?P<bold>(?:\\.|[^*])+)\*\* | `(?P<code>[^`]+)` | <t:\d+:(?P<time>[Rt])> | <@(?P<who>\d+)>
      | \[(?P<link>(?:\\.|[^\]])+)\]\(<[^>]*>\) | \\(?P<escaped>[^\w\s]) | (?P<plain>[^\\*`<\[]+|.)""",
    re.VERBOSE,
)
_FENCE = re.compile(r"```(?:diff)?\n(.*?)\n```", re.DOTALL)


def of_discord(message: discord.SeenMessage, names: dict[str, str]) -> Shown:
    """The content with its markup interpreted. `names` are people by id."""
    at = f"{message.sent_at:%H:%M}"
    pieces: list[Piece] = []
    for number, part in enumerate(_FENCE.split(message.content)):
        if number % 2:
            pieces.append((part, "pre"))
            continue
        lines = part.split("\n")
        for place, line in enumerate(lines):
            if place:
                pieces.append(("\n", "plain"))
            pieces += _discord_line(line, message, at, names)
    rows = _rows(message.buttons, {"success": "success", "danger": "danger"})
    return Shown(
        platform="discord", pieces=tuple(pieces), rows=rows, sent_at=message.sent_at, edited=bool(message.edits)
    )


def _discord_line(line: str, message: discord.SeenMessage, at: str, names: dict[str, str]) -> Iterator[Piece]:
    for mark, style in (("> ", "quote"), ("-# ", "small")):
        if line.startswith(mark):
            yield from ((text, style) for text, _ in _discord_line(line[len(mark) :], message, at, names))
            return
    for found in _INLINE.finditer(line):
        kind = found.lastgroup or "plain"
        text = found[kind]
        if kind == "time":
            unix_s = int(re.findall(r"\d+", found[0])[0])
            yield ("in 5 minutes" if text == "R" else f"{_utc(unix_s):%H:%M}"), "time"
        elif kind == "who":
            yield f"@{names.get(text, text)}", "link"
        else:
            yield re.sub(r"\\([^\w\s])", r"\1", text), "plain" if kind == "escaped" else kind


def _utc(unix_s: int) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC)


# --- Slack -----------------------------------------------------------------------------------------

_PARTS = {"rich_text_preformatted": "pre", "rich_text_quote": "quote"}


def of_slack(message: slack.SeenMessage, names: dict[str, str]) -> Shown:
    """The blocks. `names` are people by id."""
    pieces: list[Piece] = []
    for block in message.blocks:
        for part in _slack_block(block, names):
            if pieces:
                pieces.append(("\n", "plain"))
            pieces += part
    rows = _rows(message.buttons, {"primary": "success", "danger": "danger"})
    return Shown(platform="slack", pieces=tuple(pieces), rows=rows, sent_at=message.sent_at, edited=bool(message.edits))


def _slack_block(block: dict[str, Any], names: dict[str, str]) -> Iterator[list[Piece]]:
    kind = block["type"]
    if kind == "header":
        yield [(block["text"]["text"], "head")]
    elif kind == "context":
        yield [(each["text"], "small") for each in block["elements"]]
    elif kind == "rich_text":
        for part in block["elements"]:
            style = _PARTS.get(part["type"])
            pieces = [_slack_element(each, names) for each in part["elements"]]
            yield [(text, style or own) for text, own in pieces]
    elif kind != "actions":
        raise ValueError(f"a block of type {kind} is not drawn")


def _slack_element(element: dict[str, Any], names: dict[str, str]) -> Piece:
    kind = element["type"]
    if kind == "date":
        return _clock(element["fallback"]), "plain"
    if kind == "user":
        return f"@{names.get(element['user_id'], element['user_id'])}", "link"
    if kind == "link":
        return element["text"], "link"
    style = element.get("style", {})
    return element["text"], "code" if style.get("code") else "bold" if style.get("bold") else "plain"


# --- all -------------------------------------------------------------------------------------------


def _rows(buttons: Any, styles: dict[str, str]) -> tuple[tuple[Button, ...], ...]:
    runs = groupby(buttons, key=lambda button: button.row)
    return tuple(tuple((each.label, styles.get(each.style, "neutral")) for each in run) for _, run in runs)


def lines(shown: Shown, room: float) -> list[Line]:
    """The text wrapped to so many pixels. An empty line is left out: a box has its own room around it."""
    wrapped: list[Line] = [[]]
    for text, style in shown.pieces:
        for number, part in enumerate(text.split("\n")):
            if number:
                wrapped.append([])
            limit = room - (24 if style in IN_A_BOX else 0)
            for word in _words(part):
                if wrapped[-1] and word.strip() and width([*wrapped[-1], (word, style)]) > limit:
                    wrapped.append([])
                wrapped[-1].append((word, style))
    return [_merged(line) for line in wrapped if line]


def _words(text: str) -> list[str]:
    return ["".join(run) for _, run in groupby(text, key=str.isspace)]


def _merged(line: Line) -> Line:
    return [("".join(text for text, _ in run), style) for style, run in groupby(line, key=lambda piece: piece[1])]


def width(line: Line) -> float:
    """Estimated pixels, on the wide side: the reader's fonts are not known."""
    total = 0.0
    for text, style in line:
        if style in ("code", "pre"):
            total += 8.4 * len(text)
            continue
        size = sum(13.0 if c in WIDE else 5.0 if c in NARROW else 8.7 for c in text)
        total += size * SIZES.get(style, 1.0)
    return total
