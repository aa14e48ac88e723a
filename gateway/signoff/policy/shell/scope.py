"""What a text has assigned, defined and changed so far."""

import tree_sitter

from signoff.policy.shell.model import UNKNOWN

MAX_VALUES = 8
"""How many values a variable is followed through; beyond that it is not known."""

Values = tuple[str, ...]


class Function:
    """A function's body and the text it stands in."""

    __slots__ = ("body", "source")

    def __init__(self, body: tree_sitter.Node, source: bytes) -> None:
        """Remember where the body is."""
        self.body = body
        self.source = source


class Scope:
    """Variables with their possible values, arrays, parameters, functions, aliases, folder, and files it wrote."""

    def __init__(self, home: str, cwd: str | None) -> None:
        """A scope as it is when a text starts."""
        self.home = home
        self.cwd = cwd
        self.values: dict[str, Values] = {"HOME": (home,)}
        self.arrays: dict[str, Values] = {}
        self.positional: Values | None = ()
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, str | None] = {}

    def copy(self) -> "Scope":
        """A scope for a subshell: what changes there stays there."""
        other = Scope(self.home, self.cwd)
        other.values = dict(self.values)
        other.arrays = dict(self.arrays)
        other.positional = self.positional
        other.functions = dict(self.functions)
        other.aliases = dict(self.aliases)
        other.files = self.files
        return other

    def assign(self, name: str, values: Values, *, surely: bool) -> None:
        """Set a variable; when it is not sure that this runs, the former values stay possible."""
        self.arrays.pop(name, None)
        kept = () if surely else self.values.get(name, (UNKNOWN,))
        merged = tuple(dict.fromkeys((*values, *kept)))
        self.values[name] = merged if len(merged) <= MAX_VALUES else (UNKNOWN,)

    def append(self, name: str, values: Values) -> None:
        """`name+=value`."""
        before = self.values.get(name, (UNKNOWN,))
        self.assign(name, tuple(a + b for a in before for b in values), surely=True)

    def forget(self, name: str) -> None:
        """The variable now holds something unknown."""
        self.assign(name, (UNKNOWN,), surely=True)

    def unset(self, name: str) -> None:
        """The variable is empty."""
        self.assign(name, ("",), surely=True)
        self.functions.pop(name, None)

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

    def list_of(self, name: str) -> Values | None:
        """The elements of `$@`, `$*` or an array; None when they are not known."""
        if name in {"@", "*"}:
            return self.positional
        return self.arrays.get(name)
