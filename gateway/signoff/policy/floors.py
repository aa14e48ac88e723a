"""Floors: commands that end the host or this gateway, which no person, grant or mode may allow."""

import posixpath
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from itertools import pairwise

import msgspec

from signoff.policy import copying, paths
from signoff.policy.paths import PathFacts
from signoff.policy.shell import UNKNOWN, Command, Script, Word
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.options import Arguments, OptionSpec, arguments

_PACKAGE = "signoff.policy.rules"
_SYSTEM_PROGRAM = re.compile(r"(?:/[^/]+)*/(?:s?bin|libexec|games)/[^/]+")


class OwnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway knows of itself and of the user: paths, process, home."""

    paths: PathFacts = PathFacts()
    pid: int | None = None


class Floor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of `floors.toml`, where the fields are explained."""

    key: str
    description: str
    programs: tuple[str, ...]
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    subcommands: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    only_if: str = ""
    value_of: str = ""
    short_values: str = ""
    here: bool = False


class Hit(msgspec.Struct, frozen=True):
    """A floor that a command fell under."""

    key: str
    description: str
    command: str


class Seen(msgspec.Struct, frozen=True):
    """One command as the checks see it."""

    command: Command
    words: tuple[Word, ...]
    given: Arguments
    facts: OwnFacts
    script: Script

    @property
    def operands(self) -> list[Word]:
        """The operands in order."""
        return [word for _place, word in self.given.operands]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    floor: tuple[Floor, ...]


@cache
def table() -> tuple[Floor, ...]:
    """All floors."""
    return msgspec.toml.decode(files(_PACKAGE).joinpath("floors.toml").read_bytes(), type=_Table).floor


@cache
def _index() -> tuple[dict[str, tuple[Floor, ...]], tuple[Floor, ...]]:
    """Floors by program name, and those whose name has a star."""
    named: dict[str, tuple[Floor, ...]] = {}
    starred: list[Floor] = []
    for floor in table():
        for name in floor.programs:
            if name.endswith("*"):
                starred.append(floor)
            else:
                named[name] = (*named.get(name, ()), floor)
    return named, tuple(dict.fromkeys(starred))


def find(script: Script, facts: OwnFacts, deadline: Deadline) -> Hit | None:
    """The first floor that a command of the script falls under. Raises `OutOfTimeError`."""
    if script.fork_bombs:
        return Hit("floor.fork_bomb", "starts a fork bomb", f"{script.fork_bombs[0]}()")
    for command in script.commands:
        deadline.check()
        hit = _redirects(command, facts) or _command(command, facts, script)
        if hit is not None:
            return hit
    return None


def _redirects(command: Command, facts: OwnFacts) -> Hit | None:
    for redirect in command.redirects:
        if redirect.writes and paths.is_disk(redirect.target, command.cwd, facts.paths):
            return Hit("floor.write_disk", "writes over a raw disk", _shown(command))
        if command.place == "here" and paths.is_own(redirect.target, command.cwd, facts.paths):
            return Hit("floor.own_state", "touches the gateway's own state or configuration", _shown(command))
    return None


def _shown(command: Command) -> str:
    return (command.source or command.text).replace(UNKNOWN, "…")


def program_name(word: Word, cwd: str | None) -> str:
    """The program a word names, folded to plain letters; empty for a file outside the folders of programs."""
    text = unicodedata.normalize("NFKC", word.text).casefold()
    if "/" not in text:
        return text
    if not text.startswith("/"):
        if cwd is None:
            return ""
        text = f"{cwd}/{text}"
    path = "/" + posixpath.normpath(text).lstrip("/")
    return path.rpartition("/")[2] if _SYSTEM_PROGRAM.fullmatch(path) else ""


def program_name_of(command: Command) -> str:
    """The program of a command, or an empty text."""
    return program_name(command.words[0], command.cwd) if command.words else ""


def _as_program(words: tuple[Word, ...], name: str) -> tuple[tuple[Word, ...], str]:
    """`python -m signoff ...` is the program signoff."""
    if re.fullmatch(r"(?:python|pypy)[\d.]*", name):
        given = arguments(words, OptionSpec(short_values="cmWX"), stop=True)
        module = given.value(("-m",))
        if module is not None and module.value is not None:
            at = module.index + (1 if words[module.index].text != "-m" + module.value.text else 0)
            return words[at:], module.value.text.partition(".")[0]
    return words, name


