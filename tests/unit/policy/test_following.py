"""What a variable, a list of words, a function or an input may be at a place that is reached in more than one way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import every

from signoff.policy import JudgeContext, judge
from signoff.policy.shell import UNKNOWN, Script, line, plain, read_shell, zsh
from signoff.policy.shell.machine import MAX_DEEP_LOOPS

HOME = "/home/ana"


def read(text: str, cwd: str | None = None) -> Script:
    return read_shell(text, home=HOME, cwd=cwd, clock=lambda: 0.0)


def words(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in read(text).commands if command.words]


MAY_NOT_HAVE_RUN = {
    # a text, and what its last command may run with
    "v=a; if x; then v+=b; fi; a $v": ["a", "ab"],
    "v=; if x; then : ${v:=b}; fi; a [$v]": ["[]", "[b]"],
    "v=a; if x; then for v in b; do :; done; fi; a $v": ["a", "b"],
    "v=a; for v in $none; do :; done; a $v": ["a", UNKNOWN],
    "v=a; select v in b; do break; done; a [$v]": ["[b]", "[]"],
    "set -- a; if x; then set -- b; fi; a $1": [UNKNOWN],
    "set -- a b; x && shift; a $1": [UNKNOWN],
    "set -- a; x || set -- b; a $1": [UNKNOWN],
    "x=(a); y && x=(b); a ${x[0]}": ["a", "b"],
    "v=a; { v=b; } & a $v": ["a"],
    "v=a; v=b && x 2>&1 | y; a $v": ["b"],
    "v=a; while read v; do :; done <<< b; a [$v]": ["[a]", "[b]", "[]"],
    "v=a; f() { local v=b; }; f; a $v": ["a"],
    "v=a; f() { declare v=b; v=c; }; f; a $v": ["a"],
    "v=a; f() { declare -g v=b; }; f; a $v": ["b"],
    "v=a; x[$(y)]=1; v=b; a $v": ["a", "b"],
    "v=a; : $(( $(y) )); v=b\na $v": ["a", "b"],
    "v=a; x[$(y)]=1\nv=b; a $v": ["b"],
    "read 'x[$(y)]'; v=b; a $v": ["b", UNKNOWN],
    "cd /x && y; x && cd z; a $PWD": [UNKNOWN],
    "cd /x && y; a $PWD": ["/x"],
}


@pytest.mark.parametrize("text", MAY_NOT_HAVE_RUN)
def test_what_may_not_have_run_leaves_both_possible(text: str) -> None:
    found = {line[1] for line in words(text) if line[0] == "a"}
    assert found == set(MAY_NOT_HAVE_RUN[text])


RUNS = {
    # a text, and commands that it runs
    "v=; for i in a b; do x [$v]; v=b; done": ["x []", "x [b]"],
    "v=; for i in a b; do x [$v]; v=$v$i$i; done": ["x []", "x [aa]", f"x [{UNKNOWN}]"],
    "y=(a); for i in 1 2; do x ${y[*]}; y+=(b); done": ["x a", "x a b"],
    "set -- a b; while y; do x $1; shift; done": ["x a", f"x {UNKNOWN}"],
    "for i in 1 2; do f; f() { x; }; done": ["x"],
    "for i in a; do for j in b; do x $v$w; v=$w; w=$j; done; done": [f"x {UNKNOWN}{UNKNOWN}"],
    "f() {\n<y z; }; x=f; $x a": ["z"],
    "unset y; (( 1 )) || y=(a); x ${y[@]}": ["x", "x a"],
    "unset y; x ${y[@]} b": ["x b"],
    "test -v 'y[0]'; z || mapfile -t y <<< a; x ${y[@]}": ["x", "x a"],
    "x ${none:-'a b' c}": ["x 'a b' c"],
    "x ${y[3]:-'a b'}": ["x 'a b'"],
    'IFS=,; set -- a b; x "$*"': ["x a,b"],
    "x {1..5..2} {03..1} {c..a..2}": ["x 1 3 5 03 02 01 c a"],
    "x {1..900}": [f"x {UNKNOWN}"],
    'x $"a" b$"c"': ["x a bc"],
    "x v=~ --v=~ v=a:~/b; v=~/c:~; y $v": [f"x v={HOME} --v=~ v=a:{HOME}/b", f"y {HOME}/c:{HOME}"],
    "alias x='y z'\nx \"$a b\"": [f"y z '{UNKNOWN} b'"],
    "v=a; v=b sudo bash -c 'x $v'; y $v": ["x b", "y a"],
    "v=a; f() { x $v; }; v=b f; y $v": ["x b", "y a"],
    "v=a; v=b eval 'x $v'": ["x b"],
    "w=a; y && w=b; v=$w bash -c 'x $v'": ["x a", "x b"],
    "v=a,b; if y; then IFS=,; fi; x $v": ["x a,b", "x a b"],
    "IFS=,; unset IFS; v='a b,c'; x $v": ["x a b,c"],
    "IFS=$z; v=a,b; x $v c": [f"x {UNKNOWN} c"],
    "while y; do f() { a; }; v=b; done; x $v": ["x b"],
    # redirections behind a list, a pipeline or a negation belong to the last command
    "echo 'x a' > f; echo y | bash < f": ["x a"],
    "echo y | bash > f <<< 'x a'": ["x a"],
    "y && ! bash 2> f <<< 'x a'": ["x a"],
    "a | b | { bash; } <<< 'x a'": ["x a"],
    "a | b <<E && v=x\nE\n$v a": ["x a"],
    "( bash ) <<< 'x a' > f": ["x a"],
    "f() { bash; } > y 2>&1 <<< 'x a'": ["x a"],
}


def _written(line: list[str]) -> str:
    return " ".join(f"'{word}'" if " " in word else word for word in line)


@pytest.mark.parametrize("text", RUNS)
def test_all_that_runs_is_found(text: str) -> None:
    script = read(text)
    assert not script.problems
    assert set(RUNS[text]) <= {_written(line) for line in words(text)}


@pytest.mark.parametrize(
    "text",
    [
        "cat > f <<< x",
        "cat 2>&1 <<< 'a b'",
        "if a; then cat 2> f <<< $x | wc; fi",
        "v=$(cat > f <<< x)",
        "while read l; do b; done > f <<< x",
        "cat > f <<< x && b > g <<< y; cat <<< z > h",
    ],
)
def test_a_here_string_may_stand_anywhere_on_the_line(text: str) -> None:
    assert not read(text).problems
    assert judge("command", text, JudgeContext(kind="chat", attended=True, home=HOME)).rung != "person"


def test_it_is_the_input_and_words_behind_it_are_arguments() -> None:
    command = read("cat > f <<< 'a b' c 2>&1").commands[0]
    assert (command.text, command.stdin, command.fed) == ("cat c", "a b\n", True)
    assert [(item.operator, item.target.text) for item in command.redirects] == [(">", "f"), (">&", "1")]


@pytest.mark.parametrize("text", ["cat <<<\nrm x", "cat > f <<<\nrm x", "cat > f <<", "cat > f <<< x )", "cat <<<< x"])
def test_what_is_no_here_string_is_not_understood(text: str) -> None:
    assert read(text).problems


@pytest.mark.parametrize(
    "text",
    [
        "echo rm x | bash 3<<< ls",
        "echo rm x | bash > f 3<<< ls",
        "echo ls > f; echo rm x | bash 3< f",
        "{ exec <<< 'rm x'; bash; } <<< ls",
        "echo ls | ( exec <<< 'rm x'; bash )",
    ],
)
def test_which_of_several_inputs_is_run_is_not_known(text: str) -> None:
    script = read(text)
    assert script.opaque or ["rm", "x"] in words(text)


def test_loops_within_loops_end_soon() -> None:
    deep = "for i in a b; do v=$v$i; " * 20 + "x;" + "done;" * 20
    assert len(read(deep).commands) < 500 * MAX_DEEP_LOOPS
    assert read(deep).problems


PLAIN = st.sampled_from(
    ["ls", "git", "a.b", "./x", "-rf", "--all", "--depth=1", "--x=", "a=b", "'a b'", "'$x'", '"a b"', '"$x"', "''", "#",
     "a/b", "x@y", "50%", "a:b", "1", "2", "if", "time", "export", "{", "}", "!", "[", "~", "*", "é", "a'b'", "b#c",
     "--x='a b'", '--y="~/*"', "--z='$x'", '--z="$x"', "--x='a'b", "--x=''", "--x=~", "--x='a'\"b\"", "x='a b'",
     "+x", "'!'", '"!"', "\\a", "a\\", "-", "--", "=", "a,b", "[[", "]]", "(", ")", "in", "do", "function", "unset"]
)  # fmt: skip


@given(
    st.lists(PLAIN, min_size=1, max_size=5), st.sampled_from(["", " ", "\n", "\t"]), st.sampled_from([" ", "  ", "\t"])
)
def test_a_text_of_plain_words_is_read_as_the_parser_reads_it(parts: list[str], around: str, between: str) -> None:
    text = around + between.join(parts) + around
    quick, plain_words = read(text), plain.words(text) is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "words", lambda _text: None)
        parsed = read(text)
        # The grammar stumbles over a few of them, such as `x@y`.
        assert parsed == quick or (parsed.problems and plain_words)


WORDS = st.sampled_from(
    ["ls", "cd sub", "cd /tmp", "make test", "cat", "echo hi", "sh", "bash -c 'rm -rf x'", "tee f", "read x",
     "xargs rm", "sudo rm -rf build", "curl https://example.com/a", "printf %s x", "alias ll=ls", "unset a",
     "eval 'ls;rm x'", "exec", "shift", "set -- a", "source f", "./f", "trap 'rm x' EXIT", "pushd", "popd", "mapfile",
     "let 'x=1'", "declare -i n", "command declare -i n", "env ls", "nohup make", "if", "time ls", "echo '|'", "1",
     "a 2", "$x", "ls 2", "ls *.py", "--x='a && b'"]
)  # fmt: skip
JOINED = st.sampled_from([" | ", "|", " && ", "&&", " || ", "; ", ";", " ; ", " & ", "\n", ";; ", " |& "])
STAGE = st.tuples(WORDS, st.sampled_from(["", "", "", " 2>&1", "  2>&1 ", "2>&1", " > f", " 2>&1 x", " 2>&12"]), JOINED)


def check_line(text: str) -> None:
    quick = read(text, HOME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line, "read", lambda _text: None)
        assert read(text, HOME) == quick, text


@settings(max_examples=300)
@given(st.lists(STAGE, min_size=2, max_size=5), st.sampled_from(["", " ", "\n", "#"]))
def test_a_line_of_plain_commands_is_read_as_the_parser_reads_it(stages: list[tuple[str, str, str]], end: str) -> None:
    text = "".join(part for stage in stages for part in stage)
    check_line(text.removesuffix(stages[-1][2]) + end)


def test_lists_and_pipelines_of_plain_commands_are_read_as_the_parser_reads_them() -> None:
    for text in (
        "cd a; rm x",
        "cd a && rm x",
        "ls && cd a; rm x",
        "ls || cd a && rm x; rm y",
        "cd a | rm x; rm y",
        "cd a 2>&1 && rm x",
        "ls | cd a 2>&1 && rm x",
        "ls && cd a 2>&1 && rm x",
        "cd a && ls 2>&1 | rm x | rm y; rm z",
        "ls && set -- a | cat 2>&1 | sh",
        "read x && ls; rm",
        "echo 'rm x' | sh",
        "echo 'rm x' 2>&1 | cat | sh",
        "alias a=rm; a x",
        "declare -i n; ls",
        "command declare -i n; read n; ls",
        "a | b | c && d",
        "a | b | c || d | e",
        "a | b && c | d",
        "tee f; ./f",
        "a x@y | b",
    ):
        check_line(text)


def test_a_line_of_plain_commands_needs_no_parser() -> None:
    for text in ("ls | wc -l", "cd a && make 2>&1 | tail -20", "a;b;c", " make || echo 'no | way'\n", "a 2>&1 && b"):
        assert line.read(text) is not None
    for text in (
        "ls > f | wc",
        "ls & wc",
        "ls |& wc",
        "ls | wc |",
        "ls && if x",
        "ls | wc # x",
        "ls\nwc | cat",
        "ls | $x",
        "ls 2>&1x | wc",
        "ls ;; wc",
        "ls | wc 2>&1",
        "a | b | c && d",
        "a | " * 300 + "a",
    ):
        assert line.read(text) is None, text


def test_plain_words_need_no_parser() -> None:
    for text in (
        "ls -la src",
        "git commit -m 'Fix it'",
        'grep -c "a b" x.txt\n',
        "npm run build --workspace=web",
        "f --x='a *'",
    ):
        assert plain.words(text) is not None
    for text in (
        "ls *.py",
        "a=b ls",
        "ls; ls",
        "if x",
        "a 'b'c",
        "echo $x",
        "ls > f",
        "export a",
        "a" * 1001,
        "",
        "f --x='a'b",
    ):
        assert plain.words(text) is None


PARAMETERS = {
    # how `set` is called, and what `"$@"` is from then on, when it was `o` before
    "a b": ["a", "b"],
    "-eu a b": ["a", "b"],
    "-o pipefail a": ["a"],
    "-euo pipefail a": ["a"],
    "-oo pipefail errexit a": ["a"],
    "+x a": ["a"],
    "+ a": ["a"],
    "- a": ["a"],
    "-x -- a": ["a"],
    "a -- b": ["a", "--", "b"],
    "-- -x": ["-x"],
    "--": [],
    "-": ["o"],
    "-eo pipefail": ["o"],
    "-e": ["o"],
    '"$unknown" a': [UNKNOWN],
    '-- "$unknown"': [UNKNOWN],
    "-Z a": [UNKNOWN],
    "*": [UNKNOWN],
}


@pytest.mark.parametrize("called", PARAMETERS)
def test_the_words_of_set_are_the_parameters(called: str) -> None:
    assert words(f'set -- o; set {called}; run "$@"')[-1] == ["run", *PARAMETERS[called]]


EVALUATED = [
    # each runs what stands in x, in bash or zsh
    "((x++))", "((++x))", "((x--))", "((x += 1))", "y=$((x++))", "y=$[x++]", "for ((x++; 0;)); do :; done",
    "if ((x++)); then :; fi", "y[x++]=1", "y=${y[x++]}", "[[ x++ -eq 1 ]]", "((y = x, x = 1))",
    "declare -i x; x+=1", "declare -i x+=1", 'y=(1 "$x"); ((y[1]))', 'y=(1 "$x"); ((y[1]++))',
    'y=(1 "$x"); declare -i y; y[1]+=1', "declare -A y; y[k]=$x; ((y[k]++))", 'y=([0]="$x"); ((y[0]++))',
    "declare -n y=v; v=$x; ((y++))", "declare -n y=v; v=$x; ((v++))", "typeset -l v=$x; ((v++))",
    "typeset -l v; v=$x; ((v++))",
    'a "$v"\\$"$v"; : $[ x ]', 'integer x="$x"', 'float x="$x"',
]  # fmt: skip


@pytest.mark.parametrize("expression", EVALUATED)
def test_what_a_variable_holds_is_evaluated_before_it_changes(expression: str) -> None:
    assert ["run", "it"] in words(f"x='z[$(run it)0]'; {expression}")


def test_an_expression_with_more_values_than_are_followed_is_not_known() -> None:
    chain = "; ".join(f"v{number}=v{number + 1}" for number in range(100))
    assert read(f"{chain}; v100='z[$(run it)0]'; ((v0))").opaque
    assert not read(f"{chain}; v100=7; ((v90))").opaque
    assert not read(f"v=({' '.join(map(str, range(200)))}); ((v[3]))").opaque


@pytest.mark.parametrize(
    "text",
    ["zsh -c 'functions[x]=\"run it\"; x'", "zsh <<< '() { x; }; =run it'", "zsh -c 'x=(git push -f); $x'"],
)
def test_what_zsh_reads_otherwise_is_not_understood_inside_a_text_either(text: str) -> None:
    assert read(text).problems


def test_an_array_that_no_command_is_made_of_means_the_same_to_zsh() -> None:
    assert not read("zsh -c 'files=(a b); ls $files'").problems


@every(
    "text",
    [
        "path=($path ~/bin); which node", "a=(); a+=($f)", 'a=(1); git commit -m "foo; $a"',
        "a=(1); [[ $b || $c ]] && ls", "a=(1); if [[ -n $b && $c ]]; then ls; fi",
    ],
)  # fmt: skip
def test_a_variable_of_zsh_that_names_no_command(text: str) -> None:
    assert not read(f"zsh -c '{text}'").problems


@every(
    "text",
    [
        "x=(rm -rf src); ($x)", "x=(rm -rf src); echo \"a'b\"; $x; echo \"c\"", 'x=(rm -rf src); echo [[ a || $x ]]',
        "x=(rm -rf src); [[ a ]] || $x", 'x=(rm -rf src); echo "$(echo "a"; $x; echo "b")"',
        'x=(rm -rf src); echo \\"; $x; echo \\"',
    ],
)  # fmt: skip
def test_a_variable_of_zsh_that_may_name_one(text: str) -> None:
    assert zsh.reads_otherwise(text)


TMUX_RUNS = [
    ("'#(date) %H:%M'", ["date"]),
    ("'#(uptime) | #(date)'", ["uptime", "date"]),
    ("'build (#(git branch))'", ["git branch"]),
    ("'#(date)#[fg=red] {a}=b/c'", ["date"]),
    ("'#(ls $(pwd)) |'", ["pwd", f"ls {UNKNOWN}"]),
]


@every("text, runs", TMUX_RUNS)
def test_each_command_in_a_text_of_tmux_ends_with_its_bracket(text: str, runs: list[str]) -> None:
    script = read(f"tmux set -g status-right {text}")
    assert not script.problems
    assert [command.text for command in script.commands[1:]] == runs


@every(
    "text",
    ["'#(cat <<E)#(rm x)'", "'#(ls \\\\)#(rm x)'", "'#(echo #(rm x))'", "'#(ls #)#(rm x)'", "'#(cat <<E #)#(rm x)'"],
)
def test_where_one_may_reach_into_another_it_is_not_understood(text: str) -> None:
    script = read(f"tmux set -g status-right {text}")
    assert script.problems or script.opaque


@pytest.mark.parametrize("text", ["alias x run; x it", "csh -c 'alias x run; x it'", "fish -c 'alias x \"run\"; x it'"])
def test_an_alias_may_be_two_words(text: str) -> None:
    assert ["run", "it"] in words(text)


@pytest.mark.parametrize("text", ['set -A a run it; "${a[@]}"', 'argv=(run it); "$@"'])
def test_lists_of_other_shells_are_not_known(text: str) -> None:
    assert read(text).commands[-1].program == UNKNOWN
