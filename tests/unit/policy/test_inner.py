"""Python code inside of commands is judged with them."""

import pytest

from signoff.policy import findings, floors, ruleset
from signoff.policy.findings import Findings
from signoff.policy.inner import MAX_CODES, Inner, read_inner
from signoff.policy.paths import PathFacts
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import read_shell
from signoff.policy.shell.deadline import Deadline

FACTS = OwnFacts(paths=PathFacts(home="/home/ana", start="/home/ana/project"))


def read(command: str) -> Inner:
    script = read_shell(command, home="/home/ana", cwd="/home/ana/project", clock=lambda: 0.0)
    return read_inner(script, home="/home/ana", cwd="/home/ana/project", clock=lambda: 0.0)


def found(command: str) -> Findings:
    inner = read(command)
    return findings.find(inner.script, ruleset.shipped(), FACTS, Deadline(lambda: 0.0), codes=inner.codes)


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'print(1)'",
        "python -c 'import sys; print(sys.version)'",
        "python3 - <<'E'\nimport json\nprint(json.dumps({}))\nE",
        "ls",
    ],
)
def test_code_that_only_prints_is_allowed(command: str) -> None:
    assert found(command).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'import shutil; shutil.rmtree(\"build\")'",
        'python3 -c \'import subprocess; subprocess.run(["git", "push", "--force"])\'',
        "python3 - <<'E'\nimport os\nos.system('rm -rf build')\nE",
        "echo 'import os; os.remove(\"a\")' | python3",
        "sudo -u bob python3 -c 'import os; os.system(\"npm publish\")'",
        "python3 -c 'print(1'",
        'python3 -c "$x"',
        'python3 -c "print($x)"',
    ],
)
def test_code_that_does_more_asks(command: str) -> None:
    assert found(command).verdict == "ask"


def test_a_command_that_code_starts_is_a_command_of_the_text() -> None:
    inner = read("sudo python3 -c 'import os; os.system(\"rm -rf /\")'")
    (command,) = [command for command in inner.script.commands if command.program == "rm"]
    assert command.chain == ("sudo", "python")
    hit = floors.find(inner.script, FACTS, Deadline(lambda: 0.0), inner.codes)
    assert hit is not None
    assert hit.key == "floor.delete_root"


def test_code_can_fall_under_a_floor_itself() -> None:
    inner = read("python3 -c 'import shutil; shutil.rmtree(\"/\")'")
    hit = floors.find(inner.script, FACTS, Deadline(lambda: 0.0), inner.codes)
    assert hit is not None


def test_a_finding_in_code_is_covered_as_python() -> None:
    some = found("python3 -c 'import shutil; shutil.rmtree(\"build\")'")
    assert [name.partition("@")[2] for name in some.coverage] == ["python"]
    assert some.label and some.breadth and "rmtree" in some.why[0]


def test_so_much_code_is_read_and_no_more() -> None:
    text = "\n".join(f"python3 -c 'print({number})'" for number in range(MAX_CODES + 1))
    inner = read(text)
    assert len(inner.codes) == MAX_CODES
    assert inner.script.problems == ("it runs too much code in other languages",)
    again = read("\n".join(["python3 -c 'print(1)'"] * 50))
    assert (len(again.codes), again.script.problems) == (1, ())


def test_code_is_not_read_when_the_time_is_spent() -> None:
    times = iter([0.0, 1.0])
    script = read_shell("python3 -c 'print(1)'", clock=lambda: 0.0)
    inner = read_inner(script, clock=lambda: next(times, 1.0))
    assert inner.script.problems
