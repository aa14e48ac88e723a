"""Runs one resolved simple command in the machine: functions, aliases, builtins, carriers."""

from msgspec.structs import replace

from signoff.policy.shell import carriers, effects, embedded, evaluating, quoting, unwrapping, zsh
from signoff.policy.shell.carriers import Carrier
from signoff.policy.shell.deadline import TooManyWordsError
from signoff.policy.shell.machine import Io, Machine
from signoff.policy.shell.model import PLACEHOLDER, UNKNOWN, UNKNOWN_HOME, Code, Command, Word
from signoff.policy.shell.options import arguments
from signoff.policy.shell.outputs import output
from signoff.policy.shell.scope import MAX_VALUES, Scope
from signoff.policy.shell.unwrapping import Inner

Words = tuple[Word, ...]
Row = tuple[Carrier, Words, int, list[Inner]]

MAX_OPTIONS = 1024
"""How many options one command may have: each is compared with those that carry something, and no honest command comes
near."""

MAX_ARGUMENTS = 64
"""How many words of its input xargs is followed with."""


def rows_of(words: Words) -> list[Row]:
    """The carriers that these words are, each with the words as it sees them, how many came before those, and what it
    runs."""
    found = carriers.find(words)
    rows = [(carrier, seen, before, unwrapping.unwrap(carrier, seen)) for carrier, seen, before in found]
    options = carriers.command_options(words)
    if options and (inners := unwrapping.named(words, options, _own(words, rows))):
        rows.append((carriers.ANY, words, 0, inners))
    return rows


def _own(words: Words, rows: list[Row]) -> int:
    """How many of the words are not those of a command that they carry."""
    return min((inner.own + before for _carrier, _seen, before, inners in rows for inner in inners), default=len(words))


def alone(words: Words, rows: list[Row], cwd: str | None, source: str) -> Command | None:
    """Plain words that stand alone in a text, where one command is surely all that it runs: it carries nothing but
    files and texts in which no shell text stands, and changes nothing but files, of which there are none yet."""
    name = words[0].text
    if name in effects.EFFECTS or ("/" in name and name.rpartition("/")[2] in effects.WRITERS):
        return None
    codes: list[Code] = []
    for carrier, _seen, before, inners in rows:
        for inner in inners:
            if inner.words or inner.own + before != len(words) or _is_open(inner.file):
                return None
            if inner.text is not None:
                if not carrier.language or embedded.shell_texts(carrier.language, inner.text):
                    return None
                codes.append(Code(carrier.language, inner.text))
    return Command(words=words, own=len(words), cwd=cwd, source=source, code=tuple(codes))


def _is_open(file: Word | None) -> bool:
    return file is not None and (file.given or file.text.startswith(_DESCRIPTORS))


def run(machine: Machine, words: Words, io: Io, *, own_names: bool = True, rows: list[Row] | None = None) -> str | None:
    """Record the command and what it carries; what it prints, or None when that is not known.

    `own_names` is False behind a program, which knows no functions and aliases of this text. `rows` are those of the
    words, where they are known.
    """
    machine.deadline.check()
    if not words:
        if io.redirects or io.assignments:
            _emit(machine, words, 0, io)
        return ""
    opened = machine.scope.input
    if opened is not None and (not io.fed or io.stdin != opened[0]):
        # Where both what `exec` opened and something around feed it, it is not known which of them came last.
        io = replace(io, stdin=None if io.fed else opened[0], fed=True)
    if len(words) > MAX_OPTIONS and sum([word.text[:1] == "-" for word in words]) > MAX_OPTIONS:
        raise TooManyWordsError
    first = words[0]
    if first.text in _OPENING or (io.chain and io.chain[-1] == "coproc"):
        words = _behind_brace(words, io)
        first = words[0]
    if first.text == "}":
        return None  # the end of such a group; no program is called so where a command starts
    if first.literal is None or first.pattern is not None:
        machine.note_opaque("the program")
        _emit(machine, words, len(words), io)
        return None
    if own_names and (function := machine.scope.functions.get(first.text)) is not None:
        if function.surely:
            return _call(machine, words, io)
        with machine.perhaps():
            _call(machine, words, io)
    if own_names and first.text in machine.scope.aliases:
        _alias(machine, words, io)
    _take_effect(machine, words, io, own_names=own_names)
    rows = rows_of(words) if rows is None else rows
    if not rows:
        _emit(machine, words, len(words), io)
        return _own_file(machine, words, io) if "/" in first.text else output(words, io.stdin)
    return _carry(machine, words, rows, io)


