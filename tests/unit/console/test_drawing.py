"""The pages of a gateway that runs are those it was started with, whatever is installed meanwhile."""

from __future__ import annotations

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
