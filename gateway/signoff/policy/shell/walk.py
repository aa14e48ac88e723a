"""Walks statements: lists, pipelines, groups, branches, loops, functions, redirections."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from itertools import zip_longest

import tree_sitter
from msgspec.structs import replace

from signoff.policy.shell import evaluating, invocation, simple, words
from signoff.policy.shell.expansion import evaluate, visit
from signoff.policy.shell.machine import MAX_DEPTH, TOO_DEEP, Io, Machine
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
    if machine.failing and machine.depth == _OUTERMOST and _begins_line(machine.source, node.start_byte):
        machine.line_ends()
    if machine.depth >= MAX_DEPTH:
        machine.problems.setdefault(TOO_DEEP)
        return None
    outer, machine.io = machine.io, io
    machine.depth += 1  # as `nested` does, without its cost for each statement
    machine.visited.add(node.id)
    try:
        return handler(machine, node, io)
    finally:
        machine.depth -= 1
        machine.io = outer
        if machine.scope.integer_values:
            evaluating.drain(machine)


_OUTERMOST = 2
"""The level of the statements of the text itself, below that of reading it."""


def _begins_line(source: bytes, start: int) -> bool:
    return not source[source.rfind(b"\n", 0, start) + 1 : start].strip()


def plain_command(
    machine: Machine, found: tuple[Word, ...], io: Io, rows: list[simple.Row] | None = None
) -> str | None:
    """Run a command whose words are known without a syntax tree; what it prints, or None."""
    outer = machine.io
    machine.io = io
    try:
        return simple.run(machine, found, io, rows=rows)
    finally:
        machine.io = outer
        if machine.scope.integer_values:
            evaluating.drain(machine)


def _sequence(machine: Machine, nodes: list[Node], io: Io) -> str | None:
    """Statements one after the other."""
    outputs = [statement(machine, node, io) for node in nodes]
    return None if None in outputs else "".join(text for text in outputs if text)


def _body(machine: Machine, node: Node, io: Io) -> str | None:
    if node.children and node.children[0].type == "((":
        visit(machine, node, arithmetic=True)
        return ""
    if b"&" not in machine.source:
        return _sequence(machine, [child for child in children_of(node) if child.is_named], io)
    return _with_background(machine, children_of(node), io)


def _with_background(machine: Machine, nodes: list[Node], io: Io) -> str | None:
    """Statements of which those before a single `&` run in a shell of their own."""
    outputs: list[str | None] = []
    for child, sign in zip_longest(nodes, nodes[1:]):
        if not child.is_named:
            continue
        if sign is None or sign.type != "&":
            outputs.append(statement(machine, child, io))
        else:
            with machine.subshell():
                outputs.append(statement(machine, child, io))
    return None if None in outputs else "".join(text for text in outputs if text)


def _subshell(machine: Machine, node: Node, io: Io) -> str | None:
    with machine.subshell():
        return _body(machine, node, io)


def _list(machine: Machine, node: Node, io: Io) -> str | None:
    return _list_of(machine, node, [], io)


def _list_of(machine: Machine, node: Node, behind: list[Node], io: Io) -> str | None:
    """A list whose last command has the redirections `behind`."""
    return _listed(machine, node, io, lambda last: _redirected_body(machine, last, behind, io))


def _listed(machine: Machine, node: Node, io: Io, run_last: Callable[[Node], str | None]) -> str | None:
    """`a && b || c`, which the grammar nests to the left, once for each operator."""
    parts: list[tuple[str, Node]] = []
    current = node
    while current.type == "list" and len(current.children) >= 3:
        parts.append((current.children[1].type, current.children[-1]))
        current = current.children[0]
    outputs = [statement(machine, current, io)]
    before = machine.scope.copy()
    for place, (operator, part) in enumerate(reversed(parts), 1):
        with machine.perhaps() if operator == "||" else nullcontext():
            # Behind `&&` what stood to the left was done; behind the list it may not have been.
            output = run_last(part) if place == len(parts) else statement(machine, part, io)
        outputs.append(None if operator == "||" else output)
    machine.scope.merge(before)
    moved(machine, before.cwd)
    return None if None in outputs else "".join(text for text in outputs if text)


def _pipeline(machine: Machine, node: Node, io: Io) -> str | None:
    return _stages(machine, node, [], io)


def _stages(machine: Machine, node: Node, behind: list[Node], io: Io) -> str | None:
    """A pipeline whose last stage has the redirections `behind`. In `a && b >&2 | c` the grammar has the whole list
    for its first stage."""
    first, *others = [child for child in node.named_children if child.type != "comment"]
    body = first.child_by_field_name("body") if first.type == "redirected_statement" else None
    if body is None or body.type != "list":
        return _piped(machine, first, [], others, behind, io)
    redirects = _redirects_of(first)
    return _listed(machine, body, io, lambda last: _piped(machine, last, redirects, others, behind, io))


def _piped(
    machine: Machine, first: Node, redirects: list[Node], others: list[Node], behind: list[Node], io: Io
) -> str | None:
    """Stages of which the first has `redirects` and the last those `behind`."""
    *stages, last = [first, *others]
    for stage in stages:
        with machine.subshell():
            output = _redirected_body(machine, stage, redirects if stage is first else [], io)
        io = replace(io, stdin=output, fed=True)
    if not behind:
        with machine.subshell():
            return statement(machine, last, io)
    if invocation.lost_start(machine.source, last) is None and behind[-1].type == "file_redirect":
        with machine.subshell():
            return _redirected_body(machine, last, behind, io)
    # On the line of a here-document more may follow the pipeline, so what is assigned there stays possible.
    before = machine.scope.copy()
    output = _redirected_body(machine, last, behind, io)
    machine.scope.merge(before)
    moved(machine, before.cwd)
    return output


def _negated(machine: Machine, node: Node, behind: list[Node], io: Io) -> str | None:
    return _redirected_body(machine, node.named_children[-1], behind, io)


def _parts(machine: Machine, node: Node, io: Io) -> str | None:
    return _sequence(machine, node.named_children, io)


def _branches(machine: Machine, node: Node, io: Io) -> str | None:
    cwd = machine.scope.cwd
    with machine.perhaps():
        _sequence(machine, node.named_children, io)
    moved(machine, cwd)
    return None


def moved(machine: Machine, cwd: str | None) -> None:
    """Behind something that may not have run, a folder that was changed there is not known."""
    if machine.scope.cwd != cwd:
        machine.scope.cwd = None


def _while(machine: Machine, node: Node, io: Io) -> str | None:
    return _again(machine, lambda: _branches(machine, node, io))


def _again(machine: Machine, once: Callable[[], str | None]) -> str | None:
    """A loop: its body once more where it changed what it may use above that place, and with all of that unknown where
    it then changes it further. Deeper loops come to that at once."""
    before, state = machine.scope.copy(), machine.scope.state()
    once()
    machine.loops += 1
    try:
        if machine.loops <= _FOLLOWED_LOOPS and machine.scope.state() != state:
            state = machine.scope.state()
            once()
        if machine.scope.state() != state:
            machine.scope.widen(before)
            if machine.loops > _FOLLOWED_LOOPS:
                machine.deep_loop()
            once()
            machine.scope.widen(before)
    finally:
        machine.loops -= 1
    return None


_FOLLOWED_LOOPS = 2
"""How many loops within each other are gone through twice before what they change is unknown."""


def _case(machine: Machine, node: Node, io: Io) -> str | None:
    cwd = machine.scope.cwd
    with machine.perhaps():
        for child in node.named_children:
            if child.type != "case_item":
                evaluate(machine, child)
                continue
            # Patterns are expanded one by one until one fits.
            values = child.children_by_field_name("value")
            for part in child.named_children:
                if part in values or part.type not in _HANDLERS:
                    evaluate(machine, part)
                else:
                    statement(machine, part, io)
    moved(machine, cwd)
    return None


def _for(machine: Machine, node: Node, io: Io) -> str | None:
    name = node.child_by_field_name("variable")
    values: list[str] = []
    given = False
    bodies: list[Node] = []
    for child in children_of(node):
        machine.deadline.check()
        if child.type == "do_group":
            bodies.append(child)
        elif given and child.is_named and child.type != "comment":
            values += [word.text for word in words.plain(machine, child)]
        given = given or child.type == "in"
    variable = "" if name is None else text_of(name, machine.source)
    before = machine.scope.values.get(variable, (UNKNOWN,))
    if node.children[0].type == "select":
        values.append("")  # for an answer that is none
        machine.scope.forget("REPLY")
    machine.scope.assign(variable, tuple(values) if given else (UNKNOWN,), surely=True)
    _again(machine, lambda: _bodies(machine, bodies, io))
    if machine.unsure or not values or UNKNOWN in values:
        # The loop may have had no words, or none of this may have run: then the variable is what it was.
        machine.scope.assign(variable, before, surely=False)
    return None


def _bodies(machine: Machine, nodes: list[Node], io: Io) -> str | None:
    cwd = machine.scope.cwd
    with machine.perhaps():
        for node in nodes:
            statement(machine, node, io)
    moved(machine, cwd)
    return None


def _c_for(machine: Machine, node: Node, io: Io) -> str | None:
    return _again(machine, lambda: _c_for_once(machine, node, io))


def _c_for_once(machine: Machine, node: Node, io: Io) -> str | None:
    with machine.perhaps():
        for child in node.named_children:
            if child.type in {"do_group", "compound_statement"}:
                statement(machine, child, io)
            else:
                visit(machine, child, arithmetic=True)
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
        machine.scope.functions[name] = Function(body, b"", surely=True)
        _redirected_body(machine, body, _redirects_of(node), io)
    machine.scope.functions[name] = Function(body, machine.source, surely=not machine.unsure)
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
    """Walk a construct with the redirections behind it. The grammar has those of the last command in a list or a
    pipeline behind all of it."""
    if body is not None:
        if not nodes:
            return statement(machine, body, io)
        if body.type == "command":
            return invocation.with_redirects(machine, body, nodes, io)
        of_last = _REDIRECTED_LAST.get(body.type)
        if of_last is not None and invocation.lost_start(machine.source, body) is None:
            return of_last(machine, body, nodes, io)
    redirects = Redirections(machine, nodes, io)
    if redirects.written:
        machine.emit(_bare(machine, redirects.io, (), _span(machine, body, nodes)))
    output = statement(machine, body, replace(redirects.io, redirects=())) if body is not None else ""
    begins = invocation.lost_start(machine.source, body) if body is not None else None
    if begins is not None and (redirects.arguments or redirects.inputs):
        # A command whose line the grammar took for more of this one, with all that is behind.
        _read_apart(machine, begins, nodes[-1].end_byte, io)
    elif redirects.arguments:
        # Words cannot stand behind a construct: they are such a command.
        _read_apart(machine, redirects.arguments[0].start_byte, redirects.arguments[-1].end_byte, redirects.io)
    return redirects.finish(output)


def _read_apart(machine: Machine, start: int, end: int, io: Io) -> None:
    machine.cover(start, end)
    machine.read(machine.source[start:end].decode("utf-8", "replace"), io)


def _span(machine: Machine, body: Node | None, nodes: list[Node]) -> str:
    """A construct with its redirections, or those alone, as written."""
    start = nodes[0].start_byte if body is None else body.start_byte
    return machine.source[start : nodes[-1].end_byte].decode("utf-8", "replace")


def _file_redirect(machine: Machine, node: Node, io: Io) -> str | None:
    """A redirection alone: `$(<file)` prints a file that this text may have written itself."""
    redirects = Redirections(machine, [node], io)
    if redirects.written:
        machine.emit(_bare(machine, redirects.io, (), text_of(node, machine.source)))
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


def _assignment(machine: Machine, node: Node, io: Io) -> str | None:
    _assigned(machine, node, io)
    return ""


def _assigned(machine: Machine, node: Node, io: Io) -> list[tuple[str, str]]:
    append = any(child.type == "+=" for child in node.children)
    surely = not machine.unsure
    found: list[tuple[str, str]] = []
    given = words.assigned(machine, node)
    elements = given.pop()[1] if given[-1:] and given[-1][0].endswith("[]") else None
    for name, values in given:
        if elements is not None and any(element[:1] == "[" for element in elements):
            machine.scope.forget(name)
        elif elements is not None:
            (machine.scope.extend if append else machine.scope.fill)(name, elements, surely=surely)
        elif append:
            machine.scope.append(name, values, surely=surely)
        else:
            machine.scope.assign(name, values, surely=surely)
        found += [(name, value) for value in values]
    machine.emit(_bare(machine, io, tuple(found), text_of(node, machine.source)))
    return found


def _declaration(machine: Machine, node: Node, io: Io) -> str | None:
    found: list[Word] = []
    for child in node.children:
        machine.deadline.check()
        if child.type == "variable_assignment":
            given = _assigned(machine, child, io)
            found += [Word(f"{name}={value}") for name, value in given] or [Word(text_of(child, machine.source))]
        else:
            found += words.plain(machine, child)
    return simple.run(machine, tuple(found), replace(io, source=text_of(node, machine.source)))


def _nothing(_machine: Machine, _node: Node, _io: Io) -> str | None:
    return ""


_TEST_EVALUATES = re.compile(rb"[$`(<>\\]|\[.*\[|-(?:eq|ne|lt|le|gt|ge|v|R)\b", re.S)
"""What may make a test more than a question about words that stand there."""


def _test(machine: Machine, node: Node, _io: Io) -> str | None:
    if _TEST_EVALUATES.search(machine.source, node.start_byte + 2, node.end_byte) is not None:
        visit(machine, node)
    return ""


_REDIRECTED_LAST: dict[str, Callable[[Machine, Node, list[Node], Io], str | None]] = {
    "list": _list_of,
    "pipeline": _stages,
    "negated_command": _negated,
}
"""Constructs of which only the last command has the redirections that stand behind them."""

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
    "while_statement": _while,
    "case_statement": _case,
    "for_statement": _for,
    "c_style_for_statement": _c_for,
    "function_definition": _function,
    "redirected_statement": _redirected,
    "file_redirect": _file_redirect,
    "command": invocation.command,
    "declaration_command": _declaration,
    "unset_command": _declaration,
    "variable_assignment": _assignment,
    "variable_assignments": _parts,
    "test_command": _test,
    "comment": _nothing,
}
