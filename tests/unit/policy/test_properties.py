"""Properties over generated texts: nothing raises, nothing hides, nothing takes long."""

import inspect
import string
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from signoff.policy import JudgeContext, Verdict, judge, unwrapped
from signoff.policy.shell import carriers, read_shell
from signoff.policy.shell.carriers import Carrier

CONTEXT = JudgeContext(
    kind="chat", attended=True, home="/home/ana", own_paths=("/home/ana/s",), own_pid=42, deny=("x *y*",)
)
FLOORS = [
    "rm -rf /",
    "rm -r -f /etc",
    "reboot",
    "kill -9 -1",
    "mkfs.ext4 /dev/sda",
    "sudo -S ls",
    "signoff approve K4XW9",
]
FRAGMENTS = [
    "rm", "-rf", "/", " ", "\n", "\\\n", ";", "&&", "||", "|", "&", "(", ")", "{", "}", "$(", "`", "'", "\"",
    "$'", "$x", "${x:-", "${", "<<E\n", "E\n", "<<'E'\n", "<<<", "<(", ">", ">&", "x=", "[[", "]]", "((", "))",
    "if ", "then ", "fi", "for x in ", "do ", "done", "case ", "in ", "esac", ";;", "f(){ ", "eval ",
    "bash -c ", "sudo ", "xargs ", "find . -exec ", "env ", "-c", "-S", "*", "~", "#", "\\", "\u200b", "\x00",
    "é", "alias x=", "set -- ", "trap ", "{a,b}", "${x@P}", "!",
]  # fmt: skip
shell_texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=25).map("".join)


@given(st.text() | shell_texts, st.sampled_from(["bash", "cmd", "powershell", None]))
@settings(max_examples=400, deadline=None)
def test_nothing_raises(text: str, shell: str | None) -> None:
    context = JudgeContext(
        shell=shell, kind="chat", attended=True, home="/home/ana", own_paths=("/home/ana/s",), deny=("x *y*", "*")[:1]
    )
    assert isinstance(judge("command", text, context), Verdict)
    inner = unwrapped(text)
    assert inner is None or inner in text or "-c" in text


@st.composite
def _spelled(draw: st.DrawFn, word: str) -> str:
    """One word written another way that means the same."""
    way = draw(st.sampled_from(["plain", "single", "double", "ansi", "escaped", "mixed", "joined", "output", "split"]))
    plain = all(character in string.ascii_letters + string.digits + "/.-" for character in word)
    place = draw(st.integers(1, max(1, len(word) - 1)))
    spellings = {
        "plain": word,
        "single": f"'{word}'",
        "double": f'"{word}"',
        "ansi": "$'" + "".join(f"\\x{ord(character):02x}" for character in word) + "'",
        "escaped": "".join("\\" + character for character in word),
        "mixed": f"'{word[:place]}'\"{word[place:]}\"",
        "joined": f"{word[:place]}\\\n{word[place:]}",
        "output": f"$(echo {word})" if not word.startswith("-") else f"$(printf %s {word})",
        "split": f"{word[:place]}''{word[place:]}",
    }
    return spellings[way] if plain else word


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


WRAPPERS = [
    "{}", "sudo {}", "sudo -u bob {}", "env A=1 {}", "timeout -k 3 5 {}", "nice -n 3 nohup {}", "true && {}",
    "false || {}", "( {}; )", "{{ {}; }}", "if a; then {}; fi", "f() {{ {}; }}; f", "echo \"$( {} )\"", "! {}",
    "{} &", "time {}", "while read l; do {}; done", "a | {}", "{} | cat", "setsid {}", "stdbuf -o0 {}",
    "flock /tmp/l {}", "busybox env {}", "coproc {}", "command {}", "exec {}", "cat <( {} )", "{} > out",
]  # fmt: skip
CARRIERS = [
    "bash -c {}", "sh -ec {}", "eval {}", "ssh host {}", "su -c {}", "echo {} | sh", "bash <<< {}",
    "trap {} EXIT", "docker exec x sh -c {}", "env -S {}", "x={}; eval \"$x\"", "watch {}",
    "printf '%s\\n' {} | sudo bash",
]  # fmt: skip


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_a_floor_stays_one_however_it_is_written(data: st.DataObject) -> None:
    floor = data.draw(st.sampled_from(FLOORS))
    text = " ".join(data.draw(_spelled(word)) for word in floor.split())
    for wrapper in data.draw(st.lists(st.sampled_from(WRAPPERS), max_size=2)):
        if _is_simple(text) or wrapper in {"{}", "true && {}", "a | {}"}:
            text = wrapper.format(text)
    if data.draw(st.booleans()):
        carrier = data.draw(st.sampled_from(CARRIERS))
        if carrier != "env -S {}" or text == floor:
            text = carrier.format(_single(text))
    assert judge("command", text, CONTEXT, clock=lambda: 0.0).verdict == "block", text


