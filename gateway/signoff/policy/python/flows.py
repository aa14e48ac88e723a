"""What flows into the arguments of a call: the environment, single variables of it, and files."""

import ast

from signoff.policy.python.model import Ref, Value, text_of
from signoff.policy.python.names import Scope
from signoff.policy.python.values import Evaluator

_MAX_NODES = 300
"""As many expressions are looked through for one call."""

_LOOKUPS = frozenset({"os.getenv", "os.environ.get", "os.environ.pop"})
_REWRITES = ("json.", "base64.", "binascii.", "codecs.", "urllib.parse.", "str.", "list.", "dict.", "pickle.", "yaml.")
_REWRITE = frozenset(
    {"str", "repr", "dict", "list", "tuple", "sorted", "set", "bytes", "bytearray", "format", "map", "filter", "zip"}
    | {"reversed", "iter", "next", "urllib.request.Request", "requests.Request", "open", "io.BytesIO", "io.StringIO"}
    | {"zlib.compress", "gzip.compress", "pprint.pformat"}
)
"""Functions whose result shows what they were given."""

_ENVIRONMENTS = frozenset({"os.environ", "os.environb"})
_READS = frozenset({"pathlib.Path.read_text", "pathlib.Path.read_bytes", "pathlib.Path.open"})


def carried(evaluator: Evaluator, node: ast.Call, scope: Scope) -> tuple[str, ...]:
    """`environ`, `environ:NAME` and `file:PATH` for all that the arguments are made of, names looked up."""
    found: dict[str, None] = {}
    todo: list[tuple[ast.AST, Scope]] = [(item, scope) for item in node.args]
    todo.extend((item.value, scope) for item in node.keywords)
    if isinstance(node.func, ast.Attribute):
        todo.append((node.func.value, scope))
    seen: set[int] = set()
    while todo and len(seen) < _MAX_NODES:
        item, at = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, ast.Name):
            todo.extend(_bound(item, at))
        elif isinstance(item, ast.expr) and (names := _source(evaluator, item, at)):
            found.update(dict.fromkeys(names))
        elif isinstance(item, ast.Call):
            todo.extend((child, at) for child in _kept(evaluator, item, at))
        else:
            todo.extend((child, at) for child in ast.iter_child_nodes(item))
    return tuple(found)


def _kept(evaluator: Evaluator, node: ast.Call, scope: Scope) -> list[ast.AST]:
    """The parts of a call that are still there in its result: the object of a method, and what is only rewritten."""
    parts: list[ast.AST] = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    names = [value.name for value in evaluator.values(node.func, scope) if isinstance(value, Ref)]
    if any(name in _REWRITE or name.startswith(_REWRITES) for name in names):
        parts.extend(node.args)
        parts.extend(item.value for item in node.keywords)
    return parts


def _bound(node: ast.Name, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    holder = scope.holder(node.id)
    if holder is None:
        return []
    return [
        (binding.expression, binding.scope)
        for binding in holder.bindings[node.id]
        if binding.expression is not None and binding.kind != "class"
    ]


def _source(evaluator: Evaluator, node: ast.expr, scope: Scope) -> list[str]:
    """The names of what an expression takes from outside; empty when that is to be found further inside."""
    if isinstance(node, ast.Call) and (found := _called(evaluator, node, scope)):
        return found
    if not isinstance(node, ast.Call | ast.Subscript | ast.Attribute):
        return []
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        bases = [value for value in evaluator.values(node.value, scope) if isinstance(value, Ref)]
        if any(value.name in _ENVIRONMENTS and not value.made for value in bases):
            return ["environ:" + text_of(key) for key in evaluator.values(node.slice, scope)]
    values = evaluator.values(node, scope)
    return [_variable(value) for value in values if isinstance(value, Ref) and value.name in _ENVIRONMENTS]


def _called(evaluator: Evaluator, node: ast.Call, scope: Scope) -> list[str]:
    found: list[str] = []
    for function in evaluator.values(node.func, scope):
        if not isinstance(function, Ref):
            continue
        if function.name in _LOOKUPS:
            found.append("environ:" + (text_of(evaluator.values(node.args[0], scope)[0]) if node.args else ""))
        elif function.name == "open" and node.args:
            found.extend("file:" + text_of(value) for value in evaluator.values(node.args[0], scope))
        elif function.name in _READS:
            found.append("file:" + text_of(function.of))
    return found


def _variable(value: Value) -> str:
    return "environ:" + text_of(value.made[0]) if isinstance(value, Ref) and value.made else "environ"
