"""What calls give back, where that can be told: the ways by which code puts a name or a command together."""

import ast
import base64
import binascii
import shlex
from collections.abc import Callable, Iterable

from signoff.policy.python.folding import MAX_CHARS, MAX_ITEMS, attribute, canonical, path_joined
from signoff.policy.python.model import ANYTHING, Local, Ref, Seq, Table, Value, Values, text_of
from signoff.policy.python.names import Scope
from signoff.policy.python.values import Evaluator
from signoff.policy.shell.model import UNKNOWN

HOME = "/home/~"
"""The home directory where the real one was not told: a path no user can have."""


_GETTER = "operator.attrgetter"


class Given:
    """The arguments of one call, and the object whose method is called."""

    __slots__ = ("evaluator", "loose", "node", "of", "scope")

    def __init__(self, evaluator: Evaluator, node: ast.Call, scope: Scope, of: Value) -> None:
        """Keep the parts."""
        self.evaluator = evaluator
        self.node = node
        self.scope = scope
        self.of = of
        self.loose = any(isinstance(item, ast.Starred) for item in node.args)

    def at(self, place: int, keyword: str = "") -> Values | None:
        """The values of an argument; None when it is not given."""
        for item in self.node.keywords:
            if keyword and item.arg == keyword:
                return self.evaluator.values(item.value, self.scope)
        if place < len(self.node.args) and not any(isinstance(a, ast.Starred) for a in self.node.args[: place + 1]):
            return self.evaluator.values(self.node.args[place], self.scope)
        return ANYTHING if self.loose else None

    def one(self, place: int, keyword: str = "") -> Value:
        """The value of an argument where it has only one; otherwise the unknown text."""
        values = self.at(place, keyword)
        return values[0] if values is not None and len(values) == 1 else UNKNOWN

    def rows(self) -> list[Values]:
        """All arguments by place, those that are spread out too."""
        rows: list[Values] = []
        for item in self.node.args:
            if isinstance(item, ast.Starred):
                spread = self.evaluator.values(item.value, self.scope)
                first = spread[0] if len(spread) == 1 else UNKNOWN
                rows += [(value,) for value in first.items] if isinstance(first, Seq) else [ANYTHING]
            else:
                rows.append(self.evaluator.values(item, self.scope))
        return rows


def of_call(evaluator: Evaluator, node: ast.Call, scope: Scope) -> Iterable[Value]:
    """The values a call may give back."""
    found: list[Value] = []
    for function in evaluator.values(node.func, scope):
        if isinstance(function, Local):
            for expression, inner in function.function.returns:
                found.extend(evaluator.values(expression, inner))
        elif isinstance(function, Ref):
            fold = _FOLDS.get(function.name) if function.made is None else None
            given = Given(evaluator, node, scope, function.of)
            if fold is not None:
                found.extend(fold(given))
            elif function.name == _GETTER and function.made is not None:
                found.extend(attribute(value, text_of(function.made[0])) for value in given.at(0) or ANYTHING)
            elif function.name.startswith("<"):
                found.append(Ref("self"))
            else:
                found.append(_made(function, given))
        else:
            found.append(UNKNOWN)
    return found


def _made(function: Ref, given: Given) -> Value:
    """The result of a call that is not known: only its name, and the first arguments."""
    firsts = tuple(given.one(place) for place in range(min(len(given.node.args), 2)))
    return Ref(function.name, firsts, function.of)


# Names that are computed


def _module(given: Given) -> Iterable[Value]:
    names = given.at(0, "name") or ANYTHING
    return [Ref(canonical(name) if isinstance(name, str) and UNKNOWN not in name else "?") for name in names]


def _getattr(given: Given) -> Iterable[Value]:
    bases, names = given.at(0) or ANYTHING, given.at(1) or ANYTHING
    found: list[Value] = []
    for base in bases:
        for name in names:
            known = isinstance(name, str) and UNKNOWN not in name
            found.append(attribute(base, str(name) if known else "?"))
    return found