def _take_effect(machine: Machine, words: Words, io: Io, *, own_names: bool) -> None:
    """What the command changes of that which is known, and what it evaluates of its words."""
    name = words[0].text
    effect = effects.EFFECTS.get(name)
    if effect is not None and (own_names or io.chain[-1] in {"command", "builtin", "exec"}):
        effect(machine, words, io)
        evaluating.builtin(machine, words)
    writer = effects.WRITERS.get(name.rpartition("/")[2])
    if writer is not None:
        writer(machine, words, io)


_OPENING = frozenset({"{", "!"})


def _behind_brace(words: Words, io: Io) -> Words:
    """The words behind the marks of `time ! { ...` or `coproc NAME { ...`, which the grammar takes for plain words."""
    if io.chain[-1:] == ("coproc",) and [word.text for word in words[1:2]] == ["{"] and len(words) > 2:
        return words[2:]
    start = 0
    while start < len(words) - 1 and words[start].text in _OPENING:
        start += 1
    return words[start:]


def _emit(machine: Machine, words: Words, own: int, io: Io, code: tuple[Code, ...] = ()) -> None:
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
            code=code,
        )
    )


def _inner_io(io: Io) -> Io:
    """The surroundings of a command inside this one: redirections and assignments were recorded with the outer one."""
    return replace(io, redirects=(), assignments=(), environment=io.environment + io.assignments)


def _set_around(scope: Scope, assignments: tuple[tuple[str, str], ...], *, surely: bool) -> None:
    """Set what stands before a command; a name comes once for each value it may have."""
    for name in dict.fromkeys(name for name, _value in assignments):
        scope.assign(name, tuple(value for other, value in assignments if other == name), surely=surely)


def _call(machine: Machine, words: Words, io: Io) -> str | None:
    """Walk a function's body with the words as its parameters; a function is not followed into itself."""
    if io.redirects or io.assignments:
        _emit(machine, (), 0, io)
    name = words[0].text
    function = machine.scope.functions.pop(name)
    try:
        if not function.source:
            return None
        machine.called()
        outer = (machine.source, machine.scope.positional, machine.visited, machine.covered)
        machine.source, machine.visited, machine.covered = function.source, set(), []
        machine.scope.positional = None if any(word.many for word in words) else tuple(word.text for word in words[1:])
        before, machine.scope.local = machine.scope.copy(), dict.fromkeys(name for name, _value in io.assignments)
        _set_around(machine.scope, io.assignments, surely=True)
        try:
            return machine.statement(function.body, _inner_io(io))
        finally:
            machine.source, machine.scope.positional, machine.visited, machine.covered = outer
            machine.scope.leave(before)
    finally:
        machine.scope.functions.setdefault(name, function)


def _alias(machine: Machine, words: Words, io: Io) -> None:
    """Read what the alias stands for. Only later lines know it, and only some shells, so the word is run as well."""
    text = machine.scope.aliases.pop(words[0].text)
    try:
        rest = [word.text if word.many else quoting.requote(word.text) for word in words[1:]]
        if text[-1:].isspace() and rest and words[1].text in machine.scope.aliases:
            rest[0] = machine.scope.aliases[words[1].text]
        with machine.perhaps():
            machine.read(" ".join([text, *rest]), io)
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
    """What this text wrote into a file that it now runs; what it wrote there and is not known is noted."""
    files = machine.scope.files
    plain = path.removeprefix("./")
    for name in (path, plain, "./" + plain):
        if name in files:
            if files[name] is None:
                machine.note_opaque(path)
            return files[name]
    return None


