"""A card as Slack blocks. All untrusted text goes into `rich_text` and `plain_text`, where no character is markup, so
there is nothing to escape and nothing that could ping; only the notification's text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from signoff.errors import SendRefused
from signoff.model import Block, Button, Card, Dialog, Span

from ..lengths import cut, units

TEXT_MAX_UNITS = 2400
"""UTF-16 units of a card. Chosen so that five times as much (each character an `&`, escaped) and the buttons stay
below `BLOCKS_MAX_CHARS`: no text can outgrow Slack by being escaped."""
BLOCKS_MAX_CHARS = 13_200
"""Characters over all blocks, escaped, beyond which Slack was seen to answer `msg_blocks_too_long` (not documented)."""
BLOCKS_MAX = 50
"""Block Kit reference, blocks of a message."""
HEADER_MAX_CHARS = 150
"""Block Kit reference, header block: text."""
LABEL_MAX_CHARS = 75
"""Block Kit reference, button element: text and accessibility_label."""
TOKEN_MAX_CHARS = 2000
"""Block Kit reference, button element: value."""
SMALL_MAX_CHARS = 3000
"""Block Kit reference, text object: text."""
TITLE_MAX_CHARS = 24
"""Block Kit reference, modal view: title."""
PLACEHOLDER_MAX_CHARS = 150
"""Block Kit reference, plain-text input element: placeholder."""
ANSWER_MAX_CHARS = 3000
"""Block Kit reference, section block: text; longer answers are cut."""
ACTION = "signoff"
"""What the ids of our buttons begin with."""
FIELD = "reason"
CALLBACK = "signoff_reason"
SEND, CANCEL = "Send", "Cancel"
_USER = re.compile(r"[UW][A-Z0-9]+")
_GROUP = re.compile(r"S[A-Z0-9]+")
_TIME_ALONE = re.compile(r"\d{1,2}:\d\d\b[^,\d]*")
"""A clock without its date, such as `03:19 UTC`."""
_STYLES = {"success": "primary", "danger": "danger"}

Json = dict[str, Any]


class Rendered(Struct, frozen=True):
    """Blocks, and the same as plain sentences for notifications and screen readers."""

    blocks: list[Json]
    text: str


def render(card: Card, *, thread: str | None = None) -> Rendered:
    """The card's blocks. Raises `SendRefused` for a card that Slack could not show whole; nothing is ever cut.

    `thread` is kept in the ids of the button rows: a press on a private message does not say in which thread it stood.
    """
    lines = ["".join(span.text for span in block.spans) for block in card.blocks]
    blocks: list[Json] = []
    rest = list(card.blocks)
    if rest and _is_headline(rest[0]):
        blocks.append({"type": "header", "text": _plain(lines[0])})
        rest = rest[1:]
    for block in rest:
        _add(blocks, block)
    blocks += [_row(number, row, thread) for number, row in enumerate(card.rows) if row]
    text = "\n".join(lines)
    _check(blocks, text)
    return Rendered(blocks, escape(text))


def said(text: str) -> Rendered:
    """An answer of one sentence."""
    shown = cut(text, ANSWER_MAX_CHARS)
    return Rendered([{"type": "section", "text": _plain(shown)}], escape(shown))


def modal(dialog: Dialog, metadata: str) -> Json:
    """The view that asks for one typed line; `metadata` comes back with it."""
    field = {
        "type": "plain_text_input",
        "action_id": FIELD,
        "max_length": dialog.max_units,
        "placeholder": _plain(cut(dialog.placeholder, PLACEHOLDER_MAX_CHARS)),
        "focus_on_load": True,
    }
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": metadata,
        "title": _plain(cut(dialog.title, TITLE_MAX_CHARS)),
        "submit": _plain(SEND),
        "close": _plain(CANCEL),
        "blocks": [{"type": "input", "block_id": FIELD, "label": _plain(dialog.label), "element": field}],
    }


def escape(text: str) -> str:
    """The three characters that Slack wants escaped wherever text may be markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _is_headline(block: Block) -> bool:
    text = "".join(span.text for span in block.spans)
    bold = block.kind == "text" and all(span.style == "bold" for span in block.spans)
    return bold and bool(text.strip()) and len(text) <= HEADER_MAX_CHARS and "\n" not in text


