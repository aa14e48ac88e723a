"""A small reader of cmd and PowerShell text, and the floors for both."""

import posixpath
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from signoff.policy import windows_daily as daily
from signoff.policy.findings import Finding, Findings, gravest_first
from signoff.policy.findings import find as find_in
from signoff.policy.floors import Hit
from signoff.policy.path_classes import CLASSES
from signoff.policy.python import PythonScript
from signoff.policy.rule import Rule
from signoff.policy.ruleset import RuleSet
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import Command, Script, Word, carriers, read_shell
from signoff.policy.shell.deadline import Deadline, GivenUpError
from signoff.policy.shell.machine import TOO_DEEP
from signoff.policy.unknown import UnknownCommands, destructive
from signoff.policy.windows_environment import shows_secrets
from signoff.policy.windows_keywords import MAX_KEYWORDS, behind_keywords, behind_return
from signoff.policy.windows_options import SHELLS, does_more, name_of, powershell_command, sets_path, shell_of

MAX_CHARS = 16 * 1024
"""Longer texts are not read; no command line of Windows may be longer than 32,767 characters, and cmd takes 8,191."""

_MAX_DEPTH = 4
_PRINTERS = frozenset({"echo", "write-host", "write-output", "rem", "cd", "set-location"})
_CMD_TOKEN = re.compile(r'\d?>&\d|"[^"]*"?|\^.|&&|\|\||[&|()\n]|[^\s"^&|()]+', re.S)
_POWERSHELL_TOKEN = re.compile(
    r"[\d*]?>&\d|'(?:[^']|'')*'?|\"(?:`.|\"\"|[^\"`])*\"?|`.|&&|\|\||[;&|(){}\n]|[^\s'\"`;&|(){}]+", re.S
)
_PROPERTY = re.compile(r"\.[A-Za-z]\w*")
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
    harmless: frozenset[str]
    harmless_verbs: frozenset[str]
    changing: frozenset[str]
    looking: dict[str, frozenset[str]]
    names_only: frozenset[str]
    daily: frozenset[str]
    daily_options: frozenset[str]
    values: frozenset[str]


@cache
def _table() -> _Table:
    return msgspec.toml.decode(files("signoff.policy.rules").joinpath("windows.toml").read_bytes(), type=_Table)


def table() -> tuple[WindowsFloor, ...]:
    """All floors for cmd and PowerShell."""
    return _table().floor


def read(text: str, shell: str, deadline: Deadline) -> Script:
    """The commands of a cmd or PowerShell text, inner ones of `cmd /c` and `powershell -Command` included.

    What could not be read in time or at all is in `problems`.
    """
    if len(text) > MAX_CHARS:
        return Script(problems=(f"it is longer than {MAX_CHARS // 1024} kB",))
    commands: list[Command] = []
    problems: dict[str, None] = {}
    opaque: dict[str, None] = {}
    try:
        _read(text, shell, deadline, commands, problems)
        for command in tuple(commands):
            deadline.check()
            carried = _portable_inside(command)
            commands += carried.commands
            problems.update(dict.fromkeys(carried.problems))
            opaque.update(dict.fromkeys(carried.opaque))
    except GivenUpError as error:
        problems.setdefault(error.reason)
    return Script(commands=tuple(commands), problems=tuple(problems), opaque=tuple(opaque))


def _portable_inside(command: Command) -> Script:
    """What a program that other systems have too carries: commands behind `npx`, code of `python -c`."""
    words = [word.text for word in command.words]
    name = name_of(words[0])
    if name in _table().changing or carried_text(words) is not None:
        return Script()
    named = (Word(name), *command.words[1:])
    if not carriers.find(named) and not carriers.command_options(named):
        return Script()
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in (name, *words[1:]))
    inside = read_shell(quoted, budget_s=_INSIDE_BUDGET_S)
    # The first is the program itself, which stands there already unless it has code.
    own = inside.commands[:1] if any(each.code for each in inside.commands[:1]) else ()
    return msgspec.structs.replace(inside, commands=(*own, *inside.commands[1:]))


