"""Builtins and programs that change what is known: folder, variables, parameters, aliases, files."""

import posixpath
from collections.abc import Callable

from signoff.policy.shell import quoting
from signoff.policy.shell.machine import Io, Machine
from signoff.policy.shell.model import UNKNOWN, Word
from signoff.policy.shell.options import Arguments, OptionSpec, arguments
from signoff.policy.shell.outputs import output
from signoff.policy.shell.scope import MAX_ELEMENTS, MAX_VALUES

Words = tuple[Word, ...]


def _cd(machine: Machine, words: Words, _io: Io) -> None:
    operands = [word for word in words[1:] if not word.text.startswith("-") or word.text == "-"]
    if not operands:
        machine.scope.cwd = machine.scope.home
        return
    target = operands[0].literal
    if target is None or target == "-" or operands[0].pattern is not None:
        machine.scope.cwd = None
    elif target.startswith("/"):
        machine.scope.cwd = posixpath.normpath(target)
    elif machine.scope.cwd is not None:
        machine.scope.cwd = posixpath.normpath(posixpath.join(machine.scope.cwd, target))


def _popd(machine: Machine, _words: Words, _io: Io) -> None:
    machine.scope.cwd = None


def _read_builtin(machine: Machine, words: Words, io: Io) -> None:
    given = arguments(words, _READ_OPTIONS)
    names = [word.text for _place, word in given.operands] or ["REPLY"]
    array = given.value(("-a",))
    if array is not None and array.value is not None:
        _fill(machine, array.value.text, None if io.stdin is None else io.stdin.partition("\n")[0].split())
        return
    lines = tuple(line.strip() for line in io.stdin.splitlines()) if io.stdin is not None else ()
    for name in names:
        if len(names) == 1 and 0 < len(lines) <= MAX_VALUES:
            # In a loop the last of them finds nothing left.
            machine.scope.assign(name, (*lines, "") if machine.unsure else lines, surely=False)
        else:
            for line in lines[:MAX_VALUES]:
                machine.scope.note_values(name, (line, *line.split()[:MAX_VALUES]))
            machine.scope.forget(name)


_READ_OPTIONS = OptionSpec(short_values="adinNptu")
_MAPFILE_OPTIONS = OptionSpec(short_values="dnOsuCc")


def _mapfile(machine: Machine, words: Words, io: Io) -> None:
    given = arguments(words, _MAPFILE_OPTIONS)
    name = given.operands[0][1].text if given.operands else "MAPFILE"
    if io.stdin is None or given.has("-d", "-O", "-u"):
        _fill(machine, name, None)
        return
    lines = io.stdin.splitlines(keepends=not given.has("-t"))
    skipped, most = (_count(given, option) for option in ("-s", "-n"))
    _fill(machine, name, lines[skipped : skipped + most if most else None])


def _count(given: Arguments, option: str) -> int:
    found = given.value((option,))
    text = found.value.text if found is not None and found.value is not None else ""
    return int(text) if text.isdecimal() and len(text) < 9 else 0


def _fill(machine: Machine, name: str, elements: list[str] | None) -> None:
    """An array gets these elements; None and too many are not followed."""
    if elements is None or len(elements) > MAX_ELEMENTS:
        machine.scope.forget(name)
        return
    machine.scope.fill(name, tuple(elements), surely=not machine.unsure)


def _getopts(machine: Machine, words: Words, _io: Io) -> None:
    for word in words[1:]:
        machine.scope.forget(word.text)


def _printf(machine: Machine, words: Words, _io: Io) -> None:
    if len(words) > 3 and words[1].text == "-v":
        value = output((words[0], *words[3:]), None)
        machine.scope.assign(words[2].text, (UNKNOWN if value is None else value,), surely=not machine.unsure)


def _unset(machine: Machine, words: Words, _io: Io) -> None:
    given = arguments(words)
    surely = not machine.unsure
    for _place, word in given.operands:
        if not given.has("-f"):
            machine.scope.unset(word.text, surely=surely)
        if not given.has("-v", "-n"):
            machine.scope.unset_function(word.text, surely=surely)


_SIGNS = frozenset("-+")
_SET_LETTERS = frozenset("abefhkmnoptuvxBCEHPT")


def _set(machine: Machine, words: Words, _io: Io) -> None:
    """`set -eu a b`: what stands behind the options are the parameters from then on, where something does."""
    place, clear, marked = 1, True, False
    while place < len(words) and not marked and words[place].text[:1] in _SIGNS:
        text = words[place].text
        place += 1
        marked = text in {"-", "--"}
        clear = clear and (marked or _SET_LETTERS.issuperset(text[1:]))
        for _name in range(0 if marked else text.count("o")):
            if place < len(words) and words[place].text[:1] not in {"", "-", "+"}:
                place += 1
    if not clear and "A" in text:
        machine.scope.forget("".join(word.text for word in words[place : place + 1]))  # an array of other shells
    # A word that is not known may be an option, or end them.
    read = words[:place] if marked else words[: place + 1]
    clear = clear and not any(word.text.startswith(UNKNOWN) for word in read)
    if place < len(words) or (marked and text == "--") or not clear:
        known = clear and not machine.unsure and not any(word.many or word.pattern is not None for word in words)
        machine.scope.positional = tuple(word.text for word in words[place:]) if known else None


