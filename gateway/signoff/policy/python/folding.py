"""Constants folded: the values of operations, items and attributes whose operands are known."""

import ast
import builtins
import re
from collections.abc import Callable, Iterable
from itertools import islice

from signoff.policy.python.model import ANYTHING, Local, Ref, Seq, Table, Value, Values, text_of
from signoff.policy.shell.model import UNKNOWN

MAX_WAYS = 8
"""As many values of one expression are followed; where there are more, the rest counts as unknown."""

MAX_CHARS = 65_536
"""Longer texts are not made: `"a" * 10**9` is short to write."""

MAX_ITEMS = 2_000
"""The longest list that is followed."""

_PERCENT = re.compile(r"%(?:\(\w*+\))?[-+ #0]*+[\d*]*+(?:\.[\d*]++)?([a-zA-Z%])")


def capped(found: Iterable[Value]) -> Values:
    """At most `MAX_WAYS` different values, and the unknown one when there were more."""
    kept = list(islice(dict.fromkeys(found), MAX_WAYS + 1))
    if len(kept) > MAX_WAYS:
        kept[MAX_WAYS] = UNKNOWN
    return tuple(kept) or ANYTHING


def constant(value: object) -> Value:
    """A constant of the code as a value."""
    if isinstance(value, str | int | float) or value is None:
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else UNKNOWN


def canonical(name: str) -> str:
    """One name for what several modules offer."""
    if "." in name:
        name = _through(name)
    head, dot, rest = name.partition(".")
    if head in {"builtins", "__builtins__", "__builtin__"} and dot:
        return rest
    if rest[:8] == "__self__" and hasattr(builtins, head):
        return rest[9:] or "builtins"  # what a built-in function belongs to
    if head in {"io", "codecs", "posix", "nt", "_pickle", "cPickle", "posixpath", "ntpath", "__main__"}:
        return _RENAMED.get(name) or (_MODULES[head] + dot + rest if head in _MODULES else name)
    return _RENAMED.get(name, name)


_MODULES = {
    "posix": "os", "nt": "os", "_pickle": "pickle", "cPickle": "pickle", "posixpath": "os.path", "ntpath": "os.path",
}  # fmt: skip
_RENAMED = {
    "io.FileIO": "open", "tokenize.open": "open",
    "io.open": "open", "codecs.open": "open", "os.fdopen": "open", "pathlib.PosixPath": "pathlib.Path",
    "pathlib.PurePath": "pathlib.Path", "pathlib.PurePosixPath": "pathlib.Path", "pathlib.WindowsPath": "pathlib.Path",
    "importlib.__import__": "__import__", "git.repo.Repo": "git.Repo",
}  # fmt: skip


def _through(name: str) -> str:
    """`random._os.system` as `os.system`, and `glob.os` as `os`: the module that is reached through another one."""
    parts = name.split(".")
    for place in range(len(parts) - 1, 0, -1):
        part = parts[place]
        if part in _SEEN_THROUGH and parts[0] not in _OF_THEIR_OWN and parts[0] not in {"", "?"}:
            return ".".join(parts[place:])
        if part[:1] == "_" and part.strip("_") in _PRIVATE and part not in _OWN_PRIVATE:
            return ".".join((part.strip("_"), *parts[place + 1 :]))
    return name


def attribute(value: Value, name: str) -> Value:
    """An attribute of a value."""
    if isinstance(value, Ref):
        if name in _SEEN_THROUGH and value.name not in _OF_THEIR_OWN:
            return Ref(name)
        if name[:1] == "_" and name.strip("_") in _PRIVATE and name not in _OWN_PRIVATE:
            return Ref(canonical(name.strip("_")))
        if name == "__dict__":
            return Ref(f"{value.name}.{name}", of=value)
        full = canonical(f"{value.name}.{name}")
        if full in _TEXTS:
            return _TEXTS[full]
        if value.name == "pathlib.Path" and value.made and name in _PATH_TEXTS:
            return _PATH_TEXTS[name](text_of(value))
        if name == "__call__":
            return value
        return Ref(full, of=value)
    if isinstance(value, Local):
        return value if name == "__call__" else UNKNOWN
    kind = "list" if isinstance(value, Seq) else "dict" if isinstance(value, Table) else "str"
    return Ref("?." + name if value == UNKNOWN else f"{kind}.{name}", of=value)


_SEEN_THROUGH = frozenset({"os", "sys", "subprocess", "shutil", "builtins", "importlib"})
"""Modules that others import, under whose names they are reached too (`shutil.os`)."""

