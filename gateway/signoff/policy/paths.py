"""What a path in a command means to the host: root, system folder, home, disk, our own."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from signoff.policy.shell import UNKNOWN, UNKNOWN_HOME, Word

SYSTEM_FOLDERS = frozenset(
    {"home", "root", "etc", "usr", "var", "bin", "sbin", "boot", "lib", "lib64", "dev", "proc", "sys"}
    | {"System", "Library", "Users", "Applications", "private"}
)
"""Folders of the root whose loss ends the host or everybody's data: the usual ones of Linux, then those of macOS. What
lies deeper is a person's decision."""

_DISK = re.compile(
    r"(?:disk/by-[a-z]+/.+|mapper/(?!control$).+|r?disk[\d*?\[]\S*|(?:sd|hd|vd|xvd)[a-z*?\[]\S*|dm-\S+|md[\d*?\[]\S*"
    r"|nvme[\d*?\[]\S*|mmcblk[\d*?\[]\S*|nbd[\d*?\[]\S*|a?da[\d*?\[]\S*|root)"
)
_ESCAPED = re.compile(r"\\(.)")
_SPECIAL = "\\*?[]"
_ALIVE = re.compile(r"(?<!\\)[*?\[]")
_MARKED = re.compile(r"[*?\[\\]")
_PIECES = re.compile(r"[=@:,]")
_STARS = re.compile(r"\*+")
_QUOTED_STAR = re.compile(r"\\([*?\[])")
MAX_PARTS = 2048
"""A path of more folders is longer than the 4096 bytes that a system opens."""

_UNKNOWN_PROCESS = re.compile(rf"/+proc/+{UNKNOWN}/+root(?=/|\Z)")
_PROCESS_ROOT_DEPTH = 3
"""`/proc`, a process and `root`: the kernel's link back to the root folder; `cwd` there leads to its folder."""


class PathFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What paths are measured against: the user's home, the gateway's own paths, the folder the action starts in."""

    home: str | None = None
    own: tuple[str, ...] = ()
    start: str | None = None


def parts(word: Word, cwd: str | None) -> tuple[str, ...] | None:
    """The components of a path with `.` and `..` resolved, as glob patterns; None when it is relative to an unknown
    folder or not known to its end."""
    return _parts(word.text, word.pattern, cwd)


@lru_cache(maxsize=256)
def _parts(text: str, pattern: str | None, cwd: str | None) -> tuple[str, ...] | None:
    """The same. Every floor of a command asks this of the same few words."""
    text = text if pattern is None else pattern
    if UNKNOWN in text:
        text = _UNKNOWN_PROCESS.sub("/", text, count=1)
        if UNKNOWN in text:
            return None
    if not text:
        return None
    if pattern is None:
        for sign in _SPECIAL:
            text = text.replace(sign, "\\" + sign)
    if not text.startswith("/"):
        if cwd is None:
            return None
        text = f"{cwd}/{text}"
    found: list[str] = []
    pieces = [part for part in text.split("/") if part and part != "."]
    if len(pieces) > MAX_PARTS:
        return None
    for part in pieces:
        if part == "..":
            del found[-1:]
        else:
            found.append(part)
            if len(found) >= _PROCESS_ROOT_DEPTH and found[0] == "proc" and (folder := _link(found, cwd)) is not None:
                found = folder
    return tuple(found)


def _link(found: list[str], cwd: str | None) -> list[str] | None:
    """Where the link of a process leads (`/proc/self/root`, `/proc/17/task/17/cwd`); None when this is none."""
    in_task = found[2] == "task" and len(found) == _PROCESS_ROOT_DEPTH + 2
    if not in_task and len(found) != _PROCESS_ROOT_DEPTH:
        return None
    last = found[-1]
    if _STARS.fullmatch(last):
        return None
    if _covers(last, "root"):
        return []
    return list(_split(cwd)) if cwd is not None and _covers(last, "cwd") else None


def _plain(pattern: str) -> str:
    return _ESCAPED.sub(r"\1", pattern)


def _covers(pattern: str, name: str) -> bool:
    """Whether one component as written may mean `name`."""
    if pattern == name:
        return True
    if not _MARKED.search(pattern):
        return False
    if _plain(pattern) == name:
        return True
    if len(pattern) > 255 or not _ALIVE.search(pattern):
        return False
    return fnmatchcase(name, _QUOTED_STAR.sub(r"[\1]", _STARS.sub("*", pattern)))


def _whole(found: tuple[str, ...]) -> tuple[str, ...]:
    """Without `/*` at the end: all that a folder holds counts as the folder."""
    end = len(found)
    while end and found[end - 1][:1] == "*" and _STARS.fullmatch(found[end - 1]):
        end -= 1
    return found[:end]


def is_root(word: Word, cwd: str | None, _facts: PathFacts) -> bool:
    """The root folder, or all that is in it."""
    found = parts(word, cwd)
    return found is not None and not _whole(found)


def is_system(word: Word, cwd: str | None, _facts: PathFacts) -> bool:
    """A system folder, or all that is in it."""
    found = parts(word, cwd)
    if found is None:
        return False
    whole = _whole(found)
    if len(whole) != 1:
        return False
    return whole[0] in SYSTEM_FOLDERS or (
        bool(_MARKED.search(whole[0])) and any(_covers(whole[0], name) for name in SYSTEM_FOLDERS)
    )


def is_home(word: Word, cwd: str | None, facts: PathFacts) -> bool:
    """A home directory that is known as one, or all that is in it."""
    found = parts(word, cwd)
    if found is None:
        return False
    whole = _whole(found)
    if len(whole) == 2 and whole[0] == "home" and whole[1].startswith("~"):
        return True
    home = _split(facts.home or UNKNOWN_HOME)
    return bool(home) and _same(whole, home)


def is_disk(word: Word, cwd: str | None, _facts: PathFacts) -> bool:
    """A device node of a whole disk or a partition."""
    if word.pattern is None and "dev" not in word.text and (cwd is None or "dev" not in cwd):
        return False
    found = parts(word, cwd)
    return found is not None and len(found) > 1 and found[0] == "dev" and bool(_DISK.fullmatch("/".join(found[1:])))


@lru_cache(maxsize=64)
def _own(paths: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Our own paths in parts."""
    return tuple(found for found in map(_split, paths) if found)


