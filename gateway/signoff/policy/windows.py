"""A small reader of cmd and PowerShell text, and the floors for both."""

import re
from functools import cache
from importlib.resources import files

import msgspec

from signoff.policy.floors import Hit, OwnFacts
from signoff.policy.shell import Command, Script, Word
from signoff.policy.shell.deadline import Deadline

SHELLS = frozenset({"cmd", "powershell", "pwsh"})
"""The shells this module reads; anything else is read as a POSIX shell."""

MAX_CHARS = 16 * 1024
"""Longer texts are not read; no command line of Windows may be longer than 32,767 characters, and cmd takes 8,191."""

_MAX_DEPTH = 4
_PRINTERS = frozenset({"echo", "write-host", "write-output", "rem", "cd", "set-location"})
_CMD_TOKEN = re.compile(r'"[^"]*"?|\^.|&&|\|\||[&|()\n]|[^\s"^&|()]+', re.S)
_POWERSHELL_TOKEN = re.compile(
    r"'(?:[^']|'')*'?|\"(?:`.|\"\"|[^\"`])*\"?|`.|&&|\|\||[;&|(){}\n]|[^\s'\"`;&|(){}]+", re.S
)
_BREAKS = frozenset({"&&", "||", "&", "|", "(", ")", "\n", ";", "{", "}"})
_VARIABLE = re.compile(r"%(\w+)%|\$\{?env:(\w+)\}?|\$(home)\b", re.I)
_SYSTEM_FOLDERS = frozenset(
    {"windows", "windows/system32", "users", "program files", "program files (x86)", "programdata"}
)
_VALUES = {
    "systemdrive": "C:",
    "homedrive": "C:",
    "systemroot": "C:/Windows",
    "windir": "C:/Windows",
    "userprofile": "~",
    "homepath": "~",
    "home": "~",
}


class WindowsFloor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of `windows.toml`, where the fields are explained."""

    key: str
    description: str
    programs: tuple[str, ...]
    flags: tuple[tuple[str, ...], ...] = ()
    operands: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    floor: tuple[WindowsFloor, ...]


@cache
def table() -> tuple[WindowsFloor, ...]:
    """All floors for cmd and PowerShell."""
    return msgspec.toml.decode(files("signoff.policy.rules").joinpath("windows.toml").read_bytes(), type=_Table).floor


def read(text: str, shell: str) -> Script:
    """The commands of a cmd or PowerShell text, inner ones of `cmd /c` and `powershell -Command` included."""
    if len(text) > MAX_CHARS:
        return Script(problems=(f"it is longer than {MAX_CHARS // 1024} kB",))
    commands: list[Command] = []
    todo = [(text, shell, 0)]
    while todo:
        inner, kind, depth = todo.pop()
        for words in _split(inner, kind):
            commands.append(Command(words=tuple(map(Word, words)), own=len(words), source=" ".join(words)))
            carried = carried_text(words)
            if carried is not None and depth < _MAX_DEPTH:
                todo.append((*carried, depth + 1))
    return Script(commands=tuple(commands))


def _split(text: str, shell: str) -> list[list[str]]:
    """The words of each command; quotes are removed, and a word without a blank before it joins the one there."""
    token = _CMD_TOKEN if shell == "cmd" else _POWERSHELL_TOKEN
    found: list[list[str]] = [[]]
    end = -1
    for match in token.finditer(text):
        part = match.group()
        if part in _BREAKS:
            found.append([])
        elif match.start() == end and found[-1]:
            found[-1][-1] += _unquoted(part)
        else:
            found[-1].append(_unquoted(part))
        end = match.end()
    return [words for words in found if words]


def _unquoted(part: str) -> str:
    if part[0] in "'\"":
        return part[1:-1] if len(part) > 1 and part[-1] == part[0] else part[1:]
    return part[1:] if part[0] in "^`" and len(part) > 1 else part


def carried_text(words: list[str]) -> tuple[str, str] | None:
    """The text that `cmd /c` or `powershell -Command` runs, and the shell that reads it."""
    name = _name(words[0])
    lowered = [word.casefold() for word in words]
    if name == "cmd":
        place = next((index for index, word in enumerate(lowered) if word[:2] in {"/c", "/k"}), 0)
        return (" ".join([words[place][2:], *words[place + 1 :]]), "cmd") if place else None
    if name in {"powershell", "pwsh"}:
        place = next((i for i, word in enumerate(lowered) if len(word) > 1 and "-command".startswith(word)), 0)
        return (" ".join(words[place + 1 :]), "powershell") if place else None
    if name in {"invoke-expression", "iex"}:
        return " ".join(words[1:]), "powershell"
    return None


def _name(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].casefold().removesuffix(".exe")


def find(script: Script, facts: OwnFacts, deadline: Deadline) -> Hit | None:
    """The first floor that a command falls under. Raises `OutOfTimeError`."""
    for command in script.commands:
        deadline.check()
        words = [word.text for word in command.words]
        for floor in table():
            if _falls_under(floor, words, facts):
                return Hit(floor.key, floor.description, command.source)
    if any(command.source in {"%0", "%~f0"} for command in script.commands) and len(script.commands) > 1:
        return Hit("floor.fork_bomb", "starts a fork bomb", "%0")
    return None


def _falls_under(floor: WindowsFloor, words: list[str], facts: OwnFacts) -> bool:
    name = _name(words[0])
    if name not in floor.programs and (floor.programs != ("*",) or name in _PRINTERS or name == "signoff"):
        return False
    flags = [word.casefold() for word in words[1:] if word[:1] in "/-"]
    if any(not any(_given(flag, flags) for flag in entry) for entry in floor.flags):
        return False
    operands = [word for word in words[1:] if word[:1] not in "/-"]
    if floor.first and (not operands or operands[0] not in floor.first):
        return False
    return not floor.operands or any(_is(kind, word, facts) for kind in floor.operands for word in operands)


def _given(flag: str, given: list[str]) -> bool:
    if flag.startswith("/") or len(flag) == 2:
        # cmd takes switches without a blank between them: /s/q.
        return any(flag in re.findall(r"/[a-z]+", text) or flag == text for text in given)
    return any(len(text) > 1 and flag.startswith(text.partition(":")[0]) for text in given)


def _is(kind: str, word: str, facts: OwnFacts) -> bool:
    if kind == "own_process":
        return "signoff" in word.casefold() or (facts.pid is not None and word == str(facts.pid))
    path = _VARIABLE.sub(lambda match: _VALUES.get(next(filter(None, match.groups())).casefold(), "?"), word)
    path = path.replace("\\", "/").casefold().removeprefix("//?/").removeprefix("//./")
    if kind == "own":
        own = [text.replace("\\", "/").casefold().rstrip("/") for text in facts.paths.own]
        return any(path == text or path.startswith(text + "/") for text in own)
    path = re.sub(r"(?:/\.)+(?=/|$)", "", re.sub(r"/+", "/", path))
    path = re.sub(r"/(?:\*(?:\.\*)?)?$", "", path)
    if kind == "drive":
        return bool(re.fullmatch(r"(?:[a-z]:)?", path)) and word != ""
    if kind == "home":
        home = (facts.paths.home or "~").replace("\\", "/").casefold().rstrip("/")
        return path in {"~", home}
    return path[1:3] == ":/" and path[3:] in _SYSTEM_FOLDERS
