"""One simple command as it stands in a text: its redirections, assignments and words, for each value they may have."""

import re
from collections.abc import Iterable

import tree_sitter

from signoff.policy.shell import plain, simple, words
from signoff.policy.shell.expansion import MAX_ALTERNATIVES, starts_translated
from signoff.policy.shell.machine import UNREADABLE, Io, Machine
from signoff.policy.shell.model import UNKNOWN, Word
from signoff.policy.shell.redirections import Redirections
from signoff.policy.shell.syntax import children_of

Node = tree_sitter.Node

_BLANKS = b" \t\n\\"

_CHECK_EVERY = 16
"""After so many words of one command the time is looked at."""


def command(machine: Machine, node: Node, io: Io) -> str | None:
    """Walk a simple command; what it prints, or None when that is not known."""
    return with_redirects(machine, node, [], io)


def with_redirects(machine: Machine, node: Node, around: list[Node], io: Io) -> str | None:
    """Walk a simple command with its own redirections and those that stand `around` it."""
    machine.visited.add(node.id)
    text = machine.source[node.start_byte : node.end_byte]
    known = None if len(text) > plain.MAX_CHARS else plain.words(text.decode("utf-8", "replace"))
    if known is not None:
        if not around:
            return _run(machine, [list(known)], io, (), text)
        if machine.source[node.end_byte : around[0].start_byte] == b" ":
            redirected = Redirections(machine, around, io)
            lines = _all_behind(machine, [list(known)], redirected.arguments)
            return redirected.finish(_run(machine, lines, redirected.io, (), text))
    nodes = children_of(node)
    if b"\n" in text and (cut := _lost_line(machine.source, nodes)):
        rest = machine.source[nodes[cut].start_byte : node.end_byte].decode("utf-8", "replace")
        _with_redirects(machine, nodes[:cut], around, io, text)
        machine.cover(nodes[cut].start_byte, node.end_byte)
        return machine.read(rest, io)
    return _with_redirects(machine, nodes, around, io, text)


def _lost_line(source: bytes, nodes: list[Node]) -> int:
    """The place of the first word of a line that the grammar took for more of the line before it, or 0: that happens to
    a line with a redirection behind a pipeline of three."""
    for place in range(1, len(nodes)):
        if b"\n" in source[nodes[place - 1].end_byte : nodes[place].start_byte]:
            return place
    return 0


def lost_start(source: bytes, node: Node) -> int | None:
    """Where the lost line starts in the last command of a construct, or None where none was lost there."""
    while node.type != "command" and node.named_children:
        node = node.named_children[-1]
    cut = _lost_line(source, node.children)
    return node.children[cut].start_byte if cut else None


def _with_redirects(machine: Machine, nodes: list[Node], around: list[Node], io: Io, text: bytes) -> str | None:
    if not around and b"<" not in text and b">" not in text:
        return _resolved(machine, nodes, io, text)
    redirects = [child for child in nodes if child.type.endswith("_redirect")] + around
    if not redirects:
        return _resolved(machine, nodes, io, text)
    nodes = _without_descriptors(machine, nodes, {redirect.start_byte for redirect in redirects})
    found = Redirections(machine, redirects, io)
    outside = around[0].start_byte if around else 0
    behind = found.arguments
    if nodes and around and behind and b"\n" in machine.source[nodes[-1].end_byte : outside]:
        # `a | b | c` and a line `> file d`: what stands behind the file is a command of its own.
        rest = machine.source[behind[0].start_byte : behind[-1].end_byte].decode("utf-8", "replace")
        machine.cover(behind[0].start_byte, behind[-1].end_byte)
        machine.read(rest, found.io)
        behind = []
    return found.finish(_resolved(machine, nodes, found.io, text, tuple(behind), outside))


_DESCRIPTOR = re.compile(rb"\d+|(?:'')?\{\w+\}")