_PRIVATE = _SEEN_THROUGH | frozenset(
    {"socket", "pickle", "marshal", "ctypes", "signal", "glob", "pathlib", "tempfile", "posix", "nt", "runpy", "io"}
    | {"multiprocessing", "threading", "urllib", "http", "ssl", "sqlite3", "posixsubprocess", "pty", "asyncio"}
)
"""Modules that modules of the standard library import under a private name (`random._os`)."""

_OWN_PRIVATE = frozenset({"__builtins__"})
"""Names of that kind that rules know as they are."""

_OF_THEIR_OWN = frozenset({"asyncio", "gevent", "eventlet", "trio", "anyio"})
"""Modules that have one of such a name themselves."""

_TEXTS: dict[str, Value] = {"sys.executable": "python3", "os.sep": "/", "os.linesep": "\n", "os.name": "posix"}


def _parent(text: str) -> Value:
    head, slash, _last = text.rstrip("/").rpartition("/")
    return (
        Ref("pathlib.Path", (head or ("/" if slash else "."),))
        if UNKNOWN not in text
        else Ref("pathlib.Path", (UNKNOWN,))
    )


_PATH_TEXTS: dict[str, Callable[[str], Value]] = {
    "parent": _parent,
    "name": lambda text: text.rstrip("/").rpartition("/")[2],
    "stem": lambda text: text.rstrip("/").rpartition("/")[2].partition(".")[0],
}


def attribute_by_key(value: Ref, key: Value) -> Value:
    """An item of a module's table of names, of the table of modules, or of another object."""
    name = value.name
    text = key if isinstance(key, str) and UNKNOWN not in key else "?"
    if name == "sys.modules":
        return Ref(canonical(text))
    if name.endswith(".__dict__"):
        return Ref(canonical(f"{name.removesuffix('.__dict__')}.{text}"))
    if name in {"__builtins__", "builtins"}:
        return Ref(text)
    if name == "vars" and value.made and isinstance(value.made[0], Ref):
        return Ref(canonical(f"{value.made[0].name}.{text}"))
    if name == "os.environ":
        return Ref(name, (key,))
    return Ref(name + "[]", of=value)


def item_at(value: Value, place: Value) -> Value:
    """An item of a list by its place."""
    if not isinstance(place, int):
        return UNKNOWN
    if isinstance(value, Seq) and -len(value.items) <= place < len(value.items):
        return value.items[place]
    if isinstance(value, str) and UNKNOWN not in value and -len(value) <= place < len(value):
        return value[place]
    return UNKNOWN


def path_joined(left: str, right: str) -> str:
    """Two parts of a path in one."""
    if right.startswith("/") or not left:
        return right
    return left + right if left.endswith("/") else f"{left}/{right}"


def percent(left: Value, right: Value) -> Value:
    """A text with its `%` places filled."""
    if not isinstance(left, str):
        return UNKNOWN
    items = iter(right.items) if isinstance(right, Seq) else iter((right,))
    named = isinstance(right, Table)

    def put(match: re.Match[str]) -> str:
        if match.group(1) == "%":
            return "%"
        return UNKNOWN if named or match.group(1) not in "sdi" else text_of(next(items, UNKNOWN))

    text = _PERCENT.sub(put, left)
    return text if len(text) <= MAX_CHARS else UNKNOWN


def repeated(left: Value, right: Value) -> Value:
    """A text or list several times."""
    if isinstance(left, int) and isinstance(right, str | Seq):
        left, right = right, left
    if not isinstance(right, int) or right < 0:
        return UNKNOWN
    if isinstance(left, str) and len(left) * right <= MAX_CHARS:
        return left * right
    if isinstance(left, Seq) and len(left.items) * right <= MAX_ITEMS:
        return Seq(left.items * right, left.loose)
    return UNKNOWN


def computed(operator: ast.operator, left: Value, right: Value) -> Value:
    """Whole numbers only: characters are written as computed ones to hide a text; modes and flags are joined."""
    if not isinstance(left, int) or not isinstance(right, int) or max(abs(left), abs(right)) > 2**32:
        return UNKNOWN
    if isinstance(operator, ast.BitOr):
        return left | right
    if isinstance(operator, ast.BitXor):
        return left ^ right
    return left - right if isinstance(operator, ast.Sub) else UNKNOWN


def lists_joined(way: tuple[Value, ...]) -> Value:
    """Lists one behind the other; what is no list may be one."""
    items: list[Value] = []
    loose = False
    for value in way:
        if isinstance(value, Seq):
            items.extend(value.items)
            loose = loose or value.loose
        else:
            loose = True
    return Seq(tuple(items[:MAX_ITEMS]), loose or len(items) > MAX_ITEMS)