def _opened(machine: Machine, path: str) -> str | None:
    """The code in a file that this text wrote, or that is open already."""
    if not path.startswith(_DESCRIPTORS):
        return _written(machine, path)
    known = machine.scope.input[0] if machine.scope.input is not None else None
    if known is None:
        machine.note_opaque(path)
    return known


_DESCRIPTORS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/", "/proc/thread-self/fd/")
"""Files that are open already; what `exec` opened is all that is known of them."""


# Carriers


def _carry(machine: Machine, words: Words, rows: list[Row], io: Io) -> str | None:
    """Record a carrier, then run what it carries in each of the ways its rows tell of."""
    own = _own(words, rows)
    name = words[0].text.rpartition("/")[2]
    texts = [
        (carrier.language, text)
        for carrier, _seen, _before, inners in rows
        if carrier.language
        for inner in inners
        if (text := _code(machine, carrier, name, inner, io)) is not None
    ]
    _emit(machine, words, own, io, tuple(Code(language, text) for language, text in texts))
    chain = (*io.chain, name)
    outputs: list[str | None] = []
    for language, text in texts:
        machine.deadline.check()
        _embedded(machine, name, embedded.shell_texts(language, text), replace(_inner_io(io), chain=chain))
    for carrier, seen, _before, inners in rows:
        if carrier.language:
            continue
        inside = replace(_inner_io(io), chain=chain, place=carrier.place if carrier.place != "here" else io.place)
        if name == "coproc":
            inside = replace(inside, stdin=None, fed=True)  # other commands write into its pipe
        outputs += [_run_inner(machine, carrier, seen, inner, inside) for inner in inners]
    if not outputs:
        return output(words, io.stdin) if not texts else None
    return outputs[0] if len(outputs) == 1 else None


_KEYWORDS = frozenset({"coproc", "time", "noglob", "nocorrect"})
"""Words before a command that leave it to the shell, functions and all."""


def _embedded(machine: Machine, name: str, texts: list[str], io: Io) -> None:
    """Shell texts that stand in a text of another language."""
    with machine.nested() as deeper, machine.subshell(), machine.perhaps():
        if not deeper:
            return
        for text in texts:
            if UNKNOWN in text:
                machine.note_opaque(name)
            machine.read(text, io)


def _run_inner(machine: Machine, carrier: Carrier, seen: Words, inner: Inner, io: Io) -> str | None:
    with machine.nested() as deeper:
        if not deeper:
            return None
        if inner.words:
            io = replace(io, assignments=inner.assignments)
            if carrier.stdin_is == "arguments":
                return _with_arguments(machine, carrier, seen, inner.words, io)
            return run(machine, inner.words, io, own_names=io.chain[-1] in _KEYWORDS)
        text = _code(machine, carrier, seen[0].text, inner, io)
        if text is None:
            return None
        if carrier.inner == "template" and not text and not io.fed:
            return None
        if carrier.inner == "template" and ":::" not in " ".join(word.text for word in seen):
            _filled(machine, text, seen[0].text, io)
            return None
        if UNKNOWN in text and carrier.inner != "definitions":
            machine.note_opaque(seen[0].text)
        if seen[0].text.rpartition("/")[2][:3] == "zsh" and zsh.reads_otherwise(text):
            machine.problems.setdefault(zsh.ZSH_ONLY)
        if carrier.appends:
            text = f"{text} {PLACEHOLDER}"
        if inner.stdin:
            # All of the input is the text: its commands find nothing left to read.
            io = replace(io, stdin=None, fed=False)
        return _read(machine, carrier, inner, text, io)


