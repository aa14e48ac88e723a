"""Walks statements: lists, pipelines, groups, branches, loops, functions, redirections."""

import re
from collections.abc import Callable

import tree_sitter
from msgspec.structs import replace

from signoff.policy.shell import simple, words
from signoff.policy.shell.expansion import MAX_ALTERNATIVES, evaluate, visit
from signoff.policy.shell.machine import Io, Machine
from signoff.policy.shell.model import UNKNOWN, Command, Word
from signoff.policy.shell.redirections import Redirections
from signoff.policy.shell.scope import Function
from signoff.policy.shell.syntax import children_of, text_of

Node = tree_sitter.Node
Handler = Callable[[Machine, Node, Io], str | None]


def statement(machine: Machine, node: Node, io: Io) -> str | None:
    """Walk one statement; what it prints, or None when that is not known."""
    machine.deadline.check()
    handler = _HANDLERS.get(node.type)
    if handler is None:
        visit(machine, node)
        return None
    with machine.nested() as deeper:
        if not deeper:
            return None
        outer, machine.io = machine.io, io
        try:
            return handler(machine, node, io)
        finally:
            machine.io = outer


def _sequence(machine: Machine, nodes: list[Node], io: Io) -> str | None:
    outputs = [statement(machine, node, io) for node in nodes if node.type in _HANDLERS or node.is_named]
    return None if None in outputs else "".join(text for text in outputs if text)


def _body(machine: Machine, node: Node, io: Io) -> str | None:
    if node.children and node.children[0].type == "((":
        visit(machine, node)
        return ""
    return _sequence(machine, node.named_children, io)


def _subshell(machine: Machine, node: Node, io: Io) -> str | None:
    with machine.subshell():
        return _body(machine, node, io)


def _list(machine: Machine, node: Node, io: Io) -> str | None:
    """`a && b || c`, which the grammar nests to the left, once for each operator."""
    parts: list[tuple[str, Node]] = []
    current = node
    while current.type == "list" and len(current.children) >= 3:
        parts.append((current.children[1].type, current.children[-1]))
        current = current.children[0]
    outputs = [statement(machine, current, io)]
    for operator, part in reversed(parts):
        if operator == "||":
            with machine.perhaps():
                statement(machine, part, io)
            outputs.append(None)
        else:
            outputs.append(statement(machine, part, io))
    return None if None in outputs else "".join(text for text in outputs if text)


def _pipeline(machine: Machine, node: Node, io: Io) -> str | None:
    return _stages(machine, [child for child in node.named_children if child.type != "comment"], io)


def _stages(machine: Machine, stages: list[Node], io: Io) -> str | None:
    output: str | None = None
    for index, stage in enumerate(stages):
        with machine.subshell():
            output = statement(machine, stage, io if index == 0 else replace(io, stdin=output, fed=True))
    return output


def _parts(machine: Machine, node: Node, io: Io) -> str | None:
    return _sequence(machine, node.named_children, io)


def _branches(machine: Machine, node: Node, io: Io) -> str | None:
    with machine.perhaps():
        _sequence(machine, node.named_children, io)
    return None


def _case(machine: Machine, node: Node, io: Io) -> str | None:
    with machine.perhaps():
        for child in node.named_children:
            if child.type != "case_item":
                evaluate(machine, child)
                continue
            values = child.children_by_field_name("value")
            for part in child.named_children:
                if part not in values:
                    statement(machine, part, io)
    return None


def _for(machine: Machine, node: Node, io: Io) -> str | None:
    name = node.child_by_field_name("variable")
    values = [word.text for child in node.children_by_field_name("value") for word in words.plain(machine, child)]
    if name is not None:
        given = any(child.type == "in" for child in node.children)
        machine.scope.assign(text_of(name, machine.source), tuple(values) if given else (UNKNOWN,), surely=True)
    with machine.perhaps():
        for child in node.named_children:
            if child.type == "do_group":
                statement(machine, child, io)
    return None


def _c_for(machine: Machine, node: Node, io: Io) -> str | None:
    with machine.perhaps():
        for child in node.named_children:
            if child.type in {"do_group", "compound_statement"}:
                statement(machine, child, io)
            else:
                visit(machine, child)
    return None


def _function(machine: Machine, node: Node, io: Io) -> str | None:
    name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name_node is None or body is None:
        return ""
    name = text_of(name_node, machine.source)
    _note_fork_bomb(machine, name, body)
    # The body is read once as it stands, called or not; `$1` and the like are not known then.
    with machine.subshell(), machine.perhaps():
        machine.scope.positional = None
        machine.scope.functions.pop(name, None)
        machine.scope.functions[name] = Function(body, b"")
        _redirected_body(machine, body, _redirects_of(node), io)
    machine.scope.functions[name] = Function(body, machine.source)
    return ""


def _note_fork_bomb(machine: Machine, name: str, body: Node) -> None:
    """A function that calls itself twice, or in a pipeline, and puts that in the background."""
    calls = background = piped = 0
    todo: list[tuple[Node, bool]] = [(body, False)]
    while todo:
        machine.deadline.check()
        node, in_pipe = todo.pop()
        background += node.type == "&"
        if node.type == "command_name" and re.sub(r"[\\'\"]", "", text_of(node, machine.source)) == name:
            calls += 1
            piped += in_pipe
        todo += [(child, in_pipe or node.type == "pipeline") for child in node.children]
    if background and calls and (calls > 1 or piped):
        machine.fork_bombs.setdefault(name)