def _environ(given: Given) -> Iterable[Value]:
    name = given.one(0)
    if name == "HOME":
        return [given.evaluator.home or HOME]
    return [Ref("os.environ", (name,)), *(given.at(1) or ())]


# Texts


def _first(given: Given) -> Iterable[Value]:
    return given.at(0) or ANYTHING


def _bytes(given: Given) -> Iterable[Value]:
    """`bytes([114, 109])`; of a text, the text. The items of a list with a name may have been others since."""
    named = any(isinstance(part, ast.Name) for item in given.node.args for part in ast.walk(item))
    for value in given.at(0) or ANYTHING:
        if isinstance(value, Seq) and named:
            yield UNKNOWN
        elif isinstance(value, Seq):
            codes = [chr(item) if isinstance(item, int) and 0 <= item < 256 else UNKNOWN for item in value.items]
            yield "".join(codes) + (UNKNOWN if value.loose else "")
        else:
            yield value


def _text(given: Given) -> Iterable[Value]:
    return [text_of(value) for value in given.at(0) or ANYTHING]


def _join(given: Given) -> Iterable[Value]:
    between = text_of(given.of)
    found: list[Value] = []
    for value in given.at(0) or ANYTHING:
        if isinstance(value, str) and UNKNOWN not in value:
            found.append(between.join(value))
        elif isinstance(value, Seq):
            text = between.join(map(text_of, value.items)) + (between + UNKNOWN if value.loose else "")
            found.append(text if len(text) <= MAX_CHARS else UNKNOWN)
        else:
            found.append(UNKNOWN)
    return found


def _format(given: Given) -> Iterable[Value]:
    text = text_of(given.of)
    keywords = {item.arg: text_of(given.one(-1, item.arg)) for item in given.node.keywords if item.arg}
    rows = [text_of(row[0]) if len(row) == 1 else UNKNOWN for row in given.rows()]
    pieces: list[str] = []
    position = 0
    rest = text
    while "{" in rest:
        before, _brace, after = rest.partition("{")
        name, brace, rest = after.partition("}")
        pieces.append(before)
        if not brace:
            break
        key = name.partition(":")[0].partition("!")[0] or str(position)
        position += not name.partition(":")[0]
        known = key.isascii() and key.isdecimal() and len(key) < 5 and int(key) < len(rows)
        pieces.append(rows[int(key)] if known else keywords.get(key, UNKNOWN))
    joined = "".join([*pieces, rest])
    return [joined if len(joined) <= MAX_CHARS else UNKNOWN]


def _changed(change: Callable[[str], str]) -> Callable[[Given], Iterable[Value]]:
    def fold(given: Given) -> Iterable[Value]:
        text = text_of(given.of)
        return [UNKNOWN if UNKNOWN in text or given.node.args else change(text)]

    return fold


def _replace(given: Given) -> Iterable[Value]:
    text, old, new = text_of(given.of), text_of(given.one(0)), text_of(given.one(1))
    if UNKNOWN in text + old + new or (len(text) + 1) * max(1, len(new)) > MAX_CHARS:
        return ANYTHING
    return [text.replace(old, new)]


def _split(given: Given) -> Iterable[Value]:
    text, by = text_of(given.of), given.one(0) if given.node.args else None
    if UNKNOWN in text:
        # A stretch that is not known may hold blanks: what stands before it is whole.
        known = text.partition(UNKNOWN)[0].split()
        whole = text.partition(UNKNOWN)[0][-1:].isspace()
        return [Seq(tuple(known if whole else known[:-1]), loose=True)] if by is None else [Seq((), loose=True)]
    if by is None:
        return [Seq(tuple(text.split()[:MAX_ITEMS]))]
    return [Seq(tuple(text.split(by)[:MAX_ITEMS]))] if isinstance(by, str) and by else [Seq((), loose=True)]


def _shell_split(given: Given) -> Iterable[Value]:
    found: list[Value] = []
    for value in given.at(0) or ANYTHING:
        try:
            words = shlex.split(text_of(value))
        except ValueError:
            words = [UNKNOWN]
        found.append(Seq(tuple(words[:MAX_ITEMS])))
    return found