def _shift(machine: Machine, words: Words, _io: Io) -> None:
    if machine.scope.positional is not None:
        known = not machine.unsure and len(words) == 1
        machine.scope.positional = machine.scope.positional[1:] if known else None


def _define(machine: Machine, words: Words, _io: Io) -> None:
    if len(words) > 2 and not any("=" in word.text for word in words[1:]):
        name, *rest = (word.text for word in words[1:] if word.text[:1] != "-")
        machine.scope.aliases[name] = " ".join(rest)  # as csh and fish write it; others only show both
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and not name.startswith("-"):
            machine.scope.aliases[name] = value


def _assign_words(machine: Machine, words: Words, _io: Io) -> None:
    """`export "x=rm"`: an assignment the grammar does not see as one."""
    exports = words[0].text == "export" or any(word.text.startswith("-") and "x" in word.text for word in words[1:])
    if words[0].text in {"local", "declare", "typeset"} and not machine.unsure:
        _note_local(machine, words)
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if exports:
            machine.scope.exported.add(name)
        if equals and name.isidentifier() and name not in machine.scope.values:
            machine.scope.assign(name, (value,), surely=not machine.unsure)


def _note_local(machine: Machine, words: Words) -> None:
    """Within a function a variable that is declared is the function's own."""
    own = machine.scope.local
    if own is not None and not any(word.text[:1] == "-" and "g" in word.text for word in words[1:]):
        own |= dict.fromkeys(word.text.partition("=")[0].rstrip("+") for word in words[1:])


def _hash(machine: Machine, words: Words, _io: Io) -> None:
    """`hash -p PATH NAME`: the name then means that file."""
    given = arguments(words, OptionSpec(short_values="p"))
    path = given.value(("-p",))
    if path is not None and path.value is not None:
        for _place, word in given.operands:
            machine.scope.aliases[word.text] = quoting.requote(path.value.text)


def _trap(machine: Machine, words: Words, _io: Io) -> None:
    text = words[1].text if len(words) > 2 else ""
    if "$" in text and UNKNOWN not in text and len(machine.at_exit) < MAX_VALUES:
        machine.at_exit.append(text)


def _exec(machine: Machine, words: Words, io: Io) -> None:
    """`exec` without a program: its input becomes that of the commands that follow."""
    if len(words) == 1 and io.fed:
        machine.scope.feed(io.stdin)


def _none(_machine: Machine, _words: Words, _io: Io) -> None:
    """A builtin that changes nothing, but evaluates its words."""


EFFECTS: dict[str, Callable[[Machine, Words, Io], None]] = {
    "cd": _cd,
    "pushd": _cd,
    "popd": _popd,
    "read": _read_builtin,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "getopts": _getopts,
    "printf": _printf,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "alias": _define,
    "export": _assign_words,
    "integer": _assign_words,
    "float": _assign_words,
    "declare": _assign_words,
    "typeset": _assign_words,
    "local": _assign_words,
    "readonly": _assign_words,
    "hash": _hash,
    "trap": _trap,
    "exec": _exec,
    "let": _none,
    "test": _none,
    "[": _none,
    "wait": _none,
    "compgen": _none,
    "complete": _none,
}


def _tee(machine: Machine, words: Words, io: Io) -> None:
    """What goes into a file that may be run later."""
    given = arguments(words)
    for _place, word in given.operands:
        before = machine.scope.files.get(word.text, "") if given.has("-a", "--append") else ""
        known = None if io.stdin is None or before is None else before + io.stdin
        machine.scope.files[word.text] = known


def _download(machine: Machine, words: Words, _io: Io) -> None:
    """A file from elsewhere: what is in it is not known."""
    for option in arguments(words, _DOWNLOAD_OPTIONS).options:
        if option.value is not None and option.name in {"-o", "-O", "--output", "--output-document"}:
            machine.scope.files[option.value.text] = None


_DOWNLOAD_OPTIONS = OptionSpec(short_values="oOHXdFuAebT", long_values=("output", "output-document", "header", "data"))


def _pipe_made(machine: Machine, words: Words, _io: Io) -> None:
    """A named pipe: what comes through it is not known."""
    for _place, word in arguments(words, OptionSpec(short_values="mZ")).operands:
        machine.scope.files[word.text] = None


WRITERS: dict[str, Callable[[Machine, Words, Io], None]] = {
    "tee": _tee,
    "curl": _download,
    "wget": _download,
    "mkfifo": _pipe_made,
    "mknod": _pipe_made,
}