def _without_descriptors(machine: Machine, nodes: list[Node], starts: set[int]) -> list[Node]:
    """The nodes but for those that name a descriptor (`3<<<`, `{name}<`), which the grammar takes for words."""
    kept: list[Node] = []
    for node in nodes:
        if node.end_byte in starts and _DESCRIPTOR.fullmatch(machine.source, node.start_byte, node.end_byte):
            name = machine.source[node.start_byte : node.end_byte].strip(b"'{}").decode("utf-8", "replace")
            if not name.isdigit():
                machine.scope.forget(name)
        else:
            kept.append(node)
    return kept


_NO_NAME = re.compile(r"[^A-Za-z_]")


def _resolved(
    machine: Machine, nodes: list[Node], io: Io, text: bytes, behind: tuple[Node, ...] = (), outside: int = 0
) -> str | None:
    """Resolve the words and run them for each value they may have. Redirections among the nodes were looked at.

    `behind` are words that stand behind redirections, `outside` is where the first of those around it starts.
    """
    assignments: tuple[tuple[str, str], ...] = ()
    found: list[list[Word]] = [[]]
    source = machine.source
    end = nodes[0].start_byte if nodes else 0
    for count, node in enumerate(nodes, 1):
        if count % _CHECK_EVERY == 0:
            machine.deadline.check()
        start = node.start_byte
        if start - end > 1:
            _skipped(machine, found, end, start)
        end = node.end_byte
        word = words.fixed(source, start, end)
        if word is not None:
            for before in found:
                before.append(word)
            continue
        kind = node.type
        if kind == "variable_assignment":
            given = [(name, value) for name, values in words.assigned(machine, node) for value in values]
            if given and _NO_NAME.match(given[0][0]):  # to the shell it is a word like any other
                found = _behind(found, [[Word(f"{name}={value}")] for name, value in given])
            else:
                assignments += tuple(given)
        elif kind == "subshell":
            # `time (...)`: the grammar takes the keyword for a program and the group for a part of its words.
            machine.statement(node, io)
        elif kind != "comment" and not kind.endswith("_redirect") and not starts_translated(source, node):
            found = _behind(found, words.alternatives(machine, node))
    if outside - end > 1:
        _skipped(machine, found, end, outside)
    return _run(machine, _all_behind(machine, found, behind), io, assignments, text)


def _run(
    machine: Machine, found: list[list[Word]], io: Io, assignments: tuple[tuple[str, str], ...], text: bytes
) -> str | None:
    """Run each line of words."""
    io = Io(
        stdin=io.stdin,
        fed=io.fed,
        redirects=io.redirects,
        chain=io.chain,
        place=io.place,
        assignments=io.assignments + assignments,
        source=text.decode("utf-8", "replace"),
    )
    if len(found) == 1:
        return simple.run(machine, tuple(found[0]), io)
    with machine.perhaps():
        for one in found:
            simple.run(machine, tuple(one), io)
    return None


def _skipped(machine: Machine, found: list[list[Word]], start: int, end: int) -> None:
    """What stands between two words and is no blank: the grammar loses a dash before a here-document."""
    lost = machine.source[start:end].strip(_BLANKS)
    if lost == b"-":
        for before in found:
            before.append(Word("-"))
    elif lost:
        machine.problems.setdefault(UNREADABLE)


def _all_behind(machine: Machine, found: list[list[Word]], nodes: Iterable[Node]) -> list[list[Word]]:
    """Each line of words so far with the words of these nodes, which stand behind redirections."""
    for node in nodes:
        found = _behind(found, words.alternatives(machine, node))
    return found


def _behind(found: list[list[Word]], part: list[list[Word]]) -> list[list[Word]]:
    """Each line of words so far with each value of the next word; too many become one that is not known."""
    if len(part) == 1:
        for before in found:
            before.extend(part[0])
        return found
    if len(found) * len(part) > MAX_ALTERNATIVES:
        return [[*before, Word(UNKNOWN, many=True)] for before in found]
    return [[*before, *following] for before in found for following in part]
