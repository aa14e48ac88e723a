"""Words that the grammar takes apart otherwise than the shell."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.pieces import PIECES
from tests.tables import every

from signoff.policy import JudgeContext, judge
from signoff.policy.shell import UNKNOWN, read_shell
from signoff.policy.shell.machine import UNREADABLE

CONTEXT = JudgeContext(kind="chat", attended=True, home="/home/ana", cwd="/home/ana/project")
CRON = JudgeContext(kind="cron", attended=False, home="/home/ana", deny=("reboot*",))


def verdict(text: str, context: JudgeContext = CONTEXT) -> str:
    return judge("command", text, context, clock=lambda: 0.0).verdict


def lines(text: str) -> list[str]:
    """Every command with a bar between its words and `?` for what is not known."""
    script = read_shell(text, home="/home/ana", clock=lambda: 0.0)
    assert not script.problems
    return [
        "|".join(word.text.replace(UNKNOWN, "?") for word in command.words)
        for command in script.commands
        if command.words
    ]


@every(
    "text, expected",
    [
        # A dollar, a blank or a mark that is text does not take the next word with it.
        ("v=$ rm x", ["rm|x"]),
        ("v=\\  rm x", ["rm|x"]),
        ("v=a\\  rm x", ["rm|x"]),
        ("v=#} rm x", ["rm|x"]),
        ("v=#a}b rm x", ["rm|x"]),
        ("v=}\\$ rm x", ["rm|x"]),
        ("v=$\nrm x", ["rm|x"]),
        ("<<< $ rm x", ["rm|x"]),
        ("e \\  b", ["e| |b"]),
        ("e a\\\tb c", ["e|a\tb|c"]),
        ('e "$y"\\ b', ["e|? b"]),
        ('e "$y"\\ ', ["e|? "]),
        ('e "$y"\\ \nrm x', ["e|? ", "rm|x"]),
        ("\\ e 'b'", [" e|b"]),
        ("e $y\\$ b", ["e|?$|b"]),
        ("e 'q'\\$ b", ["e|q$|b"]),
        ("e a$%b c", ["e|a$%b|c"]),
        ("e .$$ b", ["e|.?|b"]),
        ("e $y$$b", ["e|??b"]),
        # What touches is one word.
        ("a$IFS.$IFS-b", ["a|.|-b"]),
        ("a$IFS'b'$IFS-c", ["a|b|-c"]),
        ("a$IFS-b$IFS/", ["a|-b|/"]),
        ("e x.$y.$z a", ["e|x.?.?|a"]),
        ("cp k $z.$HOME/.b", ["cp|k|?./home/ana/.b"]),
        ("e x >a$y.$z b", ["e|x|b"]),
        ("for i in $y.$z b; do e $i; done", ["e|?.?", "e|b"]),
        ("f() { e $1.$2; }; f a b", ["e|?.?", "e|a.b"]),
        ('e "$(e $y.$z)"', ["e|?.?", "e|?"]),
        ("e a\\\n$y.$z", ["e|a?.?"]),
        ('cat <<E; rm $y.$z "$y"\nq\nE\nls', ["cat", "rm|?.?|?", "ls"]),
        # A hash within a word begins no comment.
        ("e \\ #b; rm x", ["e| #b", "rm|x"]),
        ("e \\;#it's\\\n; rm x'", ["e|;#its\\\n; rm x"]),
        ("e $(e z)#b; rm x", ["e|z", "e|?#b", "rm|x"]),
        ("e a#$y b", ["e|a#?|b"]),
        ("e 7#${y:-d} b", ["e|7#d|b", "e|7#?|b"]),
        # A comparison is one in a test only.
        ("e =~; rm x", ["e|=~", "rm|x"]),
        ("e =~$'n' b", ["e|=~n|b"]),
        ("e $(e =~ a; rm x)", ["e|=~|a", "rm|x", "e|?"]),
        ("a == $y; rm x ]", ["a|==|?", "rm|x|]"]),
        ("[a|rm x", ["[a", "rm|x"]),
        ("[ a | rm x ]", ["[|a", "rm|x|]"]),
        ("[ a || rm x ]", ["[|a", "rm|x|]"]),
        ("[ a\nrm x ]", ["[|a", "rm|x|]"]),
        ("[* | rm x ]", ["[*", "rm|x|]"]),
        ("[[a | rm x", ["[[a", "rm|x"]),
        ("e [[ | rm x", ["e|[[", "rm|x"]),
        ('[ "$(e a | b)" = x ]', ["e|a", "b"]),
        ("[[ $y.$z =~ a\\ b$ ]] && rm x", ["rm|x"]),
        # Quotes of C end where a quote has no backslash of its own.
        ("e $'a\\\\'; rm x #'", ["e|a\\", "rm|x"]),
        ("e $'\\\\' 'b'", ["e|\\|b"]),
        ('e a$"b"', ["e|ab"]),
        ('e z-$"b" c', ["e|z-b|c"]),
        # A dollar before a substitution is text.
        ('e "$`rm x`"', ["rm|x", "e|$?"]),
        ("e $`rm x`", ["rm|x", "e|$?"]),
        ('e "$$`rm x`"', ["rm|x", "e|??"]),
        ("e a$$`rm x`", ["rm|x", "e|a??"]),
        ("cat <<E\na $`rm x`\nE", ["rm|x", "cat"]),
        ('e "${y}\\ ${y}"', ["e|?\\ ?"]),
        # Braces expand before all else.
        ("e {,b}", ["e|b"]),
        ("e ''{,b}", ["e||b"]),
        ("e {~,b}", ["e|/home/ana|b"]),
        ("e {b},c}", ["e|b}|c"]),
        ("e {}b,c}", ["e|{}b,c}"]),
        ("e a{}b,c}", ["e|a}b|ac"]),
        ("e $y/{a,b}", ["e|?/a|?/b"]),
        ("e x/{$y,$z}/c", ["e|x/?/c|x/?/c"]),
        # A here-document that nothing ends goes on to the end of the text; the rest of its line is code.
        ("cat <<E ; rm x ", ["cat", "rm|x"]),
        ("cat <<E a; rm x ", ["cat|a", "rm|x"]),
        ("cat <<E; rm x\nq\n", ["cat", "rm|x"]),
        ("cat <<'E'; rm x\n$y", ["cat", "rm|x"]),
        # An operator that touches the delimiter is none of it, and arithmetic is no document.
        ("cat <<E|sh\nrm x\nE", ["cat", "sh", "rm|x"]),
        ("cat <<-'E'|sh -x\n\trm x\n\tE\ne", ["cat", "sh|-x", "rm|x", "e"]),
        ('cat <<"E F"|sh\nrm x\nE F\ne $y', ["cat", "sh", "rm|x", "e|?"]),
        ("cat <<E>f;. ./f\nrm x\nE", ["cat", ".|./f", "rm|x"]),
        ("e<<E&&rm x\nq\nE\ne", ["e", "rm|x", "e"]),
        ("e <<E||rm x\nq\nE", ["e", "rm|x"]),
        ("e <<\\E|b\n$(rm x)\nE", ["e", "b"]),
        ("e $((1<<2))|b", ["e|?", "b"]),
        ("((1<<2))&&rm x", ["rm|x"]),
        # A document's end is a line of its own, or the last of a substitution.
        ("e $(cat <<E\na\nE)", ["cat", "e|a"]),
        ("e `cat <<E\na\nE`", ["cat", "e|a"]),
        ("cat <<E\n\n  a\n\nE\ne", ["cat", "e"]),
        ("e <<E;rm x\n$y\n\tE\nb\nE\nc", ["e", "rm|x", "c"]),
        ('e <<-E;rm x\n"\\\nE\nb\nE\nc', ["e", "rm|x", "c"]),
        ("e <<E;rm x\nE\\\n\nc", ["e", "rm|x", "c"]),
    ],
)
def test_words_are_those_of_the_shell(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


@every(
    "text",
    [
        "y='a b'; e $y$ c",
        "y='a b'; e $y$! c",
        "yb=-f; e {a,$y}b",
        "e {a,$}b",
        "e $y{a,b}",
        'e "${z+$${y}"; rm x; "}"',
        "cat <<E\n$`rm x`\nE",
        "cat <<E && rm x ",
        "cat <<E & rm x ",
        "cat <<E&rm x\nE\n",
        "cat <<A<<B|sh\nA\nrm x\nB\n",
        "(cat <<E)\nE\n",
        "e <<E|rm b\n\nE\n$@esac''\"in ",
        "e <<E&&x=1;rm -rf ~;$$<<E <<E;",
        # The grammar ends these documents elsewhere than the shell does.
        "cat <<'E'x\nE\n: '\nEx\nrm x\n: '\n",
        "cat <<E'x'\nEx\nrm x\nE'x'\n",
        'cat <<"a\\b"\na\\b\nrm x\nab\n',
        "cat <<E\n\tE\n: '\nE\nrm x\n: '\n",
        "cat <<E\nE : '\nE\nrm x\n: '\n",
        "(cat <<E\nE)\n: '\nE\n)\nrm x\n: '\n",
        "cat <<E\na",
        "e <<E|\nE\nrm b\nE",
        "e <<E &&\nE\nrm b\nE",
    ],
)
def test_what_cannot_be_known_is_a_problem(text: str) -> None:
    assert read_shell(text, home="/home/ana", clock=lambda: 0.0).problems == (UNREADABLE,)


@every(
    "text",
    (
        *("v=$ rm -rf /", "v=\\  rm -rf /", "v=#} rm -rf /", "<<< $ reboot", "v=$\nreboot", "rm$IFS-rf$IFS/"),
        *("a == $x; rm -rf / ]", "cat <<E ; rm -rf ~ $x ", "cat <<E a; reboot $x ", 'echo "$`reboot`"'),
        "[ a | reboot ]",
        *('cat <<EOF|sh\nrm -rf ~\nEOF\necho "$a"', "cat <<E|sh\nrm -rf ~\nE\n", "ls<<E&&rm -rf ~\n${x}{"),
        *("ls <<E|rm -rf ~\na\nE\n$a? b", "cat <<-E|sh\n\trm -rf ~\n\tE\n", "cat <<E||reboot\nE\n"),
        *("cat <<'E'|sh\nrm -rf ~\nE\n$a?", "cat <<E>f;sh f\nreboot\nE\n", "ls <<E;rm -rf ~\na\nE\n$a? b"),
    ),
)
def test_a_floor_behind_an_odd_word_is_blocked(text: str) -> None:
    assert verdict(text) == "block"


@every(
    "text",
    (
        *("find$IFS.$IFS-delete", "git$IFS'push'$IFS-f", "npm$IFS'publish'$IFS-q", "git -C \\  push -f"),
        *("git -C $y\\$ push -f", "git {,push} -f", "git push a{}x,-f}"),
        *("cat <<E|tee ~/.bashrc\nbuild\nE\necho $a?", "ls <<E|rm b\n\nE\n$@esac''\"in ", "[ls <<E|rm b\n$@?"),
        *("ls <<E&&x=1;rm -rf ~;$$<<E <<E;", "cat <<E>~/.bashrc\nx\nE\n", "cat <<E'x'\nEx\nrm -rf ~\nE'x'\n"),
    ),
)
def test_an_odd_word_hides_nothing_that_asks(text: str) -> None:
    assert verdict(text) == "ask"


@every(
    "text",
    (
        *("echo app-$V-linux-$ARCH.tar.gz", "echo $a,$b.$c", "mkdir -p x/{$a,$b}/c", "[ $a.$b = x ] && ls"),
        *("cat <<EOF>notes.txt\na $b\nEOF", "cat <<'E'|grep a\na\nE\n", "cat <<E|wc -l&&ls\na\nE\n"),
        *("cat<<E>f;ls\na\nE", "x=$(cat <<'E'\na\nE)"),
    ),
)
def test_ordinary_words_are_silent(text: str) -> None:
    assert verdict(text) == "allow"


@every("text", ["python3 -c 'import os; os.system(' -build.full_bin='rm -r x'", "python -''''\"rm\"''')'"])
def test_a_command_without_words_is_judged(text: str) -> None:
    assert verdict(text) == "allow"


def test_a_deny_rule_sees_what_an_assignment_would_hide() -> None:
    assert verdict("v=$ reboot", CRON) == "block"


BEFORE_A_FLOOR = (
    *("v={} reboot", "v={}; reboot", "export v={}; reboot", "v=( {} ); reboot", "v[1]={} reboot", "v=1 w={} reboot"),
    *("echo a{}; reboot", "echo {} && reboot", "echo > {}; reboot", "echo 2>{} | reboot", "cat <<< {}; reboot"),
    *("<<< {} reboot", "> {} reboot", "for i in {}; do reboot; done", "case {} in x) ;; *) reboot;; esac"),
    *("case x in {}) ;; *) reboot;; esac", "[[ {} == x ]]; reboot", "[ {} = x ]; reboot", "echo $(echo {}; reboot)"),
    *('echo "${{x:-{}}}"; reboot', "f() {{ echo {}; reboot; }}", "echo {}\nreboot", "cat <<E {}; reboot\nE\n"),
)


@pytest.mark.parametrize("form", BEFORE_A_FLOOR)
def test_a_floor_behind_a_plain_word_is_one(form: str) -> None:
    assert verdict(form.format("word")) == "block"


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join), st.sampled_from(BEFORE_A_FLOOR))
@settings(max_examples=600, deadline=None)
def test_no_word_hides_a_floor_behind_it(word: str, form: str) -> None:
    # A hash that begins a word begins a comment, which hides what follows from the shell too.
    text = form.format(re.sub(r"^#", ".", word))
    assert verdict(text) != "allow", text
