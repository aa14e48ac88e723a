"""The pictures show what a card looks like today."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from docs import make_pictures

CHANGES = re.compile(r"\b(?=[A-Z0-9]*[0-9])[A-Z0-9]{5}\b|\d{2}:\d{2}|\d+\.?\d* m?s\b")
"""Short ids, times of day and durations differ from run to run."""


def words(svg: str) -> list[str]:
    """What can be read in a picture, line by line."""
    # The picture is our own file.
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314
    return [CHANGES.sub("…", "".join(text.itertext())) for text in texts]


@pytest.fixture(scope="module")
def fresh() -> dict[str, str]:
    """The pictures as they would be drawn now."""
    import asyncio

    shown = asyncio.run(make_pictures.messages())
    return {name: make_pictures.picture(shown, theme) for name, theme in make_pictures.THEMES.items()}


@pytest.mark.parametrize("theme", sorted(make_pictures.THEMES))
def test_a_picture_is_of_today(fresh: dict[str, str], theme: str) -> None:
    kept = (make_pictures.FOLDER / f"card-{theme}.svg").read_text("utf-8")
    assert words(kept) == words(fresh[theme]), "run: python docs/make_pictures.py"


def test_a_picture_shows_the_card_and_its_end(fresh: dict[str, str]) -> None:
    seen = words(fresh["light"])
    for wanted in ("git push --force origin main", "Approve once", "Deny", "Succeeded: exit code 0 after …."):
        assert wanted in seen
