"""Collects what a module's names may stand for, and everything it does, in one walk."""

import ast
from collections.abc import Callable, Iterator
from typing import Literal

from signoff.policy.python.source import Part
from signoff.policy.shell.deadline import Deadline

BindingKind = Literal["value", "element", "item", "name", "parameter", "rest", "function", "class", "unknown"]


class Scope:
    """A module, class or function: its names and where it lies. `globals` are names of its module that it declares."""

    __slots__ = ("bindings", "function", "globals", "grown", "is_class", "outer")

    def __init__(self, outer: "Scope | None", *, function: "Function | None" = None, is_class: bool = False) -> None:
        """An empty scope."""
        self.outer = outer
        self.function = function
        self.is_class = is_class
        self.bindings: dict[str, list[Binding]] = {}
        self.grown: dict[str, list[tuple[str, ast.expr, Scope]]] = {}
        self.globals: set[str] = set()

    def holder(self, name: str) -> "Scope | None":
        """The scope whose name this is, seen from here; None for names of the language."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.globals:
                while scope.outer is not None:
                    scope = scope.outer
                return scope if name in scope.bindings else None
            if name in scope.bindings and (scope is self or not scope.is_class):
                return scope
            scope = scope.outer
        return None

    def bind(self, name: str, binding: "Binding") -> None:
        """One more thing that a name may stand for."""
        scope = self
        if name in self.globals:
            while scope.outer is not None:
                scope = scope.outer
        scope.bindings.setdefault(name, []).append(binding)


class Binding:
    """One thing a name may stand for: a value, an element or item of one, a dotted name, a parameter or all the rest of
    the arguments, a function, a class."""

    __slots__ = ("at", "expression", "function", "kind", "name", "scope")

    def __init__(
        self,
        kind: BindingKind,
        scope: Scope,
        *,
        expression: ast.expr | None = None,
        name: str = "",
        function: "Function | None" = None,
        at: int = 0,
    ) -> None:
        """Keep the facts."""
        self.kind = kind
        self.scope = scope
        self.expression = expression
        self.name = name
        self.function = function
        self.at = at


class Function:
    """A function of the code: its parameters by name and by place, its defaults, and what it returns."""

    __slots__ = ("called_as", "decorated", "defaults", "method", "places", "returns")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, called_as: str, *, method: bool) -> None:
        """Read the head of a definition."""
        arguments = node.args
        self.called_as = called_as
        self.method = method
        self.decorated = bool(node.decorator_list)
        self.places = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        self.returns: list[tuple[ast.expr, Scope]] = []
        defaults: dict[str, ast.expr] = {}
        if arguments.defaults:
            defaults.update(zip(self.places[-len(arguments.defaults) :], arguments.defaults, strict=True))
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[argument.arg] = default
        self.defaults = defaults


class Collected:
    """A whole module: its scopes, and in order everything in it that may matter."""

    def __init__(self) -> None:
        """Nothing found yet."""
        self.module = Scope(None)
        self.stars: list[str] = []
        self.calls: list[tuple[ast.Call, Scope, int]] = []
        self.references: list[tuple[ast.expr, Scope, int]] = []
        self.sets: list[tuple[ast.expr, Scope, int]] = []
        self.uses: list[tuple[ast.Attribute, Scope, int]] = []
        self.imports: list[tuple[str, int]] = []
        # Calls of plain names, and of attributes with a dot before the name.
        self.calls_by_name: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self.attributes: dict[str, list[Binding]] = {}
        self.escaped: set[str] = set()


_IDLE = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.Constant)
_LOOKING = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "delattr", "type", "callable", "super"})
_GROWING = frozenset({"append", "extend", "insert", "add", "update", "appendleft"})


class Walker:
    """One walk over the trees, with a stack of its own: code may nest as deep as it likes."""

    def __init__(self, deadline: Deadline) -> None:
        """Start with an empty module."""
        self.found = Collected()
        self._deadline = deadline
        self._stack: list[tuple[ast.AST, Scope, bool]] = []
        self._offset = 0

    def walk(self, parts: list[Part]) -> Collected:
        """Collect from all parts, which share one module scope. Raises `OutOfTimeError`."""
        steps = 0
        for part in parts:
            self._offset = part.offset
            self._stack = [(node, self.found.module, False) for node in reversed(part.tree.body)]
            while self._stack:
                steps += 1
                if not steps & 127:
                    self._deadline.check()
                node, scope, quiet = self._stack.pop()
                kind = type(node)
                handler = _HANDLERS.get(kind)
                if handler is not None:
                    handler(self, node, scope, quiet)
                else:
                    self._push(node, scope)
        return self.found

    def _push(self, node: ast.AST, scope: Scope) -> None:
        """The children in order."""
        self._stack.extend((child, scope, False) for child in reversed(list(_children(node))))

    def _later(self, node: ast.AST | None, scope: Scope, *, quiet: bool = False) -> None:
        if node is not None and not isinstance(node, _IDLE):
            self._stack.append((node, scope, quiet))

    def _line(self, node: ast.expr) -> int:
        return node.lineno + self._offset

    # Names and what happens to them

    def on_name(self, node: ast.Name, scope: Scope, quiet: bool) -> None:
        """A name that is read, and not called, is handed on."""
        if not quiet and isinstance(node.ctx, ast.Load):
            self.found.references.append((node, scope, self._line(node)))
            self.found.escaped.add(node.id)

    def on_attribute(self, node: ast.Attribute, scope: Scope, quiet: bool) -> None:
        """An attribute that is read, replaced or deleted."""
        if not isinstance(node.ctx, ast.Load):
            self.found.sets.append((node, scope, self._line(node)))
        else:
            if node.attr.startswith("__"):
                self.found.uses.append((node, scope, self._line(node)))
            if not quiet:
                self.found.references.append((node, scope, self._line(node)))
                self.found.escaped.add(node.attr)
        self._later(node.value, scope, quiet=True)

    def on_subscript(self, node: ast.Subscript, scope: Scope, _quiet: bool) -> None:
        """An item that is read, replaced or deleted."""
        if not isinstance(node.ctx, ast.Load):
            self.found.sets.append((node, scope, self._line(node)))
        self._later(node.slice, scope)
        self._later(node.value, scope, quiet=True)

    def on_call(self, node: ast.Call, scope: Scope, _quiet: bool) -> None:
        """A call."""
        self.found.calls.append((node, scope, self._line(node)))
        function = node.func
        name = called = function.id if isinstance(function, ast.Name) else ""
        if isinstance(function, ast.Attribute):
            name, called = function.attr, "." + function.attr
            base = function.value
            if name in _GROWING and isinstance(base, ast.Name) and node.args:
                scope.grown.setdefault(base.id, []).append((name, node.args[-1], scope))
        if name:
            self.found.calls_by_name.setdefault(called, []).append((node, scope))
        looking = name in _LOOKING
        for keyword in reversed(node.keywords):
            self._later(keyword.value, scope, quiet=looking)
        for argument in reversed(node.args):
            self._later(argument, scope, quiet=looking)
        self._later(function, scope, quiet=True)

    # Bindings

    def _target(self, target: ast.expr, scope: Scope, binding: Binding) -> None:
        """Bind one target of an assignment, with what stands in it."""
        todo = [(target, binding)]
        while todo:
            target, binding = todo.pop()
            if isinstance(target, ast.Name):
                scope.bind(target.id, binding)
                if scope.is_class:
                    self.found.attributes.setdefault(target.id, []).append(binding)
            elif isinstance(target, ast.Starred):
                todo.append((target.value, Binding("unknown", scope)))
            elif isinstance(target, ast.Tuple | ast.List):
                todo.extend((item, self._item(binding, place, target)) for place, item in enumerate(target.elts))
            else:
                if isinstance(target, ast.Attribute):
                    self.found.attributes.setdefault(target.attr, []).append(binding)
                self._later(target, scope)

    @staticmethod
    def _item(binding: Binding, place: int, target: ast.Tuple | ast.List) -> Binding:
        if binding.kind != "value" or any(isinstance(item, ast.Starred) for item in target.elts):
            # An element of a list of pairs is one of their items; which one is left open.
            return Binding(
                "unknown" if binding.kind == "unknown" else "element",
                binding.scope,
                expression=binding.expression,
                at=-1,
            )
        return Binding("item", binding.scope, expression=binding.expression, at=place)

    def on_assign(self, node: ast.Assign, scope: Scope, _quiet: bool) -> None:
        """`a = b = value`."""
        for target in node.targets:
            self._target(target, scope, Binding("value", scope, expression=node.value))
        self._assigned(node.value, scope, followed=all(map(_is_followed, node.targets)))

    def on_annotated(self, node: ast.AnnAssign, scope: Scope, _quiet: bool) -> None:
        """`a: int = value`; the annotation is worked out where it stands."""
        self._annotation(node.annotation, scope)
        if node.value is not None:
            self._target(node.target, scope, Binding("value", scope, expression=node.value))
            self._assigned(node.value, scope, followed=_is_followed(node.target))

    def _annotation(self, node: ast.expr | None, scope: Scope) -> None:
        if node is not None and not isinstance(node, ast.Name | ast.Attribute | ast.Constant):
            self._later(node, scope, quiet=True)

    def _assigned(self, node: ast.expr, scope: Scope, *, followed: bool = True) -> None:
        """A value that gets a name: what is done with it is seen under that name, if such names are followed."""
        if isinstance(node, ast.Name):
            self.found.escaped.add(node.id)
        elif isinstance(node, ast.Attribute):
            self.found.escaped.add(node.attr)
        self._later(node, scope, quiet=followed and isinstance(node, ast.Name | ast.Attribute))

    def on_named(self, node: ast.NamedExpr, scope: Scope, _quiet: bool) -> None:
        """`(a := value)`."""
        self._target(node.target, scope, Binding("value", scope, expression=node.value))
        self._assigned(node.value, scope)

    def on_augmented(self, node: ast.AugAssign, scope: Scope, _quiet: bool) -> None:
        """`a += value`."""
        if isinstance(node.target, ast.Name):
            scope.grown.setdefault(node.target.id, []).append(("+=", node.value, scope))
        else:
            self._later(node.target, scope)
        self._later(node.value, scope)

    def on_for(self, node: ast.For | ast.AsyncFor, scope: Scope, _quiet: bool) -> None:
        """A loop."""
        self._target(node.target, scope, Binding("element", scope, expression=node.iter))
        for statement in reversed((*node.body, *node.orelse)):
            self._later(statement, scope)
        self._later(node.iter, scope)

    def on_comprehension(self, node: ast.comprehension, scope: Scope, _quiet: bool) -> None:
        """The `for` of a comprehension."""
        self._target(node.target, scope, Binding("element", scope, expression=node.iter))
        for condition in node.ifs:
            self._later(condition, scope)
        self._later(node.iter, scope)

    def on_with_item(self, node: ast.withitem, scope: Scope, _quiet: bool) -> None:
        """`with value as a`."""
        if node.optional_vars is not None:
            self._target(node.optional_vars, scope, Binding("value", scope, expression=node.context_expr))
        self._later(node.context_expr, scope)

    def on_handler(self, node: ast.ExceptHandler, scope: Scope, _quiet: bool) -> None:
        """`except Kind as a`: kinds of errors are only compared."""
        if node.name:
            scope.bind(node.name, Binding("unknown", scope))
        for statement in reversed(node.body):
            self._later(statement, scope)
        if node.type is not None and not isinstance(node.type, ast.Name | ast.Attribute | ast.Tuple):
            self._later(node.type, scope)

    def on_match_name(self, node: ast.MatchAs | ast.MatchStar, scope: Scope, _quiet: bool) -> None:
        """A name in a pattern."""
        if node.name:
            scope.bind(node.name, Binding("unknown", scope))
        self._push(node, scope)

    def on_global(self, node: ast.Global | ast.Nonlocal, scope: Scope, _quiet: bool) -> None:
        """Names of the module. Names of an outer function are bound here and there."""
        if isinstance(node, ast.Global):
            for name in node.names:
                for binding in scope.bindings.pop(name, []):
                    self.found.module.bind(name, binding)
                scope.globals.add(name)
            return
        for name in node.names:
            holder = scope.outer.holder(name) if scope.outer is not None else None
            if holder is not None:
                scope.bindings[name] = holder.bindings[name]

    def on_import(self, node: ast.Import, scope: Scope, _quiet: bool) -> None:
        """`import a.b as c`."""
        for alias in node.names:
            self.found.imports.append((alias.name, node.lineno + self._offset))
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            scope.bind(alias.asname or name, Binding("name", scope, name=name))

    def on_import_from(self, node: ast.ImportFrom, scope: Scope, _quiet: bool) -> None:
        """`from a import b as c`."""
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self.found.imports.append((f"{module}.{alias.name}", node.lineno + self._offset))
            if alias.name == "*":
                self.found.stars.append(module)
            else:
                scope.bind(alias.asname or alias.name, Binding("name", scope, name=f"{module}.{alias.name}"))

    # Definitions

    def on_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, _quiet: bool) -> None:
        """A definition of a function."""
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self._annotation(argument.annotation, scope)
        self._annotation(node.returns, scope)
        called_as = node.name
        if scope.is_class and node.name in {"__init__", "__new__"}:
            called_as = next(
                (
                    name
                    for name, found in (scope.outer or scope).bindings.items()
                    if any(binding.scope is scope for binding in found)
                ),
                node.name,
            )
        static = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list)
        function = Function(node, called_as, method=scope.is_class and not static)
        if static or any(isinstance(item, ast.Name) and item.id == "classmethod" for item in node.decorator_list):
            function.decorated = len(node.decorator_list) > 1
        scope.bind(node.name, Binding("function", scope, function=function))
        inner = Scope(scope, function=function)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.bind(argument.arg, Binding("parameter", scope, name=argument.arg, function=function))
        if arguments.vararg is not None:
            inner.bind(arguments.vararg.arg, Binding("rest", scope, function=function))
        if arguments.kwarg is not None:
            inner.bind(arguments.kwarg.arg, Binding("unknown", scope))
        for statement in reversed(node.body):
            self._later(statement, inner)
        self._heads(arguments, node.decorator_list, scope)

    def _heads(self, arguments: ast.arguments, decorators: list[ast.expr], scope: Scope) -> None:
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self._later(default, scope, quiet=isinstance(default, ast.Name | ast.Attribute))
        for decorator in decorators:
            self._later(decorator, scope)

    def on_lambda(self, node: ast.Lambda, scope: Scope, _quiet: bool) -> None:
        """A function without a name: its arguments may be anything."""
        inner = Scope(scope)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.bind(argument.arg, Binding("unknown", scope))
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                inner.bind(extra.arg, Binding("unknown", scope))
        self._later(node.body, inner)
        self._heads(arguments, [], scope)

    def on_class(self, node: ast.ClassDef, scope: Scope, _quiet: bool) -> None:
        """A class: a name for what it derives from."""
        inner = Scope(scope, is_class=True)
        scope.bind(node.name, Binding("class", inner, name=node.name))
        for base in node.bases:
            scope.bind(node.name, Binding("value", scope, expression=base))
        for statement in reversed(node.body):
            self._later(statement, inner)
        for keyword in node.keywords:
            self._later(keyword.value, scope)
        for base in node.bases:
            self._later(base, scope, quiet=isinstance(base, ast.Name | ast.Attribute))
        for decorator in node.decorator_list:
            self._later(decorator, scope)

    def on_return(self, node: ast.Return, scope: Scope, _quiet: bool) -> None:
        """What a function gives back."""
        if node.value is not None:
            if scope.function is not None:
                scope.function.returns.append((node.value, scope))
            self._later(node.value, scope)

    def on_delete(self, node: ast.Delete, scope: Scope, _quiet: bool) -> None:
        """`del a.b`; a plain name that is deleted stays what it may have been."""
        for target in node.targets:
            self._later(target, scope)


def _is_followed(target: ast.expr) -> bool:
    """Whether what is assigned there is known again when it is used: names, and attributes of the object itself."""
    if isinstance(target, ast.Attribute):
        return isinstance(target.value, ast.Name) and target.value.id in {"self", "cls"}
    return isinstance(target, ast.Name)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST) and not isinstance(item, _IDLE):
                    yield item
        elif isinstance(value, ast.AST) and not isinstance(value, _IDLE):
            yield value


_HANDLERS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Name: Walker.on_name,
    ast.Attribute: Walker.on_attribute,
    ast.Subscript: Walker.on_subscript,
    ast.Call: Walker.on_call,
    ast.Assign: Walker.on_assign,
    ast.AnnAssign: Walker.on_annotated,
    ast.NamedExpr: Walker.on_named,
    ast.AugAssign: Walker.on_augmented,
    ast.For: Walker.on_for,
    ast.AsyncFor: Walker.on_for,
    ast.comprehension: Walker.on_comprehension,
    ast.withitem: Walker.on_with_item,
    ast.ExceptHandler: Walker.on_handler,
    ast.MatchAs: Walker.on_match_name,
    ast.MatchStar: Walker.on_match_name,
    ast.Global: Walker.on_global,
    ast.Nonlocal: Walker.on_global,
    ast.Import: Walker.on_import,
    ast.ImportFrom: Walker.on_import_from,
    ast.FunctionDef: Walker.on_function,
    ast.AsyncFunctionDef: Walker.on_function,
    ast.Lambda: Walker.on_lambda,
    ast.ClassDef: Walker.on_class,
    ast.Return: Walker.on_return,
    ast.Delete: Walker.on_delete,
}
