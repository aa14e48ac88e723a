"""What the Bot API accepts in a message: text, entities and keyboards. Pure functions that raise `Refused`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from .model import JsonObject, SeenButton
from .refusal import bad_request

TEXT_MAX = 4096
"""Characters of a message after entity parsing (sendMessage). The documentation says "characters"; Unicode code points
are meant here, whereas entity offsets and lengths are documented in UTF-16 units."""
CAPTION_MAX = 1024
"""Characters of a document's caption (sendDocument)."""
ENTITIES_MAX = 100
"""Entities in one message. Telegram ignores the rest silently; a refusal makes the lost formatting noticed."""
CALLBACK_DATA_MAX_BYTES = 64
"""UTF-8 bytes of `callback_data`, at least 1 (InlineKeyboardButton)."""
ROW_MAX = 8
"""Buttons in a row; known from client libraries, not published by Telegram."""
BUTTONS_MAX = 100
"""Buttons under one message; known from client libraries, not published by Telegram."""
ANSWER_MAX = 200
"""Characters of an answer to a callback query (answerCallbackQuery)."""
PLACEHOLDER_MAX = 64
"""Characters of a forced reply's placeholder (ForceReply)."""

ENTITY_TYPES = frozenset(
    [
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
        "date_time",
    ]
)
_STYLES = frozenset({"primary", "success", "danger"})
_ACTIONS = [
    "callback_data",
    "url",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
]
_DATE_FORMAT = re.compile(r"r|w?[dD]?[tT]?")
_LINK = re.compile(r"https?://[^\s<>]+|(?<![\w/@])(?:@[A-Za-z]\w{3,31}|#\w+|/[A-Za-z]\w{0,31}(?:@\w+)?)")
_COMMAND = re.compile(r"(?<![\w/@])/[A-Za-z]\w{0,31}(?:@\w+)?")


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def check_text(text: object, maximum: int, what: str = "message") -> str:
    """The text itself; refuses what is not a string, too long, or broken Unicode. `maximum` in characters."""
    if not isinstance(text, str):
        raise bad_request(f"{what} text must be a string")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_request("strings must be encoded in UTF-8") from None
    if len(text) > maximum:
        raise bad_request(f"{what} is too long")
    return text


def check_body(text: object) -> str:
    """A message's text, which must show something."""
    checked = check_text(text, TEXT_MAX)
    if not checked.strip():
        raise bad_request("message text is empty")
    return checked


def check_entities(raw: object, text: str) -> list[JsonObject]:
    """The entities in order of their place; refuses unknown types, bad numbers, and ranges that leave the text."""
    if raw is None:
        return []
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise bad_request("can't parse MessageEntity: expected an Array of Objects")
    if len(raw) > ENTITIES_MAX:
        raise bad_request("too many entities in the message")
    whole = text.encode("utf-16-le")
    checked = [_check_entity(each, whole) for each in raw]
    return sorted(checked, key=lambda each: (each["offset"], -each["length"]))


def _check_entity(entity: JsonObject, whole: bytes) -> JsonObject:
    kind: Any = entity.get("type")
    offset: Any = entity.get("offset")
    length: Any = entity.get("length")
    if not isinstance(kind, str) or kind not in ENTITY_TYPES:
        raise bad_request("can't parse MessageEntity: unsupported type specified")
    if not _is_int(offset) or not _is_int(length) or offset < 0 or length <= 0:
        raise bad_request("can't parse MessageEntity: invalid offset or length")
    if 2 * (offset + length) > len(whole):
        raise bad_request("entity ends after the end of the text (offsets are UTF-16 units)")
    for edge in (offset, offset + length):
        if 0xDC00 <= int.from_bytes(whole[2 * edge : 2 * edge + 2], "little") <= 0xDFFF:
            raise bad_request("entity begins or ends inside a character (offsets are UTF-16 units)")
    check = _ENTITY_CHECKS.get(kind)
    if check is not None:
        check(entity)
    return entity


def _check_date_time(entity: JsonObject) -> None:
    """`unix_time` in whole seconds; `date_time_format` is `r` or weekday, date and time letters in this order."""
    if not _is_int(entity.get("unix_time")):
        raise bad_request("can't parse MessageEntity: unix_time must be an Integer")
    layout = entity.get("date_time_format", "")
    if not isinstance(layout, str) or not _DATE_FORMAT.fullmatch(layout):
        raise bad_request("can't parse MessageEntity: invalid date_time_format")


def _check_text_link(entity: JsonObject) -> None:
    if not isinstance(entity.get("url"), str):
        raise bad_request("can't parse MessageEntity: url must be a String")


