"""Texts made to be slow to judge: a beginning, what is repeated, an end. Each grows with what it is repeated."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from tests.unit.policy.test_costs import WIDE
from tests.unit.policy.test_parser_survives import HUGE

from signoff.policy import ActionKind, JudgeContext
from signoff.policy.allow import Allowlist

HOME, CWD = "/home/ana", "/home/ana/project"
PLAIN = JudgeContext(kind="chat", attended=True, home=HOME, cwd=CWD)
SET_UP = JudgeContext(
    kind="chat",
    attended=True,
    home=HOME,
    cwd=CWD,
    own_paths=("/home/ana/.signoff", "/etc/signoff.toml"),
    own_pid=77,
    deny=("git push * main*", "rm -rf *", "*curl*|*sh*", "*a*b*c*"),
    allowlist=Allowlist(("git *", "echo *x*y*", "ls"), ("cat *",)),
)
"""Where operators forbid and allow much: that is compared with every command."""
ZSH, CMD, POWERSHELL = (msgspec.structs.replace(PLAIN, shell=name) for name in ("zsh", "cmd", "powershell"))
PYTHON = JudgeContext(kind="chat", attended=True, home=HOME, cwd=CWD, language="python")


class Shape(NamedTuple):
    """A text that grows."""

    before: str
    part: str
    behind: str = ""
    context: JudgeContext = PLAIN

    def text(self, chars: int) -> str:
        """The text with so many characters, or somewhat fewer."""
        room = chars - len(self.before) - len(self.behind)
        return self.before + self.part * max(room // len(self.part), 1) + self.behind

    @property
    def kind(self) -> ActionKind:
        """What kind of action it is the text of."""
        return "code" if self.context.language else "command"

    @property
    def name(self) -> str:
        """What a test calls it."""
        told = ascii(self.before[-12:] + self.part[:12])[1:-1]
        return f"{self.context.language or self.context.shell or ''}{'+' if self.context.deny else ''} {told}".strip()


NAMED = (
    Shape("", "\0"),
    Shape("ls ", "\0 a\n"),
    Shape("", "\udcff\ud800"),
    Shape("echo ", "\udcff "),
    Shape("", "("),
    Shape("", ")"),
    Shape("", "x=("),
    Shape("", "'", "a'"),
    Shape("", "'a "),
    Shape("", '"a '),
    Shape("echo '", "a "),
    Shape('echo "', "$(a "),
)
"""NUL, invalid UTF-8, parentheses, open arrays, quotes that nothing closes."""

FOUND = (
    Shape("((x", "a", "+b=1))"),
    Shape("let 'x", "a", "+b=1'"),
    Shape("ls ", ">", "", ZSH),
    Shape("", "\n", "ls", ZSH),
    Shape("curl -d '", "a", "' http://x"),
    Shape("a=", "~:"),
    Shape("a ", "2>&1 "),
    Shape("a ", "<<<b "),
    Shape("a=(", "b ", ")"),
    Shape("", "a\\ "),
    Shape("rm ", "*/"),
    Shape("", "plain "),
    Shape("cat <<E\n", "$x\n", "E\n"),
    Shape("cat <<E\n", "`x`\n", "E\n"),
    Shape("", "cat <<\\E\n$(a)\nE\n"),
    Shape("sed -e ", "s/a/b/ -e ", "x"),
    Shape("", "sudo rm x\n"),
    Shape("", "find . -name 'id_*';"),
    Shape("", "git push --force origin x\n"),
    Shape("", "rm -rf x\n", "", SET_UP),
    Shape("x=" + "a" * 1500 + "; ", "rm $x 1;", "", SET_UP),
    Shape("x=(a b c d e f g h); for i in ${x[@]}; do for j in ${x[@]}; do ", "rm $i$j; ", "done; done"),
    Shape("", "python3 -c 'import os; os.system(\"rm x\")'\n"),
    Shape("python3 -c '", "f(x);", "'"),
    Shape("", "f(x)\n", "", PYTHON),
    Shape("x = [", "a(),", "]", PYTHON),
    Shape("import os\n", "os.system('rm x')\n", "", PYTHON),
    Shape("import os\nx = ", "'a'+", "'b'\nos.system(x)\n", PYTHON),
    Shape("import os\nx = ['a', 'b']\n", "x = x + x\n", "os.system(x[0])\n", PYTHON),
    Shape("import os\nx = '%()", "0", "' % y\nos.system(x)\n", PYTHON),
    Shape("x = ", "(", "1", PYTHON),
    Shape("x = f'", "{x}", "'", PYTHON),
    Shape("", "del x & ", "", CMD),
    Shape("", "Remove-Item x;", "", POWERSHELL),
    Shape('"', "$(a)", '"', POWERSHELL),
)
"""What once took far longer, and what takes the reader, the rules and the readers of other languages their time."""

ALL = (*NAMED, *FOUND, *(Shape(before, part, behind) for before, part, _count, behind in (*HUGE, *WIDE)))
