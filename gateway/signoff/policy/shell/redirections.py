"""Redirections of one command, and what else stands on the line of a here-document."""

import re

import tree_sitter
from msgspec.structs import replace

from signoff.policy.shell import quoting, words
from signoff.policy.shell.expansion import evaluate
from signoff.policy.shell.machine import Io, Machine
from signoff.policy.shell.model import UNKNOWN, Redirect, Word
from signoff.policy.shell.syntax import text_of

Node = tree_sitter.Node


class Redirections:
    """The redirections of one command: its input, what it writes, and what else stands on a here-document's line."""

    def __init__(self, machine: Machine, nodes: list[Node], io: Io) -> None:
        self.machine = machine
        self.outer = io
        self.io = io
        self.written: list[Redirect] = []
        self.arguments: list[Node] = []
        self.piped: list[Node] = []
        self.after: list[tuple[str, Node]] = []
        for node in nodes:
            self._add(node)
        self.io = replace(self.io, redirects=(*io.redirects, *self.written))

    def _add(self, node: Node) -> None:
        if node.type == "herestring_redirect":
            found = [text for child in node.named_children for text in words.values(self.machine, child)]
            self.io = replace(self.io, stdin=found[0] + "\n" if len(found) == 1 else None, fed=True)
        elif node.type == "heredoc_redirect":
            self._heredoc(node)
        else:
            self._file(node)

    def _file(self, node: Node) -> None:
        targets = node.children_by_field_name("destination")
        operator = next((child.type for child in node.children if not child.is_named), ">")
        # The grammar takes words behind the target for further targets; to the shell they are arguments.
        self.arguments += targets[1:]
        found = words.plain(self.machine, targets[0]) if targets else []
        target = found[0] if found else Word("")
        self.written.append(Redirect(operator=operator, target=target))
        if operator == "<":
            known = target.content if target.given else self.machine.scope.files.get(target.text)
            self.io = replace(self.io, stdin=known, fed=True)

    def _heredoc(self, node: Node) -> None:
        starts = [text_of(child, self.machine.source) for child in node.children if child.type == "heredoc_start"]
        start = starts[0] if starts else ""
        body: Node | None = None
        operator = ""
        for child in node.children:
            if child.type == "heredoc_body":
                body = child
            elif child.type in {"file_redirect", "herestring_redirect"}:
                self._add(child)
            elif child.type == "pipeline":
                self._pipe(child)
            elif child.type in {"&&", "||"}:
                operator = child.type
            elif operator and child.is_named:
                self.after.append((operator, child))
                operator = ""
            elif child.is_named and child.type not in {"heredoc_start", "heredoc_end", "file_descriptor", "comment"}:
                self.arguments.append(child)
        text = "" if body is None else self._body(body, start)
        self.io = replace(self.io, stdin=text, fed=True)

    def _pipe(self, node: Node) -> None:
        """The rest of a pipeline that begins on the here-document's line, and what follows behind it."""
        for child in node.named_children:
            if child.type != "list":
                self.piped.append(child)
                continue
            first = child
            following: list[tuple[str, Node]] = []
            while first.type == "list" and len(first.children) >= 3:
                following.append((first.children[1].type, first.children[-1]))
                first = first.children[0]
            self.piped.append(first)
            self.after += reversed(following)

    def _body(self, body: Node, start: str) -> str:
        source = text_of(body, self.machine.source)
        if start[:1] in "'\"\\" or "\\" in start:
            return source
        for match in re.finditer(r"(?<!\\)`((?:[^`\\]|\\.)*)`", source, re.S):
            if not any(child.type == "command_substitution" for child in body.children):
                self.machine.read(quoting.backticked(match.group(1)), Io(chain=self.io.chain, place=self.io.place))
        parts: list[str] = []
        position = body.start_byte
        for child in body.named_children:
            parts.append(_raw(self.machine, position, child.start_byte))
            if child.type == "heredoc_content":
                parts.append(_raw(self.machine, child.start_byte, child.end_byte))
            else:
                values = evaluate(self.machine, child, quoted=True)
                parts.append("".join(piece.text for piece in values[0]) if len(values) == 1 else UNKNOWN)
            position = child.end_byte
        return "".join([*parts, _raw(self.machine, position, body.end_byte)])

    def finish(self, output: str | None) -> str | None:
        """Run what follows the command on its line, and remember what it wrote into files."""
        machine = self.machine
        for redirect in self.written:
            if redirect.operator in {">", ">|", ">>"} and redirect.target.literal is not None:
                before = machine.scope.files.get(redirect.target.text, "") if redirect.operator == ">>" else ""
                known = None if output is None or before is None or machine.unsure else before + output
                machine.scope.files[redirect.target.text] = known
                output = ""
        if self.piped:
            output = self._run_piped(output)
        for operator, node in self.after:
            if operator == "||":
                with machine.perhaps():
                    machine.statement(node, self.outer)
            else:
                machine.statement(node, self.outer)
            output = None
        return output

    def _run_piped(self, output: str | None) -> str | None:
        for stage in self.piped:
            with self.machine.subshell():
                output = self.machine.statement(stage, replace(self.outer, stdin=output, fed=True))
        return output


def _raw(machine: Machine, start: int, end: int) -> str:
    return quoting.heredoc(machine.source[start:end].decode("utf-8", "replace"))
