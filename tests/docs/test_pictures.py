"""The pictures of cards show what one looks like today, and every picture is made by a script and shown on a page."""

from __future__ import annotations

import asyncio
import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.picture_svg import THEMES, picture
from docs.picture_text import width

from docs import make_console_pictures, make_pictures
from tests.docs.pages import PAGES

CHANGES = re.compile(r"\b(?=[A-Z0-9]*[0-9])[A-Z0-9]{5}\b|\d{2}:\d{2}|\d+\.?\d* m?s\b")
"""Short ids, times of day and durations differ from run to run."""


def words(svg: str) -> list[str]:
    """What can be read in a picture, line by line."""
    # The picture is our own file.
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314
    return [CHANGES.sub("…", "".join(text.itertext())) for text in texts]


@pytest.fixture(scope="module", params=sorted(make_pictures.PLATFORMS))
def fresh(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """A platform, and its pictures as they would be drawn now."""

    async def shown() -> make_pictures.BOTH:
        return await make_pictures.PLATFORMS[request.param]()

    both = asyncio.run(shown())
    return request.param, {theme: picture(both, theme) for theme in THEMES}


@pytest.mark.parametrize("theme", THEMES)
def test_a_picture_is_of_today(fresh: tuple[str, dict[str, str]], theme: str) -> None:
    platform, drawn = fresh
    kept = (make_pictures.FOLDER / f"card-{platform}-{theme}.svg").read_text("utf-8")
    assert words(kept) == words(drawn[theme]), "run: python docs/make_pictures.py"


def test_a_picture_shows_the_card_and_its_end(fresh: tuple[str, dict[str, str]]) -> None:
    seen = words(fresh[1]["light"])
    for wanted in ("git push --force origin main", "Approve once", "Deny", "Succeeded: exit code 0 after …."):
        assert wanted in seen


def test_the_pictures_are_those_that_the_scripts_make() -> None:
    cards = {f"card-{platform}-{theme}.svg" for platform in make_pictures.PLATFORMS for theme in THEMES}
    pages = (*make_console_pictures.PATHS, "story")
    console = {
        f"console-{name}-{size}-{scheme}.png"
        for name in pages
        for size in make_console_pictures.SIZES
        for scheme in make_console_pictures.SCHEMES
    }
    assert {file.name for file in make_pictures.FOLDER.iterdir()} == cards | console


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {name for page in PAGES for name in re.findall(r'(?:src|srcset)="[^"]*?([^"/]+)"', page.read_text("utf-8"))}
    assert {file.name for file in make_pictures.FOLDER.iterdir()} == shown


@pytest.mark.parametrize("file", sorted(make_console_pictures.FOLDER.glob("*.png")), ids=lambda file: file.name)
def test_a_picture_of_the_console_is_a_picture_of_its_screen(file: Path) -> None:
    """Its content is not compared: pixels differ with fonts."""
    head = file.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    size = make_console_pictures.SIZES[file.stem.split("-")[2]]
    assert struct.unpack(">II", head[16:24]) == (size["width"], size["height"])


MEASURED = [
    ([("Expires 14:01, 5 min after asking, then it is not run.", "plain")], 362),
    ([("Expires in 5 minutes (14:01), then it is not run.", "plain")], 329),
    ([("deploy-bot · session nightly-fix · for Ana", "plain")], 279),
    ([("⚠️ High: rewrites or deletes branches or tags of a ", "plain")], 352),
    ([("⚠️ High: rewrites or deletes branches or ", "bold")], 323),
    ([("branches or tags of a remote ", "head")], 285),
    ([("0ZYQR · 40190431", "small")], 114),
    ([("git push --force origin main", "pre")], 219),
]
"""Lines, and how many pixels Chromium gives them in DejaVu Sans, the widest of the fonts that the pictures name."""


def test_no_line_is_wider_than_it_was_taken_for() -> None:
    for line, pixels in MEASURED:
        assert width(line) >= pixels, line
