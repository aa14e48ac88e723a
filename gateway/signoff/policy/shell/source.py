"""The text before it is parsed: size, line continuations, odd characters."""

import re

import tree_sitter

from signoff.policy.shell.deadline import Deadline, UnbalancedError
from signoff.policy.shell.quoting import backticked

MAX_BYTES = 256 * 1024
"""Longer texts are not read at all: the parser could not finish them in its time."""

MOST_MARKS = 20_000
MAX_MARKS = {"|": 1000, "<<": 5000, "(": MOST_MARKS, ")": MOST_MARKS}
"""How often these may stand in a text, not counting `||` unless there are very many. The parser cannot be interrupted
where it mends broken text: it takes half a second for 5,000 open pipes and 20 ms for 1,000, 240 ms for 250,000 closing
parentheses (measured with tree-sitter-bash 0.25)."""

_ODD = re.compile(
    "[\x01-\x08\x0b-\x1f\x7f-\x9f\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u2064\u2066-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_QUOTING_NODES = frozenset({"raw_string", "string", "ansi_c_string", "string_content", "heredoc_body", "comment"})
_ODD_CHECKED = 64
_NEEDS_SCAN = re.compile(r"`|\\\n|\n[ \t]*\\|(?:^|[\s;&|(]|'')\{[^\s}]", re.M)
_TOUCHED = re.compile(r"<<[^\n;&|<>()]*[^\s;&|<>()][;&|<>]")
"""What may be the delimiter of a here-document with an operator right behind it."""

_CONTINUED = r"(?:\\\n)*"
_OPERATORS = (";", "&", "|", "<", ">")
_QUOTED = re.compile(r"\\.#*|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<![^\s;&|(])\#[^\n]*", re.S)
_LONGEST_LEAD = 64
_BACKTICK_END = re.compile(r"((?:[^`\\]|\\.)*)`", re.S)
_DOCUMENT_BACKTICKS = re.compile(r"\\.|\$\$|(\$?)`((?:[^`\\]|\\.)*)`", re.S)
_DOLLARS = re.compile(r"(?<![\\$])(?:\\\\)*(?:\$\$)*\$\Z")
"""Dollars of which the last is none of `$$`."""

_TOKEN = re.compile(
    r"""\\\n | \\.\#* | \$' | ' | " | \$?\(\(? | \) | ` | (?<![^\s;&|(])\#[^\n]* | <<<
    | <<-?[ \t]*(?P<heredoc>(?:'[^'\n]*'|"[^"\n]*"|\\.|[^\s;&|<>()'"\\])+)
    | (?<![^\s;&|(])\{(?=[^\s}]) | \n(?:(?:[ \t]|\\\n)*(?=\\[^\n]))? | ;;?&?""",
    re.X | re.S,
)


def overload(text: str) -> str | None:
    """Which mark stands in the text more often than the parser bears, in words, or None."""
    for mark, most in MAX_MARKS.items():
        count = text.count(mark)
        if count > MOST_MARKS or (count > most and count - (2 * text.count("||") if mark == "|" else 0) > most):
            return f"it has more than {most} times {mark}"
    return None


def first_odd(text: str, root: tree_sitter.Node, deadline: Deadline) -> str | None:
    """The code point of the first control character or odd blank outside quotes, such as `U+200B`, or None.

    Where there are too many to look at one by one, the next one is named whatever stands around it. Raises
    `OutOfTimeError`.
    """
    byte = position = 0
    for count, match in enumerate(_ODD.finditer(text)):
        deadline.check()
        byte += len(text[position : match.start()].encode())
        position = match.start()
        if count >= _ODD_CHECKED or not _is_quoted(root, byte):
            return f"U+{ord(match.group()):04X}"
    return None


def _is_quoted(root: tree_sitter.Node, byte: int) -> bool:
    node = root.descendant_for_byte_range(byte, byte + 1)
    for _level in range(64):
        if node is None:
            return False
        if node.type in _QUOTING_NODES:
            return True
        if node.type in {"command_substitution", "process_substitution", "expansion"}:
            return False
        node = node.parent
    return False


def joined(text: str, deadline: Deadline) -> str:
    """`text` with its line continuations joined as the shell joins them, which single quotes, comments and quoted
    here-documents prevent.

    A word that starts with a brace expansion (`{rm,-rf,/}`) gets an empty pair of single quotes before it, which keeps
    the grammar from reading a group there, and which is no part of the word. A character behind a backslash at the
    start of a line is quoted otherwise, since the grammar would take it for a word of the line before. What stands
    behind `;` on the line of a here-document moves below it: a line's end means the same, and the grammar knows nothing
    else there. An operator that touches the delimiter of one gets a blank before it, or the grammar would take it into
    the delimiter.

    Backticks become `$(...)`, of which the grammar finds the end.

    Raises `OutOfTimeError`, and `UnbalancedError` for a quote within backticks that nothing closes there.
    """
    marked = "`" in text or "\\" in text or "{" in text  # looked for at once in all of the text
    if not (marked and _NEEDS_SCAN.search(text)) and not ("<<" in text and (";" in text or _TOUCHED.search(text))):
        return text
    return _Scanner(text, deadline).run()


def _substitution(body: str, inside_double: bool, deadline: Deadline) -> str:
    """`$(...)` for what stands between backticks; inner ones lose a level of backslashes each time."""
    code = joined(backticked(body.replace('\\"', '"') if inside_double else body), deadline)
    left = _QUOTED.sub("", code)
    if "'" in left or '"' in left:
        raise UnbalancedError
    # Neither a comment nor a here-document must swallow the end, nor two brackets look like arithmetic.
    end = "\n" if "#" in code or "<<" in code or code[-1:] == "\\" else ""
    return f"$({' ' if code[:1] == '(' else ''}{code}{end})"


def document(mark: str) -> tuple[str, str, re.Pattern[str]]:
    """Of an operator with its delimiter (`<<-'E'`): the delimiter as it stands there and without quotes, and what ends
    the document."""
    tabs = mark.startswith("<<-")
    word = mark[3 if tabs else 2 :].lstrip(" \t")
    delimiter = re.sub(r"['\"\\]", "", word)
    if delimiter != word:
        ended = (r"\n\t*" if tabs else r"\n") + re.escape(delimiter)
    else:  # lines may go on behind a backslash, also the last one
        before = r"(?:\t|\\\n)*" if tabs else _CONTINUED
        ended = r"(?<!\\)(?:\\\\)*\n" + before + _CONTINUED.join([*map(re.escape, delimiter), ""])
    return word, delimiter, re.compile(ended + r"(?=\n|\Z)")


class _Scanner:
    """Goes through the text once, keeping a stack of what encloses the place: `"` double quotes, `(` a group."""

    def __init__(self, text: str, deadline: Deadline) -> None:
        self.text = text
        self.deadline = deadline
        self.out: list[str] = []
        self.stack: list[str] = []
        self.heredocs: list[str] = []
        self.moved: list[tuple[int, list[str]]] = []

    def run(self) -> str:
        position = 0
        while (match := _TOKEN.search(self.text, position)) is not None:
            self.deadline.check()
            self.out.append(self.text[position : match.start()])
            position = self._token(match)
        self.out.append(self.text[position:])
        if self.heredocs or self.moved:
            self._bodies(len(self.text))
        return "".join(self.out)

    def _token(self, match: re.Match[str]) -> int:
        mark = match.group()
        inside_double = bool(self.stack) and self.stack[-1] == '"'
        if mark == "\\\n":
            return match.end()
        if mark == "`":
            return self._backticks(match, inside_double)
        if mark == '"':
            self._toggle_double(inside_double)
        elif mark in {"$(", "$((", "(", "(("} and not (inside_double and mark[0] == "("):
            self.stack += ["("] * mark.count("(")
        elif mark == ")" and self.stack and self.stack[-1] == "(":
            self.stack.pop()
        elif not inside_double:
            return self._outside(match, mark)
        elif mark[0] not in "\\$" and len(mark) > 1:
            # Inside double quotes only the first character of a longer mark is plain; what follows is looked at again.
            self.out.append(mark[0])
            return match.start() + 1
        elif mark == "$'":
            self.out.append("$")
            return match.start() + 1
        self.out.append(mark)
        return match.end()

    def _backticks(self, match: re.Match[str], inside_double: bool) -> int:
        """A substitution of the old kind; one that is never closed stays as it is."""
        end = _BACKTICK_END.match(self.text, match.end())
        if end is None:
            self.out.append("`")
            return match.end()
        start = match.start()
        if self.text[start - 1 : start] == "$" and _DOLLARS.search(self.text, max(start - _LONGEST_LEAD, 0), start):
            self.out[-1] = self.out[-1][:-1] + "\\$"  # it is text, and must not become a part of `$$`
        self.out.append(_substitution(end.group(1), inside_double, self.deadline))
        return end.end()

    def _toggle_double(self, inside_double: bool) -> None:
        if inside_double:
            self.stack.pop()
        else:
            self.stack.append('"')

    def _outside(self, match: re.Match[str], mark: str) -> int:
        if mark == "'" and self.text.startswith("'{", match.end()):
            self.out.append('""')  # those before a brace are known to be put there
            return match.end() + 1
        if mark == "'":
            return self._copy_to(match.start(), self.text.find("'", match.end()) + 1)
        if mark == "$'":
            end = re.compile(r"(?:\\.|[^'\\])*'", re.S).match(self.text, match.end())
            return self._copy_to(match.start(), end.end() if end else 0)
        if mark == "{":
            self.out.append("''")
        if mark[0] == "\n":
            return self._newline(match, mark)
        if mark[0] == ";" and self.heredocs:
            self.moved.append((len(self.out), self.heredocs))
            self.heredocs = []
            mark = "\n" + (mark if len(mark) > 1 else "")
        if match.group("heredoc"):
            self.heredocs.append(mark)
            mark += " " if self.text.startswith(_OPERATORS, match.end()) else ""
        self.out.append(mark)
        return match.end()

    def _newline(self, match: re.Match[str], mark: str) -> int:
        """The end of a line: here-documents begin, or a line that starts with a backslash."""
        if self.heredocs or self.moved:
            return self._bodies(match.start())
        self.out.append(mark.replace("\\\n", ""))
        follows = self.text[match.end() : match.end() + 2]
        if len(follows) < 2 or follows[0] != "\\" or follows[1] in "\n$`\\":  # in backticks those mean more
            return match.end()
        self.out.append('"\'"' if follows[1] == "'" else f"'{follows[1]}'")
        return match.end() + 2

    def _copy_to(self, start: int, end: int) -> int:
        """Copy a quoted stretch unchanged; an `end` of 0 means that its quote is never closed."""
        stop = end or len(self.text)
        self.out.append(self.text[start:stop])
        return stop

    def _bodies(self, newline: int) -> int:
        """Copy the here-documents that start after this line; those whose line went on below them go to its place."""
        position = newline
        for slot, marks in self.moved:
            found, position = self._documents(marks, position)
            self.out[slot] = found + self.out[slot]
        found, position = self._documents(self.heredocs, position)
        self.out.append(found)
        self.heredocs, self.moved = [], []
        return position

    def _expanding(self, body: str) -> str:
        """The text of an unquoted here-document."""
        body = re.sub(r"(?<!\\)((?:\\\\)*)\\\n", r"\1", body)
        if "`" not in body:
            return body
        return _DOCUMENT_BACKTICKS.sub(self._document_backticks, body)

    def _document_backticks(self, match: re.Match[str]) -> str:
        self.deadline.check()
        dollar: str | None = match.group(1)
        if dollar is None:
            return match.group()
        return ("\\$" if dollar else "") + _substitution(match.group(2), False, self.deadline)

    def _documents(self, marks: list[str], position: int) -> tuple[str, int]:
        """The texts of these here-documents and where they end; only unquoted ones have continuations to join. One that
        nothing ends goes on to the end of the text."""
        found: list[str] = []
        for mark in marks:
            self.deadline.check()
            word, delimiter, last = document(mark)
            end = last.search(self.text, position)
            if end is None and self.stack:
                raise UnbalancedError  # nor is it known then what ends what is around it
            stop = len(self.text) if end is None else end.end()
            body = self.text[position:stop]
            found.append(body if delimiter != word else self._expanding(body))
            if end is None:
                found.append("\n" + delimiter)
            position = stop
        return "".join(found), position
