"""What a text has assigned, defined and changed so far."""

import tree_sitter

from signoff.policy.shell.model import UNKNOWN

DEFAULT_IFS = " \t\n"
"""Where words are split unless a text says otherwise."""

MAX_VALUES = 8
"""How many values a variable is followed through; beyond that it is not known."""

MAX_VALUE_CHARS = 4096
"""A longer value is not known: `a=$a$a` doubles it each time."""

MAX_ELEMENTS = 256
"""How many elements of an array are followed; beyond that they are not known."""

Values = tuple[str, ...]
Elements = Values | None
"""The elements of an array; None where neither they nor their number are known."""

INTEGERS = frozenset({
    "RANDOM", "SRANDOM", "SECONDS", "LINENO", "OPTIND", "OPTERR", "HISTCMD", "EPOCHSECONDS", "BASH_SUBSHELL", "TMOUT",
    "COLUMNS", "LINES", "HISTSIZE", "SAVEHIST", "SHLVL", "MAILCHECK", "KEYTIMEOUT", "LISTMAX", "DIRSTACKSIZE",
    "BASH_MONOSECONDS", "EGID", "EUID", "GID", "UID", "FUNCNEST", "LOGCHECK", "BAUD", "TTYIDLE", "ERRNO",
})  # fmt: skip
"""Variables to which bash or zsh give the integer attribute from the start."""


class Function:
    """A function's body and the text it stands in; `surely` says that the name means this function and nothing else."""

    __slots__ = ("body", "source", "surely")

    def __init__(self, body: tree_sitter.Node, source: bytes, *, surely: bool) -> None:
        """Remember where the body is."""
        self.body = body
        self.source = source
        self.surely = surely

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        return self.body == other.body and self.source is other.source and self.surely is other.surely

    __hash__ = None  # type: ignore[assignment]  # two that are equal may stand in different texts