_INSIDE_BUDGET_S = 0.005
"""The time for what one command carries: words, without a text to parse in most of them."""


def _read(text: str, shell: str, deadline: Deadline, commands: list[Command], problems: dict[str, None]) -> None:
    todo = [(text, shell, 0)]
    while todo:
        deadline.check()
        inner, kind, depth = todo.pop()
        inside = _inside_quotes(inner, deadline) if kind != "cmd" else []
        if inside and depth < _MAX_DEPTH:
            todo += [(each, kind, depth + 1) for each in inside]
        elif inside:
            problems.setdefault(TOO_DEEP)
        for words in _parts(inner, kind, deadline, problems):
            deadline.check()
            commands.append(Command(words=tuple(map(Word, words)), own=len(words), source=" ".join(words)))
            carried = carried_text(words)
            if carried is not None and depth < _MAX_DEPTH:
                todo.append((*carried, depth + 1))
            elif carried is not None:
                problems.setdefault(TOO_DEEP)


def _parts(text: str, shell: str, deadline: Deadline, problems: dict[str, None]) -> list[list[str]]:
    """The words of each command, those behind keywords of cmd as commands of their own."""
    found: list[list[str]] = []
    for split in _split(text, shell, deadline):
        deadline.check()
        inside = behind_keywords(split) if shell == "cmd" else behind_return(split)
        if len(inside) > MAX_KEYWORDS:
            problems.setdefault(TOO_DEEP)
        found += inside
    return found


def _tokens(expression: re.Pattern[str], text: str, deadline: Deadline) -> Iterator[re.Match[str]]:
    for count, match in enumerate(expression.finditer(text)):
        if not count & 63:
            deadline.check()
        yield match


def _split(text: str, shell: str, deadline: Deadline) -> list[list[str]]:
    """The words of each command; quotes are removed, and a word without a blank before it joins the one there."""
    token = _CMD_TOKEN if shell == "cmd" else _POWERSHELL_TOKEN
    found: list[list[str]] = [[]]
    end = -1
    for match in _tokens(token, text, deadline):
        part = match.group()
        if part in _BREAKS:
            # `& (...)` runs what the brackets make up.
            called = part == "(" and shell != "cmd" and text[: match.start()].rstrip()[-1:] == "&"
            called = called or (part == "&" and shell != "cmd" and _NAMED_LATER.match(text, match.end()) is not None)
            found.append(["$()"] if called else [])
        elif shell != "cmd" and match.start() == end and _PROPERTY.fullmatch(part) and text[match.end() :][:1] != "(":
            continue  # what a bracket is asked for
        elif match.start() == end and found[-1]:
            found[-1][-1] += _unquoted(part)
        else:
            found[-1].append(_unquoted(part))
        end = match.end()
    if shell == "cmd":
        found = [_switch_apart(words) for words in found if words]
    return [words for words in found if words]


_NAMED_LATER = re.compile(r"\s*\"?\$")
"""`& $x` runs what a variable holds."""


def _switch_apart(words: list[str]) -> list[str]:
    """cmd takes switches without a blank behind a name that it knows: `del/q x`, `rd/s/q x`."""
    name, slash, switches = words[0].partition("/")
    if slash and name.casefold().lstrip("@") in _table().changing:
        return [name, slash + switches, *words[1:]]
    return words


_SUBEXPRESSION = re.compile(r"\$\((?!\s*\$\w+(?:\.\w+)*\s*\))")
"""`$(...)` that is more than a variable and its properties."""


def _inside_quotes(text: str, deadline: Deadline) -> list[str]:
    """What double quotes hold in `$(...)`. Where other quotes stand in there its end is not seen, and the rest of the
    text is taken: that only finds more."""
    found: list[str] = []
    for match in _tokens(_POWERSHELL_TOKEN, text, deadline):
        if match.group()[0] != '"':
            continue
        for start in _SUBEXPRESSION.finditer(match.group()):
            deadline.check()
            plain = _PLAIN_BRACKETS.match(text, match.start() + start.end())
            if plain is None:
                return [*found, text[match.start() + start.end() :]]
            found.append(plain.group()[:-1])
    return found


