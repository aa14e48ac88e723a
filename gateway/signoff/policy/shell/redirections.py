"""Redirections of one command, and what else stands on the line of a here-document."""

import re

import tree_sitter
from msgspec.structs import replace

from signoff.policy.shell import quoting, words
from signoff.policy.shell.deadline import TooManyWordsError
from signoff.policy.shell.expansion import evaluate
from signoff.policy.shell.machine import Io, Machine
from signoff.policy.shell.model import UNKNOWN, Redirect, Word
from signoff.policy.shell.syntax import HERE_STRING, children_of, text_of

Node = tree_sitter.Node

MAX_REDIRECTS = 256
"""How many one command may have: rules look at each of them, and no honest command comes near."""

MAX_KEPT = 64 * 1024
"""How many characters of a file that a text writes are kept."""

_ASIDE = re.compile(rb"(?<![^\s;&|()])(?:0*[1-9]\d*|(?:'')?\{\w+\})\Z")
"""A descriptor that is not the input, before an operator."""

_LONGEST_DESCRIPTOR = 64
_ESCAPED = re.compile(r"\\.", re.S)
_MISSED = re.compile(r"\$[({A-Za-z_0-9@*#?!$-]")
_DELIMITER = re.compile(rb"""\\?([^\s'"\\|&;<>()`$]+)|'([^'\n]+)'|"([^"\\`$\n]+)\"""")
"""Delimiters of here-documents that the grammar takes for what the shell does."""

_BEHIND_DELIMITER = frozenset({b"", *(bytes([each]) for each in b" \t\n|&;<>()")})