def _is_simple(text: str) -> bool:
    """Whether the text is still one simple command, which any wrapper may stand before."""
    return not any(mark in text.replace("$(", "").replace("\\\n", "") for mark in ';|&<>!{("\n') and "true" not in text


READERS = [
    "echo {}",
    "printf %s {}",
    "grep {} f",
    "git commit -m {}",
    "cat <<< {}",
    "echo {} | tee out",
    "logger {}",
    "x={}",
]


RANK = {"allow": 0, "ask": 1, "block": 2}


def rank(text: str) -> int:
    return RANK[judge("command", text, CONTEXT, clock=lambda: 0.0).verdict]


DANGERS = (
    *FLOORS,
    "rm -rf build",
    "git push --force origin main",
    "sudo systemctl stop nginx",
    "chmod -R 777 .",
    "dd if=a.img of=b.img",
    "kubectl delete pod x",
    "docker system prune -af",
    "npm publish",
    "crontab -r",
    "terraform destroy",
    "foo delete everything",
)
"""Commands that ask or are blocked, each one simple command of plain words."""


@pytest.mark.parametrize("danger", DANGERS)
def test_a_dangerous_command_asks(danger: str) -> None:
    assert rank(danger) > 0


@given(st.sampled_from(DANGERS), st.sampled_from(READERS))
def test_dangerous_text_as_data_raises_nothing(danger: str, reader: str) -> None:
    text = reader.format(_single(danger))
    assert rank(text) == rank(reader.format("'some plain text'")), text


def _carried(row: Carrier, name: str, danger: str) -> Iterator[str]:
    """Ways in which a carrier runs a command, by what its row says of itself."""
    text = _single(danger)
    program = " ".join([name, *row.subcommands[:1]])
    skipped = (" 1" if row.skips == "number" else " x") * row.skip
    if row.inner == "words" and not row.program_option and row.min_operands <= 1:
        yield f"{program} {row.only_behind} {danger}" if row.only_behind else f"{program}{skipped} {danger}"
    elif row.inner in {"text", "each"}:
        yield f"{program} {row.only_behind} {text}" if row.only_behind else f"{program}{skipped} {text}"
    elif row.inner == "first":
        yield f"{program}{skipped} {text} EXIT"
    elif row.inner == "definitions":
        yield f"{program} x={text}"
    elif row.inner == "template":
        yield f"{program} {text} ::: x"
    elif row.inner == "clauses" and row.clause_starts:
        yield f"{program} . {row.clause_starts[0]} {danger} {_single(row.clause_ends[0]) if row.clause_ends else ''}"
    for option in row.code:
        if option in row.code_files:
            continue
        marks = [mark for mark in row.behind if "*" not in mark]
        if not row.behind:
            yield f"{program} {option}{'=' if ':' in option else ' '}{text}"
        elif marks:
            yield f"{program} {option} {_single(marks[0] + danger)}"
    if row.stdin_is == "code" and row.inner != "each":
        yield f"echo {text} | {program}{skipped}{' /dev/stdin' if row.file_is_code else ''}"


CARRIED = sorted(
    {
        (name, way)
        for name, rows in carriers.table().items()
        for row in rows
        if not row.language
        for way in _carried(row, name, "{}")
        if "{}" in way
    }
)


@pytest.mark.parametrize("name", sorted({name for name, _way in CARRIED}))
def test_no_carrier_lowers_a_verdict(name: str) -> None:
    ways = [way for carrier, way in CARRIED if carrier == name]
    missed = [
        text
        for way in ways
        for danger in ("rm -rf /", "rm -rf build", "foo delete everything")
        if rank(text := way.replace("{}", danger)) < rank(danger)
    ]
    assert missed == []


@given(st.sampled_from(DANGERS), st.sampled_from(CARRIED), st.sampled_from(WRAPPERS))
@settings(max_examples=150, deadline=None)
def test_no_carrier_in_a_wrapper_lowers_a_verdict(danger: str, carried: tuple[str, str], wrapper: str) -> None:
    text = wrapper.format(carried[1].replace("{}", danger))
    assert rank(text) >= rank(danger), text