_PLAIN_BRACKETS = re.compile(r"[^()'\"`#]*+(?:\([^()'\"`#]*+\)[^()'\"`#]*+)*+\)")
"""What stands in a bracket up to its end, with one level of brackets and without quotes."""


def _unquoted(part: str) -> str:
    if part[0] in "'\"":
        return part[1:-1] if len(part) > 1 and part[-1] == part[0] else part[1:]
    return part[1:] if part[0] in "^`" and len(part) > 1 else part


def carried_text(words: list[str]) -> tuple[str, str] | None:
    """The text that `cmd /c` or `powershell -Command` runs, and the shell that reads it."""
    name, shell = name_of(words[0]), shell_of(words[0])
    lowered = [word.casefold() for word in words]
    if shell == "cmd":
        place = next((index for index, word in enumerate(lowered) if word[:2] in {"/c", "/k"}), 0)
        return (" ".join([words[place][2:], *words[place + 1 :]]), "cmd") if place else None
    if shell == "powershell":
        place = powershell_command(words)
        return (" ".join(words[place:]), "powershell") if place else None
    if name in {"invoke-expression", "iex"}:
        return " ".join(words[1:]), "powershell"
    return None


@lru_cache(maxsize=1024)
def may_carry(program: str) -> bool:
    """Whether a program of this name may run text of cmd or PowerShell."""
    return name_of(program) in daily.CARRYING


def find(
    script: Script, facts: OwnFacts, deadline: Deadline, rows: tuple[WindowsFloor, ...] | None = None
) -> Hit | None:
    """The first floor, of these or of all, that a command falls under. Raises `OutOfTimeError`."""
    for command in script.commands:
        deadline.check()
        words = [word.text for word in command.words]
        for floor in table() if rows is None else rows:
            if _falls_under(floor, words, facts):
                return Hit(floor.key, floor.description, command.source)
    if any(command.source in {"%0", "%~f0"} for command in script.commands) and len(script.commands) > 1:
        return Hit("floor.fork_bomb", "starts a fork bomb", "%0")
    return None


def _falls_under(floor: WindowsFloor, words: list[str], facts: OwnFacts) -> bool:
    name = name_of(words[0]) if words else ""
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


_RELATIVE = re.compile(r"(?![a-z]:|[/~?])")


def _is(kind: str, word: str, facts: OwnFacts) -> bool:
    if kind == "own_process":
        return "signoff" in word.casefold() or (facts.pid is not None and word == str(facts.pid))
    path = _VARIABLE.sub(lambda match: _VALUES.get(next(filter(None, match.groups())).casefold(), "?"), word)
    path = path.replace("\\", "/").casefold().removeprefix("//?/").removeprefix("//./")
    if kind == "own":
        path, start = path.rpartition(">")[2], facts.paths.start
        if start is not None and _RELATIVE.match(path):
            path = posixpath.normpath(start.replace("\\", "/").casefold() + "/" + path)
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


# What a person is asked about

