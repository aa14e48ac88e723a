"""Spells the words of a text so that the grammar takes them apart as the shell does."""

import re

import tree_sitter

from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.source import document

MAX_SPOTS = 2000
"""How many places of one text are spelled otherwise; each is looked up in the tree afterwards."""

_DOCUMENT = r"""<<-?[ \t]*(?P<heredoc>(?:'[^'\n]*'|"[^"\n]*"|\\.|[^\s;&|<>()'"\\])+)"""
_OUTSIDE = re.compile(
    rf"""\\(?P<escaped>.) | \$'(?P<ansi>(?:\\.|[^'\\])*+)' | '[^']*' | \$?"
    | \$\{{ | \$?\(\(? | \) | (?<![^\s;&|()])\#[^\n]* | (?P<hash>\#)
    | \$(?P<name>[A-Za-z_]\w*|[0-9@*?$\#!-]) | (?P<dollar>\$)(?!['\[])
    | (?<![^\s;&|()!])(?:(?P<bracket>\[\[(?!\S)|\]\](?![^\s;&|)]))|(?P<test>\[)) | (?<!\S)(?P<compared>==|=~)
    | <<< | {_DOCUMENT} | \n""",
    re.X | re.S,
)
_INSIDE = re.compile(r"\\. | \" | \$\$ | \$\{ | \$\(\(?", re.X | re.S)
_PARAMETER = re.compile(r"""\\. | '[^']*' | "(?:[^"\\]|\\.)*+" | \$?\{ | \}""", re.X | re.S)
_PARAMETER_QUOTED = re.compile(r"\\. | \"[^\"]*\" | \$?\{ | \}", re.X | re.S)
_ASIDE = re.compile(r"""\\.|\$\((?:[^()]|\([^()]*\))*\)|"[^"]*"|'[^']*'""", re.S)
_LONGEST_ASIDE = 256
_GLUE = re.compile(r"\{|\S*\}\w")
_ARITHMETIC = re.compile(r"[()]")


def respelled(text: str, deadline: Deadline) -> tuple[str, list[tuple[int, int]]]:
    """`text` with quotes for what stands behind a backslash and for odd dollars and hashes, and with braces around the
    names of variables, which changes nothing for the shell; and the bytes at which that was done.

    Raises `OutOfTimeError`.
    """
    return _Speller(text, deadline).run()


def is_at_spots(root: tree_sitter.Node, spots: list[tuple[int, int]], deadline: Deadline) -> bool:
    """Whether the tree of the new text has a word's part at each of these places: then none of them was data."""
    for start, end in spots:
        deadline.check()
        node = root.descendant_for_byte_range(start, end)
        while node is not None and node.start_byte == start and node.end_byte == end:
            if node.type in _PARTS:
                break
            node = node.parent
        else:
            return False
    return True


_PARTS = frozenset({"raw_string", "string", "expansion", "ansi_c_string"})


