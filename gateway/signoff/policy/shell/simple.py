"""Runs one resolved simple command in the machine: functions, aliases, builtins, carriers."""

import posixpath
from collections.abc import Callable

from msgspec.structs import replace

from signoff.policy.shell import carriers, quoting
from signoff.policy.shell.carriers import Carrier, Inner
from signoff.policy.shell.machine import Io, Machine
from signoff.policy.shell.model import UNKNOWN, UNKNOWN_HOME, Command, Word
from signoff.policy.shell.options import OptionSpec, arguments
from signoff.policy.shell.outputs import output
from signoff.policy.shell.scope import MAX_VALUES, Scope

Words = tuple[Word, ...]

MAX_ELEMENTS = 64
"""How many elements of an array that a command reads are followed."""


def run(machine: Machine, words: Words, io: Io) -> str | None:
    """Record the command and what it carries; what it prints, or None when that is not known."""
    machine.deadline.check()
    if not words:
        if io.redirects or io.assignments:
            _emit(machine, words, 0, io)
        return ""
    words = _behind_brace(words, io)
    first = words[0]
    if first.literal is None or first.pattern is not None:
        machine.note_opaque("the program")
        _emit(machine, words, len(words), io)
        return None
    if first.text in machine.scope.functions:
        return _call(machine, words, io)
    if first.text in machine.scope.aliases:
        return _alias(machine, words, io)
    effect = _EFFECTS.get(first.text)
    if effect is not None:
        effect(machine, words, io)
    found = carriers.find(words)
    if found is None:
        _emit(machine, words, len(words), io)
        return _own_file(machine, words, io) if "/" in first.text else output(words, io.stdin)
    return _carry(machine, words, found, io)


def _behind_brace(words: Words, io: Io) -> Words:
    """The words behind the brace of `time { ...` or `coproc NAME { ...`, which the grammar takes for plain words."""
    texts = [word.text for word in words[:3]]
    if texts[0] == "{" and len(texts) > 1:
        return words[1:]
    named = io.chain[-1:] == ("coproc",) and texts[1:2] == ["{"] and len(texts) > 2
    return words[2:] if named else words


def _emit(machine: Machine, words: Words, own: int, io: Io) -> None:
    machine.emit(
        Command(
            words=words,
            own=own,
            assignments=io.assignments,
            redirects=io.redirects,
            chain=io.chain,
            place=io.place,
            stdin=io.stdin,
            fed=io.fed,
            cwd=machine.scope.cwd,
            source=io.source,
        )
    )


def _inner_io(io: Io) -> Io:
    """The surroundings of a command inside this one: redirections and assignments were recorded with the outer one."""
    return replace(io, redirects=(), assignments=())


def _call(machine: Machine, words: Words, io: Io) -> str | None:
    """Walk a function's body with the words as its parameters; a function is not followed into itself."""
    if io.redirects or io.assignments:
        _emit(machine, (), 0, io)
    name = words[0].text
    function = machine.scope.functions.pop(name)
    try:
        if not function.source:
            return None
        outer = (machine.source, machine.scope.positional)
        machine.source = function.source
        machine.scope.positional = None if any(word.many for word in words) else tuple(word.text for word in words[1:])
        try:
            return machine.statement(function.body, _inner_io(io))
        finally:
            machine.source, machine.scope.positional = outer
    finally:
        machine.scope.functions.setdefault(name, function)


def _alias(machine: Machine, words: Words, io: Io) -> str | None:
    text = machine.scope.aliases.pop(words[0].text)
    try:
        rest = " ".join(word.text if UNKNOWN in word.text else quoting.requote(word.text) for word in words[1:])
        return machine.read(f"{text} {rest}", io)
    finally:
        machine.scope.aliases.setdefault(words[0].text, text)


def _own_file(machine: Machine, words: Words, io: Io) -> str | None:
    """A program file that this text wrote itself."""
    content = _written(machine, words[0].text)
    if content is None:
        return output(words, io.stdin)
    with machine.subshell():
        machine.scope.positional = tuple(word.text for word in words[1:])
        return machine.read(content, _inner_io(io))


def _written(machine: Machine, path: str) -> str | None:
    files = machine.scope.files
    plain = path.removeprefix("./")
    return files.get(path) or files.get(plain) or files.get("./" + plain)


# Carriers


def _carry(machine: Machine, words: Words, found: tuple[Carrier, Words, int], io: Io) -> str | None:
    carrier, seen, before = found
    inners = carriers.unwrap(carrier, seen)
    own = min((inner.own for inner in inners), default=len(seen)) + before
    _emit(machine, words, own, io)
    chain = (*io.chain, words[0].text.rpartition("/")[2])
    inside = replace(_inner_io(io), chain=chain, place=carrier.place if carrier.place != "here" else io.place)
    if not inners:
        return output(words, io.stdin)
    outputs = [_run_inner(machine, carrier, seen, inner, inside) for inner in inners]
    return outputs[0] if len(outputs) == 1 else None