def _check_text_mention(entity: JsonObject) -> None:
    user = entity.get("user")
    if not isinstance(user, dict) or not _is_int(user.get("id")):
        raise bad_request("can't parse MessageEntity: user must be a User")


_ENTITY_CHECKS: dict[str, Callable[[JsonObject], None]] = {
    "date_time": _check_date_time,
    "text_link": _check_text_link,
    "text_mention": _check_text_mention,
}


def check_keyboard(raw: object) -> JsonObject | None:
    """The inline keyboard as the message will carry it; none when there is none or it is empty."""
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise bad_request("object expected as reply markup")
    rows = raw.get("inline_keyboard")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request("inline keyboard expected")
    if any(len(row) > ROW_MAX for row in rows):
        raise bad_request("reply markup has too many buttons in a row")
    if sum(len(row) for row in rows) > BUTTONS_MAX:
        raise bad_request("reply markup is too long")
    kept = [[_check_button(button) for button in row] for row in rows if row]
    return {"inline_keyboard": kept} if kept else None


def _check_button(button: object) -> JsonObject:
    if not isinstance(button, dict):
        raise bad_request("can't parse inline keyboard button: expected an Object")
    label = check_text(button.get("text"), TEXT_MAX, "inline keyboard button")
    if not label.strip():
        raise bad_request("inline keyboard button text is empty")
    if len([name for name in _ACTIONS if name in button]) != 1:
        raise bad_request("text buttons are unallowed in the inline keyboard")
    if button.get("style") is not None and button["style"] not in _STYLES:
        raise bad_request("can't parse inline keyboard button: invalid style")
    if "callback_data" in button:
        data = button["callback_data"]
        if not isinstance(data, str) or not 1 <= _bytes(data) <= CALLBACK_DATA_MAX_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
    if "url" in button:
        _check_address(button["url"])
    return button


def _check_address(url: object) -> None:
    """Button addresses are http, https or tg; a bare host name such as `localhost` is not accepted."""
    problem = bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
    if not isinstance(url, str):
        raise problem
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise problem from None
    if parts.scheme == "tg":
        return
    if parts.scheme not in ("http", "https") or not host or "." not in host:
        raise problem


def check_markup(raw: object) -> tuple[JsonObject | None, JsonObject | None]:
    """A new message's markup: (inline keyboard, other markup), at most one of them."""
    if isinstance(raw, dict) and "inline_keyboard" not in raw:
        return None, _check_other_markup(raw)
    return check_keyboard(raw), None


def _check_other_markup(raw: JsonObject) -> JsonObject | None:
    if not raw:
        return None
    if not any(name in raw for name in ("force_reply", "keyboard", "remove_keyboard")):
        raise bad_request("object expected as reply markup")
    placeholder = raw.get("input_field_placeholder")
    if placeholder is not None and not 1 <= len(check_text(placeholder, TEXT_MAX)) <= PLACEHOLDER_MAX:
        raise bad_request("input field placeholder must be 1-64 characters long")
    return raw


def buttons_of(keyboard: JsonObject | None) -> list[SeenButton]:
    """The buttons in reading order."""
    if keyboard is None:
        return []
    return [
        SeenButton(
            label=button["text"],
            callback_data=button.get("callback_data"),
            style=button.get("style"),
            url=button.get("url") if isinstance(button.get("url"), str) else None,
            row=row_number,
            column=column,
        )
        for row_number, row in enumerate(keyboard["inline_keyboard"])
        for column, button in enumerate(row)
    ]


def links_in(text: str, entities: list[JsonObject]) -> list[str]:
    """What clients make clickable by themselves: mentions, commands, hashtags, addresses outside `pre` and `code`."""
    whole = text.encode("utf-16-le")
    for each in entities:
        if each["type"] in ("pre", "code"):
            start, end = 2 * each["offset"], 2 * (each["offset"] + each["length"])
            whole = whole[:start] + "\n".encode("utf-16-le") * ((end - start) // 2) + whole[end:]
    return _LINK.findall(whole.decode("utf-16-le"))


def command_entities(text: str) -> list[JsonObject]:
    """The `bot_command` entities that Telegram marks in what a person writes."""
    return [
        {"type": "bot_command", "offset": units(text[: found.start()]), "length": units(found.group())}
        for found in _COMMAND.finditer(text)
    ]


def _bytes(text: str) -> int:
    """Length in UTF-8 bytes; refuses broken Unicode."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise bad_request("strings must be encoded in UTF-8") from None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