_SECRET = Rule(key="windows.secrets", verdict="ask", severity="high", sentence="reads a file that holds secrets")
_SHOWN = Rule(
    key="windows.environment", verdict="ask", severity="high", sentence="prints variables that may hold secrets"
)
_SEARCH = Rule(
    key="windows.search_path", verdict="ask", severity="high", sentence="changes where programs are looked for"
)
_WRITES = Rule(key="windows.write", verdict="ask", sentence="writes a file by redirection")
_CHANGES = Rule(key="windows.change", verdict="ask", sentence="may change files, settings or processes")
_RENAMES = Rule(key="windows.alias", verdict="ask", severity="high", sentence="makes a name stand for another command")
_HIDDEN = Rule(
    key="windows.hidden", verdict="ask", severity="high", sentence="runs something that is only known when it runs"
)
_WRITTEN = Rule(
    key="windows.written", verdict="ask", severity="high", sentence="runs or reads what the same text wrote"
)
_CMDLET = re.compile(r"[a-z]+-[a-z]\w*")
_PLAIN_VARIABLE = re.compile(
    r"\$(?!env:(?:path|pathext|comspec|psmodulepath|node_options|python\w*|git_\w+|dotnet_startup_hooks)\Z)(?:env:)?[a-z_]\w*",
    re.I,
)
_WRITERS = frozenset({"tee", "tee-object"})
_RENAMERS = frozenset({"nal", "sal", "set-alias", "new-alias", "ipal", "import-alias"})
_EACH = frozenset({"foreach-object", "foreach", "%"})
_SETS_SEARCH = re.compile(r"(?:path|pathext|comspec)=", re.I)
_COMPARISON = re.compile(r"-[ci]?(?:eq|ne|gt|ge|lt|le|like|notlike|match|notmatch|contains|notcontains|in|notin)", re.I)
_ENCODED = re.compile(r"[-/\u2013-\u2015](?:e|ec|enc\w*|f|file)", re.I)


def findings(
    script: Script,
    ruleset: RuleSet,
    facts: OwnFacts,
    deadline: Deadline,
    unknown_commands: UnknownCommands = "verbs",
    codes: tuple[PythonScript, ...] = (),
) -> Findings:
    """What asks in a cmd or PowerShell text, the Python code in it included. Raises `OutOfTimeError`.

    Commands that only look are allowed, programs that other systems have too are judged by their rules, and what is
    left asks unless it is an unknown program without a destructive word.
    """
    asking: list[Finding] = []
    judged: list[Command] = []
    texts = [_assigned([word.text for word in command.words]) for command in script.commands]
    if daily.runs_what_it_wrote(texts, _table().names_only) or daily.is_more(texts, _looks):
        asking.append(Finding(_WRITTEN, script.commands[-1], name_of("".join(texts[-1][:1]))))
    for command, words in zip(script.commands, texts, strict=True):
        deadline.check()
        rule = _asks(words, ruleset) or _secret(words, facts) or (_CHANGES if daily.names_own(words, facts) else None)
        if rule is None and words and shows_secrets(name_of(words[0]), words):
            rule = _SHOWN
        if rule is not None:
            asking.append(Finding(rule, command, name_of(words[0]) if words else ""))
        elif not words or not _harmless(words):
            judged.append(_portable(command, words))
    others = find_in(
        msgspec.structs.replace(script, commands=tuple(judged)), ruleset, facts, deadline, unknown_commands, codes
    )
    if others.verdict == "block" or not asking:
        return others
    return msgspec.structs.replace(others, verdict="ask", unknown=gravest_first([*asking, *others.unknown]))


def _assigned(words: list[str]) -> list[str]:
    """The words behind `$name =`, and behind `$name in` of a loop."""
    if len(words) > 2 and words[1].casefold() in {"=", "in"} and _PLAIN_VARIABLE.fullmatch(words[0]):
        return words[2:]
    return words


_COPIERS = frozenset({"copy", "cpi", "xcopy"})
_SWITCH = re.compile(r"[/-]\w{1,12}(?::\S*)?")


def _portable(command: Command, words: list[str]) -> Command:
    """The command as rules know it: its program by its plain name."""
    if not words:
        return command
    if name_of(words[0]) in daily.FETCHERS and _is_daily(name_of(words[0]), words):
        words = ["curl", daily.address_of(words)]
    elif name_of(words[0]) in _COPIERS:
        files = ["/dev/null" if word.casefold() == "nul" else word.replace("\\", "/") for word in words[1:]]
        words = ["cp", *(word for word in files if not _SWITCH.fullmatch(word))]
    elif daily.is_script(words):
        words = [daily.script_path(words[0]), *words[1:]]
    elif len(words) == len(command.words) and words[0] == name_of(words[0]):
        return command
    program = words[0] if words[0][:1] == "." else name_of(words[0])
    named = (Word(program), *map(Word, words[1:]))
    return msgspec.structs.replace(command, words=named, own=len(named))