def _add(blocks: list[Json], block: Block) -> None:
    """Append the block; text goes on in the rich text before it."""
    elements = [element for span in block.spans if (element := _element(span)) is not None]
    if not elements:
        return
    text = "".join(span.text for span in block.spans)
    if block.kind == "small" and all(each["type"] == "text" for each in elements) and len(text) <= SMALL_MAX_CHARS:
        blocks.append({"type": "context", "elements": [_plain(text)]})
        return
    if not blocks or blocks[-1]["type"] != "rich_text":
        blocks.append({"type": "rich_text", "elements": []})
    parts = blocks[-1]["elements"]
    if block.kind == "code":
        parts.append({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]})
    elif block.kind == "quote":
        parts.append({"type": "rich_text_quote", "elements": elements})
    elif parts and parts[-1]["type"] == "rich_text_section":
        parts[-1]["elements"] += [{"type": "text", "text": "\n"}, *elements]
    else:
        parts.append({"type": "rich_text_section", "elements": elements})


def _element(span: Span) -> Json | None:
    if not span.text:
        return None
    if span.style == "mention" and (mention := _mention(span.href or "")) is not None:
        return mention
    if span.style == "link" and span.href:
        return {"type": "link", "url": span.href, "text": span.text}
    if span.style == "clock" and span.at is not None:
        shape = "{time}" if _TIME_ALONE.fullmatch(span.text) else "{date_short_pretty} {time}"
        return {"type": "date", "timestamp": int(span.at.timestamp()), "format": shape, "fallback": span.text}
    # Slack has nothing that ticks: the words of a relative time, which name the hour, are shown as they are.
    element: Json = {"type": "text", "text": span.text}
    if span.style in ("bold", "code", "mention"):
        element["style"] = {"code" if span.style == "code" else "bold": True}
    return element


def _mention(account: str) -> Json | None:
    if _USER.fullmatch(account):
        return {"type": "user", "user_id": account}
    if _GROUP.fullmatch(account):
        return {"type": "usergroup", "usergroup_id": account}
    return None


def _row(number: int, row: Sequence[Button], thread: str | None) -> Json:
    buttons = [_button(button, f"{ACTION}_{number}_{column}") for column, button in enumerate(row)]
    block_id = f"{ACTION}_{number}" + (f"_{thread}" if thread is not None else "")
    return {"type": "actions", "block_id": block_id, "elements": buttons}


def thread_of_row(block_id: str) -> str | None:
    """The thread kept in the id of a row of buttons."""
    parts = block_id.split("_")
    return parts[2] if len(parts) == 3 and parts[0] == ACTION else None


def _button(button: Button, action_id: str) -> Json:
    if not 1 <= len(button.token) <= TOKEN_MAX_CHARS:
        limit = f"1-{TOKEN_MAX_CHARS} characters"
        raise SendRefused(f"The token of button {button.label!r} is not {limit}.", reason="token")
    shown: Json = {
        "type": "button",
        "action_id": action_id,
        "text": _plain(cut(button.label, LABEL_MAX_CHARS)),
        "value": button.token,
    }
    if button.read_as:
        shown["accessibility_label"] = cut(button.read_as, LABEL_MAX_CHARS)
    if button.style in _STYLES:
        shown["style"] = _STYLES[button.style]
    return shown


def _plain(text: str) -> Json:
    """`emoji` false: `:skull:` in somebody's text stays that."""
    return {"type": "plain_text", "text": text, "emoji": False}


def _check(blocks: list[Json], text: str) -> None:
    size, chars = units(text), sum(_chars(block) for block in blocks)
    if size > TEXT_MAX_UNITS or chars > BLOCKS_MAX_CHARS or len(blocks) > BLOCKS_MAX:
        raise SendRefused(
            f"The card has {size} units, {chars} characters after escaping and {len(blocks)} blocks; Slack shows at "
            f"most {TEXT_MAX_UNITS}, {BLOCKS_MAX_CHARS} and {BLOCKS_MAX}. Send a shorter card.",
            reason="too_long",
        )


def _chars(value: object) -> int:
    """Characters of all texts in a block, escaped."""
    if isinstance(value, dict):
        own = sum(len(escape(value[name])) for name in ("text", "fallback") if isinstance(value.get(name), str))
        return own + sum(_chars(each) for each in value.values())
    return sum(_chars(each) for each in value) if isinstance(value, list) else 0
