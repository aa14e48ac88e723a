"""A card as Discord's markup in plain content, escaped by construction.

Every character that can begin markup, a mention, a link or an emoji gets a backslash, which Discord does not show, so
that no text becomes anything but itself. What cannot be escaped (backticks within code) is written out in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from signoff.errors import SendRefused
from signoff.model import Block, Button, Card, Span

from ..lengths import units

CONTENT_MAX_UNITS = 2000
"""API, create message: content. Counted here in UTF-16 units, the stricter reading."""
TOKEN_MAX_CHARS = 100
"""API, button: custom_id."""
LABEL_MAX_CHARS = 80
"""API, button: label."""
ROW_MAX, ROWS_MAX = 5, 5
"""API, action rows of buttons."""
SUPPRESS_EMBEDS, EPHEMERAL, SUPPRESS_NOTIFICATIONS = 1 << 2, 1 << 6, 1 << 12
"""API, message flags."""
_STYLES = {"success": 3, "danger": 4, "neutral": 2}
_CLOCKS = {"relative_time": "R", "clock": "t"}
_SPECIAL = re.compile(
    r"""(?P<always>[\\*_~`|<\[\]])      # formatting, spoilers, mentions, times, masked links
      | (?P<colon>:(?=//|[\w+\-~]+:))   # addresses, and emoji by name
      | (?P<at>@(?=everyone|here))
      | (?P<invite>(?i:(?<=discord)|(?<=discordapp))\.)  # an invitation shows a box even without https
    """,
    re.VERBOSE,
)
_LINE_START = re.compile(r"([ \t]*)([>#\-+]|\d+(?=[.)]))")
"""Quotations, headings, small print and lists."""
_TICKS = re.compile("`+")
_DIGITS = re.compile(r"\d{1,20}")
_ADDRESS = re.compile(r"https?://[^\s<>]+")


class Rendered(Struct, frozen=True):
    """A message's content, and whom it may mention."""

    content: str
    users: tuple[str, ...] = ()


def render(card: Card) -> Rendered:
    """The card's content. Raises `SendRefused` for a card that Discord could not show whole; nothing is ever cut.

    Escapes make a text longer. A card that would not fit for them is tried again with its texts as code, where nothing
    needs an escape.
    """
    for dense in (False, True):
        content = "\n".join(_block(block, dense) for block in card.blocks)
        length = units(content)
        if length <= CONTENT_MAX_UNITS:
            return Rendered(content, tuple(dict.fromkeys(_mentioned(card))))
    raise SendRefused(
        f"The card has {length} units with its markup; Discord shows at most {CONTENT_MAX_UNITS}. Send a shorter card.",
        reason="too_long",
    )


def message_body(card: Card, *, ephemeral: bool = False) -> dict[str, Any]:
    """The card as a new message, without its file. Raises `SendRefused`."""
    flags = SUPPRESS_EMBEDS | (SUPPRESS_NOTIFICATIONS if card.silent else 0) | (EPHEMERAL if ephemeral else 0)
    return edit_body(card) | {"flags": flags}


def edit_body(card: Card) -> dict[str, Any]:
    """The card in place of a message. Raises `SendRefused`."""
    rendered = render(card)
    return {
        "content": rendered.content,
        "components": components(card),
        "allowed_mentions": {"parse": [], "users": list(rendered.users), "replied_user": False},
    }


def components(card: Card) -> list[dict[str, Any]]:
    """The buttons in rows; rows that are too many or too long are packed anew. Raises `SendRefused`."""
    rows = [list(row) for row in card.rows if row]
    if len(rows) > ROWS_MAX or any(len(row) > ROW_MAX for row in rows):
        buttons = [button for row in rows for button in row]
        rows = [buttons[at : at + ROW_MAX] for at in range(0, len(buttons), ROW_MAX)]
    if len(rows) > ROWS_MAX:
        raise SendRefused(f"The card has more than {ROWS_MAX * ROW_MAX} buttons.", reason="too_long")
    return [{"type": 1, "components": [_button(button) for button in row]} for row in rows]


def _button(button: Button) -> dict[str, Any]:
    if not 1 <= len(button.token) <= TOKEN_MAX_CHARS:
        raise SendRefused(f"The token of button {button.label!r} is not 1-{TOKEN_MAX_CHARS} long.", reason="token")
    if not 1 <= len(button.label) <= LABEL_MAX_CHARS:
        raise SendRefused(f"The label {button.label!r} is not 1-{LABEL_MAX_CHARS} long.", reason="too_long")
    return {"type": 2, "style": _STYLES[button.style], "label": button.label, "custom_id": button.token}


def escaped(text: str, *, line_start: bool = True) -> str:
    """`text` with a backslash before whatever would be markup."""
    lines = text.split("\n")
    return "\n".join(_escaped_line(line, line_start or number > 0) for number, line in enumerate(lines))


def plain(text: str, limit_units: int = CONTENT_MAX_UNITS) -> str:
    """A text of Signoff's own as content; the end of one that is too long is cut off, visibly."""
    content = escaped(text)
    while units(content) > limit_units:
        over = units(content) - limit_units
        text = text[: len(text) - max(1, over // 2)]
        content = f"{escaped(text)}…"
    return content


def _escaped_line(line: str, at_start: bool) -> str:
    found = _LINE_START.match(line) if at_start else None
    head = ""
    if found is not None:
        mark = found[2]
        head = f"{found[1]}{mark}\\{line[found.end()]}" if mark[0].isdigit() else f"{found[1]}\\{mark}"
        line = line[found.end() + mark[0].isdigit() :]
    return head + _SPECIAL.sub(r"\\\g<0>", line)


# --- blocks ----------------------------------------------------------------------------------------


def _block(block: Block, dense: bool) -> str:
    if block.kind == "code":
        return _fence("".join(span.text for span in block.spans), block.language, dense)
    text = "".join(_joined(list(_lines_of(block.spans)), dense))
    if block.kind == "quote":
        return "\n".join(f"> {line}" for line in text.split("\n"))
    if block.kind == "small":
        return "\n".join(f"-# {line}" if line.strip() else line for line in text.split("\n"))
    return text


def _fence(text: str, language: str | None, dense: bool) -> str:
    """A code block. A run of three backticks would end it, so it is written out."""
    body = _TICKS.sub(lambda run: run[0] if len(run[0]) < 3 else _written_out(len(run[0]), dense), text)
    if not body.strip("\n"):
        body = " "
    elif body.startswith("\n"):
        body = f" {body}"  # a blank first line is swallowed otherwise
    return f"```{'diff' if language == 'diff' else ''}\n{body}\n```"


def _written_out(count: int, dense: bool) -> str:
    return f"⟨{count}`⟩" if dense else f"⟨{count} backtick{'s' if count > 1 else ''}⟩"


def _lines_of(spans: tuple[Span, ...]) -> Iterator[Span]:
    """The spans cut at line ends, neighbours of one style as one: marks of a style neither span lines nor touch."""
    waiting: Span | None = None
    for span in spans:
        style = _style(span)
        for number, text in enumerate(span.text.split("\n")):
            if number:
                if waiting is not None:
                    yield waiting
                    waiting = None
                yield Span("\n")
            if not text:
                continue
            mergeable = style in ("plain", "bold", "code") and waiting is not None and waiting.style == style
            if waiting is not None and mergeable:
                waiting = Span(waiting.text + text, style)
                continue
            if waiting is not None:
                yield waiting
            waiting = Span(text, style, href=span.href, at=span.at)
    if waiting is not None:
        yield waiting


def _style(span: Span) -> Any:
    """The style as far as Discord can show it."""
    if span.style == "link" and not _ADDRESS.fullmatch(span.href or ""):
        return "plain"
    if span.style == "mention" and not _DIGITS.fullmatch(span.href or ""):
        return "plain"
    return "plain" if span.style in _CLOCKS and span.at is None else span.style


def _joined(spans: list[Span], dense: bool) -> Iterator[str]:
    line_start, last = True, ""
    for span in spans:
        shown = span.text if span.text == "\n" else _span(span, line_start, dense)
        if shown.startswith("`") and last.endswith("\\`"):
            last = f"{last[:-2]}{_written_out(1, dense)}"  # marks of code may not touch a backtick of the text
        yield last
        line_start, last = span.text == "\n", shown
    yield last


def _span(span: Span, line_start: bool, dense: bool) -> str:
    if span.style in _CLOCKS and span.at is not None:
        return f"<t:{int(span.at.timestamp())}:{_CLOCKS[span.style]}>"
    if span.style == "mention":
        return f"<@{span.href}>"
    if span.style == "code":
        return _code(span.text, dense)
    if span.style == "link" and not dense:
        return f"[{escaped(span.text, line_start=line_start)}](<{span.href}>)"
    text = escaped(span.text, line_start=line_start)
    if dense and units(text) > units(code := _code(span.text, dense)):
        text = code
    if span.style != "bold" or not span.text.strip():
        return text
    inner = span.text.strip()
    start = span.text.index(inner)
    shown = text.strip() if dense else escaped(inner, line_start=line_start)
    return f"{span.text[:start]}**{shown}**{span.text[start + len(inner) :]}"


def _code(text: str, dense: bool) -> str:
    """Text in a line as code. Backticks would end it, so they are written out; two marks around it would allow some,
    but not all clients read those alike."""
    body = _TICKS.sub(lambda run: _written_out(len(run[0]), dense), text)
    return f"`{body}`" if body.strip(" ") else body


def _mentioned(card: Card) -> Iterator[str]:
    for block in card.blocks:
        if block.kind != "code":
            yield from (span.href or "" for span in block.spans if _style(span) == "mention")