CASES = Path(__file__).parent / "rules"
AROUND = [
    "bash -c {quoted}", "f() {{ {plain}\n}}; f", "echo {quoted} | sh", "bash <<'EOT'\n{plain}\nEOT",
    "xargs -I% bash -c {quoted}", "find . -exec sh -c {quoted} \\;", "sudo bash -c {quoted}",
    "if true; then {plain}\nfi",
]  # fmt: skip


def _case_commands(name: str) -> Iterator[str]:
    for case in tomllib.loads((CASES / name).read_text())["case"]:
        for command in case["fires"]:
            if "<<" not in command:
                yield command


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.toml") if path.name != "python.toml"))
def test_no_carrier_lowers_what_a_rule_says(name: str) -> None:
    missed = [
        text
        for command in _case_commands(name)
        if (needed := rank(command))
        for around in AROUND
        if rank(text := around.format(plain=command, quoted=_single(command))) < needed
    ]
    assert missed == []


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.toml") if path.name != "python.toml"))
def test_what_a_rule_catches_is_data_to_a_reader_of_data(name: str) -> None:
    raised = [
        text
        for command in _case_commands(name)
        for reader in READERS
        if rank(text := reader.format(_single(command))) > rank(reader.format("'some plain text'"))
    ]
    assert raised == []


HARMLESS = ["ls -la", "git status", "cat README.md", "x=1", "cd src", "echo done", "pytest -q", "true", "export A=b"]


@given(
    st.sampled_from(DANGERS),
    st.lists(st.sampled_from(HARMLESS), max_size=4),
    st.lists(st.sampled_from(HARMLESS), max_size=4),
    st.sampled_from(["; ", " && ", "\n", " || "]),
)
@settings(max_examples=150, deadline=None)
def test_harmless_commands_around_lower_nothing(danger: str, before: list[str], after: list[str], glue: str) -> None:
    text = glue.join([*before, danger, *after])
    assert rank(text) >= rank(danger), text


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_writing_it_another_way_changes_nothing(data: st.DataObject) -> None:
    danger = data.draw(st.sampled_from([*DANGERS, *HARMLESS]))
    # An assignment is one only as long as its name is not quoted, and a program may not be known from its output alone.
    words = danger.split()
    if "=" not in danger:
        words = [data.draw(_quoted(word)) for word in words]
    assert rank(" ".join(words)) == rank(danger), words


@st.composite
def _quoted(draw: st.DrawFn, word: str) -> str:
    """One word with other quotes."""
    place = draw(st.integers(1, max(1, len(word) - 1)))
    return draw(
        st.sampled_from(
            [
                word,
                f"'{word}'",
                f'"{word}"',
                "$'" + "".join(f"\\x{ord(character):02x}" for character in word) + "'",
                "".join("\\" + character for character in word),
                f"'{word[:place]}'\"{word[place:]}\"",
                f"{word[:place]}''{word[place:]}",
                f"{word[:place]}$''{word[place:]}",
                f"{word[:-1]}\\{word[-1]}",
                f"{word[:place]}\\\n{word[place:]}",
            ]
        )
    )


class Ticking:
    """A clock that moves on by one step whenever it is asked: time is then the number of checks."""

    def __init__(self, step_s: float) -> None:
        self.now_s = 0.0
        self.asked = 0
        self.step_s = step_s

    def __call__(self) -> float:
        self.asked += 1
        self.now_s += self.step_s
        return self.now_s


HEAVY = [
    "x=(", "(", "a;", "a\n", "$(", "\"$(", "<<a ", "<<a\n\\\n", "{", "{a,", "a{b,c}", "if ", "`", "'", "\"",
    "\\", "\\\n", "a\\\n", "f(){ f;f;};", "a|", "a&&", ">f ", "*", "/../", "sudo ", "find -exec ", "xargs ",
    "eval a;", "bash -c a\n", "x=$x$x;", "\u200b", "a\u200b ", ")", "]", "é", "cat <<E\nb\nE\n", "alias a=b;",
    "${x:-", "[[ ", "trap \"", "a$x.$y ", "v=$ a;", "\\  ", "[ a | b ];", "$${", "a {{,b};", "a#", "$'\\\\' ", "<<E;",
]  # fmt: skip


