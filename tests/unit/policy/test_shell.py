"""What the shell front end makes of a text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential import generator
from tests.tables import every

from signoff.policy.shell import UNKNOWN, read_shell, walk
from signoff.policy.shell import words as words_of
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.machine import NOT_ALL_READ
from signoff.policy.shell.source import joined


def words(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in read_shell(text, home="/home/ana").commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ["a", "b"]),
        ("a\\ b 'c d' \"e $ f\"", ["a b", "c d", "e $ f"]),
        ('"$x $y"', [f"{UNKNOWN} {UNKNOWN}"]),
        ("a 'x'\\''y'", ["a", "x'y"]),
        ("a $'x\\n\\u00e9\\101'", ["a", "x\né" + "A"]),
        ("a {b,c{d,e}}f {1..3} {x} '{y,z}'", ["a", "bf", "cdf", "cef", "1", "2", "3", "{x}", "{y,z}"]),
        ("a ~ ~/b '~' ~bob", ["a", "/home/ana", "/home/ana/b", "~", "/home/~bob"]),
        ('a ${x:-b c} "${x:-b c}"', ["a", "b", "c", "b c"]),
        ("a $# b", ["a", UNKNOWN, "b"]),
        ("a $@ b", ["a", "b"]),
        ("a $1b", ["a", "b"]),
        ("a !$", ["a", "!$"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text)[0] == expected


def test_states_of_words() -> None:
    command = read_shell("a b$x $x 'q*' g*").commands[0]
    assert [word.state for word in command.words] == ["literal", "partial", "dynamic", "literal", "literal"]
    assert [word.pattern for word in command.words] == [None, None, None, None, "g*"]
    assert [word.many for word in command.words] == [False, True, True, False, False]
    assert command.words[1].literal is None


def test_wrappers_come_with_what_they_carry() -> None:
    first, second, third = read_shell("sudo -u bob env A=1 git push").commands
    assert [word.text for word in first.own_words] == ["sudo", "-u", "bob"]
    assert [word.text for word in second.own_words] == ["env", "A=1"]
    assert (third.text, third.chain, third.assignments) == ("git push", ("sudo", "env"), (("A", "1"),))


def test_places() -> None:
    script = read_shell("ssh host docker exec web ls; chroot /x ls; ls")
    assert [(command.program, command.place) for command in script.commands] == [
        ("ssh", "here"),
        ("docker", "remote"),
        ("ls", "container"),
        ("chroot", "here"),
        ("ls", "container"),
        ("ls", "here"),
    ]


def test_redirections_and_what_feeds_a_command() -> None:
    command = read_shell("cmd <in >>out 2>&1 arg").commands[0]
    assert [(item.operator, item.target.text, item.writes) for item in command.redirects] == [
        ("<", "in", False),
        (">>", "out", True),
        (">&", "1", True),
    ]
    assert (command.fed, command.stdin) == (True, None)
    assert read_shell("cat <<E\na $(echo b) \\$c\nE").commands[-1].stdin == "a b $c\n"
    assert read_shell("cat <<'E'\na $(echo b)\nE").commands[-1].stdin == "a $(echo b)\n"
    assert read_shell("cat <<< x").commands[0].stdin == "x\n"
    assert not read_shell("cat").commands[0].fed


def test_folders_are_followed() -> None:
    script = read_shell("cd /a && ls; (cd b; ls); ls; cd $x; ls")
    assert [command.cwd for command in script.commands if command.program == "ls"] == ["/a", "/a/b", "/a", None]


def test_values_of_branches_are_all_possible() -> None:
    assert ["echo", "a"] in words("x=b; if c; then x=a; fi; echo $x")
    assert ["echo", "b"] in words("x=b; if c; then x=a; fi; echo $x")
    assert words("x=b; x=a; echo $x")[-1] == ["echo", "a"]


def test_all_commands_of_nested_constructs_are_found() -> None:
    branches = "if a; then b; elif c; then d; else e; fi; while f; do g; done; case h in i) j;; esac"
    text = f"{branches}; {{ k; }} | (l) && ! m & n <(o)"
    programs = {command.program for command in read_shell(text).commands}
    assert programs == set("abcdefgjklmno")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\\\nb", "ab"),
        ("'a\\\nb'", "'a\\\nb'"),
        ('"a\\\nb"', '"ab"'),
        ("a\\\\\nb", "a\\\\\nb"),
        ("# c\\\nb", "# c\\\nb"),
        ("$'a\\\nb'", "$'a\\\nb'"),
        ('"it\'s" a\\\nb', '"it\'s" ab'),
        ("\"$(x 'a\\\nb')\" c\\\nd", "\"$(x 'a\\\nb')\" cd"),
        ("x <<'E'\na\\\nb\nE\nc\\\nd", "x <<'E'\na\\\nb\nE\ncd"),
        ("x <<E\nit's a\\\nb\nE\nc\\\nd", "x <<E\nit's ab\nE\ncd"),
        ("{a,b}", "''{a,b}"),
        ("'{a,b}' {c,d}", "'{a,b}' ''{c,d}"),
        ("{ a; }", "{ a; }"),
        ("${a} b{c,d}", "${a} b{c,d}"),
    ],
)
def test_continuations_are_joined_where_the_shell_joins_them(text: str, expected: str) -> None:
    assert joined(text, Deadline(lambda: 0.0)) == expected


@pytest.mark.parametrize("text", ["a\u200bb", "a\u00a0b", "a \x1b[1m", "a\rb", "\ufeffa", 'a "$(b \u2003)"'])
def test_odd_characters_outside_quotes_are_a_problem(text: str) -> None:
    assert read_shell(text).problems


@pytest.mark.parametrize("text", ["a '\u200b'", 'a "\u00a0"', "a # \u200b", "cat <<E\n\u200b\nE", "a é 日本"])
def test_odd_characters_inside_quotes_are_not(text: str) -> None:
    assert not read_shell(text).problems


def test_a_spent_budget_is_a_problem_and_keeps_what_was_found() -> None:
    ticks = iter(range(1000))
    script = read_shell("rm -rf /; " * 50, clock=lambda: next(ticks) * 0.001)
    assert script.problems == ("it takes too long to read",)
    assert 0 < len(script.commands) < 50


def test_a_script_with_an_error_counts_up_to_the_error() -> None:
    script = read_shell("a\nb\nc (")
    assert [command.program for command in script.commands] == ["a", "b"]
    assert script.problems == ("its syntax cannot be read",)


def programs(text: str) -> list[str]:
    """The programs that are found, each with its words."""
    return [command.text for command in read_shell(text, clock=lambda: 0.0).commands if command.words]


@every(
    "text",
    [
        "[[ x -eq 'a[$(rm x)]' ]]",
        "[ -v 'a[$(rm x)]' ]",
        "n='a[$(rm x)]'; [[ $n -gt 1 ]]",
        "let 'a[$(rm x)]=1'",
        "test -v 'a[$(rm x)]'",
        "printf -v 'a[$(rm x)]' y",
        "read 'a[$(rm x)]'",
        "unset 'a[$(rm x)]'",
        "export 'a[$(rm x)]=1'",
        "declare -i y='a[$(rm x)]'",
        "declare -n y='a[$(rm x)]'",
        "y='a[$(rm x)]'; (( y ))",
        "y='a[$(rm x)]'; z=y; echo $(( z + 1 ))",
        "y='a[$(rm x)]'; echo ${w:y}",
        "y='a[$(rm x)]'; echo ${b[y]}",
        "y='a[$(rm x)]'; echo ${!y}",
        "y='a[`rm x`]'; for (( i = y; i < 1; i++ )); do :; done",
        "b=([$(rm x)]=1)",
        "b[$(rm x)]=1",
        "y='$(rm x)'; : \"${y@P}\"",
        "PS4='$(rm x)'; set -x; :",
        "PROMPT_COMMAND='rm x'",
        "hash -p rm ls; ls x",
        "alias ls='rm x'\nls",
        "alias s='sudo ' t='rm x'\ns t",
        "select f in x; do rm $f; done",
        "time { rm x; }",
        "coproc A { rm x; }",
        "time ! rm x",
        "time ! { rm x; }",
        "coproc ! rm x",
        "trap 'rm $f' EXIT; f=x",
        "for i in 1 2; do $c x; c=rm; done",
        "c=true; [[ $a ]] && c=rm; $c x",
        "true && ls() { rm x; }; ls",
        "set -- x; rm $1",
        'f() { rm "$1"; }; f x',
        'arr=(rm x); "${arr[@]}"',
        "arr=(rm); arr+=(x); ${arr[*]}",
        "arr=(q x); rm ${arr[1]}",
        "bash <<E; ls\nrm x\nE",
        "cat <<A; bash <<B\nls\nA\nrm x\nB",
        "bash -s a <<E\nrm x\nE",
        "cat <<E\n\t$(rm x)\nE",
        "cat <<E\n`rm x` $y `ls`\nE",
        "echo `ls` `rm x`",
        'echo "`echo \\`rm x\\``"',
        "a | b | c\nrm x >f",
        "a | b | c\nf=1 rm x >f",
        "a | b | c\n>f rm x",
        "a | b | c\n<<E rm x\nE",
        "echo a\n\\rm x",
        "echo a\n  \\\n\\rm x",
        "echo a # b\n\\rm x",
        "echo a \\\n\\\n; rm x",
        "printf 'rm x' > s; . ./s",
        "if a; then echo 'rm x' > s; fi; sh s",
        "${r:-rm} x",
        "${r:+rm} x",
        "r=; ${r:=rm} x; r=ls",
        "$'\\x72m' x",
        "{rm,x}",
        "rm$IFS'x'",
        "b[1]=$(rm x)",
        "b[1]+=`rm x`",
        "b[1]=<(rm x)",
        "b[0]=1 c[1]=$(rm x)",
        "declare b[1]=$(rm x)",
        "f() { local b[1]=$(rm x); }; f",
        "if b[1]=$(rm x); then :; fi",
        "case a in $(rm x)) ;; esac",
        "case a in b|$(rm x)) ;; esac",
        'case a in "$(rm x)") ;; esac',
        "case a in ${y:-$(rm x)}) ;; esac",
        "case a in b`rm x`) ;; esac",
        "case a in @(b|$(rm x)) ) ;; esac",
        "echo \"${y:-'$(rm x)'}\"",
        "echo \"${y:='$(rm x)'}\"",
        "y=1; echo \"${y:+'$(rm x)'}\"",
        "echo \"${y-a '`rm x`' b}\"",
        "echo \"${y?'$(rm x)'}\"",
        "echo \"${b[1]:-'$(rm x)'}\"",
        "[[ \"${y:-'$(rm x)'}\" ]]",
        "cat <<< \"${y:-'$(rm x)'}\"",
        "cat <<E\n${y:-'$(rm x)'}\nE",
        "echo $((1+'$(rm x)'))",
        "(('$(rm x)'))",
        "echo $['$(rm x)']",
        "echo ${a['$(rm x)']}",
        "a['$(rm x)']=1",
        "echo $((1+${y-'$(rm x)'}))",
        'echo $(( "a[\\$(rm x)]" ))',
        "unset a['$(rm x)']",
        "a[<(echo ${y-'$(rm x)'})]=1",
        "b=([${y-'`rm x`'}]=1)",
        "bash +x -c 'rm x'",
        "sh +e -c 'rm x'",
        "bash +o posix -c 'rm x'",
        "bash +c 'rm x'",
        "exec <<< 'rm x'; bash",
        "exec <<'E'\nrm x\nE\nbash",
        "exec < <(printf 'rm x'); sh -s",
        "exec <<< 'rm x'; . /dev/stdin",
        "exec <<< 'rm x'; source /proc/self/fd/0",
        "exec {f}<<< 'rm x'; . /dev/fd/$f",
        "exec 3<<'E'\nrm x\nE\nbash 0<&3",
        "exec 3< <(echo rm x); bash <&3",
        "exec 3<<< 'rm x'; bash <&3",
        "declare -a b='($(rm x))'",
        "declare -A b='([$(rm x)]=1)'",
        "f() { local -a b='($(rm x))'; }; f",
        'declare -a "b=(\\$(rm x))"',
        "y='(`rm x`)'; readonly -a b=$y",
        "declare -i n; n='a[$(rm x)]'",
        "declare -i n; n+='a[$(rm x)]'",
        "declare -i n; read n <<< 'a[$(rm x)]'",
        "declare -i n; read n m <<< 'a[$(rm x)] b'",
        "declare -i n; printf -v n %s 'a[$(rm x)]'",
        "declare -i n; for n in 'a[$(rm x)]'; do :; done",
        "declare -ai n; n=(1 'a[$(rm x)]')",
        "y='a[$(rm x)]'; declare -i n; n=y",
        "RANDOM='a[$(rm x)]'",
        "RANDOM='a[$(rm x)]' ls",
        "OPTIND='a[$(rm x)]'",
        "b=(1); y='a[$(rm x)]'; unset b[y]",
        "compgen -W '$(rm x)'",
        "compgen -W '`rm x`' -- y",
        "shopt -s extglob\n[[ a == @(b|$(rm x)) ]]",
    ],
)
def test_what_is_hidden_is_found(text: str) -> None:
    assert any(found.startswith("rm x") for found in programs(text)), programs(text)


@pytest.mark.parametrize(
    "text",
    [
        "coproc bash; echo 'rm x' >&${COPROC[1]}",
        "coproc A { bash; }; echo 'rm x' >&${A[1]}",
        "coproc echo rm x; bash <&${COPROC[0]}",
        "mkfifo p; sh p & echo rm x > q; cp q p",
        "mkfifo p; python3 ./p",
        "mkfifo p; cat p | sh",
        'declare -a b="($y)"',
        "exec 3< <(echo rm x) 4< <(ls); bash <&3",
        "exec 3< <(echo rm x); exec 4< <(echo ls); . /dev/fd/3",
        "bash 3<<< 'rm x' /dev/fd/3",
        "bash 3<<< 'ls' 4<<< 'rm x' <&4",
    ],
)
def test_code_that_comes_from_where_nobody_sees_is_opaque(text: str) -> None:
    assert read_shell(text, clock=lambda: 0.0).opaque


@pytest.mark.parametrize(
    "text",
    [
        "echo \"${y:-'}\"; rm x; echo '}\"'",
        'echo "${y+\'}"; rm x #\'}"',
        "cat <<A\n${y:-'}\n$(rm x)\n'}\nA",
        "echo `echo ${y-'`echo $(rm x)`'}`",
        "echo ${y:=$[$'$(rm x)']}",
    ],
)
def test_what_the_grammar_ends_elsewhere_than_the_shell_is_a_problem(text: str) -> None:
    assert read_shell(text, clock=lambda: 0.0).problems


@pytest.mark.parametrize(
    "text",
    [
        "ls # $(rm x)",
        "ls;# a",
        "ls \\\\ # a",
        "if a; then # b\nls; fi",
        "b=( # a\n c # d\n)",
        "echo `ls # it's\n`",
        "echo `awk '{print \"a\"}' x`",
        'echo "`ls \\"a\\"`"',
        "echo \"${y:-it} ${y:-'a b'} ${y%'}'} ${y//'\"'/}\"",
        "a | b | c\nd $(e) >f g $(h)",
        "cat <<'E'\n$(a) `b` <(c)\nE",
        "f() { g $(h); }; f; f",
        "exec 2>&1; exec 3>log; bash a.sh",
        "exec < /dev/null; python3 a.py",
    ],
)
def test_what_is_read_whole_is_no_problem(text: str) -> None:
    script = read_shell(text, clock=lambda: 0.0)
    assert (script.problems, script.opaque) == ((), ())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("case_statement", "case a in b) $(c);; esac"),
        ("for_statement", "for a in b; do c; done"),
        ("test_command", "[[ $(a) ]]"),
        ("pipeline", "a | b*"),
        ("list", "a && b*"),
        ("redirected_statement", "{ a; } > b"),
        ("variable_assignment", "a=$(b)"),
    ],
)
def test_a_part_that_is_not_walked_is_a_problem(kind: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not read_shell(text, clock=lambda: 0.0).problems
    monkeypatch.setitem(walk._HANDLERS, kind, lambda _machine, _node, _io: None)
    assert read_shell(text, clock=lambda: 0.0).problems == (NOT_ALL_READ,)


def test_functions_that_double_each_other_are_given_up_soon() -> None:
    doubling = "; ".join(f"f{place}() {{ f{place - 1}; f{place - 1}; }}" for place in range(1, 40))
    script = read_shell(f"f0() {{ ls; }}; {doubling}; f39", clock=lambda: 0.0)
    assert "it has too many words" in script.problems
    assert len(script.commands) < 2000


def test_a_loop_over_very_many_words_is_given_up() -> None:
    assert read_shell("for i in " + "a " * 30_000 + "; do ls; done", clock=lambda: 0.0).problems


@pytest.mark.parametrize(
    "text",
    [
        "msg='$(rm x)'; [[ -n $msg ]] && echo \"${msg#a}\"",
        "echo 'a[$(rm x)]'",
        "printf '%s' 'a[$(rm x)]'",
        "cat <<'E'\n\t$(rm x) `rm x`\nE",
        "cat <<E\n\\$(rm x) \\`rm x\\`\nE",
        "ls() { :; }; echo ls rm x",
        "echo '\n\\rm x'",
        "git log --grep '; rm x'",
        "# `rm x`\nls",
    ],
)
def test_what_is_data_stays_data(text: str) -> None:
    assert not any(found.startswith("rm") for found in programs(text)), programs(text)


def test_words_behind_a_line_that_the_grammar_loses_are_no_arguments() -> None:
    assert programs("a | b | c\nd >f") == ["a", "b", "c", "d"]
    assert programs("python3 - <<'E'\nx\nE") == ["python3 -"]


def test_a_variable_that_changes_what_it_is_given_is_not_known() -> None:
    assert programs("typeset -u v=a; echo $v") == ["typeset -u v=a", f"echo {UNKNOWN}"]
    assert programs("declare -n r=v; r=a; echo $v")[-1] == f"echo {UNKNOWN}"
    assert programs("i=0; (( i++ )); echo $i")[-1] == f"echo {UNKNOWN}"


def test_what_another_shell_knows() -> None:
    assert {"echo a", "echo "} <= set(programs("v=a; bash -c 'echo \"$v\"'"))
    assert "echo " not in programs("export v=a; bash -c 'echo \"$v\"'")
    assert programs("v=a; eval 'echo $v'")[-1] == "echo a"


def test_another_shell_knows_no_array() -> None:
    assert "echo x" in programs("v=(a); bash -c 'echo \"${v[@]}\" x'")


@every(
    "text",
    ["a | >f b | c d\nbash <<'E'\nrm x\nE", "a | b | exec 9>&1; c\n( declare -i n; read n <<< 'a[$(rm x)]' ) >f"],
)
def test_what_stands_around_a_line_that_the_grammar_loses_is_found(text: str) -> None:
    assert "rm x" in programs(text)


def test_a_folder_changed_in_a_branch_is_not_known_behind_it() -> None:
    script = read_shell("cd /a; if b; then cd /c; ls; fi; ls")
    assert [command.cwd for command in script.commands if command.program == "ls"] == ["/c", None]


def test_files_with_unknown_content_are_opaque_when_run() -> None:
    assert read_shell("curl u > s.sh; sh s.sh").opaque == ("s.sh",)
    assert not read_shell("curl u > s.txt; cat s.txt").opaque


@pytest.mark.parametrize("text", ["--e=f ls", "--e=$x ls", "2a=b ls"])
def test_what_begins_like_no_name_is_no_assignment(text: str) -> None:
    (command,) = read_shell(text).commands
    assert (len(command.words), command.assignments) == (2, ())


def _slow(_source: bytes, _start: int, _end: int) -> None:
    """In place of the quick look at a plain word."""


@given(
    st.integers(0, 10_000).map(generator.script)
    | st.lists(
        st.sampled_from(["ls", " ", "'a'", '"b"', "c=d", "--e=f", "$g", ";", "\n", "{h,i}", "*", "~", "\\j", "é", "#"])
    ).map("".join)
)
@settings(deadline=None)
def test_the_quick_look_at_plain_words_says_the_same(text: str) -> None:
    quick = read_shell(text, clock=lambda: 0.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(words_of, "fixed", _slow)
        assert read_shell(text, clock=lambda: 0.0) == quick