def _shell_join(given: Given) -> Iterable[Value]:
    value = given.one(0)
    if not isinstance(value, Seq) or value.loose:
        return ANYTHING
    return [" ".join(UNKNOWN if UNKNOWN in (text := text_of(item)) else shlex.quote(text) for item in value.items)]


def _shell_quote(given: Given) -> Iterable[Value]:
    return [UNKNOWN if UNKNOWN in (text := text_of(value)) else shlex.quote(text) for value in given.at(0) or ANYTHING]


def _decoded(decode: Callable[[str], bytes]) -> Callable[[Given], Iterable[Value]]:
    def fold(given: Given) -> Iterable[Value]:
        text = text_of(given.one(0))
        if UNKNOWN in text or len(text) > MAX_CHARS:
            return ANYTHING
        try:
            return [decode(text).decode("utf-8", "replace")]
        except (ValueError, binascii.Error):
            return ANYTHING

    return fold


def _rot13(given: Given) -> Iterable[Value]:
    text, coding = text_of(given.one(0)), given.one(1)
    if UNKNOWN in text or coding not in {"rot13", "rot_13"}:
        return ANYTHING
    return [text.translate(_ROT13)]


_ROT13 = {
    ord(letter): ord(first) + (ord(letter) - ord(first) + 13) % 26
    for first, letters in (("a", "abcdefghijklmnopqrstuvwxyz"), ("A", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    for letter in letters
}


def _character(given: Given) -> Iterable[Value]:
    value = given.one(0)
    return [chr(value) if isinstance(value, int) and 0 <= value < 0xD800 else UNKNOWN]


def _map(given: Given) -> Iterable[Value]:
    function, values = given.one(0), given.one(1)
    if not isinstance(function, Ref) or not isinstance(values, Seq):
        return [Seq((), loose=True)]
    if function.name == "chr":
        items = [chr(item) if isinstance(item, int) and 0 <= item < 0xD800 else UNKNOWN for item in values.items]
        return [Seq(tuple(items), values.loose)]
    return [Seq(tuple(map(text_of, values.items)), values.loose)] if function.name == "str" else [Seq((), loose=True)]


def _list(given: Given) -> Iterable[Value]:
    return [value if isinstance(value, Seq) else _listed(value) for value in given.at(0) or (Seq(),)]


def _listed(value: Value) -> Value:
    if isinstance(value, str) and UNKNOWN not in value:
        return Seq(tuple(value[:MAX_ITEMS]))
    return Seq((), loose=True) if value == UNKNOWN else value


def _reversed(given: Given) -> Iterable[Value]:
    found = _listed(given.one(0))
    return [Seq(found.items[::-1], found.loose) if isinstance(found, Seq) else found]


def _table(given: Given) -> Iterable[Value]:
    base = given.one(0) if given.node.args else Table()
    if isinstance(base, Ref):
        return [base]
    items = base.items if isinstance(base, Table) else ()
    named = [(item.arg, given.one(-1, item.arg)) for item in given.node.keywords if item.arg]
    return [Table((*items, *named))]


def _table_get(given: Given) -> Iterable[Value]:
    key = given.one(0)
    value = given.of.get(key) if isinstance(given.of, Table) and isinstance(key, str) else UNKNOWN
    return [value, *(given.at(1) or ())]


# Paths


def _path(given: Given) -> Iterable[Value]:
    parts: list[Values] = given.rows() or [(".",)]
    return [Ref("pathlib.Path", (text,)) for text in _paths(parts)]


def _paths(rows: list[Values]) -> list[str]:
    found = [""]
    for row in rows[:MAX_ITEMS]:
        found = [path_joined(text, text_of(value)) for text in found for value in row][:8]
    return [text if len(text) <= MAX_CHARS else UNKNOWN for text in found]


def _path_below(given: Given) -> Iterable[Value]:
    return [Ref("pathlib.Path", (text,)) for text in _paths([(text_of(given.of),), *given.rows()])]


def _path_join(given: Given) -> Iterable[Value]:
    return _paths(given.rows())


def _expanded(given: Given, text: str) -> str:
    home = given.evaluator.home or HOME
    return home + text[1:] if text == "~" or text.startswith("~/") else text


def _expand(given: Given) -> Iterable[Value]:
    return [_expanded(given, text_of(value)) for value in given.at(0) or ANYTHING]


def _expand_variables(given: Given) -> Iterable[Value]:
    home = given.evaluator.home or HOME
    texts = [text_of(value) for value in given.at(0) or ANYTHING]
    return [text.replace("${HOME}", home).replace("$HOME", home) for text in texts]


def _path_expanded(given: Given) -> Iterable[Value]:
    return [Ref("pathlib.Path", (_expanded(given, text_of(given.of)),))]


def _path_same(given: Given) -> Iterable[Value]:
    return [Ref("pathlib.Path", (text_of(given.of),))]


def _home(given: Given) -> Iterable[Value]:
    return [Ref("pathlib.Path", (given.evaluator.home or HOME,))]


def _here(_given: Given) -> Iterable[Value]:
    return ["."]


def _here_path(_given: Given) -> Iterable[Value]:
    return [Ref("pathlib.Path", (".",))]


def _folder(given: Given) -> Iterable[Value]:
    return [text_of(attribute(Ref("pathlib.Path", (text_of(value),)), "parent")) for value in given.at(0) or ANYTHING]


_STRIPPED = dict.fromkeys(("strip", "lstrip", "rstrip", "lower", "upper", "swapcase", "title"), 0)

_FOLDS: dict[str, Callable[[Given], Iterable[Value]]] = {
    "__import__": _module,
    "importlib.import_module": _module,
    "pkgutil.resolve_name": _module,
    "getattr": _getattr,
    "os.getenv": _environ,
    "os.environ.get": _environ,
    "str": _text,
    "os.fspath": _text,
    "bytes": _bytes,
    "str.encode": lambda given: [given.of],
    "str.decode": lambda given: [given.of],
    "str.join": _join,
    "str.format": _format,
    "str.replace": _replace,
    "str.split": _split,
    **{f"str.{name}": _changed(getattr(str, name)) for name in _STRIPPED},
    "textwrap.dedent": _first,
    "shlex.split": _shell_split,
    "shlex.join": _shell_join,
    "shlex.quote": _shell_quote,
    "base64.b64decode": _decoded(base64.b64decode),
    "base64.standard_b64decode": _decoded(base64.b64decode),
    "base64.urlsafe_b64decode": _decoded(base64.urlsafe_b64decode),
    "base64.b32decode": _decoded(base64.b32decode),
    "base64.b16decode": _decoded(bytes.fromhex),
    "binascii.unhexlify": _decoded(bytes.fromhex),
    "binascii.a2b_hex": _decoded(bytes.fromhex),
    "bytes.fromhex": _decoded(bytes.fromhex),
    "binascii.a2b_base64": _decoded(base64.b64decode),
    "codecs.decode": _rot13,
    "chr": _character,
    "map": _map,
    "list": _list,
    "tuple": _list,
    "set": _list,
    "sorted": _list,
    "reversed": _reversed,
    "list.copy": lambda given: [given.of],
    "dict": _table,
    "dict.get": _table_get,
    "dict.copy": lambda given: [given.of],
    "pathlib.Path": _path,
    "pathlib.Path.joinpath": _path_below,
    "pathlib.Path.expanduser": _path_expanded,
    "pathlib.Path.resolve": _path_same,
    "pathlib.Path.absolute": _path_same,
    "pathlib.Path.as_posix": lambda given: [text_of(given.of)],
    "pathlib.Path.home": _home,
    "pathlib.Path.cwd": _here_path,
    "os.getcwd": _here,
    "os.path.join": _path_join,
    "os.path.expanduser": _expand,
    "os.path.expandvars": _expand_variables,
    "os.path.abspath": _text,
    "os.path.realpath": _text,
    "os.path.normpath": _text,
    "os.path.dirname": _folder,
}
