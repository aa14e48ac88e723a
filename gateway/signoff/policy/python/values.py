"""Folds constants: what an expression may stand for, without running anything."""

import ast
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, product

from signoff.policy.python.folding import (
    MAX_CHARS,
    MAX_ITEMS,
    MAX_WAYS,
    attribute,
    attribute_by_key,
    canonical,
    capped,
    computed,
    constant,
    item_at,
    lists_joined,
    path_joined,
    percent,
    repeated,
)  # fmt: skip
from signoff.policy.python.model import ANYTHING, Local, Ref, Seq, Table, Value, Values, text_of
from signoff.policy.python.names import Binding, Collected, Function, Scope
from signoff.policy.shell.deadline import Deadline, GivenUpError
from signoff.policy.shell.model import UNKNOWN

_MAX_DEPTH = 80
"""How deep expressions lead to others, names looked up: some 300 frames, far from the interpreter's limit of 1,000."""


_MAX_VARIED = 32
"""The longest list whose items are varied; in longer ones an item with several values is unknown."""


class TooDeepError(GivenUpError):
    """Names lead to names further than is followed."""

    reason = "it nests too deeply"


class Evaluator:
    """Answers what an expression may stand for. `calls` is asked for the value of a call."""

    def __init__(
        self,
        found: Collected,
        deadline: Deadline,
        calls: "Callable[[Evaluator, ast.Call, Scope], Iterable[Value]]",
        *,
        cwd: str | None,
        home: str | None,
    ) -> None:
        """Start with nothing looked at."""
        self.found = found
        self.deadline = deadline
        self.cwd = cwd
        self.home = home
        self._calls = calls
        self._memo: dict[tuple[int, int], Values] = {}
        self._names: dict[tuple[int, str], Values] = {}
        self._depth = 0

    def values(self, node: ast.expr, scope: Scope) -> Values:
        """The values of an expression. Raises `OutOfTimeError` and `TooDeepError`."""
        if type(node) is ast.Constant:
            return (constant(node.value),)
        key = (id(node), id(scope))
        known = self._memo.get(key)
        if known is not None:
            return known
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return ANYTHING
        self.deadline.check()
        if self._depth >= _MAX_DEPTH:
            raise TooDeepError
        self._memo[key] = ANYTHING  # for a name that leads back to itself
        self._depth += 1
        try:
            found = capped(handler(self, node, scope))
        finally:
            self._depth -= 1
        self._memo[key] = found
        return found

    def sequences(self, rows: list[Values], *, loose: bool = False) -> list[Value]:
        """Lists whose items are one of the values of each row."""
        if len(rows) > MAX_ITEMS:
            return [Seq((), loose=True)]
        if all(len(row) == 1 for row in rows):
            return [Seq(tuple(row[0] for row in rows), loose)]
        if len(rows) > _MAX_VARIED:
            return [Seq(tuple(row[0] if len(row) == 1 else UNKNOWN for row in rows), loose)]
        found: list[Value] = [Seq(items, loose) for items in islice(product(*rows), MAX_WAYS)]
        longest = max(rows, key=len)
        if len(found) == MAX_WAYS and len(longest) > 1:
            # The first of all ways vary the last items only; these vary each item once.
            firsts = tuple(row[0] for row in rows)
            found = [
                Seq((*firsts[:place], value, *firsts[place + 1 :]), loose)
                for place, row in enumerate(rows)
                for value in row
            ]
        return found

    # Kinds of expressions

    def of_name(self, node: ast.Name, scope: Scope) -> Sequence[Value]:
        """A name: all that was ever bound to it."""
        return self.named(node.id, scope)

    def named(self, name: str, scope: Scope) -> Sequence[Value]:
        """What a name may stand for."""
        holder = scope.holder(name)
        if holder is None:
            return [Ref(canonical(name)), *(Ref(canonical(f"{module}.{name}")) for module in self.found.stars)]
        key = (id(holder), name)
        known = self._names.get(key)
        if known is not None:
            return known
        self._names[key] = ANYTHING  # for a name that leads back to itself
        grown = holder.grown.get(name)
        different: dict[Value, None] = {}
        for binding in holder.bindings[name]:
            self.deadline.check()
            different.update(dict.fromkeys(self.bound(binding)))
            if len(different) > MAX_WAYS and not grown:
                break  # no more of them are told apart
        found = list(different)
        self._names[key] = result = capped(self._grown(found, grown) if grown else found)
        return result

    def bound(self, binding: Binding) -> Iterable[Value]:
        """What one binding gives."""
        expression = binding.expression
        if binding.kind == "value" and expression is not None:
            return self.values(expression, binding.scope)
        if binding.kind == "name":
            return (Ref(canonical(binding.name)),)
        if binding.kind == "element" and expression is not None:
            elements = self._elements(self.values(expression, binding.scope))
            return [item for value in elements for item in self._elements((value,))] if binding.at < 0 else elements
        if binding.kind == "item" and expression is not None:
            return [item_at(value, binding.at) for value in self.values(expression, binding.scope)]
        if binding.kind == "function" and binding.function is not None:
            return (Local(binding.function),)
        if binding.kind == "parameter" and binding.function is not None:
            return self._parameter(binding.function, binding.name, binding.scope)
        if binding.kind == "rest" and binding.function is not None:
            return self._rest(binding.function)
        return (Ref(f"<{binding.name}>"),) if binding.kind == "class" else ANYTHING

    def _grown(self, found: list[Value], grown: list[tuple[str, ast.expr, Scope]]) -> list[Value]:
        """Lists with what is appended anywhere: nothing of it, all of it, and each piece alone."""
        result: list[Value] = []
        pieces = [self._piece(how, self.values(node, scope)) for how, node, scope in grown[:MAX_ITEMS]]
        for value in found:
            result.append(value)
            if isinstance(value, Seq):
                result.append(Seq((*value.items, *(item for piece in pieces for item in piece)), value.loose))
                result.extend(Seq((*value.items, *piece), loose=True) for piece in pieces if len(pieces) > 1)
            elif isinstance(value, str):
                result.extend(value + "".join(map(text_of, piece)) + UNKNOWN for piece in pieces)
        # A list that starts empty is only what grows in it.
        return [value for value in result if value != Seq()] or result

    def _piece(self, how: str, values: Values) -> list[Value]:
        value = values[0] if len(values) == 1 else UNKNOWN
        if how in {"extend", "+=", "update"} and isinstance(value, Seq):
            return list(value.items)
        return [value]

    def _elements(self, values: Values) -> list[Value]:
        found: list[Value] = []
        for value in values:
            if isinstance(value, Seq):
                found.extend(value.items)
                if value.loose:
                    found.append(UNKNOWN)
            elif isinstance(value, Table):
                found.extend(key for key, _value in value.items)
            elif isinstance(value, Ref) and value.name == "dict.items" and isinstance(value.of, Table):
                found.extend(item for pair in value.of.items for item in pair)
            elif isinstance(value, Ref) and value.name == "dict.values" and isinstance(value.of, Table):
                found.extend(item for _key, item in value.of.items)
            else:
                found.append(UNKNOWN)
        return found or [UNKNOWN]

    def _parameter(self, function: Function, name: str, scope: Scope) -> list[Value]:
        """What is handed to a parameter, over all calls of that name."""
        place = function.places.index(name) if name in function.places else None
        if function.method and place == 0:
            return [Ref("self")]
        sites = self._sites(function)
        found: list[Value] = []
        for node, site in sites:
            given = self._given(node, place - function.method if place is not None else None, name)
            if given is not None:
                found.extend(self.values(given, site))
            elif any(isinstance(item, ast.Starred) for item in node.args) or any(k.arg is None for k in node.keywords):
                found.append(UNKNOWN)
        default = function.defaults.get(name)
        if default is not None:
            found.extend(self.values(default, scope))
        if not found or function.decorated or function.called_as in self.found.escaped:
            found.append(UNKNOWN)
        return found

    def _rest(self, function: Function) -> list[Value]:
        """The arguments that `*args` takes, over all calls of that name."""
        first = max(0, len(function.places) - function.method)
        found: list[Value] = []
        for node, site in self._sites(function):
            if any(isinstance(item, ast.Starred) for item in node.args):
                found.append(Seq((), loose=True))
            else:
                found.extend(self.sequences([self.values(item, site) for item in node.args[first:]]))
        if not found or function.decorated or function.called_as in self.found.escaped:
            found.append(Seq((), loose=True))
        return found

    def _sites(self, function: Function) -> list[tuple[ast.Call, Scope]]:
        """The calls that may be of this function: plain ones, for a method those of an object that may have it."""
        found = list(self.found.calls_by_name.get(function.called_as, ()))
        if not function.method:
            return found
        for node, scope in self.found.calls_by_name.get("." + function.called_as, ()):
            if isinstance(node.func, ast.Attribute) and self._may_be_own(node.func.value, scope):
                found.append((node, scope))
        return found

    def _may_be_own(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an object may be of a class of the code itself."""
        return any(
            value == UNKNOWN or (isinstance(value, Ref) and value.name[:1] in {"<", "?"}) or value == Ref("self")
            for value in self.values(node, scope)
        )

    @staticmethod
    def _given(node: ast.Call, place: int | None, name: str) -> ast.expr | None:
        for keyword in node.keywords:
            if keyword.arg == name:
                return keyword.value
        if place is None or place >= len(node.args):
            return None
        return None if any(isinstance(item, ast.Starred) for item in node.args[: place + 1]) else node.args[place]

    def of_attribute(self, node: ast.Attribute, scope: Scope) -> list[Value]:
        """An attribute of each value of the object."""
        found: list[Value] = []
        for value in self.values(node.value, scope):
            itself = isinstance(value, Ref) and (value.name == "self" or value.name[:1] == "<")
            own = self.found.attributes.get(node.attr, ()) if itself else ()
            for binding in own:
                found.extend(self.bound(binding))
            if not own:
                found.append(attribute(value, node.attr))
        return found

    def of_subscript(self, node: ast.Subscript, scope: Scope) -> list[Value]:
        """An item of each value of the object."""
        bases = self.values(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            return [self._sliced(value, node.slice, scope) for value in bases]
        return [self._item(value, key, scope) for value in bases for key in self.values(node.slice, scope)]

    def _item(self, value: Value, key: Value, scope: Scope) -> Value:
        if isinstance(value, Ref):
            if value.name in {"globals", "locals"} and isinstance(key, str):
                named = self.named(key, scope) if UNKNOWN not in key else []
                return named[0] if len(named) == 1 else Ref("globals[]")
            if value.name == "os.environ" and not value.made and key == "HOME" and self.home is not None:
                return self.home
            return attribute_by_key(value, key)
        if isinstance(value, Table):
            return value.get(text_of(key))
        return item_at(value, key) if isinstance(key, int) else UNKNOWN

    def _sliced(self, value: Value, node: ast.Slice, scope: Scope) -> Value:
        ends: list[int | None] = []
        for part in (node.lower, node.upper, node.step):
            end = self.values(part, scope)[0] if part is not None else None
            if end is not None and (not isinstance(end, int) or isinstance(end, bool)):
                return UNKNOWN
            ends.append(end)
        if ends[2] == 0:
            return UNKNOWN
        where = slice(*ends)
        if isinstance(value, Seq):
            return Seq(value.items[where], value.loose)
        return value[where] if isinstance(value, str) and UNKNOWN not in value else UNKNOWN

    def of_operation(self, node: ast.BinOp, scope: Scope) -> Iterable[Value]:
        """Adding, formatting, repeating, and joining of paths."""
        if isinstance(node.op, ast.Add):
            parts = [node.right]
            left = node.left
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
                parts.append(left.right)
                left = left.left
            parts.append(left)
            return self.added([self.values(part, scope) for part in reversed(parts)])
        lefts, rights = self.values(node.left, scope), self.values(node.right, scope)
        pairs = islice(product(lefts, rights), MAX_WAYS * 2)
        if isinstance(node.op, ast.Mod):
            return [percent(left, right) for left, right in pairs]
        if isinstance(node.op, ast.Div):
            return [Ref("pathlib.Path", (path_joined(text_of(left), text_of(right)),)) for left, right in pairs]
        if isinstance(node.op, ast.Mult):
            return [repeated(left, right) for left, right in pairs]
        return [computed(node.op, left, right) for left, right in pairs]

    def added(self, rows: list[Values]) -> Iterable[Value]:
        """The sums of texts or lists."""
        if any(isinstance(value, Seq) for row in rows for value in row):
            return [lists_joined(way) for way in islice(product(*rows), MAX_WAYS)]
        if all(len(row) == 1 and isinstance(row[0], int) for row in rows):
            return (sum(row[0] for row in rows if isinstance(row[0], int)),)
        return self.joined(rows)

    def joined(self, rows: list[Values], between: str = "") -> list[Value]:
        """The texts that follow one another, over all their values."""
        texts = (between.join(map(text_of, way)) for way in islice(product(*rows), MAX_WAYS + 1))
        return [text if len(text) <= MAX_CHARS else UNKNOWN for text in texts]

    def of_format(self, node: ast.JoinedStr, scope: Scope) -> list[Value]:
        """An f-string."""
        rows: list[Values] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                plain = part.format_spec is None and part.conversion in {-1, 115}
                rows.append(self.values(part.value, scope) if plain else ANYTHING)
            else:
                rows.append(self.values(part, scope))
        return self.joined(rows)

    def of_list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> list[Value]:
        """A list, a tuple or a set, once for each list that is spread out in it."""
        ways: list[tuple[list[Values], bool]] = [([], False)]
        for item in node.elts[: MAX_ITEMS + 1]:
            if not isinstance(item, ast.Starred):
                values = self.values(item, scope)
                for rows, _loose in ways:
                    rows.append(values)
                continue
            spreads = self.values(item.value, scope)
            ways = [_spread(rows, spread, loose=loose) for rows, loose in ways for spread in spreads][:MAX_WAYS]
        return [value for rows, loose in ways for value in self.sequences(rows, loose=loose)]

    def of_table(self, node: ast.Dict, scope: Scope) -> list[Value]:
        """A dictionary."""
        items: list[tuple[str, Value]] = []
        for key, item in zip(node.keys, node.values, strict=True):
            values = self.values(item, scope)
            value = values[0] if len(values) == 1 else UNKNOWN
            if key is None:
                items.extend(value.items if isinstance(value, Table) else ())
                continue
            names = self.values(key, scope)
            if len(names) == 1 and isinstance(names[0], str):
                items.append((names[0], value))
        return [Table(tuple(items[:MAX_ITEMS]))]

    def of_choice(self, node: ast.IfExp, scope: Scope) -> list[Value]:
        """`a if b else c` may be either."""
        return [*self.values(node.body, scope), *self.values(node.orelse, scope)]

    def of_either(self, node: ast.BoolOp, scope: Scope) -> list[Value]:
        """`a or b` may be either."""
        return [value for part in node.values[:MAX_ITEMS] for value in self.values(part, scope)]

    def of_inner(self, node: ast.Await | ast.NamedExpr, scope: Scope) -> Values:
        """What stands behind the word."""
        return self.values(node.value, scope)

    def of_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> list[Value]:
        """A comprehension: its elements, with one value of the loop each."""
        values = self.values(node.elt, scope)
        plain = len(node.generators) == 1 and not node.generators[0].ifs
        return [Seq(values, loose=not plain or UNKNOWN in values)]

    def of_call(self, node: ast.Call, scope: Scope) -> Iterable[Value]:
        """A call, where its result can be told."""
        return self._calls(self, node, scope)

    def of_sign(self, node: ast.UnaryOp, scope: Scope) -> list[Value]:
        """A negative number."""
        return [
            -value if isinstance(node.op, ast.USub) and isinstance(value, int | float) else UNKNOWN
            for value in self.values(node.operand, scope)
        ]


def _spread(rows: list[Values], spread: Value, *, loose: bool) -> tuple[list[Values], bool]:
    """Rows with the items of a list behind them."""
    if not isinstance(spread, Seq):
        return list(rows), True
    return [*rows, *((value,) for value in spread.items)], loose or spread.loose


_HANDLERS: dict[type[ast.expr], Callable[..., Iterable[Value]]] = {
    ast.Name: Evaluator.of_name,
    ast.Attribute: Evaluator.of_attribute,
    ast.Subscript: Evaluator.of_subscript,
    ast.BinOp: Evaluator.of_operation,
    ast.JoinedStr: Evaluator.of_format,
    ast.List: Evaluator.of_list,
    ast.Tuple: Evaluator.of_list,
    ast.Set: Evaluator.of_list,
    ast.Dict: Evaluator.of_table,
    ast.IfExp: Evaluator.of_choice,
    ast.BoolOp: Evaluator.of_either,
    ast.Await: Evaluator.of_inner,
    ast.NamedExpr: Evaluator.of_inner,
    ast.ListComp: Evaluator.of_comprehension,
    ast.SetComp: Evaluator.of_comprehension,
    ast.GeneratorExp: Evaluator.of_comprehension,
    ast.Call: Evaluator.of_call,
    ast.UnaryOp: Evaluator.of_sign,
}
