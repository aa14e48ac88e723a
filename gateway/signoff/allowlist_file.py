"""`allowlist.toml`: the operator's file of commands that need no question, read and extended without losing an edit."""

from __future__ import annotations

import ast
import os
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit
from msgspec import Struct
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from signoff.toml_problems import FORM, toml_problem

KEYS = ("commands", "unattended_commands")
HEADER = """\
# Commands that run without a question, one text each. `*` stands for any characters, `\\*` for a star.
# `commands` speaks while somebody could answer, `unattended_commands` when nobody could.
# An entry fits only an action that is one simple command without redirection. Floors and deny rules stand above it.
# Answers "Always" are added here; a line that is taken out ends what it allowed at once.
"""
EXPORTED = """\
# The allowlist as it stood in the store, which every gateway follows. This file is not followed: change it and
# `signoff allowlist import` takes the change over. `*` stands for any characters, `\\*` for a star.
"""
TRIES = 5
"""So often a change is made anew on top of what an editor saved meanwhile."""
MAX_BYTES = 4 * 1024 * 1024
"""A larger file is not read: no operator writes one, and its lines would be compared with every command."""
_READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY"))
"""How it is opened; each system has two of the three."""


def allowlist_path(state_dir: Path, profile: str) -> Path:
    """Where a profile's file stands."""
    folder = state_dir if profile == "default" else state_dir / "profiles" / profile
    return folder / "allowlist.toml"


def entry_of(command: str) -> str:
    """The entry that means exactly this text."""
    return command.replace("\\", "\\\\").replace("*", "\\*")


class AllowlistError(Exception):
    """The file cannot be read or written; the message says what to do."""


class Entries(Struct, frozen=True, kw_only=True):
    """What the file admits, in its order, and one line for each thing in it that admits nothing."""

    commands: tuple[str, ...] = ()
    unattended_commands: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Mark(Struct, frozen=True):
    """How a file looks from outside; another mark means another content."""

    inode: int = 0
    size: int = 0
    changed_ns: int = 0


