"""Questions with a very long text in each place of an action, and who masks them: never the loop's own thread."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from signoff import display, masking, record, visible
from signoff.aside import LONG_CHARS
from signoff.model import Action, Code, Command, Elicitation, FileWrite, Operand, Rule, Tool

WORDS = "remove the old build folder of nightly-2026-11-30\n"
LONG = WORDS * 400
"""20,000 characters: far beyond what may be masked at once, and quick enough for a test. The megabyte that a body may
have is taken the same way; a card is made of one."""
LINE = LONG.replace("\n", " ")
MEGABYTE = (WORDS * 25_000)[:1_000_000]

QUESTIONS: dict[str, Action] = {
    "command": Command(command="rm -rf build\n" + LONG),
    "cwd": Command(command="rm -rf build", cwd="/srv/" + LINE),
    "shell": Command(command="rm -rf build", shell=LINE),
    "env": Command(command="rm -rf build", env={"NOTE": LINE}),
    "name of env": Command(command="rm -rf build", env={"N" * 20_000: "1"}),
    "operand": Command(command="rm -rf build", operands=(Operand(path="/srv/" + LINE, sha256="0" * 64, bytes=1),)),
    "code": Code(language="python", code="import shutil\nshutil.rmtree('x')\n" + f"x = '''{LONG}'''"),
    "language": Code(language=LINE, code="print(1)"),
    "tool": Tool(name=LINE, arguments={"a": 1}),
    "argument": Tool(name="drop_table", arguments={"note": LONG, "list": [{"deep": LONG}]}),
    "many arguments": Tool(name="drop_table", arguments={"rows": [f"row {number}" for number in range(4500)]}),
    "path": FileWrite(path="/etc/" + LINE, diff=None),
    "diff": FileWrite(path="/etc/passwd", diff="\n".join(f"+{line}" for line in LONG.split("\n"))),
    "message": Elicitation(server="mail", message=LONG),
    "server": Elicitation(server=LINE, message="Which one?"),
    "schema": Elicitation(
        server="mail",
        message="Which one?",
        schema={"type": "object", "properties": {"note": {"type": "string", "description": LINE}}},
    ),
    "reason": Rule(tool="drop_table", rule_key="mine", reason=LONG),
    "rule": Rule(tool=LINE, rule_key="mine", reason="It is Friday."),
}


def body_of(name: str) -> dict[str, Any]:
    """The question as JSON."""
    body: dict[str, Any] = msgspec.to_builtins(QUESTIONS[name])
    return body


class Watch:
    """What is masked or written out on the thread of who made it, and beside it."""

    def __init__(self) -> None:
        self.longest_here = 0
        self.longest_beside = 0
        self._here = threading.get_ident()

    def saw(self, text: str) -> None:
        """This text is about to be looked at."""
        if threading.get_ident() == self._here:
            self.longest_here = max(self.longest_here, len(text))
        else:
            self.longest_beside = max(self.longest_beside, len(text))

    def holds(self) -> None:
        """Nothing long was masked here. Raises AssertionError."""
        assert self.longest_here <= LONG_CHARS, f"{self.longest_here:,} characters were masked on the loop"


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watches all masking from now on: each way through it asks one of these two first. No long text is remembered
    meanwhile, so that none is shown from memory here which would have to be masked another time."""
    watching = Watch()
    monkeypatch.setattr(display, "_longer", display._shown)
    monkeypatch.setattr(display, "_longest", display._shown)
    monkeypatch.setattr(record, "_CACHED_CHARS", 0)
    monkeypatch.setattr(record, "_masked", record._Masked())
    remarkable, plain = masking.unremarkable, visible._plain

    def unremarkable(text: str) -> bool:
        watching.saw(text)
        return remarkable(text)

    def is_plain(text: str) -> bool:
        watching.saw(text)
        return plain(text)

    monkeypatch.setattr(masking, "unremarkable", unremarkable)
    monkeypatch.setattr(visible, "_plain", is_plain)
    return watching