def _command(command: Command, facts: OwnFacts, script: Script) -> Hit | None:
    words = command.own_words
    if not words:
        return None
    words, name = _as_program(words, program_name(words[0], command.cwd))
    named, starred = _index()
    read: dict[str, Seen] = {}
    for floor in (*named.get(name, ()), *(floor for floor in starred if _star_fits(floor, name))):
        seen = read.get(floor.short_values)
        if seen is None:  # most floors of a program read its options alike
            spec = OptionSpec(short_values=floor.short_values, long_single=name in {"find", "gfind"})
            seen = read[floor.short_values] = Seen(command, words, arguments(words, spec), facts, script)
        if _falls_under(floor, seen):
            return Hit(floor.key, floor.description, _shown(command))
    return None


def _star_fits(floor: Floor, name: str) -> bool:
    return name.startswith(_stems(floor))


@cache
def _stems(floor: Floor) -> tuple[str, ...]:
    """The names before the star."""
    return tuple(program[:-1] for program in floor.programs if program.endswith("*"))


def _falls_under(floor: Floor, seen: Seen) -> bool:
    if floor.here and seen.command.place != "here":
        return False
    if floor.flags and not seen.given.has(*floor.flags):
        return False
    if floor.without and seen.given.has(*floor.without):
        return False
    operands = seen.operands
    if floor.subcommands and (not operands or operands[0].text not in floor.subcommands):
        return False
    if floor.operands and not _has_operand(floor, seen):
        return False
    return not floor.only_if or _CHECKS[floor.only_if](seen)


def _has_operand(floor: Floor, seen: Seen) -> bool:
    classes = [_CLASSES[name] for name in floor.operands]
    cwd = seen.command.cwd
    for word in seen.operands:
        if floor.value_of:
            if not word.text.startswith(floor.value_of):
                continue
            word = Word(word.text[len(floor.value_of) :])  # noqa: PLW2901
        if any(check(word, cwd, seen.facts.paths) for check in classes):
            return True
    return False


_CLASSES: dict[str, Callable[[Word, str | None, PathFacts], bool]] = {
    "root": paths.is_root,
    "system": paths.is_system,
    "home": paths.is_home,
    "disk": paths.is_disk,
    "holds_own": paths.holds_own,
}


# Checks of their own


_FIND_NEUTRAL = frozenset(
    {"-delete", "-depth", "-d", "-type", "-xdev", "-x", "-mount", "-print", "-print0", "-ls", "-noleaf"}
    | {"-H", "-L", "-P", "-follow", "-mindepth", "-maxdepth", "-true", "-a", "-and", "-warn", "-nowarn"}
    | {"-daystart", "-ignore_readdir_race"}
)
"""Words of find that let everything through, or leave only the kind or the depth to choose."""


def _find_deletes(seen: Seen) -> bool:
    """`find FOLDER -delete` or `-exec rm` without a test that leaves anything out."""
    texts = [word.text for word in seen.words[1:]]
    if "-delete" in texts:
        return _leaves_nothing_out(texts[: texts.index("-delete")])
    return any(
        text in {"-exec", "-execdir"} and following.rpartition("/")[2] == "rm" and _leaves_nothing_out(texts[:place])
        for place, (text, following) in enumerate(pairwise(texts))
    )


def _leaves_nothing_out(before: list[str]) -> bool:
    """Whether what stands before an action of find lets everything through to it."""
    if not {"(", ")", "!", "-not"} & set(before):
        ors = [place for place, text in enumerate(before) if text in {"-o", "-or", ","}]
        before = before[ors[-1] + 1 :] if ors else before
    options = {text for text in before if text.startswith("-")}
    if "!" in before or not options <= _FIND_NEUTRAL:
        return False
    # The topmost folders hold everything; the topmost files alone are a choice.
    return "-maxdepth" not in options or "-type" not in options or "d" in before


def _not_only_files(seen: Seen) -> bool:
    """Unless it is told of an image file, and of no device: then it makes a filesystem in that file."""
    facts, cwd = seen.facts.paths, seen.command.cwd
    operands = seen.operands
    if any(not paths.is_file(word, cwd, facts) for word in operands):
        return True
    return not any("/" in word.text or "." in word.text for word in operands)


def _last_is_disk(seen: Seen) -> bool:
    operands = seen.operands
    return bool(operands) and paths.is_disk(operands[-1], seen.command.cwd, seen.facts.paths)


def _moves_system(seen: Seen) -> bool:
    facts, cwd = seen.facts.paths, seen.command.cwd
    return any(
        paths.is_system(word, cwd, facts) or paths.is_root(word, cwd, facts) for word in copying.moved(seen.words)
    )