@lru_cache(maxsize=64)
def _last_names(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(found[-1] for found in _own(paths))


def maybe_own(words: tuple[Word, ...], cwd: str | None, facts: PathFacts) -> list[Word]:
    """The words at which `is_own` has to look: where nothing names what our paths end with, and no star may, nothing is
    ours."""
    names = _last_names(facts.own)
    if cwd is not None:
        for name in names:
            if name in cwd:
                return list(words)
    found = []
    for word in words:
        if word.pattern is not None:
            found.append(word)
            continue
        text = word.text
        for name in names:
            if name in text:
                found.append(word)
                break
    return found


def is_own(word: Word, cwd: str | None, facts: PathFacts) -> bool:
    """The gateway's own state folder or configuration file, or something inside."""
    if not maybe_own((word,), cwd, facts):
        return False
    # A star alone for the last name reaches everything of that depth; it is not aimed at us.
    return any(
        len(found) >= len(own) and set(found[len(own) - 1]) != {"*"} and _same(found[: len(own)], own)
        for found in _readings(word, cwd)
        for own in _own(facts.own)
    )


def holds_own(word: Word, cwd: str | None, facts: PathFacts) -> bool:
    """A folder in which one of the gateway's own paths lies, or that path itself."""
    for found in _readings(word, cwd):
        whole = _whole(found)
        if any(len(whole) <= len(own) and _same(whole, own[: len(whole)]) for own in _own(facts.own)):
            return True
    return False


def holds_own_state(word: Word, cwd: str | None, facts: PathFacts, left_out: list[str]) -> bool:
    """A folder in which the gateway's state lies, unless one of the names left out stands on the way to it.

    The configuration file does not count here: it often lies in a project's folder, which people may copy.
    """
    found = parts(word, cwd)
    if found is None:
        return False
    whole = _whole(found)
    for own in _own(facts.own):
        if own[-1].endswith(".toml") or len(whole) > len(own) or not _same(whole, own[: len(whole)]):
            continue
        if not any(name in own[len(whole) :] for name in left_out):
            return True
    return False


def is_file(word: Word, cwd: str | None, _facts: PathFacts) -> bool:
    """A plain file or name: known to its end and not below `/dev`."""
    if word.literal is None or word.text.startswith("-"):
        return False
    found = parts(word, cwd)
    return found is None or found[:1] != ("dev",)


def _split(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in {"", "."})


def _same(found: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return len(found) == len(names) and all(map(_covers, found, names))


def _readings(word: Word, cwd: str | None) -> list[tuple[str, ...]]:
    """The paths one word may hold: itself, or behind `=`, `@`, `:` or a short option."""
    found = [parts(word, cwd)]
    if word.pattern is None:
        rest = _PIECES.split(word.text)[1:] + ([word.text[2:]] if word.text.startswith("-") else [])
        found += [parts(Word(text), cwd) for text in rest if text.startswith("/")]
    return [path for path in found if path is not None]
