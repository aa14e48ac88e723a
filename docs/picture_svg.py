"""Messages drawn as SVG, in the look of each platform, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from docs.picture_text import IN_A_BOX, Button, Line, Shown, lines, width
from msgspec import Struct

SIDE, STEP, FONT = 16, 20, 14
SANS = "-apple-system, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif"
"""No font of emoji is named: such a font has digits too, and would draw them. Systems find one by themselves."""
MONO = "'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Look(Struct, frozen=True, kw_only=True):
    """How a platform looks. `indent` is where the text begins; `stretched` buttons fill their row."""

    title: str
    width: int
    indent: int
    top: int
    button_height: int
    button_gap: int
    button_radius: int
    stretched: bool
    avatar_radius: int
    themes: dict[str, dict[str, str]]


LOOKS = {
    "telegram": Look(
        title="Telegram",
        width=392,
        indent=12,
        top=30,
        button_height=34,
        button_gap=5,
        button_radius=9,
        stretched=True,
        avatar_radius=0,
        themes={
            "light": {
                "ground": "#d7e3ec", "bubble": "#ffffff", "text": "#16191d", "soft": "#6d7883", "name": "#2f7fc1",
                "link": "#2f7fc1", "box": "#eef2f5", "edge": "#eef2f5", "bar": "#2f7fc1", "success": "#2f9e4f",
                "danger": "#d3453b", "neutral": "#ffffff", "line": "none", "on": "#ffffff", "off": "#2f6ea5",
            },
            "dark": {
                "ground": "#0e1621", "bubble": "#182533", "text": "#f2f5f7", "soft": "#7f91a4", "name": "#6ab2f2",
                "link": "#6ab2f2", "box": "#101a25", "edge": "#101a25", "bar": "#6ab2f2", "success": "#2f8f4b",
                "danger": "#b8433b", "neutral": "#22364a", "line": "none", "on": "#ffffff", "off": "#dce8f3",
            },
        },
    ),
    "discord": Look(
        title="Discord",
        width=448,
        indent=62,
        top=32,
        button_height=32,
        button_gap=8,
        button_radius=6,
        stretched=False,
        avatar_radius=20,
        themes={
            "light": {
                "ground": "#e3e5e8", "bubble": "#ffffff", "text": "#2e3338", "soft": "#5c6470", "name": "#060607",
                "link": "#0b5fc4", "box": "#f2f3f5", "edge": "#d5d8dd", "bar": "#c4c9ce", "success": "#1f8043",
                "danger": "#cf3438", "neutral": "#6b717a", "line": "none", "on": "#ffffff", "off": "#ffffff",
                "avatar": "#5865f2", "badge": "#5865f2",
            },
            "dark": {
                "ground": "#1e1f22", "bubble": "#313338", "text": "#dbdee1", "soft": "#a3a8b0", "name": "#f2f3f5",
                "link": "#7cb8ff", "box": "#2b2d31", "edge": "#1e1f22", "bar": "#4e5058", "success": "#248046",
                "danger": "#c8363b", "neutral": "#4e5058", "line": "none", "on": "#ffffff", "off": "#ffffff",
                "avatar": "#5865f2", "badge": "#5865f2",
            },
        },
    ),
    "slack": Look(
        title="Slack",
        width=448,
        indent=58,
        top=35,
        button_height=32,
        button_gap=8,
        button_radius=5,
        stretched=False,
        avatar_radius=6,
        themes={
            "light": {
                "ground": "#e9e7ea", "bubble": "#ffffff", "text": "#1d1c1d", "soft": "#616061", "name": "#1d1c1d",
                "link": "#1264a3", "box": "#f8f8f8", "edge": "#dddddd", "bar": "#dddddd", "success": "#007a5a",
                "danger": "#d31350", "neutral": "#ffffff", "line": "#b8b6b9", "on": "#ffffff", "off": "#1d1c1d",
                "avatar": "#0b5394", "badge": "#696769",
            },
            "dark": {
                "ground": "#101214", "bubble": "#1a1d21", "text": "#d1d2d3", "soft": "#9a9b9d", "name": "#f0f0f0",
                "link": "#5cb3f2", "box": "#222529", "edge": "#3c3f44", "bar": "#565856", "success": "#007a5a",
                "danger": "#c41a4f", "neutral": "#1a1d21", "line": "#5f6267", "on": "#ffffff", "off": "#e8e8e8",
                "avatar": "#2a78c2", "badge": "#5b5e63",
            },
        },
    ),
}  # fmt: skip
"""Colours are near those of each app."""
THEMES = ("light", "dark")


def picture(shown: Sequence[Shown], theme: str) -> str:
    """The states of one card side by side."""
    look = LOOKS[shown[0].platform]
    colours = look.themes[theme]
    places = [(each, SIDE + n * (look.width + SIDE)) for n, each in enumerate(shown)]
    drawn = [_message(each, look, colours, x, SIDE) for each, x in places]
    across, height = len(shown) * (look.width + SIDE) + SIDE, max(tall for _, tall in drawn) + 2 * SIDE
    tall = f'width="{look.width}" height="{height - 2 * SIDE}"'
    grounds = [f'<rect x="{x}" y="{SIDE}" {tall} rx="8" fill="{colours["bubble"]}"/>' for _, x in places]
    size = f'width="{across}" height="{height}"'
    font = f'font-family="{SANS}" font-size="{FONT}"'
    title = f"A card of Signoff in {look.title} while it waits, and after it was approved and run"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {across} {height}" {font} role="img">',
            f"<title>{title}</title>",
            f'<rect width="{across}" height="{height}" rx="10" fill="{colours["ground"]}"/>',
            *(() if look.stretched else grounds),
            *(svg for svg, _ in drawn),
            "</svg>\n",
        )
    )


def _message(shown: Shown, look: Look, theme: dict[str, str], x: int, y: int) -> tuple[str, int]:
    """One message with its buttons; the SVG and the height."""
    room = look.width - look.indent - 12
    body, height = _body(lines(shown, room), look, theme, x, y)
    if look.stretched:
        head = [f'<rect x="{x}" y="{y}" width="{look.width}" height="{height}" rx="14" fill="{theme["bubble"]}"/>']
    else:
        head = []
    parts = [*head, *_head(shown, look, theme, x, y, height), *body]
    top = y + height + (look.button_gap if look.stretched else 0)
    for row in shown.rows:
        for line in [row] if look.stretched else _fitting(row, room, look):
            parts += _buttons(line, look, theme, x, top)
            top += look.button_height + look.button_gap
    return "\n".join(parts), top - y + (0 if look.stretched else 6)


def _head(shown: Shown, look: Look, theme: dict[str, str], x: int, y: int, height: int) -> list[str]:
    """Who wrote it, and when."""
    clock = f"{shown.sent_at:%H:%M}"
    name = f'fill="{theme["name"]}" font-weight="600">Signoff</text>'
    soft = f'fill="{theme["soft"]}" font-size="11"'
    if look.stretched:
        clock = f"edited {clock}" if shown.edited else clock
        end = f'x="{x + look.width - 12}" y="{y + height - 9}" text-anchor="end"'
        return [f'<text x="{x + 12}" y="{y + 22}" {name}', f"<text {end} {soft}>{clock}</text>"]
    left, white = x + look.indent, 'fill="#ffffff" text-anchor="middle"'
    return [
        f'<rect x="{x + 12}" y="{y + 12}" width="38" height="38" rx="{look.avatar_radius}" fill="{theme["avatar"]}"/>',
        f'<text x="{x + 31}" y="{y + 37}" {white} font-weight="700" font-size="18">S</text>',
        f'<text x="{left}" y="{y + 24}" {name}',
        f'<rect x="{left + 64}" y="{y + 13}" width="31" height="14" rx="3" fill="{theme["badge"]}"/>',
        f'<text x="{left + 79.5}" y="{y + 24}" {white} font-weight="600" font-size="10">APP</text>',
        f'<text x="{left + 102}" y="{y + 24}" {soft}>{clock}{" (edited)" if shown.edited else ""}</text>',
    ]


def _body(texts: list[Line], look: Look, theme: dict[str, str], x: int, y: int) -> tuple[list[str], int]:
    parts: list[str] = []
    top, left, across = y + look.top, x + look.indent, look.width - look.indent - 12
    for style, run in groupby(texts, key=_box_of):
        block = list(run)
        if style == "text":
            for line in block:
                parts.append(_line(line, theme, left, top + 15))
                top += STEP + (4 if line[0][1] == "head" else 0)
            continue
        tall = STEP * len(block) + 12
        boxed = look.stretched or style == "pre"
        if boxed:
            parts.append(
                f'<rect x="{left}" y="{top + 2}" width="{across}" height="{tall - 4}" rx="5" '
                f'fill="{theme["box"]}" stroke="{theme["edge"]}"/>'
            )
        if look.stretched or style == "quote":
            parts.append(f'<rect x="{left}" y="{top + 2}" width="3" height="{tall - 4}" fill="{theme["bar"]}"/>')
        for number, line in enumerate(block):
            parts.append(_line(line, theme, left + 12, top + 19 + STEP * number))
        top += tall
    return parts, top - y + 14


def _box_of(line: Line) -> str:
    style = line[0][1]
    return style if style in IN_A_BOX else "text"


def _line(line: Line, theme: dict[str, str], x: int, y: int) -> str:
    looks = {
        "bold": ' font-weight="700"',
        "head": ' font-weight="700" font-size="17"',
        "code": f' font-family="{MONO}" font-size="13" fill="{theme["link"]}"',
        "pre": f' font-family="{MONO}" font-size="13"',
        "link": f' fill="{theme["link"]}"',
        "small": f' font-size="12" fill="{theme["soft"]}"',
    }
    spans = [f"<tspan{looks.get(style, '')}>{escape(text)}</tspan>" for text, style in line]
    return f'<text x="{x}" y="{y}" fill="{theme["text"]}" xml:space="preserve">{"".join(spans)}</text>'


def _width_of(button: Button) -> int:
    return round(width([(button[0], "plain")]) * 1.03) + 28


def _fitting(row: Sequence[Button], room: int, look: Look) -> list[list[Button]]:
    """A row as its client breaks it where it is too wide."""
    found: list[list[Button]] = [[]]
    for button in row:
        if found[-1] and sum(_width_of(each) + look.button_gap for each in [*found[-1], button]) > room:
            found.append([])
        found[-1].append(button)
    return found


def _buttons(row: Sequence[Button], look: Look, theme: dict[str, str], x: int, y: int) -> list[str]:
    parts = []
    left: float = x if look.stretched else x + look.indent
    for label, style in row:
        across = (
            (look.width - look.button_gap * (len(row) - 1)) / len(row) if look.stretched else _width_of((label, style))
        )
        ink = theme["off" if style == "neutral" else "on"]
        line = theme["line"] if style == "neutral" else "none"
        parts.append(
            f'<rect x="{left:g}" y="{y}" width="{across:g}" height="{look.button_height}" rx="{look.button_radius}" '
            f'fill="{theme[style]}" stroke="{line}"/>'
            f'<text x="{left + across / 2:g}" y="{y + look.button_height / 2 + 5:g}" fill="{ink}" font-weight="600" '
            f'font-size="13" text-anchor="middle">{escape(label)}</text>'
        )
        left += across + look.button_gap
    return parts
