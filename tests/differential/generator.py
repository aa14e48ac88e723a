"""Random shell scripts that start recorders only: the same number gives the same script."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.differential import corners, pieces

PROGRAMS = ("alpha", "beta", "gamma", "delta", "rm", "git", "cp", "ls")
NAMES = ("v", "w", "x", "name", "LIST")
WORDS = (
    "a",
    "b1",
    "-r",
    "--all",
    "one two",
    "src/x",
    "k=v",
    "",
    "it's",
    "a;b",
    "$5",
    "#no",
    "*",
    "{p,q}",
    "~",
    "-",
    "0",
    "7",
)
PLAIN = ("a", "b1", "-r", "--all", "src/x", "k=v", "7", "file.txt")
MAX_DEPTH = 4

SET_OPTIONS = ("", "-h", "+x", "-o physical", "-ho braceexpand", "-", "+", "-h --")
ALL_PARAMETERS = ('"$@"', "$*", "$1 $2", '"$@" end')

BREAKS = (
    ("; do ", "\ndo\n  "),
    ("; done", "\ndone"),
    ("; then ", "; then\n\t"),
    ("; fi", "\nfi"),
    ("; else ", "\nelse\n"),
    ("() { ", "() {\n"),
    ("; }", "\n}"),
    (" | ", " |\n  "),
    (" && ", " &&\n"),
    ("( ", "(\n"),
    (";; ", "\n;;\n"),
)

Make = Callable[[], str]


def single(text: str) -> str:
    """`text` as one word in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


