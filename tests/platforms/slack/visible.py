"""What a person sees of blocks: plain sentences, buttons, words that can be clicked, and who is pinged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from .model import JsonObject, SeenButton, SeenConfirm
from .mrkdwn import Reading, read_mrkdwn

_TOKEN = re.compile(r"\{(\w+)\}")


def read_blocks(blocks: list[JsonObject], names: Mapping[str, str]) -> Reading:
    """The blocks as a person reads them from top to bottom, one line or more for each; buttons are not text."""
    reading = Reading()
    lines: list[str] = []
    for block in blocks:
        lines += [line for line in _lines(block, names, reading) if line]
    reading.text = "\n".join(lines)
    return reading


def _lines(block: JsonObject, names: Mapping[str, str], reading: Reading) -> list[str]:
    kind = block["type"]
    if kind == "header":
        return [block["text"]["text"]]
    if kind == "section":
        texts = [block["text"]] if "text" in block else []
        return [_text(each, names, reading) for each in texts + block.get("fields", [])]
    if kind == "context":
        return [" ".join(_text(each, names, reading) for each in block["elements"] if each["type"] != "image")]
    if kind == "rich_text":
        return [_part(part, names, reading) for part in block["elements"]]
    if kind == "markdown":
        return [_add(reading, read_mrkdwn(block["text"], names))]
    if kind == "input":
        return [block["label"]["text"]]
    return [block["alt_text"]] if kind == "image" else []


def _text(text: JsonObject, names: Mapping[str, str], reading: Reading) -> str:
    if text["type"] == "plain_text":
        return str(text["text"])
    return _add(reading, read_mrkdwn(text["text"], names, auto_links=not text.get("verbatim", False)))


def _add(reading: Reading, more: Reading) -> str:
    reading.links += more.links
    reading.pings += more.pings
    return more.text


def _part(part: JsonObject, names: Mapping[str, str], reading: Reading) -> str:
    if part["type"] == "rich_text_list":
        start = int(part.get("offset", 0)) + 1
        marks = (f"{start + index}." if part["style"] == "ordered" else "•" for index in range(len(part["elements"])))
        return "\n".join(
            f"{mark} {_part(item, names, reading)}" for mark, item in zip(marks, part["elements"], strict=True)
        )
    return "".join(_inline(element, names, reading) for element in part["elements"]).removesuffix("\n")


def _inline(element: JsonObject, names: Mapping[str, str], reading: Reading) -> str:
    kind = element["type"]
    if kind == "text":
        return str(element["text"])
    if kind == "emoji":
        return f":{element['name']}:"
    if kind == "color":
        return str(element["value"])
    if kind == "date":
        shown = shown_date(element["format"], element["timestamp"])
        if "url" in element:
            reading.links.append(shown)
        return shown
    if kind == "link":
        shown = str(element.get("text") or element["url"])
    elif kind == "channel":
        shown = "#" + names.get(element["channel_id"], element["channel_id"])
    else:
        pinged = str(element.get("user_id") or element.get("usergroup_id") or element.get("range"))
        reading.pings.append(pinged)
        shown = "@" + names.get(pinged, pinged)
    reading.links.append(shown)
    return shown


def shown_date(shape: str, timestamp: int) -> str:
    """A date as a client in UTC with a twelve-hour clock shows it."""
    at = datetime.fromtimestamp(timestamp, UTC)
    hour, half = at.hour % 12 or 12, "AM" if at.hour < 12 else "PM"
    texts = {
        "date_num": f"{at:%Y-%m-%d}",
        "date_slash": f"{at:%m/%d/%Y}",
        "date": f"{at:%B} {at.day}, {at.year}",
        "date_short": f"{at:%b} {at.day}, {at.year}",
        "date_long": f"{at:%A}, {at:%B} {at.day}, {at.year}",
        "time": f"{hour}:{at:%M} {half}",
        "time_secs": f"{hour}:{at:%M:%S} {half}",
    }
    return _TOKEN.sub(lambda found: texts.get(found[1].replace("_pretty", ""), found[0]), shape)


def buttons_of(blocks: list[JsonObject]) -> list[SeenButton]:
    """The buttons in the order a person meets them; each block with buttons is a row."""
    rows = [row for row in (list(_buttons_in(block)) for block in blocks) if row]
    return [
        _button(element, block_id, row, column)
        for row, found in enumerate(rows)
        for column, (block_id, element) in enumerate(found)
    ]


def _buttons_in(block: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    elements = block.get("elements", []) if block["type"] == "actions" else [block.get("accessory", {})]
    return ((block["block_id"], element) for element in elements if element.get("type") == "button")


def _button(element: JsonObject, block_id: str, row: int, column: int) -> SeenButton:
    confirm = element.get("confirm")
    shown = None
    if confirm is not None:
        shown = SeenConfirm(
            title=confirm["title"]["text"],
            text=confirm["text"]["text"],
            confirm=confirm["confirm"]["text"],
            deny=confirm["deny"]["text"],
            style=confirm.get("style"),
        )
    return SeenButton(
        label=element["text"]["text"],
        value=element.get("value"),
        action_id=element["action_id"],
        block_id=block_id,
        style=element.get("style"),
        url=element.get("url"),
        confirm=shown,
        accessibility_label=element.get("accessibility_label"),
        row=row,
        column=column,
    )


def element_of(blocks: list[JsonObject], block_id: str, action_id: str) -> JsonObject | None:
    """The button as it was sent."""
    for block in blocks:
        for found_id, element in _buttons_in(block):
            if (found_id, element["action_id"]) == (block_id, action_id):
                return element
    return None


def with_ids(blocks: list[JsonObject]) -> list[JsonObject]:
    """Blocks with the ids that Slack gives to blocks and elements without one."""
    named: list[JsonObject] = []
    for index, block in enumerate(blocks):
        fresh = {"block_id": f"b{index}", **block}
        if fresh["type"] == "actions":
            fresh["elements"] = [
                {"action_id": f"a{index}.{place}", **element} for place, element in enumerate(fresh["elements"])
            ]
        for name in ("accessory", "element"):
            if isinstance(fresh.get(name), dict):
                fresh[name] = {"action_id": f"a{index}", **fresh[name]}
        named.append(fresh)
    return named
