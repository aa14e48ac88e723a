"""Runs commands of `signoff` in this process, as the entry point does, in a folder of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signoff.cli.app import run_command


class Front:
    """A folder with a signoff.toml, and the commands that are run in it."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._captured = captured
        self.configure("")

    def configure(self, text: str) -> None:
        """Write signoff.toml; the state folder is `state`."""
        (self.folder / "signoff.toml").write_text(f'[gateway]\nstate_dir = "state"\n{text}', "utf-8")

    def write(self, name: str, text: str) -> Path:
        """Write another file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run a command; what it printed. Its errors stand behind."""
        self._captured.readouterr()
        found = run_command(list(arguments))
        out, err = self._captured.readouterr()
        assert found == code, (found, out, err)
        return out + err

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with --json; what it answered."""
        place = arguments.index("--") if "--" in arguments else len(arguments)
        found: Any = json.loads(self(*arguments[:place], "--json", *arguments[place:], code=code))
        return found