def _run_inner(machine: Machine, carrier: Carrier, seen: Words, inner: Inner, io: Io) -> str | None:
    with machine.nested() as deeper:
        if not deeper:
            return None
        if inner.words:
            io = replace(io, assignments=inner.assignments)
            if carrier.stdin_is == "arguments":
                return _with_arguments(machine, carrier, seen, inner.words, io)
            return run(machine, inner.words, io)
        text = _code(machine, carrier, seen[0].text, inner, io)
        if text is None:
            return None
        if UNKNOWN in text and carrier.inner != "definitions":
            machine.note_opaque(seen[0].text)
        if inner.stdin:
            io = replace(io, stdin=None)
        return _read(machine, carrier, inner, text, io)


def _code(machine: Machine, carrier: Carrier, name: str, inner: Inner, io: Io) -> str | None:
    """The shell text a carrier runs; None, noted where something feeds it, when there is none to see."""
    if inner.text is not None:
        return inner.text.replace(":::", " ") if carrier.stdin_is == "arguments" else inner.text
    if inner.file is not None:
        if inner.file.given and inner.file.content is None:
            machine.note_opaque(name)
        return inner.file.content if inner.file.given else _written(machine, inner.file.text)
    if io.stdin is None and io.fed:
        machine.note_opaque(name)
    return io.stdin


def _read(machine: Machine, carrier: Carrier, inner: Inner, text: str, io: Io) -> str | None:
    """Read an inner text: in a scope of its own for another shell, else in the present one."""
    if not carrier.fresh and carrier.place == "here":
        return machine.read(text, io)
    with machine.subshell():
        if carrier.place != "here":
            machine.scope = Scope(UNKNOWN_HOME, None)
        machine.scope.positional = inner.positional or ()
        if inner.zero is not None:
            machine.scope.values["0"] = (inner.zero,)
        return machine.read(text, io)


def _with_arguments(machine: Machine, carrier: Carrier, seen: Words, words: Words, io: Io) -> str | None:
    """xargs: its input becomes words behind the command, or takes the place of a mark in it, line by line."""
    mark = arguments(seen, carrier.options, stop=True).value(("-I", "--replace"))
    lines = io.stdin.splitlines() if io.stdin is not None else [UNKNOWN]
    io = replace(io, stdin=None, fed=True)
    if mark is None or mark.value is None:
        given = tuple(Word(text) for line in lines for text in line.split())
        added = (Word(UNKNOWN, many=True),) if lines == [UNKNOWN] else given
        return run(machine, (*words, *added), io)
    with machine.perhaps():
        for line in lines if len(lines) <= MAX_VALUES else [UNKNOWN]:
            run(machine, tuple(Word(word.text.replace(mark.value.text, line)) for word in words), io)
    return None


# Builtins that change what the machine knows


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
            machine.scope.assign(name, lines, surely=False)
        else:
            machine.scope.forget(name)


_READ_OPTIONS = OptionSpec(short_values="adinNptu")
_MAPFILE_OPTIONS = OptionSpec(short_values="dnOsuCc")


def _mapfile(machine: Machine, words: Words, io: Io) -> None:
    operands = arguments(words, _MAPFILE_OPTIONS).operands
    name = operands[0][1].text if operands else "MAPFILE"
    _fill(machine, name, None if io.stdin is None else io.stdin.splitlines())


def _fill(machine: Machine, name: str, elements: list[str] | None) -> None:
    """An array gets these elements; None and too many are not followed."""
    if elements is None or len(elements) > MAX_ELEMENTS:
        machine.scope.forget(name)
        return
    machine.scope.assign(name, (elements[0] if elements else "",), surely=not machine.unsure)
    machine.scope.arrays[name] = tuple(elements)


def _getopts(machine: Machine, words: Words, _io: Io) -> None:
    for word in words[1:]:
        machine.scope.forget(word.text)


def _printf(machine: Machine, words: Words, _io: Io) -> None:
    if len(words) > 3 and words[1].text == "-v":
        value = output((words[0], *words[3:]), None)
        machine.scope.assign(words[2].text, (UNKNOWN if value is None else value,), surely=not machine.unsure)


def _unset(machine: Machine, words: Words, _io: Io) -> None:
    for word in words[1:]:
        machine.scope.unset(word.text)


def _set(machine: Machine, words: Words, _io: Io) -> None:
    texts = [word.text for word in words]
    if "--" in texts:
        machine.scope.positional = tuple(texts[texts.index("--") + 1 :])
        if any(word.many for word in words):
            machine.scope.positional = None


def _shift(machine: Machine, words: Words, _io: Io) -> None:
    if machine.scope.positional is not None:
        machine.scope.positional = machine.scope.positional[1:] if len(words) == 1 else None


def _define(machine: Machine, words: Words, _io: Io) -> None:
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and not name.startswith("-"):
            machine.scope.aliases[name] = value


def _assign_words(machine: Machine, words: Words, _io: Io) -> None:
    """`export "x=rm"`: an assignment the grammar does not see as one."""
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and name.isidentifier() and name not in machine.scope.values:
            machine.scope.assign(name, (value,), surely=not machine.unsure)


_EFFECTS: dict[str, Callable[[Machine, Words, Io], None]] = {
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
    "declare": _assign_words,
    "typeset": _assign_words,
    "local": _assign_words,
    "readonly": _assign_words,
}