def _looks(words: list[str]) -> bool:
    return carried_text(words) is None and (name_of(words[0]) in daily.FETCHERS or _harmless(words))


def _harmless(words: list[str]) -> bool:
    name = name_of(words[0])
    if daily.is_script(words) or name in daily.FETCHERS:
        return False
    if carried_text(words) is not None or _only_looks(name, words) or _is_daily(name, words):
        return True
    if name in _table().harmless:
        return not does_more(name, words)
    return bool(_CMDLET.fullmatch(name)) and name.partition("-")[0] in _table().harmless_verbs


def _asks(words: list[str], ruleset: RuleSet) -> Rule | None:
    """Why a command asks before rules about programs are looked at."""
    if not words:
        return None
    name = name_of(words[0])
    if (_hidden(words) and not (_is_daily(name, words) or daily.is_script(words))) or (
        name in SHELLS and any(map(_ENCODED.fullmatch, words[1:]))
    ):
        return _HIDDEN
    if name in SHELLS and carried_text(words) is None and words[-1] not in {"/?", "-?", "-h", "-help", "--version"}:
        return _HIDDEN  # what it is fed
    redirects = any(
        daily.redirects_away(word, following) for word, following in zip(words, [*words[1:], ""], strict=True)
    )
    if redirects or daily.empties(words):
        return _WRITES
    if name in _WRITERS and any(
        word[:1] not in "-/" and word.casefold() not in daily.NULL and not daily.is_project_file(word)
        for word in words[1:]
    ):
        return _WRITES
    if name in _RENAMERS:
        return _RENAMES
    if sets_path(name, words) or (name == "set" and len(words) > 1 and _SETS_SEARCH.match(words[1])):
        return _SEARCH
    if name in _EACH and destructive(tuple(map(Word, words)), name) is not None:
        return _CHANGES  # `ForEach-Object Delete` calls that method of each
    known = _table()
    if name in known.harmless or _only_looks(name, words) or _is_daily(name, words):
        return None
    if name in known.changing:
        return _CHANGES
    cmdlet = bool(_CMDLET.fullmatch(name)) and not ruleset.knows(name)
    return _CHANGES if cmdlet and name.partition("-")[0] not in known.harmless_verbs else None


def _only_looks(name: str, words: list[str]) -> bool:
    """`reg query`, `sc query`, `New-Item -ItemType Directory`: words that make a changing program a harmless one."""
    lowered = {word.casefold() for word in words[1:]}
    if name == "new-item":
        return "directory" in lowered and "-value" not in lowered
    return len(words) > 1 and words[1].casefold() in _table().looking.get(name, ())


def _is_daily(name: str, words: list[str]) -> bool:
    known = _table()
    if name in known.daily:
        return daily.is_plain(words, known.daily_options)
    return daily.shows_value(words) or daily.sets_value(words, known.values)


def _secret(words: list[str], facts: OwnFacts) -> Rule | None:
    """Whether a program that may show it is given a file that holds secrets."""
    if not words or name_of(words[0]) in _table().names_only:
        return None
    for word in words[1:]:
        path = _VARIABLE.sub(lambda match: _VALUES.get(next(filter(None, match.groups())).casefold(), "?"), word)
        path = _DRIVE.sub("", path.replace("\\", "/"))
        if CLASSES["secret_file"](Word(path), None, facts.paths):
            return _SECRET
    return None


_DRIVE = re.compile(r"(?<![A-Za-z])[A-Za-z]:(?=/)")


def _hidden(words: list[str]) -> bool:
    """Whether the program is a variable or an expression; a comparison (`$_.Length -gt 5`) runs nothing."""
    if words[0][:1] not in "$[.%@!" or words[0] == "%":
        return bool(_BUILT_NAME.search(name_of(words[0])))
    return not (words[0][:1] == "$" and len(words) > 1 and bool(_COMPARISON.fullmatch(words[1])))


_BUILT_NAME = re.compile(r"%[^%\s]+%|![^!\s]+!|\$")
"""A variable within a name: `de%x%l`."""
