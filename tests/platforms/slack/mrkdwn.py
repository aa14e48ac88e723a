"""How Slack reads mrkdwn: what a person sees, what can be clicked, who is pinged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_ANGLE = re.compile(r"<([^<>\n]*)>")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_BARE = re.compile(
    r"https?://[^\s<>|]+|\bwww\.[^\s<>|]+|[\w.+-]+@[\w-]+\.[\w.]+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|app|md|sh|py)\b"
)
"""What a client links by itself: addresses, and names that end in a top-level domain, which some file names do too."""
_FORMATS = (
    re.compile(r"(?<!\w)\*(?=\S)([^*\n]+?)(?<=\S)\*(?!\w)"),
    re.compile(r"(?<!\w)_(?=\S)([^_\n]+?)(?<=\S)_(?!\w)"),
    re.compile(r"(?<!\w)~(?=\S)([^~\n]+?)(?<=\S)~(?!\w)"),
)
_PLACEHOLDER = re.compile("\x00([0-9]+)\x00")
BROADCASTS = ("here", "channel", "everyone", "group")


@dataclass(kw_only=True)
class Reading:
    """What there is to read, click, and who is notified."""

    text: str = ""
    links: list[str] = field(default_factory=list)
    pings: list[str] = field(default_factory=list)


def read_mrkdwn(source: str, names: Mapping[str, str], *, auto_links: bool = True) -> Reading:
    """Read `source` as a client shows it; `names` by user and channel id.

    References in angle brackets act everywhere, in code too; bare addresses are linked outside code only.
    """
    reading = Reading()
    held: list[str] = []

    def hold(shown: str) -> str:
        held.append(shown)
        return f"\x00{len(held) - 1}\x00"

    text = _ANGLE.sub(lambda found: hold(_reference(found[1], names, reading)), source.replace("\x00", ""))
    text = _CODE.sub(lambda found: hold(unescape(found[0].strip("`").strip("\n"))), text)
    if auto_links:
        reading.links += [unescape(found[0]) for found in _BARE.finditer(text)]
    for shape in _FORMATS:
        text = shape.sub(r"\1", text)
    text = unescape(re.sub(r"^&gt; ?", "", text, flags=re.MULTILINE))
    while _PLACEHOLDER.search(text):
        text = _PLACEHOLDER.sub(lambda found: held[int(found[1])], text)
    reading.text = text
    return reading


def _reference(inner: str, names: Mapping[str, str], reading: Reading) -> str:
    """What stands for `<inner>`, noting clicks and pings."""
    target, _, label = inner.partition("|")
    if target.startswith(("@U", "@W")):
        reading.pings.append(target[1:])
        shown = "@" + names.get(target[1:], target[1:])
    elif target.startswith("#"):
        shown = "#" + (names.get(target[1:]) or label or target[1:])
    elif target.startswith("!subteam^"):
        reading.pings.append(target.removeprefix("!subteam^"))
        shown = label or "@" + target.removeprefix("!subteam^")
    elif target.startswith("!date^"):
        return unescape(label)
    elif target.removeprefix("!") in BROADCASTS and target.startswith("!"):
        reading.pings.append("channel" if target == "!group" else target[1:])
        shown = "@" + target[1:]
    elif re.match(r"[a-z][a-z0-9+.-]*:", target):
        shown = unescape(label or target)
    else:
        return unescape(f"<{inner}>")
    reading.links.append(shown)
    return shown


def unescape(text: str) -> str:
    """The three characters that Slack wants escaped."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escape(text: str) -> str:
    """The same the other way."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def typed(text: str) -> str:
    """What bots get of a text that a person typed: escaped, but mentions of people and channels as references."""
    parts = re.split(r"(<[@#][A-Z0-9]+>)", text)
    return "".join(part if index % 2 else escape(part) for index, part in enumerate(parts))
