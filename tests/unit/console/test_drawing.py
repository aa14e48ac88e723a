"""The pages of a gateway that runs are those it was started with, whatever is installed meanwhile."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from signoff.console.drawing import Drawing, assets
from signoff.texts import Catalogue


def test_every_page_is_drawn_though_its_files_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    Catalogue.load()  # whatever the gateway said before the first page
    made = Drawing(lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def gone(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", gone)
    monkeypatch.setattr(Path, "open", gone)
    monkeypatch.setattr(resources, "files", gone)
    names = made._env.list_templates()
    assert len(names) >= 15
    for name in names:
        assert made._env.get_template(name).root_render_func is not None
    assert {"css", "js"} <= {name.rpartition(".")[2] for name in assets()}
    assert "<html" in made.page("told.html", title="t", words="{}", text="told")


@pytest.mark.parametrize("profiles", [1, 2])
def test_a_profile_is_named_where_there_are_several(profiles: int) -> None:
    made = Drawing(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    values = {"title": "t", "words": "{}", "who": "ana", "profile": "default", "token": "x", "decides": True}
    page = made.page("link.html", profiles=profiles, **values)
    assert "Agents ask here before they act. You will answer as ana." in page
    assert ("Profile: default." in page) is (profiles > 1)


def test_commands_stand_apart_on_the_first_page() -> None:
    made = Drawing(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    page = made.page("login.html", title="t", words="{}", wrong="", next="/console")
    assert "which <code>signoff console</code> prints." in page and "with <code>signoff key create</code>." in page


def _light(color: str) -> float:
    """The relative luminance of `#rrggbb`, as WCAG defines it."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_borders_of_fields_and_buttons_can_be_seen() -> None:
    css = assets()["console.css"].content.decode()
    schemes = [
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", root)) for root in re.findall(r":root \{(.*?)\}", css, re.S)
    ]
    assert len(schemes) == 2
    for scheme in schemes:
        for behind in ("ground", "raised", "medium", "code"):
            light, dark = sorted((_light(scheme["edge"]), _light(scheme[behind])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3, behind
    for what in (r"button, \.button, summary, select, input", "textarea"):
        assert re.search(rf"^{what} \{{[^}}]*border: 1px solid var\(--edge\)", css, re.M), what
