"""A card as Telegram text with entities. No parse mode: no character of any text can become markup.

Telegram makes mentions, commands, hashtags and addresses in plain text clickable by itself, and a mention pings.
Such words are shown as `code`, where it does not, and which leaves every character as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from msgspec import Struct
from telegram import ForceReply, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, User

from signoff.errors import SendRefused
from signoff.model import Block, Button, Card, Span

from ..lengths import units

TEXT_MAX_UNITS = 4096
"""Bot API, sendMessage: characters after parsing; counted here in UTF-16 units, the stricter reading."""
ENTITIES_MAX = 100
"""Bot API: entities beyond it are ignored, which would wake a mention."""
TOKEN_MAX_BYTES = 64
"""Bot API, InlineKeyboardButton.callback_data."""
PLACEHOLDER_MAX = 64
"""Bot API, ForceReply.input_field_placeholder."""
_ALIVE = re.compile(r"@\w|://|(?:^|(?<=\W))[/#$]\w|\w\.[^\W\d_]{2}")
"""A word that Telegram might make clickable holds one of these; too many are better than too few."""
_WORDS = re.compile(r"\S+")
_MANY = 8
_CLOCKS = {"relative_time": "r", "clock": "t"}


class Detail(IntEnum):
    """How much formatting is tried; a server that refuses an entity gets less."""

    FULL = 0
    NO_CLOCKS = 1
    CODE_ONLY = 2


class Rendered(Struct, frozen=True):
    """A text and its entities."""

    text: str
    entities: tuple[MessageEntity, ...]
    has_clocks: bool = False


def render(card: Card, detail: Detail = Detail.FULL) -> Rendered:
    """The card's text. Raises `SendRefused` for a card that Telegram could not show whole; nothing is ever cut."""
    parts: list[str] = []
    entities: list[MessageEntity] = []
    position = 0
    for number, block in enumerate(card.blocks):
        if number:
            parts.append("\n")
            position += 1
        start, shown = position, ""
        for text, entity in _pieces(block, detail):
            if entity is not None and (length := units(text.rstrip())):
                entities.append(_at(entity, position, length))
            shown += text
            position = start + units(shown)
        outer = _wanted(_around(block), detail)
        if outer is not None and (length := units(shown.rstrip())):
            entities.append(_at(outer, start, length))
        parts.append(shown)
    if position > TEXT_MAX_UNITS or len(entities) > ENTITIES_MAX:
        raise SendRefused(
            f"The card has {position} units and {len(entities)} marked parts; Telegram shows at most {TEXT_MAX_UNITS} "
            f"and {ENTITIES_MAX}. Send a shorter card.",
            reason="too_long",
        )
    entities.sort(key=lambda entity: (entity.offset, -entity.length, entity.type != MessageEntity.BLOCKQUOTE))
    has_clocks = any(entity.type == MessageEntity.DATE_TIME for entity in entities)
    return Rendered("".join(parts), tuple(entities), has_clocks)


def keyboard(card: Card) -> InlineKeyboardMarkup | None:
    """The buttons, or None without any."""
    rows = [[_button(button) for button in row] for row in card.rows if row]
    return InlineKeyboardMarkup(rows) if rows else None


def markup(card: Card, *, group: bool) -> InlineKeyboardMarkup | ForceReply | None:
    """The buttons, or the request for a typed reply; Telegram takes only one of them.

    In a group only the person mentioned in the text is asked, in a direct chat there is nobody else.
    """
    if card.prompt is None:
        return keyboard(card)
    return ForceReply(selective=group, input_field_placeholder=card.prompt[:PLACEHOLDER_MAX] or None)


def _button(button: Button) -> InlineKeyboardButton:
    if not 1 <= len(button.token.encode()) <= TOKEN_MAX_BYTES:
        raise SendRefused(f"The token of button {button.label!r} is not 1-{TOKEN_MAX_BYTES} bytes.", reason="token")
    style = button.style if button.style != "neutral" else None
    return InlineKeyboardButton(button.label, callback_data=button.token, style=style)


