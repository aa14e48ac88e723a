"""What a careful colleague would let pass, would want to see first, and would never run; and the same in disguise."""

import base64
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.tables import every

from signoff.policy import JudgeContext, judge
from signoff.policy.verdict import DecisionWord, VerdictWord

HOME = "/home/ana"
CONTEXT = JudgeContext(
    kind="chat",
    attended=True,
    home=HOME,
    cwd=f"{HOME}/project",
    own_paths=(f"{HOME}/.local/state/signoff", f"{HOME}/.config/signoff"),
    own_pid=4242,
)
WINDOWS_HOME = "C:\\Users\\ana"
RANKS: dict[DecisionWord, int] = {"allow": 0, "ask": 1, "block": 2}


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Commands of one kind, of which the colleague says the same."""

    name: str
    verdict: VerdictWord
    shell: str = "bash"
    python: bool = False
    lines: str = ""
    texts: tuple[str, ...] = ()

    @property
    def commands(self) -> list[str]:
        found = [*filter(str.strip, self.lines.splitlines()), *(text.strip("\n") for text in self.texts)]
        return [f"python3 -c {shlex.quote(text)}" for text in found] if self.python else found


class _Groups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: tuple[Group, ...]


GROUPS = msgspec.toml.decode(Path(__file__).with_name("colleague.toml").read_bytes(), type=_Groups).group
CASES = [(group, command) for group in GROUPS for command in group.commands]
GRAVE = [(group, command) for group, command in CASES if group.verdict != "allow" and group.shell == "bash"]


def standing_still() -> float:
    """A clock by which nothing takes long, whatever else the machine does."""
    return 0.0


def verdict_of(command: str, shell: str = "bash") -> DecisionWord:
    if shell == "bash":
        return judge("command", command, CONTEXT, clock=standing_still).verdict
    there = msgspec.structs.replace(CONTEXT, shell=shell, home=WINDOWS_HOME, cwd=f"{WINDOWS_HOME}\\project")
    return judge("command", command, there, clock=standing_still).verdict


@every("group, command", CASES, ids=lambda value: value if isinstance(value, str) else value.name)
def test_the_judgement_is_that_of_a_careful_colleague(group: Group, command: str) -> None:
    assert verdict_of(command, group.shell) == group.verdict


def _wrapped(form: str) -> Callable[[str], str | None]:
    """The command as one quoted word of another one."""
    return lambda command: form.replace("COMMAND", shlex.quote(command))


def _around(form: str) -> Callable[[str], str | None]:
    """The command itself inside of another construct."""
    return lambda command: None if "<<" in command else form.replace("COMMAND", command)


_FIRST = re.compile(
    r"(?!(?:time|coproc|case|for|if|while|export|cd|declare|set|read|mapfile|printf|f|b)\b)[A-Za-z][\w.-]*"
)


def _first(disguise: Callable[[str], str]) -> Callable[[str], str | None]:
    """The command with its first word in disguise."""

    def made(command: str) -> str | None:
        match = _FIRST.match(command)
        if match is None or command[match.end() :][:1] not in {"", " "}:
            return None
        return disguise(match.group()) + command[match.end() :]

    return made


DISGUISES: dict[str, Callable[[str], str | None]] = {
    "bash -c": _wrapped("bash -c COMMAND"),
    "a here-string": _wrapped("bash <<< COMMAND"),
    "a pipe": _wrapped("printf '%s' COMMAND | sh"),
    "a written script": _wrapped("printf '%s' COMMAND > go.sh; sh go.sh"),
    "eval of a variable": _wrapped('text=COMMAND; eval "$text"'),
    "a variable for a shell": _wrapped('text=COMMAND; sh -c "$text"'),
    "env -S": lambda command: f"env -S {shlex.quote('sh -c ' + shlex.quote(command))}",
    "xargs": _wrapped("xargs -I@@ sh -c COMMAND < list"),
    "find": _wrapped("find . -exec sh -c COMMAND \\;"),
    "a trap": _wrapped("trap COMMAND EXIT"),
    "flock": _wrapped("flock /tmp/l -c COMMAND"),
    "timeout": _wrapped("timeout 5 nice bash -c COMMAND"),
    "busybox": _wrapped("busybox sh -c COMMAND"),
    "an alias": _wrapped("shopt -s expand_aliases\nalias zz=COMMAND\nzz"),
    "a sourced stream": _wrapped(". <(echo COMMAND)"),
    "python": lambda command: f"python3 -c {shlex.quote(f'import os; os.system({command!r})')}",
    "base64": lambda command: f"echo {base64.b64encode(command.encode()).decode()} | base64 -d | bash",
    "escapes": lambda command: "eval $'" + "".join(f"\\x{byte:02x}" for byte in command.encode()) + "'",
    "a here-document": lambda command: f"sh <<'QX'\n{command}\nQX",
    "a function": _around("zz() { COMMAND\n}; zz"),
    "a substitution": _around('echo "$(COMMAND\n)"'),
    "a process substitution": _around("cat <(COMMAND\n)"),
    "a branch": _around("if true; then COMMAND\nfi"),
    "a loop": _around("for i in 1; do COMMAND\ndone"),
    "the background": _around("(COMMAND\n) &"),
    "quotes in its name": _first(lambda name: f'{name[0]}""{name[1:]}'),
    "a backslash in its name": _first(lambda name: f"\\{name}"),
    "its name in octal": _first(lambda name: "$'" + "".join(f"\\{byte:03o}" for byte in name.encode()) + "'"),
    "its name printed": _first(lambda name: f"$(echo {name})"),
    # What a program prints is not known when the program is not, so those that print what runs are left out.
    "its name as a default": lambda command: (
        None if command.startswith("echo ") else _first(lambda name: f"${{unset_yet:-{name}}}")(command)
    ),
    "its name in a variable": lambda command: (
        f"yy={match.group()}; {made}"
        if (match := _FIRST.match(command)) and (made := _first(lambda _: "$yy")(command))
        else None
    ),
    "command": _first(lambda name: f"command {name}"),
}


@pytest.mark.parametrize("one_in", [3, pytest.param(1, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", DISGUISES)
def test_no_disguise_lowers_a_verdict(name: str, one_in: int) -> None:
    """In the quick run on one command in three, and on others than the disguise before."""
    lowered = []
    for group, command in GRAVE[list(DISGUISES).index(name) % one_in :: one_in]:
        disguised = DISGUISES[name](command)
        if disguised is not None and RANKS[verdict_of(disguised)] < RANKS[group.verdict]:
            lowered.append(disguised)
    assert lowered == []