class Redirections:
    """The redirections of one command: its input, what it writes, and what else stands on a here-document's line."""

    def __init__(self, machine: Machine, nodes: list[Node], io: Io) -> None:
        self.machine = machine
        self.outer = io
        self.io = io
        self.written: list[Redirect] = []
        self.inputs = 0
        self.aside: set[int] = set()
        self.arguments: list[Node] = []
        self.piped: list[Node] = []
        self.after: list[tuple[str, Node]] = []
        for node in nodes:
            self._add(node)
        self.io = replace(self.io, redirects=(*io.redirects, *self.written))

    def _add(self, node: Node) -> None:
        self.machine.deadline.check()
        if len(self.written) >= MAX_REDIRECTS:
            raise TooManyWordsError
        if node.type == "herestring_redirect":
            self._here_string(node, node.named_children)
        elif node.type == "heredoc_redirect":
            self._heredoc(node)
        else:
            self._file(node)

    def _here_string(self, node: Node, given: list[Node]) -> None:
        source, start = self.machine.source, node.start_byte
        if given and b"\n" in source[start : given[0].start_byte]:
            self.machine.note_unreadable()  # to the shell the line ends there
        found = [text for each in given for text in words.values(self.machine, each)]
        self._feed(found[0] + "\n" if len(found) == 1 else None, source.find(b"<", start))

    def _file(self, node: Node) -> None:
        targets, children = node.children_by_field_name("destination"), node.children
        sign = next((child for child in children if not child.is_named), None)
        operator = ">" if sign is None else sign.type
        # The grammar takes words behind the target for further targets; to the shell they are arguments.
        self.arguments += targets[1:]
        if sign is not None and self.machine.source.startswith(HERE_STRING, sign.start_byte):
            self._here_string(node, targets[:1])
            return
        found = words.plain(self.machine, targets[0]) if targets else []
        target = found[0] if found else Word("")
        first = children[0]
        if first is not sign and first.type == "file_descriptor" and text_of(first, self.machine.source) != "1":
            self.aside.add(len(self.written))
        self.written.append(Redirect(operator=operator, target=target))
        if operator == "<":
            known = target.content if target.given else self.machine.scope.files.get(target.text)
            self._feed(known, -1 if sign is None else sign.start_byte)
        elif operator == "<&" and target.text not in {"-", "0"}:
            # Another descriptor: what `exec` opened, or one end of a coprocess.
            opened = self.machine.scope.input
            self._feed(opened[0] if opened is not None else None)

    def _feed(self, text: str | None, at: int = -1) -> None:
        """The input is this text, or one that is not known; of several inputs it is not known which one is read.

        `at` is the place of the operator: with another descriptor before it, what was the input before stays one.
        """
        self.inputs += 1
        if at > 0 and _ASIDE.search(self.machine.source, max(at - _LONGEST_DESCRIPTOR, 0), at) is not None:
            self.inputs += self.outer.fed or self.machine.scope.input is not None
        self.io = replace(self.io, stdin=text if self.inputs == 1 else None, fed=True)

    def _heredoc(self, node: Node) -> None:
        starts = [text_of(child, self.machine.source) for child in node.children if child.type == "heredoc_start"]
        start = starts[0] if starts else ""
        if not self._is_ended(node):
            self.machine.note_unreadable()
        body: Node | None = None
        operator = ""
        for child in children_of(node):
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
        self._feed(text)

    def _is_ended(self, node: Node) -> bool:
        """Whether the document ends at the line at which it does for the shell, the first that is its delimiter.

        The grammar takes an operator that touches the delimiter into it, looks for a command behind an operator at the
        line's end, and ends the document at any line that begins with the delimiter or with tabs before it.
        """
        source = self.machine.source
        parts = {child.type: child for child in node.children}
        start, end = parts.get("heredoc_start"), parts.get("heredoc_end")
        if start is None or end is None:
            return False
        delimiter = _DELIMITER.fullmatch(source, start.start_byte, start.end_byte)
        if delimiter is None or source[start.end_byte : start.end_byte + 1] not in _BEHIND_DELIMITER:
            return False
        if source[end.end_byte : end.end_byte + 1] not in {b"", b"\n"} and not _closes(node, end.end_byte):
            return False
        tabs = rb"\t*" if "<<-" in parts else b""
        last = re.compile(rb"^" + tabs + re.escape(delimiter[delimiter.lastindex or 0]) + rb"$", re.M)
        body = parts.get("heredoc_body", end).start_byte
        line = source.find(b"\n", start.end_byte, body)
        if line < 0 or source[line:body].strip():
            return False  # something else stands between the line and the document
        found = last.search(source, line + 1, end.end_byte)
        return found is not None and found.end() == end.end_byte

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
            self.machine.cover(body.start_byte, body.end_byte)
            return source
        parts: list[str] = []
        position = body.start_byte
        for child in children_of(body):
            if not child.is_named:
                continue
            self.machine.deadline.check()
            parts.append(self._raw(position, child.start_byte))
            if child.type == "heredoc_content":
                parts.append(self._raw(child.start_byte, child.end_byte))
            else:
                values = evaluate(self.machine, child, quoted=True)
                parts.append("".join(piece.text for piece in values[0]) if len(values) == 1 else UNKNOWN)
            position = child.end_byte
        return "".join([*parts, self._raw(position, body.end_byte)])

    def _raw(self, start: int, end: int) -> str:
        """Text of an unquoted here-document between what is expanded there."""
        text = self.machine.source[start:end].decode("utf-8", "replace")
        if "$" in text and (missed := _MISSED.search(_ESCAPED.sub("__", text))):
            # The grammar overlooks an expansion behind the blanks at the start of a document.
            self.machine.expand(text[missed.start() :])
            return quoting.heredoc(text[: missed.start()]) + UNKNOWN
        return quoting.heredoc(text)

    def finish(self, output: str | None) -> str | None:
        """Run what follows the command on its line, and remember what it wrote into files."""
        machine = self.machine
        for place, redirect in enumerate(self.written):
            if redirect.writes and redirect.target.literal is not None:
                output = self._keep(redirect, output, aside=place in self.aside)
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

    def _keep(self, redirect: Redirect, output: str | None, *, aside: bool) -> str | None:
        """Remember what a file got; what is left of the output. `aside`: it gets another stream than the output."""
        files, name = self.machine.scope.files, redirect.target.text
        if redirect.operator == ">&" and name.isascii() and name.isdigit():
            return output  # another descriptor, and no file
        if aside or redirect.operator not in {">", ">|", ">>"}:
            files[name] = None
            return output if aside or redirect.operator == ">&" else ""
        before = files.get(name, "") if redirect.operator == ">>" else ""
        # Where it is not sure that this runs, the text counts all the same: something may run it.
        known = output is not None and before is not None and len(before) + len(output) <= MAX_KEPT
        files[name] = f"{before}{output}" if known else None
        return ""

    def _run_piped(self, output: str | None) -> str | None:
        for stage in self.piped:
            with self.machine.subshell():
                output = self.machine.statement(stage, replace(self.outer, stdin=output, fed=True))
        return output


def _closes(node: Node, end: int) -> bool:
    """Whether this is the last of a command substitution, whose bracket may stand right behind a delimiter."""
    around = node.parent
    while around is not None and around.end_byte == end:
        around = around.parent
    return around is not None and around.type == "command_substitution" and around.end_byte == end + 1