def _pieces(block: Block, detail: Detail) -> Iterator[tuple[str, MessageEntity | None]]:
    """The block's text in pieces, each with its entity. A living word may reach over several spans."""
    whole = "".join(span.text for span in block.spans)
    if block.kind == "code":
        yield whole, None
        return
    entities = [_wanted(_entity(span), detail) for span in block.spans]
    fixed = [
        span.style == "mention" or (entity is not None and entity.type != MessageEntity.BOLD)
        for span, entity in zip(block.spans, entities, strict=True)
    ]
    loose = (" " * len(span.text) if firm else span.text for span, firm in zip(block.spans, fixed, strict=True))
    dead, start = _living("".join(loose)), 0
    for span, entity, firm in zip(block.spans, entities, fixed, strict=True):
        end = start + len(span.text)
        if firm:
            yield span.text, entity
        else:
            for first, last, alive in _split(dead, start, end):
                yield whole[first:last], MessageEntity(MessageEntity.CODE, 0, 1) if alive else entity
        start = end


def _around(block: Block) -> MessageEntity | None:
    if block.kind == "code":
        return MessageEntity(MessageEntity.PRE, 0, 1, language="diff" if block.language == "diff" else None)
    if block.kind != "quote":
        return None
    return MessageEntity(MessageEntity.EXPANDABLE_BLOCKQUOTE if block.fold else MessageEntity.BLOCKQUOTE, 0, 1)


def _entity(span: Span) -> MessageEntity | None:
    if span.style == "bold":
        return MessageEntity(MessageEntity.BOLD, 0, 1)
    if span.style == "code":
        return MessageEntity(MessageEntity.CODE, 0, 1)
    if span.style == "link" and span.href:
        return MessageEntity(MessageEntity.TEXT_LINK, 0, 1, url=span.href)
    if span.style in _CLOCKS and span.at is not None:
        return MessageEntity(MessageEntity.DATE_TIME, 0, 1, unix_time=span.at, date_time_format=_CLOCKS[span.style])
    account = (span.href or "").removeprefix("tg://user?id=")
    if span.style == "mention" and account.isascii() and account.isdigit():
        return MessageEntity(MessageEntity.TEXT_MENTION, 0, 1, user=User(int(account), "", is_bot=False))
    return None


def _living(text: str) -> list[tuple[int, int]]:
    """Where words stand that Telegram would make clickable; neighbouring ones are one run, and so are very many."""
    runs: list[tuple[int, int]] = []
    for word in _WORDS.finditer(text):
        if _ALIVE.search(word.group()):
            if runs and not text[runs[-1][1] : word.start()].strip():
                runs[-1] = (runs[-1][0], word.end())
            else:
                runs.append(word.span())
    return runs if len(runs) <= _MANY else [(runs[0][0], runs[-1][1])]


def _split(runs: list[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """The stretch from `start` to `end`, cut at the runs; those inside a run are marked."""
    for first, last in runs:
        first, last = max(first, start), min(last, end)  # noqa: PLW2901  # the run's part in this stretch
        if first < last:
            if start < first:
                yield start, first, False
            yield first, last, True
            start = last
    if start < end:
        yield start, end, False


def _at(entity: MessageEntity, offset: int, length: int) -> MessageEntity:
    return MessageEntity(
        entity.type,
        offset,
        length,
        url=entity.url,
        user=entity.user,
        language=entity.language,
        unix_time=entity.unix_time,
        date_time_format=entity.date_time_format,
    )


def _wanted(entity: MessageEntity | None, detail: Detail) -> MessageEntity | None:
    """The entity, unless it is more than the level of detail has; its text is then treated as plain."""
    if entity is None or (detail is not Detail.FULL and entity.type == MessageEntity.DATE_TIME):
        return None
    if detail is Detail.CODE_ONLY and entity.type not in (MessageEntity.PRE, MessageEntity.CODE):
        return None
    return entity