class AllowlistFile:
    """One profile's file. Calls are blocking; several processes may share the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> Mark:
        """The file's mark now; the empty mark where there is none."""
        try:
            facts = self.path.stat()
        except OSError:
            return Mark()
        return Mark(facts.st_ino, facts.st_size, facts.st_mtime_ns)

    def read(self) -> Entries:
        """What the file admits; a file that is not there admits nothing. It is never written here.

        Raises `AllowlistError` when it cannot be read or is not TOML: then nothing in it counts.
        """
        text = self._text()
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise self._no_toml(error, text) from None
        found: dict[str, tuple[str, ...]] = {}
        warnings: list[str] = []
        for key, value in document.items():
            if key in KEYS:
                found[key] = _texts(key, value, warnings)
            else:
                warnings.append(f"`{key}` is not a list of this file ({', '.join(KEYS)}); it admits nothing")
        return Entries(**found, warnings=tuple(f"{self.path}: {line}." for line in warnings))

    def add(self, commands: list[str]) -> bool:
        """Write these commands behind those that stand in the file now; whether anything was written.

        Comments and order stay, and so does what an editor saves meanwhile. Raises `AllowlistError`; the file is then
        as it was.
        """
        return self._edit(lambda document: _added(document, commands, self.path), HEADER)

    def remove(self, commands: list[str]) -> bool:
        """Take these commands out where they stand; whether anything was written. Raises `AllowlistError`."""
        return self._edit(lambda document: _removed(document, commands, self.path), "")

    def become(self, entries: Entries) -> bool:
        """Make the lists exactly these; whether anything was written. Comments stay, and so does the order of what
        stood there already. Raises `AllowlistError`; the file is then as it was."""
        wanted = {key: getattr(entries, key) for key in KEYS}
        return self._edit(lambda document: _became(document, wanted), EXPORTED)

    def _edit(self, change: Callable[[tomlkit.TOMLDocument], bool], empty: str) -> bool:
        """Change the file as it is now; once more where somebody who takes no lock saved it meanwhile."""
        with self._locked():
            for _ in range(TRIES):
                mark = self.mark()
                document = self._document(self._text() or empty)
                if not change(document):
                    return False
                if self._replace(tomlkit.dumps(document), mark):
                    return True
        raise AllowlistError(f"{self.path} changes all the time, so nothing was written to it.")

    def _text(self) -> str:
        try:
            # Not to wait where something else than a file stands, such as a pipe that nobody writes to.
            with open(os.open(self.path, _READING), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise AllowlistError(f"{self.path} is no plain file, so nothing in it counts.")
                data = file.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                mib = MAX_BYTES // 1024 // 1024
                raise AllowlistError(f"{self.path} is larger than {mib} MiB, so nothing in it counts.")
            return data.decode("utf-8-sig")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise AllowlistError(f"{self.path} cannot be read: {error.strerror}. Nothing in it counts.") from None
        except UnicodeDecodeError:
            raise AllowlistError(f"{self.path} is not UTF-8 text, so nothing in it counts.") from None

    def _document(self, text: str) -> tomlkit.TOMLDocument:
        try:
            tomllib.loads(text)  # its words are plainer, and it is what reads the file
            return tomlkit.parse(text)
        except (tomllib.TOMLDecodeError, TOMLKitError, RecursionError) as error:
            raise self._no_toml(error, text) from None

    def _no_toml(self, error: Exception, text: str) -> AllowlistError:
        line, what = toml_problem(str(error), text)
        if isinstance(error, RecursionError):
            what = "it is nested too deeply"
        return AllowlistError(f"{self.path} is not TOML, so nothing in it counts: line {line}: {what}. {FORM}")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock beside the file: of two processes that write, one reads what the other wrote."""
        import fcntl  # on POSIX alone; a gateway runs there, a client may run elsewhere

        try:
            for folder in (self.path.parent.parent, self.path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise AllowlistError(f"{self.path} cannot be locked: {error.strerror}.") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, text: str, mark: Mark) -> bool:
        """Put a whole new file in place of the one with that mark, durable, with its mode; a link stays a link. False,
        and nothing done, where another file stands there now."""
        target = self.path.resolve()
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fchmod(file.fileno(), target.stat().st_mode & 0o777 if target.exists() else 0o600)
                    os.fsync(file.fileno())
                if self.mark() != mark:
                    Path(name).unlink()
                    return False
                os.replace(name, target)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise AllowlistError(f"{self.path} cannot be written: {error.strerror}.") from None
        return True


def _added(document: tomlkit.TOMLDocument, commands: list[str], path: Path) -> bool:
    """Add what is missing; whether anything was."""
    entries = _list_of(document, path)
    missing = [text for text in dict.fromkeys(commands) if text not in entries]
    for text in missing:
        entries.append(text)
    if missing:
        entries.multiline(True)
    return bool(missing)


def _removed(document: tomlkit.TOMLDocument, commands: list[str], path: Path) -> bool:
    """Take out what stands there; whether anything did."""
    if not isinstance(document.get("commands"), Array):
        return False
    entries = _list_of(document, path)
    places = [place for place, text in enumerate(entries) if text in commands]
    for place in reversed(places):
        del entries[place]
    return bool(places)


def _became(document: tomlkit.TOMLDocument, wanted: dict[str, tuple[str, ...]]) -> bool:
    """Make each list hold these texts and nothing else; whether anything was changed."""
    changed = False
    for key, texts in wanted.items():
        value = document.get(key)
        if not isinstance(value, Array):
            if value is None and not texts and key != KEYS[0]:
                continue  # a file has its first list at least, so that an empty allowlist is a file too
            document[key] = value = tomlkit.array()
            changed = True
        kept: set[str] = set()
        others = []
        for place, text in enumerate(value):
            if text in texts and text not in kept:
                kept.add(text)
            else:
                others.append(place)
        for place in reversed(others):
            del value[place]
        for text in texts:
            if text not in kept:
                value.append(text)
        if others or len(kept) < len(texts):
            value.multiline(len(value) > 0)
            changed = True
    return changed


def _list_of(document: tomlkit.TOMLDocument, path: Path) -> Array:
    """The list `commands`, made where there is none; a list that was written as one text becomes a list."""
    value = document.get("commands")
    if isinstance(value, Array):
        return value
    if value is None:
        entries: list[str] = []
    elif isinstance(value, str) and (listed := _recovered(str(value))) is not None:
        entries = listed
    else:
        raise AllowlistError(f"{path}: `commands` is not a list of texts, so nothing is added to it.")
    array = tomlkit.array()
    array.extend(entries)
    document["commands"] = array
    return array


def _texts(key: str, value: Any, warnings: list[str]) -> tuple[str, ...]:
    """The texts of a list; whatever else stands there admits nothing."""
    if isinstance(value, str):
        listed = _recovered(value)
        if listed is None:
            warnings.append(f'`{key}` is one text and not a list, so it admits nothing: write {key} = ["…"]')
            return ()
        warnings.append(f"`{key}` is a list written as one text; its {len(listed)} entries count, write it as a list")
        value = listed
    if not isinstance(value, list):
        warnings.append(f"`{key}` is not a list of texts, so it admits nothing")
        return ()
    others = [place for place, entry in enumerate(value, 1) if not isinstance(entry, str)]
    if others:
        warnings.append(f"`{key}`: entry {', '.join(map(str, others[:5]))} is not a text and admits nothing")
    empty = [place for place, entry in enumerate(value, 1) if isinstance(entry, str) and not entry.strip()]
    if empty:
        warnings.append(f"`{key}`: entry {', '.join(map(str, empty[:5]))} is empty and admits nothing")
    return tuple(dict.fromkeys(entry for entry in value if isinstance(entry, str) and entry.strip()))


def _recovered(text: str) -> list[str] | None:
    """The entries of a list that an older tool wrote as one text (`"['git status']"`), or None when it is none."""
    if not text.lstrip().startswith("[") or len(text) > MAX_BYTES:
        return None
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        return None
    return value