def _redirected(machine: Machine, node: Node, io: Io) -> str | None:
    return _redirected_body(machine, node.child_by_field_name("body"), _redirects_of(node), io)


def _redirects_of(node: Node) -> list[Node]:
    """The redirections behind a construct; the grammar gives here-strings no field name. As many as words are looked
    at."""
    return [child for child in children_of(node) if child.type.endswith("_redirect")]


def _redirected_body(machine: Machine, body: Node | None, nodes: list[Node], io: Io) -> str | None:
    if body is not None and body.type == "command":
        return _with_redirects(machine, body, nodes, io)
    redirects = Redirections(machine, nodes, io)
    if redirects.written:
        machine.emit(_bare(machine, redirects.io, (), io.source))
    output = statement(machine, body, replace(redirects.io, redirects=())) if body is not None else ""
    return redirects.finish(output)


def _file_redirect(machine: Machine, node: Node, io: Io) -> str | None:
    """A redirection alone: `$(<file)` prints a file that this text may have written itself."""
    redirects = Redirections(machine, [node], io)
    if redirects.written:
        machine.emit(_bare(machine, redirects.io, (), io.source))
    return redirects.io.stdin


def _bare(machine: Machine, io: Io, assignments: tuple[tuple[str, str], ...], source: str) -> Command:
    """A command without a program: redirections or assignments alone."""
    return Command(
        words=(),
        own=0,
        assignments=assignments,
        redirects=io.redirects,
        chain=io.chain,
        place=io.place,
        cwd=machine.scope.cwd,
        source=source,
    )


def _command(machine: Machine, node: Node, io: Io) -> str | None:
    return _with_redirects(machine, node, [], io)


def _with_redirects(machine: Machine, node: Node, nodes: list[Node], io: Io) -> str | None:
    """Run a simple command with its own redirections and those that stand around it."""
    nodes = [child for child in children_of(node) if child.type.endswith("_redirect")] + nodes
    if not nodes:
        return _resolved(machine, node, io, [])
    found = Redirections(machine, nodes, io)
    return found.finish(_resolved(machine, node, found.io, found.arguments))


def _resolved(machine: Machine, node: Node, io: Io, arguments: list[Node]) -> str | None:
    """Resolve the words of a simple command and run it for each value they may have."""
    assignments: list[tuple[str, str]] = []
    nodes: list[Node] = []
    for child in node.children:
        if child.type == "variable_assignment":
            assignments += [(name, value) for name, values in words.assigned(machine, child) for value in values]
        elif child.type == "subshell":
            # `time (...)`: the grammar takes the keyword for a program and the group for a part of its words.
            statement(machine, child, io)
        elif child.type != "comment" and not child.type.endswith("_redirect"):
            nodes.append(child)
    io = replace(io, assignments=(*io.assignments, *assignments), source=text_of(node, machine.source))
    return _run_each(machine, [words.alternatives(machine, part) for part in [*nodes, *arguments]], io)


def _run_each(machine: Machine, parts: list[list[list[Word]]], io: Io) -> str | None:
    found: list[list[Word]] = [[]]
    for part in parts:
        if len(part) == 1:
            for before in found:
                before.extend(part[0])
        elif len(found) * len(part) > MAX_ALTERNATIVES:
            found = [[*before, Word(UNKNOWN, many=True)] for before in found]
        else:
            found = [[*before, *following] for before in found for following in part]
    if len(found) == 1:
        return simple.run(machine, tuple(found[0]), io)
    with machine.perhaps():
        for one in found:
            simple.run(machine, tuple(one), io)
    return None


def _assignment(machine: Machine, node: Node, io: Io) -> str | None:
    append = any(child.type == "+=" for child in node.children)
    found: list[tuple[str, str]] = []
    for name, values in words.assigned(machine, node):
        if name.endswith("[]"):
            machine.scope.arrays[name[:-2]] = values
            continue
        if append:
            machine.scope.append(name, values)
        else:
            machine.scope.assign(name, values, surely=not machine.unsure)
        found += [(name, value) for value in values]
    machine.emit(_bare(machine, io, tuple(found), text_of(node, machine.source)))
    return ""


def _declaration(machine: Machine, node: Node, io: Io) -> str | None:
    found: list[Word] = []
    for child in node.children:
        if child.type == "variable_assignment":
            _assignment(machine, child, io)
            found.append(Word(text_of(child, machine.source)))
        else:
            found += words.plain(machine, child)
    return simple.run(machine, tuple(found), replace(io, source=text_of(node, machine.source)))


def _nothing(_machine: Machine, _node: Node, _io: Io) -> str | None:
    return ""


def _test(machine: Machine, node: Node, _io: Io) -> str | None:
    visit(machine, node)
    return ""


_HANDLERS: dict[str, Handler] = {
    "program": _body,
    "compound_statement": _body,
    "do_group": _body,
    "subshell": _subshell,
    "list": _list,
    "pipeline": _pipeline,
    "negated_command": _parts,
    "if_statement": _branches,
    "elif_clause": _branches,
    "else_clause": _branches,
    "while_statement": _branches,
    "case_statement": _case,
    "for_statement": _for,
    "c_style_for_statement": _c_for,
    "function_definition": _function,
    "redirected_statement": _redirected,
    "file_redirect": _file_redirect,
    "command": _command,
    "declaration_command": _declaration,
    "unset_command": _declaration,
    "variable_assignment": _assignment,
    "variable_assignments": _parts,
    "test_command": _test,
    "comment": _nothing,
}