class Generator:
    """Writes one script. Every program it names is a recorder; every path is relative."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)
        self.depth = 0
        self.functions: list[str] = []
        self.heredocs: list[str] = []
        self.inside = False

    def script(self) -> str:
        """The text of the script."""
        lines = [self.line() for _line in range(self.random.randint(1, 5))]
        return "\n".join(lines) + "\n"

    def line(self) -> str:
        """Statements on one line, and the here-documents that begin there."""
        outer, self.heredocs = self.heredocs, []
        text = self.statements(1 if self.random.random() < 0.7 else 2)
        if self.random.random() < 0.06:
            text += self.pick(" # comment; rm no", " #", " \\\n  && alpha continued")
        bodies, self.heredocs = self.heredocs, outer
        if not bodies:
            text = self.broken(text)
        return text + "".join("\n" + body for body in bodies)

    def broken(self, text: str) -> str:
        """The same as several lines, broken where the shell allows it; a word in quotes may change, which is fine."""
        for before, after in BREAKS:
            if self.chance(0.3):
                text = text.replace(before, after)
        return text

    def pick(self, *options: str) -> str:
        """One of the texts."""
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        """True in this share of all cases."""
        return self.random.random() < share

    # Words

    def quoted(self, text: str) -> str:
        """`text` as one word, quoted in one of the ways of the shell."""
        way = self.random.randrange(7)
        safe = text.isascii() and all(character not in text for character in "'\"\\$`!")
        if way == 0 or not text:
            return single(text)
        if way == 1 and safe:
            return f'"{text}"'
        if way == 2:
            return "".join(character if character.isalnum() else "\\" + character for character in text)
        if way == 3:
            return "$'" + "".join(f"\\x{ord(character):02x}" for character in text) + "'"
        if way == 4 and safe and len(text) > 1:
            return f'{single(text[0])}"{text[1:]}"'
        if way == 5 and text.isalnum():
            return text[:1] + "\\\n" + text[1:] if not self.inside and self.chance(0.3) else text[:1] + '""' + text[1:]
        return text if text.replace("/", "").replace("-", "").replace(".", "").isalnum() else single(text)

    def text(self) -> str:
        """The value of a word."""
        return self.random.choice(WORDS)

    def word(self) -> str:
        """An argument."""
        if self.depth >= MAX_DEPTH or self.chance(0.5):
            return self.quoted(self.text())
        return self.deeper(
            self.random.choice(
                [
                    lambda: self.pick('"$@"', "$1", '"$2"', "$#", "$*", '"$*"', "$?"),
                    lambda: "$" + self.random.choice(NAMES),
                    lambda: f'"${self.random.choice(NAMES)}"',
                    lambda: f"pre${{{self.random.choice(NAMES)}}}post",
                    lambda: f'"${{{self.random.choice(NAMES)}}} {self.pick("x", "y z")}"',
                    self.expansion,
                    self.expansion,
                    lambda: f"$({self.output()})",
                    lambda: f'"$({self.output()})"',
                    lambda: f"`echo {self.random.choice(PLAIN)}`",
                    lambda: self.pick("{a,b}", "x{1,2}y", "{1..3}", "{a,{b,c}}", "a{,b}", "{a}", "{c..a}", "'{'a,b}"),
                    lambda: self.pick("~", "~/x", "~+", "*.none", "[z]*", "?x?"),
                    lambda: f"$(( {self.arithmetic()} ))",
                    lambda: self.pick(
                        "arr", "${arr[0]}", '"${arr[@]}"', "${arr[*]}", "${#arr[@]}", '"${arr[1]}"', "${!v}"
                    ),
                    lambda: f"<({self.simple()})",
                    lambda: "a$IFS" + "b",
                    lambda: pieces.word(self.random),
                    lambda: pieces.word(self.random),
                ]
            )
        )

    def expansion(self) -> str:
        """A form of `${...}`."""
        name = self.random.choice(NAMES)
        plain = self.random.choice(("a", "b", "q"))
        form = self.random.choice(
            [
                f"{name}:-{self.random.choice(PLAIN)}",
                f"{name}-$({self.output()})",
                f"{name}:+{plain} c",
                f"{name}:={plain}",
                f"{name}#{plain}",
                f"{name}##*{plain}",
                f"{name}%{plain}",
                f"{name}%%{plain}*",
                f"{name}/{plain}/z",
                f"{name}//{plain}/z",
                f"{name}:1",
                f"{name}:0:2",
                f"{name}^^",
                f"{name},,",
                f"{name}^",
                f"#{name}",
                f'{name}:-"{plain} d"',
                f"{name}@Q",
                f"{name}:?",
                f"{name}/#{plain}/z",
                f"{name}: -1",
            ]
        )
        return self.pick("${" + form + "}", '"${' + form + '}"')

    def arithmetic(self) -> str:
        """An arithmetic expression."""
        return self.pick(
            "1 + 2", "v", "3 * (1 + 1)", "w + 1", "arr[0]", "1 ? 2 : 3", "${#v}", "x = 4", f"$({self.output()}) + 1"
        )

    def output(self) -> str:
        """The inside of a substitution."""
        if self.chance(0.3):
            return self.deeper(self.simple)
        return self.pick(
            "echo a", "echo alpha one", "printf %s b", "echo -n x y", "printf '%s ' p q", "cat <<< r", "echo 'a  b'"
        )

    def deeper(self, make: Make) -> str:
        """One level deeper."""
        self.depth += 1
        try:
            return make()
        finally:
            self.depth -= 1

    # Commands

    def program(self) -> str:
        """A program word."""
        name = self.random.choice(PROGRAMS)
        if self.chance(0.75):
            return name
        return self.random.choice(
            [
                self.quoted(name),
                f"$(echo {name})",
                "${nothing:-" + name + "}",
                f'"{name}"',
                f"`echo {name}`",
                f"${{nothing-{name}}}",
                "$'" + "".join(f"\\{ord(character):03o}" for character in name) + "'",
            ]
        )

    def simple(self) -> str:
        """A program with arguments, perhaps with assignments, redirections and a wrapper."""
        words = [self.word() for _word in range(self.random.randint(0, 3))]
        text = " ".join([self.program(), *words])
        if self.chance(0.12):
            text = f"{self.random.choice(NAMES)}={self.quoted(self.text())} {text}"
        elif self.chance(0.25):
            text = f"{self.wrapper()} {text}"
        if self.chance(0.15):
            text += self.pick(
                " >out", " 2>&1", " >>out 2>/dev/null", " <in", " &>out", " >|out", " 2>err <in", " <<< word"
            )
        elif self.chance(0.04):
            text = self.pick(">out ", "<in ", "2>&1 ") + text
        return text

    def wrapper(self) -> str:
        """Words before a program that run it."""
        return self.pick(
            "sudo",
            "sudo -u ana",
            "sudo -n -E --",
            "env",
            "env A=1 B=2",
            "env -u HOME",
            "nohup",
            "nice",
            "nice -n 5",
            "timeout 5",
            "timeout -s KILL 1m",
            "stdbuf -o0",
            "setsid",
            "command",
            "command --",
            "exec 9>&1; command",
            "time",
            "ionice -c 2",
            "busybox",
            "sudo env C=3",
            "nohup nice",
            "flock lock",
            "builtin command",
            "env --",
            "timeout --signal=INT 3",
        )

    def carrier(self) -> str:
        """A command that carries text or a command."""
        inner = self.deeper(lambda: self.statement(plain=True))
        return self.random.choice(
            [
                f"bash -c {single(inner)}",
                f"sh -ec {single(inner)} zero {self.quoted('one')} two",
                f"eval {single(inner)}",
                f"eval {self.quoted('alpha')} {self.word()}",
                f"bash <<< {single(inner)}",
                f"echo {single(inner)} | sh",
                f"trap {single(inner)} EXIT",
                f"env bash -c {single(inner)}",
                f"printf '%s\\n' {single(inner)} > s.sh; . ./s.sh",
                f"echo {single(inner)} > t.sh && bash t.sh p q",
                f"source <(echo {single(inner)})",
                f"bash <(printf %s {single(inner)})",
                f"echo one two | xargs {self.simple_words()}",
                f"printf '%s\\n' one two | xargs -I X {self.simple_words()} X",
                f"xargs -n 1 {self.simple_words()} <<< 'a b'",
                f"find . -exec {self.simple_words()} {{}} \\;",
                f"find . -name x -exec {self.simple_words()} + -o -exec beta {{}} \\;",
                f"sudo bash -c {single(inner)}",
                f"coproc {self.simple_words()}; wait",
                f'v={single(inner)}; eval "$v"',
                f"cat <<< {single(inner)} | bash -s a",
                f"[[ 0 -eq {single('arr[$(' + self.simple_words() + ')]')} ]]",
                f"arr[$({self.simple_words()})0]=1",
                f"test -v {single('arr[$(' + self.simple_words() + ')]')}",
                f'v={single("$(" + self.simple_words() + ")")}; : "${{v@P}}"',
                f"printf -v {single('arr[$(' + self.simple_words() + ')0]')} x",
                f"w={single('arr[$(' + self.simple_words() + ')0]')}; (( w ))",
                f"mapfile -c 1 -C {single(self.simple_words())} arr <<< q",
                f"PS4={single('$(' + self.simple_words() + ')')}; set -x; :; set +x",
                f"let {single('arr[$(' + self.simple_words() + ')0]=1')}",
                f"read {single('arr[$(' + self.simple_words() + ')0]')} <<< 1",
                f"declare -i {single('v=arr[$(' + self.simple_words() + ')0]')}",
                *corners.texts(self.simple_words, single, inner),
                f"unset {single('arr[$(' + self.simple_words() + ')0]')}",
            ]
        )

    def simple_words(self) -> str:
        """A program with plain arguments."""
        return " ".join(
            [self.random.choice(PROGRAMS), *(self.random.choice(PLAIN) for _word in range(self.random.randint(0, 2)))]
        )

    def assignment(self) -> str:
        """Something that sets variables, parameters or arrays."""
        name = self.random.choice(NAMES)
        value = self.word()
        return self.random.choice(
            [
                f"{name}={self.quoted(self.text())}",
                f"{name}={self.random.choice(PROGRAMS)}; ${name} {self.word()}",
                f"{name}={value}",
                f"{name}+={self.quoted('z')}",
                f"arr=({self.word()} {self.word()})",
                f"arr+=({self.word()})",
                'arr[1]=t; alpha "${arr[1]}"',
                f"export {name}={self.quoted(self.text())}",
                f"declare {name}={self.quoted(self.text())}",
                f"set -- {self.word()} {self.word()}",
                f'set {self.word()} {self.word()}; alpha "$@"',
                f"set {self.pick(*SET_OPTIONS)} {self.simple_words()}; {self.pick(*ALL_PARAMETERS)}",
                "shift",
                f"read {name} <<< {self.quoted('alpha beta')}; ${name}",
                f"read -r {name} w <<< 'delta x y'; ${name} $w",
                f"unset {name}",
                f"printf -v {name} '%s-%s' a b; beta ${name}",
                f'mapfile -t arr <<< {single("m n")}; alpha "${{arr[@]}}"',
                f'arr=({self.simple_words()}); "${{arr[@]}}"',
                f"{name}={single(self.simple_words())}; ${name}",
                f"readonly R{self.random.randint(0, 99)}=1",
                "IFS=:; v=alpha:b:c; $v; IFS=$' \\t\\n'",
                f"{name}=$({self.output()})",
                f"local_{name}=1",
                f": ${{{name}:=beta}}; ${name} z",
                f"declare -n ref={name}; ref=gamma; ${name} n",
                "read -ra arr <<< 'alpha p q'; \"${arr[@]}\"",
                f"typeset -u {name}=abc; alpha ${name}",
            ]
        )

    def compound(self) -> str:
        """Branches, loops, groups, functions."""
        name = self.random.choice(NAMES)
        body = self.statements(1)
        chosen: Make = self.random.choice(
            [
                lambda: (
                    f"if {self.condition()}; then {body}; elif {self.condition()}; "
                    f"then {self.statements(1)}; else {self.statements(1)}; fi"
                ),
                lambda: f"for {name} in {self.word()} {self.word()}; do alpha ${name}; {body}; done",
                lambda: f"for {name}; do beta ${name}; done",
                lambda: f"for {name} in alpha 'beta x'; do ${name} k; done",
                lambda: f"for ((i = 0; i < 2; i++)); do alpha $i; {body}; done",
                lambda: f"i=0; while (( i++ < 2 )); do {body}; done",
                lambda: f"until true; do {body}; done",
                lambda: f"while read -r {name}; do beta ${name}; done <<< {self.quoted('l1')}",
                lambda: f"printf '%s\\n' u1 u2 | while read {name} w; do gamma \"${name}\" $w; done",
                lambda: f"case {self.word()} in a|b) {body};; *) {self.statements(1)};; esac",
                lambda: f"case ${name} in (a*) {body} ;;& [!z]*) {self.statements(1)} ;& q) alpha q;; esac",
                lambda: f"( {body} )",
                lambda: f"{{ {body}; }}",
                lambda: f"( {body} ) >out",
                lambda: f"{{ {body}; }} 2>&1 | {self.simple()}",
                lambda: f"f{self.random.randint(1, 3)}() {{ {body}; }}",
                lambda: f'function g {{ alpha "$@"; {body}; }}; g {self.word()} {self.word()}',
                lambda: f'h() {{ local v=$1; $v "$2"; }}; h alpha {self.quoted("z z")}; h beta 2',
                lambda: f"f1() ( {body} ); f1 p; f1",
                lambda: f"[[ {self.word()} == a* && -n x ]] && {body}",
                lambda: f"(( {self.arithmetic()} )) || {body}",
                lambda: f'alpha() {{ command alpha shadowed "$@"; }}; alpha {self.word()}; unset -f alpha',
                lambda: f'ls() {{ rm "$@"; }}; ls {self.word()}',
                lambda: f"! {self.simple()}",
                lambda: f"time {self.simple()}",
                lambda: f"select {name} in a; do {body}; break; done <<< 1",
                lambda: f"if ! {self.simple()}; then :; fi",
                lambda: f"f() {{ {body}; }}; x=f; $x {self.word()}",
                lambda: f"while :; do {body}; break; done",
                lambda: f"for {name} in 1 2 3; do [[ ${name} == 2 ]] && continue; alpha ${name}; done",
            ]
        )
        return chosen()

    def condition(self) -> str:
        """What an `if` asks."""
        return self.pick(
            "true",
            "false",
            "[ -n x ]",
            "[[ $v ]]",
            "(( 1 ))",
            "! true",
            self.simple_words(),
            "test 1 -eq 1",
            "[ -z $(beta c) ]",
        )

    def heredoc(self) -> str:
        """A command that reads a here-document."""
        end = self.pick("E", "EOF", "END")
        quote = self.pick("", "", "'", '"', "\\")
        dash = self.pick("", "-")
        start = f"<<{dash}{quote}{end}{quote if quote != chr(92) else ''}"
        tab = "\t" if dash else ""
        line = self.pick(
            "text $v",
            "x $(beta inner) y",
            "`gamma h`",
            "plain",
            "$((1 + 1)) \\$(no)",
            'it\'s "q"',
            "alpha from here",
            "delta ${v:-d}",
        )
        self.heredocs.append(f"{tab}{line}\n{tab}{end}")
        return self.pick(
            f"cat {start}",
            f"bash {start}",
            f"sh -s arg {start}",
            f"cat {start} | bash",
            f"alpha {start}",
            f"xargs beta {start}",
            f"cat {start} && gamma after",
            f"{start} alpha before",
            f"bash - {start}",
            f'while read l; do alpha "$l"; done {start}',
            f"cat {start} > made.sh; . ./made.sh",
            f"v=$(alpha x); sh {start}",
            f"alpha {start} arg behind",
            f"{{ bash; }} {start}",
        )

    def alias(self) -> str:
        """An alias and, on later lines, its use."""
        return self.pick(
            "shopt -s expand_aliases\nalias ll='alpha -l'\nll x",
            "shopt -s expand_aliases; alias git='beta sub'\ngit a b",
            "shopt -s expand_aliases\nalias s='sudo ' t='gamma t'\ns t\nt",
            "alias ls='rm x'; ls y",
            "shopt -s expand_aliases\nalias a1='alpha one; beta'\na1 two",
            "shopt -s expand_aliases\nalias cp=delta\n\\cp x\ncp y\n'cp' z",
            "shopt -s expand_aliases\nalias p='alpha |' \np beta q",
        )

    def statement(self, *, plain: bool = False) -> str:
        """One statement; `plain` ones have no here-document, so that they may stand inside quotes."""
        if self.depth >= MAX_DEPTH:
            return self.simple()
        outer, self.inside = self.inside, self.inside or plain
        try:
            return self.deeper(lambda: self._statement(self.random.random()))
        finally:
            self.inside = outer

    def _statement(self, roll: float) -> str:
        if roll < 0.36:
            return self.simple()
        if roll < 0.50:
            return self.assignment()
        if roll < 0.68:
            return self.compound()
        if roll < 0.82:
            return self.carrier()
        if roll < 0.90:
            return " | ".join(self.simple() for _stage in range(self.random.randint(2, 3)))
        if roll < 0.94:
            return self.simple() + self.pick(" && ", " || ") + self.simple()
        if self.inside or self.depth > 1:
            return self.pick("f1 a", "f2 b c", "f3", "g") if roll < 0.97 else self.simple() + " & wait"
        return self.heredoc() if roll < 0.985 else self.alias()

    def statements(self, count: int) -> str:
        """Several statements on one line."""
        return "; ".join(self.statement() for _statement in range(count))


def script(number: int) -> str:
    """The script with this number."""
    return Generator(number).script()
