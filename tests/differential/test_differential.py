"""What a real bash starts is among the commands that are read from the same text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.policy import JudgeContext, judge
from signoff.policy.shell import Script, read_shell, reader, walk
from tests.differential import bash_runs, generator, matching

pytestmark = pytest.mark.skipif(
    not all(shutil.which(program) for program in ("bash", "dash", "timeout")), reason="needs bash, dash and timeout"
)

QUICK = 200
HEAVY = 20_000
BATCH = 1000
MAX_SILENT = 0.5
"""At most this share of the scripts may be excused because something in them is not known or not understood."""


class Case:
    """One script, what a real bash started, and what was read."""

    def __init__(self, number: int, text: str, ran: list[tuple[str, ...]], home: str) -> None:
        self.number = number
        self.text = text
        self.ran = ran
        self.home = home

    def read(self) -> Script:
        """What the front end makes of the script; it gets all the time it needs, since speed is not the question."""
        return read_shell(self.text, home=self.home, clock=lambda: 0.0)

    def missing(self) -> list[tuple[str, ...]]:
        """Programs that ran and were not read."""
        script = self.read()
        return [] if matching.says_nothing(script) else matching.missing(script, self.ran)

    def allowed_unread(self) -> bool:
        """Whether the script is allowed although something in it is not known: then nobody sees what runs."""
        return matching.says_nothing(self.read()) and self.judged() == "allow"

    def judged(self) -> str:
        """The verdict on the script."""
        context = JudgeContext(kind="chat", attended=True, home=self.home)
        return judge("command", self.text, context, clock=lambda: 0.0).verdict


def _cases(first: int, count: int, folder: Path) -> list[Case]:
    numbers = range(first, first + count)
    texts = [generator.script(number) for number in numbers]
    ran = bash_runs.run(texts, folder)
    homes = [bash_runs.home(folder, place) for place in range(count)]
    return [Case(*parts) for parts in zip(numbers, texts, ran, homes, strict=True)]


def _told(cases: list[Case]) -> Iterator[str]:
    for case in cases:
        missing = case.missing()
        if missing:
            yield f"script {case.number}:\n{case.text}\nran, but was not read: {missing}"
        if case.allowed_unread():
            yield f"script {case.number}:\n{case.text}\nis allowed, but was not understood"


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    return _cases(0, QUICK, tmp_path_factory.mktemp("differential"))


@pytest.mark.timeout(300)
def test_nothing_that_runs_is_missing(cases: list[Case]) -> None:
    assert not list(_told(cases))


@pytest.mark.timeout(300)
def test_a_judge_that_overlooks_what_is_not_understood_is_found_out(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Case, "judged", lambda _case: "allow")
    assert list(_told(cases))


@pytest.mark.timeout(300)
def test_most_scripts_run_programs_and_are_understood(cases: list[Case]) -> None:
    """Otherwise the comparison would compare nothing."""
    silent = sum(matching.says_nothing(case.read()) for case in cases)
    unreadable = sum(bool(case.read().problems) for case in cases)
    assert silent < MAX_SILENT * len(cases)
    assert unreadable < 0.15 * len(cases)
    assert sum(bool(case.ran) for case in cases) > 0.9 * len(cases)
    assert sum(len(case.ran) for case in cases) > 3 * len(cases)


KINDS = ("for_statement", "case_statement", "if_statement", "subshell", "pipeline", "redirected_statement", "list")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_that_overlooks_something_is_found_out(
    kind: str, cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(walk._HANDLERS, kind, lambda _machine, _node, _io: None)
    monkeypatch.setattr(reader, "_note_unread", lambda _machine, _root: None)
    assert list(_told(cases))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_reader_overlooks_asks(kind: str, cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(walk._HANDLERS, kind, lambda _machine, _node, _io: None)
    assert not list(_told(cases))


@pytest.mark.heavy
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(QUICK, HEAVY, BATCH))
def test_nothing_that_runs_is_missing_in_many_scripts(first: int, tmp_path: Path) -> None:
    assert not list(_told(_cases(first, min(BATCH, HEAVY - first), tmp_path)))