class Scope:
    """Variables with their possible values, arrays, parameters, functions, aliases, folder, and files it wrote."""

    def __init__(self, home: str, cwd: str | None) -> None:
        """A scope as it is when a text starts."""
        self.home = home
        self.cwd = cwd
        self.values: dict[str, Values] = {"HOME": (home,), "IFS": (DEFAULT_IFS,)}
        self.arrays: dict[str, tuple[Elements, ...]] = {}
        self.positional: Values | None = ()
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, str | None] = {}
        self.changing: set[str] = set()
        self.local: dict[str, None] | None = None
        self.exported: set[str] = {"HOME", "PATH"}
        self.integers: set[str] = set()
        self.integer_values: list[str] = []
        self.placed: dict[str, tuple[str, ...]] = {}
        """What was put where it is not followed: into elements, and into variables that change what they are given."""
        self.input: tuple[str | None] | None = None

    def copy(self) -> "Scope":
        """A scope for a subshell: what changes there stays there, but for the files."""
        other = Scope.__new__(Scope)
        other.home = self.home
        other.cwd = self.cwd
        other.values = self.values.copy()
        other.arrays = self.arrays.copy()
        other.positional = self.positional
        other.functions = self.functions.copy()
        other.aliases = self.aliases.copy()
        other.files = self.files
        other.changing = self.changing.copy()
        other.local = None if self.local is None else self.local.copy()
        other.exported = self.exported.copy()
        # An attribute counts from the place on where it is set anywhere, since nothing is lost by that.
        other.integers = self.integers
        other.integer_values = self.integer_values
        other.placed = self.placed
        other.input = self.input
        return other

    def start_afresh(self) -> None:
        """Another shell begins here: it knows what is exported, and the rest only where it was so before this text."""
        for name, values in self.values.items():
            if name not in self.exported and "" not in values:
                self.values[name] = (*values, "") if len(values) < MAX_VALUES else (UNKNOWN,)
        self.values["IFS"] = (DEFAULT_IFS,)
        names, self.arrays = list(self.arrays), {}
        self.arrays = {name: ((), *(self.elements_of(name) or ())) for name in names}  # no array is ever exported
        self.aliases = {}
        for name, function in self.functions.items():
            self.functions[name] = Function(function.body, function.source, surely=False)

    def assign(self, name: str, values: Values, *, surely: bool) -> None:
        """Set a variable; when it is not sure that this runs, the former values stay possible."""
        self.arrays.pop(name, None)
        self.note_values(name, values)
        if name in self.changing or any(len(value) > MAX_VALUE_CHARS for value in values):
            self.place(name, values)
            values = (UNKNOWN,)
        kept = () if surely else self.values.get(name, (UNKNOWN,))
        merged = tuple(dict.fromkeys((*values, *kept)))
        self.values[name] = merged if len(merged) <= MAX_VALUES else (UNKNOWN,)

    def feed(self, text: str | None) -> None:
        """From now on commands read this; None when it is not known, or when they may read one thing or another."""
        self.input = (text,) if self.input is None or self.input == (text,) else (None,)

    def note_values(self, name: str, values: Values) -> None:
        """Keep what a variable with the integer attribute is given: the shell evaluates it as arithmetic."""
        if name in self.integers or name in INTEGERS:
            self.integer_values += values[:MAX_VALUES]

    def place(self, name: str, values: Values) -> None:
        """Keep values that are not followed, since arithmetic may evaluate them all the same."""
        told = tuple(value for value in values if value != UNKNOWN and not value.isdecimal())
        if told:
            self.placed[name] = (*self.placed.get(name, ()), *told)[:MAX_ELEMENTS]

    def count(self, name: str) -> None:
        """The variable gets the integer attribute: `+=` then evaluates what it holds as well."""
        self.integers.add(name)
        self.integer_values += (*self.values.get(name, ()), *self.placed.get(name, ()))
        self.integer_values += [value for elements in self.arrays.get(name, ()) for value in elements or ()]

    def fill(self, name: str, elements: Values, *, surely: bool) -> None:
        """Set an array; when it is not sure that this runs, the former elements stay possible."""
        if name == "argv":
            self.positional = None  # zsh has the parameters by this name
        before = self.elements_of(name) or ((),)
        self.note_values(name, elements)
        self.assign(name, elements[:1] or ("",), surely=surely)
        found = (elements,) if surely else tuple(dict.fromkeys((elements, *before)))
        if len(found) <= MAX_VALUES and name not in self.changing:
            self.arrays[name] = found

    def elements_of(self, name: str) -> tuple[Elements, ...] | None:
        """What may be the elements of an array, or of a plain variable, which has one; None for a name never set."""
        if name in self.arrays:
            return self.arrays[name]
        values = self.values.get(name)
        return None if values is None else tuple(None if UNKNOWN in value else (value,) for value in values)

    def extend(self, name: str, elements: Values, *, surely: bool) -> None:
        """`name+=(elements)`."""
        before = self.arrays.get(name, ())
        first = before[0] if len(before) == 1 else None
        if first is None or len(first) + len(elements) > MAX_ELEMENTS:
            self.forget(name)
        else:
            self.fill(name, (*first, *elements), surely=surely)

    def append(self, name: str, values: Values, *, surely: bool) -> None:
        """`name+=value`; when it is not sure that this runs, the former values stay possible."""
        before = self.values.get(name, (UNKNOWN,))
        self.note_values(name, values)
        if len(before) * len(values) > MAX_VALUES:
            self.forget(name)
        else:
            self.assign(name, tuple(a + b for a in before for b in values), surely=surely)

    def forget(self, name: str) -> None:
        """The variable now holds something unknown."""
        self.assign(name, (UNKNOWN,), surely=True)

    def change(self, name: str) -> None:
        """From now on the variable does not hold what it is given: another one stands behind it, or it changes it."""
        self.changing.add(name)
        self.place(name, self.values.get(name, ()))
        self.forget(name)

    def unset(self, name: str, *, surely: bool) -> None:
        """The variable is empty, and has no element."""
        before = self.elements_of(name)
        self.assign(name, (DEFAULT_IFS if name == "IFS" else "",), surely=surely)
        kept = () if surely else before or ((),)
        self.arrays[name] = tuple(dict.fromkeys(((), *kept)))[:MAX_VALUES]

    def unset_function(self, name: str, *, surely: bool) -> None:
        """The name means no function any more."""
        function = self.functions.pop(name, None)
        if function is not None and not surely:
            self.functions[name] = Function(function.body, function.source, surely=False)

    def merge(self, before: "Scope") -> None:
        """What was true before stays possible beside what is true now."""
        if self.positional != before.positional:
            self.positional = None
        for name, values in self.values.items():
            former = before.values.get(name, (UNKNOWN,))
            if former != values:
                merged = tuple(dict.fromkeys((*values, *former)))
                self.values[name] = merged if len(merged) <= MAX_VALUES else (UNKNOWN,)
        for name, lists in self.arrays.items():
            both = tuple(dict.fromkeys((*lists, *(before.elements_of(name) or ((),)))))
            self.arrays[name] = both if len(both) <= MAX_VALUES else (None,)
        for name in before.arrays.keys() - self.arrays.keys():
            self.forget(name)
        for name, function in self.functions.items():
            if before.functions.get(name) is not function:
                self.functions[name] = Function(function.body, function.source, surely=False)
        for name in before.functions.keys() - self.functions.keys():
            function = before.functions[name]
            self.functions[name] = Function(function.body, function.source, surely=False)

    def leave(self, before: "Scope") -> None:
        """A function ends: what it declared as its own may be what it was `before`."""
        for name in self.local or ():
            former = before.values.get(name, (UNKNOWN,))
            lists = before.elements_of(name)
            self.values[name] = former
            self.arrays.pop(name, None)
            if lists is not None and name in before.arrays:
                self.arrays[name] = lists
        self.local = before.local

    def state(self) -> tuple[object, ...]:
        """What the commands of a loop may find otherwise when they run again, to compare."""
        kept = (self.values, self.arrays, self.functions, self.aliases)
        return (*(each.copy() for each in kept), self.positional, self.cwd, self.input)

    def widen(self, before: "Scope") -> None:
        """A loop goes on changing what it uses: from here on nothing is known of that."""
        for name in {*self.values, *self.arrays}:
            same = self.values.get(name) == before.values.get(name) and self.arrays.get(name) == before.arrays.get(name)
            if not same:
                self.forget(name)
        if self.positional != before.positional:
            self.positional = None
        if self.cwd != before.cwd:
            self.cwd = None

    def values_of(self, name: str) -> Values | None:
        """The possible values of a plain variable or a positional parameter; None when nothing is known of it."""
        if name.isdigit():
            if name == "0":
                return self.values.get(name)
            if self.positional is None:
                return None
            index = int(name) - 1 if len(name) < 6 else len(self.positional)
            return (self.positional[index],) if index < len(self.positional) else ("",)
        return self.values.get(name)
