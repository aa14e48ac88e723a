"""The pictures show what a card looks like today."""

from __future__ import annotations

import asyncio
import re
from xml.etree import ElementTree

import pytest
from docs.picture_svg import THEMES, picture

from docs import make_pictures
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


def test_every_picture_is_shown_somewhere_and_is_made_by_a_script() -> None:
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    kept = {file.name for file in make_pictures.FOLDER.iterdir()}
    assert {file for file in kept if file.startswith("card-")} == {
        f"card-{platform}-{theme}.svg" for platform in make_pictures.PLATFORMS for theme in THEMES
    }
    assert [name for name in kept if name.startswith("card-") and name not in pages] == []
