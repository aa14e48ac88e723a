"""What is known about Python code after it was read: values, calls, and the commands it starts."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from signoff.policy.shell.model import UNKNOWN, Script

if TYPE_CHECKING:
    from signoff.policy.python.names import Function

EventKind = Literal["call", "reference", "set", "use", "import"]


class Seq(msgspec.Struct, frozen=True):
    """A list, tuple or set; `loose` says that there may be more items than these."""

    items: "tuple[Value, ...]" = ()
    loose: bool = False


class Table(msgspec.Struct, frozen=True):
    """A dictionary by those of its keys that are known texts."""

    items: "tuple[tuple[str, Value], ...]" = ()

    def get(self, key: str) -> "Value":
        """The value of a key, or the unknown text."""
        return next((value for name, value in self.items if name == key), UNKNOWN)


class Ref(msgspec.Struct, frozen=True):
    """Something with a dotted name: a module, function or class, or with `made` the result of calling it.

    `of` is the object whose attribute it is, where that is more than a name.
    """

    name: str
    made: "tuple[Value, ...] | None" = None
    of: "Value" = None


class Local(msgspec.Struct, frozen=True):
    """A function that is defined in the code itself."""

    function: "Function"


Value: TypeAlias = "str | int | float | Seq | Table | Ref | Local | None"
"""One possible value. Texts hold `UNKNOWN` where they are only known when the code runs."""

Values: TypeAlias = tuple[Value, ...]
"""The values something may have, whatever way the code runs."""

ANYTHING: Values = (UNKNOWN,)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the code does that rules may speak of.

    `kind` is a call, a function handed on without a call (`reference`: its arguments are not known), an attribute that
    is replaced or deleted (`set`), an attribute that is looked at (`use`), or an import. `name` is the full dotted
    name; `?` stands for an object that is not known. `loose` says that there may be more arguments than these.
    `carries` names what flows into the arguments: `environ`, `environ:NAME`, `file:PATH`. `command` says whether the
    command that the call starts is known; empty for calls that start none.
    """

    kind: EventKind
    name: str
    args: tuple[Values, ...] = ()
    keywords: tuple[tuple[str, Values], ...] = ()
    loose: bool = False
    of: Values = ()
    line: int
    source: str = ""
    carries: tuple[str, ...] = ()
    command: Literal["", "known", "unknown"] = ""

    def argument(self, position: int | None, keyword: str = "") -> Values | None:
        """The values of an argument by keyword or position; None when it is not given."""
        for name, values in self.keywords:
            if keyword and name == keyword:
                return values
        if position is not None and position < len(self.args):
            return self.args[position]
        return ANYTHING if self.loose else None


class PythonScript(msgspec.Struct, frozen=True, kw_only=True):
    """Python code as it was read.

    `calls` are those that rules speak of. `shell` holds every command the code would start, as the shell front end
    reads it. `problems` says why the code was not understood; each ends a sentence that begins with "cannot be
    understood". `folders` are those it may be in.
    """

    calls: tuple[Call, ...] = ()
    shell: Script = Script()
    problems: tuple[str, ...] = ()
    folders: tuple[str | None, ...] = (None,)
    lines: int = 0


def text_of(value: Value) -> str:
    """A value as text; what cannot be written as one is unknown."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float) or value is None:
        return str(value)
    if isinstance(value, Ref) and value.name == "pathlib.Path" and value.made:
        return text_of(value.made[0])
    return UNKNOWN
