"""The parser is C code in our process: a text that crashes it would take every open question down with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

TEXTS = [
    "\x15\x86\U00102fd7k\x19]{\U000de7b4",
    "\U0010f161\u00d7\U0003a104\n4{\U000d7362'OB",
    "\U0010a765\u00d8R{\U0010a765\u00d8R<<'E'\n{$x",
    "{\U0010fffd",
    "${\U0010fffd",
    "x=\U0010fffd{\U0010fffd}",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_characters_beyond_the_scanners_tables_do_not_end_the_process(text: str) -> None:
    program = (
        "import sys; from signoff.policy import JudgeContext, judge\n"
        "context = JudgeContext(shell='bash', kind='chat', attended=True)\n"
        "for _ in range(50): verdict = judge('command', sys.argv[1], context)\n"
        "print(verdict.verdict)"
    )
    done = subprocess.run([sys.executable, "-c", program, text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "ask"), done.stderr
