"""Draws the pictures of the documentation from real messages.

    python docs/make_pictures.py

A gateway asks in a group of a Telegram server on loopback, Ana approves, and the result is reported. Both states of
the card are drawn as SVG from what that server received: text, formatting and buttons. Nothing is typed in by hand.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.platforms.telegram import SeenButton, SeenMessage, TelegramServer  # noqa: E402  # the path comes first

from signoff import Client, Command, Gateway, load_config  # noqa: E402  # the same
from signoff.server.serve import serve  # noqa: E402  # the same

FOLDER = Path(__file__).resolve().parent / "pictures"
TOKEN, ANA, GROUP = "123456:EXAMPLE", 81234567, -1001234567890
ACTION = Command(command="git push --force origin main", cwd="/home/ci/app")
REASON = "main was rebased"

Piece = tuple[str, str]
"""A run of text and its style: plain, bold, code, pre, quote, link."""
Line = list[Piece]

WIDTH, SIDE, PAD, STEP, FONT = 392, 16, 12, 20, 14
SANS = "-apple-system, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif"
"""No font of emoji is named: such a font has digits too, and would draw them. Systems find one by themselves."""
MONO = "'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
WIDE, NARROW = set("MWmw@—…✅⛔⌛⏹⚠🛑%"), set("iljtfrI.,:;'|!()[] ·")

THEMES: dict[str, dict[str, str]] = {
    "light": {
        "ground": "#d7e3ec", "bubble": "#ffffff", "text": "#16191d", "soft": "#6d7883", "name": "#2f7fc1",
        "box": "#eef2f5", "bar": "#2f7fc1", "success": "#2f9e4f", "danger": "#d3453b", "neutral": "#ffffff",
        "on": "#ffffff", "off": "#2f6ea5",
    },
    "dark": {
        "ground": "#0e1621", "bubble": "#182533", "text": "#f2f5f7", "soft": "#7f91a4", "name": "#6ab2f2",
        "box": "#101a25", "bar": "#6ab2f2", "success": "#2f8f4b", "danger": "#b8433b", "neutral": "#22364a",
        "on": "#ffffff", "off": "#dce8f3",
    },
}  # fmt: skip


# --- the messages ----------------------------------------------------------------------------------


async def messages() -> tuple[SeenMessage, SeenMessage]:
    """The card while it waits, and after it was approved and run."""
    async with TelegramServer() as server:
        telegram = server.platform
        await telegram.add_bot(TOKEN, "ops_signoff_bot")
        await telegram.add_user(ANA, "Ana")
        await telegram.add_group(GROUP, "ops", members=[ANA])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "signoff.toml"
            file.write_text(
                f'[gateway]\nstate_dir = "{folder}/state"\nstore = "memory://"\n'
                '[agents.deploy-bot]\nacts_for = "ana"\n'
                f'[principals.ana]\naccounts = ["telegram:{ANA}"]\n'
                f'[platforms.telegram]\ntoken = "{TOKEN}"\napprovers = ["ana"]\n'
                f'api_base_url = "{(await telegram.where()).url}"\n'
            )
            async with Gateway(load_config(file, {})) as gateway, serve(gateway) as bound:
                key = await gateway.keys.create("default", "agent", agent="deploy-bot")
                async with Client(bound.api, key.text, environ={}) as agent:
                    await agent.session("nightly-fix", kind="chat", destination=f"telegram:{GROUP}")
                    asked = asyncio.create_task(
                        agent.request(ACTION, session_id="nightly-fix", reason=REASON, host="ci-3")
                    )
                    waiting = await telegram.wait_for_message(GROUP, lambda seen: bool(seen.buttons))
                    await telegram.press(ANA, GROUP, waiting.message_id, "Approve once")
                    await agent.result((await asked).request_id, "succeeded", 0)
                    done = await telegram.wait_for_message(GROUP, lambda seen: "Succeeded" in seen.text)
    return waiting, done


# --- from a message to lines -----------------------------------------------------------------------


def pieces(message: SeenMessage) -> Iterator[Piece]:
    """The text in runs of one style, as a client shows them. Offsets are UTF-16 units."""
    raw = message.text.encode("utf-16-le")
    cuts = {0, len(raw) // 2}
    for entity in message.entities:
        cuts |= {entity["offset"], entity["offset"] + entity["length"]}
    edges = sorted(cuts)
    for start, end in pairwise(edges):
        inside = [e for e in message.entities if e["offset"] <= start and end <= e["offset"] + e["length"]]
        text = raw[2 * start : 2 * end].decode("utf-16-le")
        yield _localised(text, inside), _style(inside)


def _style(entities: list[dict[str, Any]]) -> str:
    names = {"bold": "bold", "code": "code", "pre": "pre", "blockquote": "quote", "text_link": "link"}
    return next((names[e["type"]] for e in entities if e["type"] in names), "plain")


def _localised(text: str, entities: list[dict[str, Any]]) -> str:
    """A clock as a client writes it: relative, or the reader's time of day; here the reader lives in UTC."""
    for entity in entities:
        if entity["type"] == "date_time":
            form = entity.get("date_time_format", "")
            return "in 5 minutes" if form == "r" else text.removeprefix("at ").removesuffix(" UTC")
    return text