def _copies_own(seen: Seen) -> bool:
    """A copy of a whole folder in which our state lies carries the state away."""
    cwd = seen.command.cwd
    left_out = copying.left_out(seen.words)
    return any(
        paths.holds_own_state(word, base, seen.facts.paths, left_out)
        for word, base in copying.sources(seen.words, program_name(seen.words[0], cwd), cwd)
    )


def _kill_targets(seen: Seen) -> list[str]:
    """The processes a kill names, behind its signal."""
    texts = [word.text for word in seen.words[1:]]
    if not texts:
        return []
    if texts[0] in {"-l", "-L", "--list", "--help"}:
        return []
    if texts[0] in {"-s", "-n", "--signal"}:
        texts = texts[2:]
    elif texts[0].startswith("-") and texts[0] != "--" and len(texts) > 1:
        texts = texts[1:]
    return [text for text in texts if text != "--"]


def _kills_everything(seen: Seen) -> bool:
    return "-1" in _kill_targets(seen)


def _kills_own(seen: Seen) -> bool:
    targets = _kill_targets(seen)
    if seen.facts.pid is not None and {str(seen.facts.pid), f"-{seen.facts.pid}"} & set(targets):
        return True
    if not any(UNKNOWN in text for text in targets):
        return False
    lookups = [command for command in seen.script.commands if program_name_of(command) in {"pgrep", "pidof"}]
    return any("signoff" in command.text for command in lookups)


def _names_own(seen: Seen) -> bool:
    """A name or pattern that means the gateway; a piece of its name counts, since pkill searches for pieces."""
    return any("signoff" in word.text or (len(word.text) > 3 and word.text in "signoff") for word in seen.operands)


_STOPPING = frozenset(
    {"stop", "restart", "try-restart", "reload-or-restart", "kill", "disable", "mask", "unload", "bootout", "remove"}
)
_OWN_SERVICE = re.compile(r"(?:^|[./@-])signoff(?:$|[.@-])")


def _stops_own_service(seen: Seen) -> bool:
    texts = [word.text for word in seen.words[1:]]
    return any(text in _STOPPING for text in texts) and any(map(_OWN_SERVICE.search, texts))


def _power_target(seen: Seen) -> bool:
    targets = {"poweroff", "reboot", "halt", "kexec", "shutdown", "runlevel0", "runlevel6", "soft-reboot"}
    units = [word.text for word in seen.operands[1:]]
    return any(unit.endswith(".target") and unit.removesuffix(".target") in targets for unit in units)


_OWN_COMMANDS = frozenset(
    {"demo", "serve", "init", "doctor", "drill", "ask", "run", "check", "pending", "approve", "deny", "stop", "grants"}
    | {"actions", "audit", "key", "policy", "yolo", "hook", "mcp", "watch", "soak", "bench", "migrate"}
)
_OWN_FORBIDDEN = frozenset({"approve", "deny", "key", "grants", "yolo", "actions"})


def _own_command(seen: Seen) -> bool:
    """The first word that is a command of ours decides: what stands before it may be an option's value."""
    first = next((word.text for word in seen.words[1:] if word.text in _OWN_COMMANDS), "")
    return first in _OWN_FORBIDDEN


_PRINTERS = frozenset({"echo", "printf", "true", ":", "cd", "pwd", "signoff"})
"""Programs whose words are text to print, and our own, which may be told of its configuration."""


def _touches_own(seen: Seen) -> bool:
    name = program_name(seen.words[0], seen.command.cwd)
    if not seen.facts.paths.own or name in _PRINTERS or (name == "git" and seen.operands[:1] == [Word("commit")]):
        return False
    return any(paths.is_own(word, seen.command.cwd, seen.facts.paths) for word in seen.words)


_CHECKS: dict[str, Callable[[Seen], bool]] = {
    "find_deletes": _find_deletes,
    "not_only_files": _not_only_files,
    "last_is_disk": _last_is_disk,
    "moves_system": _moves_system,
    "copies_own": _copies_own,
    "kills_everything": _kills_everything,
    "kills_own": _kills_own,
    "names_own": _names_own,
    "stops_own_service": _stops_own_service,
    "power_target": _power_target,
    "own_command": _own_command,
    "touches_own": _touches_own,
}


def own_file(path: str, cwd: str | None, facts: OwnFacts) -> Hit | None:
    """The floor that the change of one file falls under: the gateway's own files are nobody's to write."""
    text = path
    if facts.paths.home is not None and (path == "~" or path.startswith("~/")):
        text = facts.paths.home + path[1:]
    if not paths.is_own(Word(text), cwd, facts.paths):
        return None
    return Hit("floor.own_state", "changes or deletes the gateway's own state or configuration", path)