class _Speller:
    """Goes through the text once, keeping a stack of what encloses the place: `"`, `(` or `$(`."""

    def __init__(self, text: str, deadline: Deadline) -> None:
        self.text = text
        self.deadline = deadline
        self.out: list[str] = []
        self.length = 0
        self.spots: list[tuple[int, int]] = []
        self.stack: list[str] = []
        self.heredocs: list[str] = []
        self.tested = False
        self.endless = False

    def run(self) -> tuple[str, list[tuple[int, int]]]:
        position = 0
        while len(self.spots) <= MAX_SPOTS:
            self.deadline.check()
            inside = self.stack[-1:] == ['"']
            match = (_INSIDE if inside else _OUTSIDE).search(self.text, position)
            if match is None:
                break
            self._copy(position, match.start())
            position = self._within(match) if inside else self._token(match)
        self._copy(position, len(self.text))
        return "".join(self.out), self.spots

    def _copy(self, start: int, end: int) -> int:
        if start < end:
            part = self.text[start:end]
            self.out.append(part)
            self.length += len(part.encode())
        return end

    def _put(self, spelled: str) -> None:
        self.out.append(spelled)
        self.spots.append((self.length, self.length + len(spelled.encode())))
        self.length = self.spots[-1][1]

    def _within(self, match: re.Match[str]) -> int:
        """A mark between double quotes."""
        mark = match.group()
        if mark == '"':
            self.stack.pop()
        elif mark == "$(":
            self.stack.append(mark)
        elif mark == "$$":
            self._put("${$}")
            return match.end()
        elif mark != "\\" and mark[0] == "$":
            return self._copy(match.start(), self._end(match, quoted=True))
        return self._copy(match.start(), match.end())

    def _token(self, match: re.Match[str]) -> int:
        kind = match.lastgroup
        if kind is None:
            return self._mark(match, match.group())
        value = match.group(kind)
        if kind in {"name", "dollar"} and self._is_in_braces(match):
            return self._copy(match.start(), match.end())
        if kind == "name":
            self._put(f"${{{value}}}")
        elif kind == "heredoc":
            self.heredocs.append(match.group())
            return self._copy(match.start(), match.end())
        elif kind == "bracket":
            self.tested = value[0] == "["
            return self._copy(match.start(), match.end())
        elif kind == "ansi" and "\\\\" in value:
            self._put("$'" + value.replace("\\\\", "\\x5c").replace("\\'", "\\x27") + "'")
        elif kind == "ansi" or self.tested or value == "\n":
            return self._copy(match.start(), match.end())
        else:
            self._put('"\'"' if value == "'" else f"'{value}'")
            if kind == "escaped" and self.text[match.end() : match.end() + 1] == "#":
                self._put("'#'")
                return match.end() + 1
        return match.end()

    def _is_in_braces(self, match: re.Match[str]) -> bool:
        """Whether a brace expansion may put other letters behind the sign or the name of this variable."""
        following = self.text[match.end() : match.end() + 1]
        if following == "" or following not in "{,}" or match.group() == "$$":
            return False
        behind = _ASIDE.sub("_", self.text[match.end() : match.end() + _LONGEST_ASIDE])
        if _GLUE.match(behind) is None and match.group() != "$":
            return False
        before = _ASIDE.sub("_", self.text[max(match.start() - _LONGEST_ASIDE, 0) : match.start()])
        return following == "{" or "{" in re.split(r"\s", before)[-1]

    def _mark(self, match: re.Match[str], mark: str) -> int:
        if mark == "\n" and self.heredocs:
            return self._documents(match.start())
        if mark in {'"', '$"'}:
            self.stack.append('"')
            return self._copy(match.end() - 1, match.end())
        if mark == "${" or mark[-2:] == "((":
            return self._copy(match.start(), self._end(match, quoted=False))
        if mark in {"(", "$("}:
            self.stack.append(mark)
        elif mark == ")" and self.stack and self.stack.pop() == "$(" and self.text[match.end() :][:1] == "#":
            self._copy(match.start(), match.end())
            self._put("'#'")
            return match.end() + 1
        return self._copy(match.start(), match.end())

    def _end(self, match: re.Match[str], *, quoted: bool) -> int:
        """The end of `${...}` or of arithmetic, in which words follow other rules."""
        if self.endless:
            return match.end()
        braces = match.group() == "${"
        depth = 1 if braces else 2
        inner = (_PARAMETER_QUOTED if quoted else _PARAMETER) if braces else _ARITHMETIC
        for found in inner.finditer(self.text, match.end()):
            self.deadline.check()
            mark = found.group()
            depth += (mark[-1] in "{(") - (mark in {"}", ")"})
            if depth == 0:
                return found.end()
        self.endless = True
        return match.end()

    def _documents(self, position: int) -> int:
        """Copy the here-documents that start after this line."""
        for mark in self.heredocs:
            self.deadline.check()
            _word, _delimiter, last = document(mark)
            end = last.search(self.text, position)
            position = self._copy(position, len(self.text) if end is None else end.end())
        self.heredocs = []
        return position
