"""Three breakages that would each be a disaster, made in a copy of the tree: the named tests must turn red there.

They also must be green in an unbroken copy, so that red means what it says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("gateway", "adapters", "tests", "pyproject.toml", "docs")

BREAKAGES = {
    "the pending guard is dropped": (
        "gateway/signoff/changes/deciding.py",
        '    if row.outcome is not None:\n        return Decided(row=row, how="lost")\n',
        "    if row.outcome is not None:\n        row = replace(row, outcome=None)\n",
        ["tests/unit/core/test_taps.py::test_the_same_tap_twice"],
    ),
    "the signature of a button is not looked at": (
        "gateway/signoff/tokens.py",
        "if not hmac.compare_digest(mac, _mac(begun, head, platform, chat_id)):",
        "if not mac:",
        ["tests/unit/core/test_tokens.py::test_a_token_belongs_to_its_chat"],
    ),
    "a tap is acknowledged before the commit": (
        "adapters/signoff_adapters/telegram/intake.py",
        "spawn(self._inbox.tap(tap))\n",
        'spawn(self._inbox.tap(tap))\n        self._answer(query.id, Answer("Approved once."))\n',
        ["tests/contract/test_adapters.py", "-k", "test_no_verdict_is_shown_before_the_inbox_returns"],
    ),
}


def run(tree: Path, chosen: list[str]) -> subprocess.CompletedProcess[str]:
    """The chosen tests, in that tree and with its code."""
    paths = os.pathsep.join(str(tree / part) for part in ("gateway", "adapters"))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BREAKAGES)
def test_a_breakage_turns_its_tests_red(name: str, tmp_path: Path) -> None:
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / part)
    file, right, wrong, chosen = BREAKAGES[name]
    path = tmp_path / file
    code = path.read_text(encoding="utf-8")
    assert code.count(right) == 1, f"the breakage no longer fits {file}"
    whole = run(tmp_path, chosen)
    assert whole.returncode == 0, whole.stdout[-3000:]
    path.write_text(code.replace(right, wrong), encoding="utf-8")
    broken = run(tmp_path, chosen)
    assert broken.returncode == 1, broken.stdout[-3000:]
    assert "failed" in broken.stdout