def lines(message: SeenMessage) -> list[Line]:
    """The text wrapped to the bubble."""
    wrapped: list[Line] = [[]]
    for text, style in pieces(message):
        for number, part in enumerate(text.split("\n")):
            if number:
                wrapped.append([])
            for word in _words(part):
                limit = WIDTH - 2 * PAD - (24 if style in ("pre", "quote") else 0)
                if wrapped[-1] and word.strip() and _width(wrapped[-1]) + _width([(word, style)]) > limit:
                    wrapped.append([])
                wrapped[-1].append((word, style))
    return [_merged(line) for line in wrapped if line]


def _words(text: str) -> list[str]:
    return ["".join(run) for _, run in groupby(text, key=str.isspace)]


def _merged(line: Line) -> Line:
    return [("".join(text for text, _ in run), style) for style, run in groupby(line, key=lambda piece: piece[1])]


def _width(line: Line) -> float:
    """Estimated pixels, on the wide side: the reader's fonts are not known."""
    total = 0.0
    for text, style in line:
        if style in ("code", "pre"):
            total += 8.4 * len(text)
            continue
        size = sum(12.5 if c in WIDE else 4.8 if c in NARROW else 8.0 for c in text)
        total += size * (1.07 if style == "bold" else 1.0)
    return total


# --- from lines to SVG -----------------------------------------------------------------------------


def bubble(message: SeenMessage, theme: dict[str, str], x: int, y: int) -> tuple[str, int]:
    """One message with its buttons; the SVG and the height."""
    rows = [list(run) for _, run in groupby(message.buttons, key=lambda button: button.row)]
    body, height = _body(lines(message), theme, x, y)
    clock = f"{message.sent_at:%H:%M}" if not message.edits else f"edited {message.sent_at:%H:%M}"
    end = f'x="{x + WIDTH - PAD}" y="{y + height - 9}" text-anchor="end"'
    parts = [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{height}" rx="14" fill="{theme["bubble"]}"/>',
        f'<text x="{x + PAD}" y="{y + 22}" fill="{theme["name"]}" font-weight="600">Signoff</text>',
        *body,
        f'<text {end} fill="{theme["soft"]}" font-size="11">{clock}</text>',
    ]
    top = y + height + 5
    for row in rows:
        parts += _buttons(row, theme, x, top)
        top += 39
    return "\n".join(parts), top - y


def _body(texts: list[Line], theme: dict[str, str], x: int, y: int) -> tuple[list[str], int]:
    parts: list[str] = []
    top = y + 30
    for style, run in groupby(texts, key=_block):
        block = list(run)
        if style == "text":
            for line in block:
                parts.append(_line(line, theme, x + PAD, top + 15))
                top += STEP
            continue
        tall = STEP * len(block) + 12
        parts.append(
            f'<rect x="{x + PAD}" y="{top + 2}" width="{WIDTH - 2 * PAD}" height="{tall - 4}" rx="5" '
            f'fill="{theme["box"]}"/>'
            f'<rect x="{x + PAD}" y="{top + 2}" width="3" height="{tall - 4}" fill="{theme["bar"]}"/>'
        )
        for number, line in enumerate(block):
            parts.append(_line(line, theme, x + PAD + 12, top + 19 + STEP * number))
        top += tall
    return parts, top - y + 14


def _block(line: Line) -> str:
    style = line[0][1]
    return style if style in ("pre", "quote") else "text"


def _line(line: Line, theme: dict[str, str], x: int, y: int) -> str:
    spans = []
    for text, style in line:
        look = {
            "bold": ' font-weight="700"',
            "code": f' font-family="{MONO}" font-size="13" fill="{theme["name"]}"',
            "pre": f' font-family="{MONO}" font-size="13"',
            "link": f' fill="{theme["name"]}"',
        }.get(style, "")
        spans.append(f"<tspan{look}>{escape(text)}</tspan>")
    return f'<text x="{x}" y="{y}" fill="{theme["text"]}" xml:space="preserve">{"".join(spans)}</text>'


def _buttons(row: list[SeenButton], theme: dict[str, str], x: int, y: int) -> list[str]:
    parts = []
    width = (WIDTH - 5 * (len(row) - 1)) / len(row)
    for number, button in enumerate(row):
        left = x + number * (width + 5)
        fill = theme[button.style if button.style in ("success", "danger") else "neutral"]
        ink = theme["on" if button.style in ("success", "danger") else "off"]
        parts.append(
            f'<rect x="{left:g}" y="{y}" width="{width:g}" height="34" rx="9" fill="{fill}"/>'
            f'<text x="{left + width / 2:g}" y="{y + 22}" fill="{ink}" font-weight="600" font-size="13" '
            f'text-anchor="middle">{escape(button.label)}</text>'
        )
    return parts


def picture(shown: tuple[SeenMessage, SeenMessage], theme: dict[str, str]) -> str:
    """Both states side by side."""
    drawn = [bubble(message, theme, SIDE + n * (WIDTH + SIDE), SIDE) for n, message in enumerate(shown)]
    width, height = 2 * WIDTH + 3 * SIDE, max(tall for _, tall in drawn) + 2 * SIDE
    size = f'width="{width}" height="{height}"'
    font = f'font-family="{SANS}" font-size="{FONT}"'
    title = "A card of Signoff in Telegram while it waits, and after it was approved and run"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" {font} role="img">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" rx="10" fill="{theme["ground"]}"/>',
            *(svg for svg, _ in drawn),
            "</svg>\n",
        )
    )


def main() -> None:
    """Draw them all."""
    shown = asyncio.run(messages())
    FOLDER.mkdir(exist_ok=True)
    for name, theme in THEMES.items():
        (FOLDER / f"card-{name}.svg").write_text(picture(shown, theme), "utf-8")


if __name__ == "__main__":
    main()