@pytest.mark.parametrize("fragment", HEAVY)
@pytest.mark.parametrize("size", [20_000, 250_000, 1_000_000])
def test_reading_stops_when_its_time_is_spent(fragment: str, size: int) -> None:
    """With a budget of 200 checks few more may follow: every loop looks at the clock and obeys it. The parser itself
    goes on to read for a moment while it mends what is broken."""
    clock = Ticking(0.05 / 200)
    verdict = judge("command", fragment * (size // len(fragment.encode())), CONTEXT, clock=clock)
    assert verdict.verdict != "allow"
    assert clock.asked < 2500


BRACKETS = [
    ("${a:-", "}"), ('"${a:-', '}"'), ('"$(', ')"'), ("$(", ")"), ("`", "`"), ("(", ")"), ("{ ", "; }"), ("$((", "))"),
    ("<(", ")"), ("((", "))"), ("[[ ", " ]]"), ("[[ ( ", " ) ]]"), ("${a[", "]}"), ("{a,", "}"), ("x=(", ")"),
    ("if a; then ", "; fi"), ("while a; do ", "; done"), ("for x in ", "; do a; done"), ("case ", " in a) ;; esac"),
    ("case a in a) ", ";; esac"), ("f() { ", "; }"), ("! ", ""), ("sudo ", ""), ("eval ", ""), ("'", "'"), ('"', '"'),
    ("bash -c '", "'"), ("$'", "'"), ("<<E\n", "\nE\n"), ("time ", ""), ("a && ", ""), ("a | ", ""), ("${a/x/", "}"),
]  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(BRACKETS), st.integers(1, 400)), min_size=1, max_size=3),
    st.sampled_from(["", "ls", "a"]),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
@example([(("${a:-", "}"), 250)], "", True)
@example([(('"${a:-', '}"'), 200)], "", True)
def test_no_depth_of_brackets_raises(levels: list[tuple[tuple[str, str], int]], core: str, closed: bool) -> None:
    text = core
    for (opening, closing), count in levels:
        text = opening * count + text + (closing * count if closed else "")
    judge("command", text, CONTEXT, clock=lambda: 0.0)
    # Whatever became of the brackets, what stands before them counts.
    assert judge("command", f"rm -rf x\n{text}", CONTEXT, clock=lambda: 0.0).verdict != "allow"


@pytest.mark.parametrize("text", ["${a:-" * 250 + "}" * 250, '"${a:-' * 200 + '}"' * 200])
def test_expansions_in_expansions_count_as_depth(text: str) -> None:
    verdict = judge("command", text, CONTEXT, clock=lambda: 0.0)
    assert (verdict.verdict, verdict.description) == ("ask", "cannot be understood: it nests too deeply")
    assert judge("command", f"rm -rf /; {text}", CONTEXT, clock=lambda: 0.0).verdict == "block"
    # A full stack would end the reading; the counted depth ends only this one word.
    assert judge("command", f"{text}; rm -rf /", CONTEXT, clock=lambda: 0.0).verdict == "block"


def test_nothing_is_read_below_the_deepest_level() -> None:
    script = read_shell("${a:-" * 60 + "$(reboot)" + "}" * 60, clock=lambda: 0.0)
    assert script.problems == ("it nests too deeply",)
    assert "reboot" not in [command.program for command in script.commands]


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_a_stack_that_is_full_at_any_moment_leads_to_a_question(error: type[Exception]) -> None:
    """The clock is asked at every step, so it stands for all places where the last of the stack may go."""
    bypassing = JudgeContext(kind="chat", attended=True, bypass=True, deny=("x",))
    calm = Ticking(0.0)
    assert judge("command", "ls", bypassing, clock=calm).verdict == "allow"

    class Failing(Ticking):
        def __init__(self, at: int) -> None:
            super().__init__(0.0)
            self.at = at

        def __call__(self) -> float:
            if self.asked + 1 == self.at:
                self.asked += 1
                raise error
            return super().__call__()

    for at in (1, 2, 3, calm.asked):
        verdict = judge("command", "ls", bypassing, clock=Failing(at))
        assert (verdict.verdict, verdict.description) == ("ask", "cannot be understood: it nests too deeply"), at
    # What was read before the stack was full still counts.
    assert judge("command", "reboot" + "; ls" * 20, bypassing, clock=Failing(25)).verdict == "block"


def test_a_caller_whose_own_stack_is_nearly_full_gets_a_verdict() -> None:
    """Whatever is left of the stack, nothing is allowed that was not read to its end."""
    bypassing = JudgeContext(kind="chat", attended=True, bypass=True)
    text = '"${a:-' * 20 + "$(rm -rf /)" + '}"' * 20
    seen: set[str] = set()

    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            seen.add(judge("command", text, bypassing, clock=lambda: 0.0).verdict)

    used = len(inspect.stack(0))
    for left in range(60, 500, 20):
        deeper(sys.getrecursionlimit() - used - left)
    assert seen == {"ask", "block"}
