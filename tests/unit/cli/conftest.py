"""A folder in which commands are run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.cli.front import Front


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Front:
    """Commands without a gateway, in an empty folder and an empty home."""
    for name in [name for name in os.environ if name.startswith("SIGNOFF_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return Front(tmp_path, capsys)