def _code(machine: Machine, carrier: Carrier, name: str, inner: Inner, io: Io) -> str | None:
    """The text a carrier runs; None, noted where something feeds it, when there is none to see."""
    if inner.text is not None:
        return inner.text
    if inner.file is not None:
        if inner.file.given and inner.file.content is None:
            machine.note_opaque(name)
        return inner.file.content if inner.file.given else _opened(machine, inner.file.text)
    # Only a text that is run as a program counts: what feeds a database client or an editor is mostly data.
    if io.stdin is None and io.fed and carrier.language not in _DATA_LANGUAGES:
        machine.note_opaque(name)
    return io.stdin


_DATA_LANGUAGES = frozenset({"escape", "vi", "m4"})


def _read(machine: Machine, carrier: Carrier, inner: Inner, text: str, io: Io) -> str | None:
    """Read an inner text: in a scope of its own for another shell, else in the present one."""
    if carrier.later:
        before = machine.scope.copy()
        with machine.perhaps():
            machine.read(text, io)
        machine.scope.merge(before)
        return None
    if not carrier.fresh and carrier.place == "here":
        _set_around(machine.scope, io.environment, surely=False)
        return machine.read(text, replace(io, environment=()))
    with machine.subshell():
        if carrier.place != "here":
            machine.scope = Scope(UNKNOWN_HOME, None)
        elif carrier.fresh:
            machine.scope.start_afresh()
            _set_around(machine.scope, io.environment + io.assignments, surely=True)
        io = replace(io, environment=())
        machine.scope.positional = inner.positional or ()
        if inner.zero is not None:
            machine.scope.values["0"] = (inner.zero,)
        return machine.read(text, io)


def _lines(io: Io) -> list[str]:
    """What a carrier takes for the arguments of its command."""
    lines = io.stdin.splitlines() if io.stdin is not None else [UNKNOWN]
    return lines if len(lines) <= MAX_VALUES else [UNKNOWN]


def _filled(machine: Machine, template: str, name: str, io: Io) -> None:
    """parallel: its text once for each line of its input."""
    with machine.subshell(), machine.perhaps():
        for line in _lines(io):
            text = unwrapping.filled(template, line)
            if UNKNOWN in text and not template.strip():
                machine.note_opaque(name)
            machine.read(text, replace(io, stdin=None, fed=False))


def _with_arguments(machine: Machine, carrier: Carrier, seen: Words, words: Words, io: Io) -> str | None:
    """xargs: its input becomes words behind the command, or takes the place of a mark in it, line by line."""
    given = arguments(seen, carrier.spec, stop=True)
    mark, size = given.value(("-I", "--replace")), given.value(("-n", "--max-args"))
    lines = _lines(io)
    io = replace(io, stdin=None, fed=False)  # its commands read nothing: their input is empty
    if mark is not None and mark.value is not None:
        with machine.perhaps():
            for line in lines:
                many = tuple(Word(word.text.replace(mark.value.text, line)) for word in words)
                run(machine, many, io, own_names=False)
        return None
    added = [Word(text, many=UNKNOWN in text) for line in lines for text in line.split()]
    step = (
        int(size.value.text[:9]) if size is not None and size.value is not None and size.value.text.isdecimal() else 0
    )
    if len(added) > MAX_ARGUMENTS or (step and len(added) > step * MAX_VALUES):
        added, step = [Word(UNKNOWN, many=True)], 0
    if given.has("-L", "-l", "--max-lines", "-s", "--max-chars", "-x", "-d", "--delimiter", "-E", "-e", "-0", "--null"):
        added, step = [*added, Word(UNKNOWN, many=True)], 0
    if not step:
        return run(machine, (*words, *added), io, own_names=False)
    for start in range(0, max(len(added), 1), step):
        run(machine, (*words, *added[start : start + step]), io, own_names=False)
    return None
