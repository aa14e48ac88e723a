"""Environment variables that make a program run something else, and what the shell remembers."""

import posixpath
import re
from collections.abc import Callable

from signoff.policy import unknown
from signoff.policy.matching import DECLARERS
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN


def _assigned(seen: Seen) -> list[tuple[str, str]]:
    """Names and values set before the program, or by a declaration."""
    found = list(seen.command.assignments)
    if seen.name in DECLARERS:
        found += [
            (name, value) for name, equals, value in (word.text.partition("=") for word in seen.words[1:]) if equals
        ]
    return found


_FRONT = re.compile(rf"\$\{{?PATH\b|{UNKNOWN}")


def _path_in_front(seen: Seen) -> bool:
    """A search path on which a scratch folder or one relative to here stands before the usual ones."""
    return any(name == "PATH" and _hijacks(value, seen.cwd) for name, value in _assigned(seen))


_HARMLESS_FOLDER = re.compile(
    r"(?:\./)?(?:node_modules/\.bin|[\w.-]*venv[\w.-]*/bin|vendor/bin|target/(?:debug|release)|bin)/?\Z"
)
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # folders that every user may write


def _hijacks(value: str, cwd: str | None) -> bool:
    match = _FRONT.search(value)
    front = value if match is None else value[: match.start()]
    folders = front.split(":") if match is None else front.split(":")[:-1]
    for folder in folders:
        path = posixpath.normpath(folder) if folder else "."
        if path.startswith(_SCRATCH) or path in {".", cwd}:
            return True
        if not path.startswith(("/", "~", "$")) and not _HARMLESS_FOLDER.match(folder):
            return True
    return False


_PLAIN_PAGER = re.compile(
    r"(?:|(?:/usr)?/bin/)(?:cat|less|more|most|bat|batcat|delta|true|:|head|tail|moar|moor|col|vim?|nvim|nano|emacs|ed"
    r"|ex|pico|micro|code|subl|hx|helix|kate|gedit|mate|mcedit|emacsclient|false|diff-so-fancy|colordiff|diff|sdiff"
    r"|meld|difft|none|firefox|chromium|google-chrome|open|xdg-open|wslview)?(?: -[\w=.,+-]+)*+"
)


def _names_plain_programs(seen: Seen) -> bool:
    """Whether every pager or editor that is set is a usual one with nothing but options."""
    return all(
        _PLAIN_PAGER.fullmatch(value) is not None
        for name, value in _assigned(seen)
        if name.endswith(("PAGER", "EDITOR", "VISUAL", "BROWSER", "DIFF"))
    )


_NODE_LOADS = re.compile(r"(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader|--inspect\S*)(?:[\s=]|\Z)")
_JAVA_LOADS = re.compile(
    r"-(?:javaagent|agentlib|agentpath|Xbootclasspath|XX:OnOutOfMemoryError|XX:OnError|XX:Flags|XX:VMOptionsFile"
    r"|-patch-module|-upgrade-module-path|Djava\.(?:system\.class\.loader|security\.manager|endorsed\.dirs))\b|(?:^|\s)@"
)
_JAVA_NAMES = ("JAVA_OPTIONS", "TOOL_OPTIONS", "_OPTS", "MAVEN_ARGS")


def _options_load_code(seen: Seen) -> bool:
    """Options in the environment that load code into the interpreter."""
    return any(
        (name.upper().endswith("NODE_OPTIONS") and _NODE_LOADS.search(value) is not None)
        or (name.endswith(_JAVA_NAMES) and _JAVA_LOADS.search(value) is not None)
        for name, value in _assigned(seen)
    )


def _splits_on_letters(seen: Seen) -> bool:
    """IFS set for what follows, and not only for one program, to something else than blanks."""
    if seen.words and seen.name not in DECLARERS:
        return False
    return any(name == "IFS" and bool(value.strip(" \t\r\n")) for name, value in _assigned(seen))


_PLAIN_SSH = re.compile(r"(?:/usr/bin/)?ssh(?:\s+[^\s;|&`]+)*\s*")
_SSH_RUNS = re.compile(r"ProxyCommand|LocalCommand|KnownHostsCommand|PKCS11Provider|SecurityKeyProvider|\$\(", re.I)
_SSH_NAMES = ("SSH_COMMAND", "GIT_SSH", "_RSH", "SVN_SSH")


def _names_plain_ssh(seen: Seen) -> bool:
    """Whether the only helpers set are ssh itself with options that start nothing."""
    values = [value for name, value in _assigned(seen) if name.endswith(_SSH_NAMES)]
    return bool(values) and all(_PLAIN_SSH.fullmatch(value) and not _SSH_RUNS.search(value) for value in values)


def _value_runs_commands(seen: Seen) -> bool:
    """A prompt with a command in it, or make flags that bring rules of their own."""
    return any(
        (name.startswith("PS") and ("$(" in value or "`" in value))
        or (name.endswith("FLAGS") and ("--eval" in value or "SHELL=" in value))
        for name, value in _assigned(seen)
    )


def _git_is_not_told(seen: Seen) -> bool:
    """Whether the program is not git, whose own rows look at these variables."""
    return not seen.name.startswith(("git", "gh", "glab", "hub", "repo", "jj"))


def _forgets_history(seen: Seen) -> bool:
    for name, value in _assigned(seen):
        if (name == "HISTFILE" and value in {"", "/dev/null"}) or (
            name in {"HISTSIZE", "HISTFILESIZE"} and value == "0"
        ):
            return True
    return False


def _set_forgets_history(seen: Seen) -> bool:
    texts = [word.text for word in seen.words[1:]]
    if seen.name == "unset":
        return any(text in {"HISTFILE", "HISTSIZE"} for text in texts)
    return "+o" in texts and "history" in texts


def _is_commonplace(seen: Seen) -> bool:
    """A program that everybody knows and that needs no libraries of a project."""
    return seen.name in unknown.table().commonplace


_COMPILER = re.compile(
    r"(?:(?:s?ccache|distcc) )?(?:/(?:usr|opt|nix|Library|Applications)/[\w./+-]*/|/bin/)?"
    r"(?:[\w.+-]*(?:cc|c\+\+|cpp|g\+\+|clang(?:\+\+|-cl)?|icx|icpx|em\+\+|fortran|flang|ifort|ld|gold|mold|ar|as|ranlib|nm"
    r"|strip|objcopy|objdump|cl|link|lib|windres)(?:[-.]?\d[\d.]*)?(?:\.exe)?|zig (?:cc|c\+\+|ar))(?: -[\w=.,+/:-]+)*|"
)
_TOOLS = frozenset(
    {"CC", "CXX", "CPP", "LD", "AR", "AS", "NM", "RANLIB", "STRIP", "OBJCOPY", "FC", "F77", "HOSTCC", "HOSTCXX"}
    | {"NVCC", "CUDACXX", "CUDAHOSTCXX", "LEX", "YACC", "CC_FOR_BUILD", "CXX_FOR_BUILD", "BUILD_CC", "HOST_CC"}
    | {"TARGET_CC"}
)
_LEXERS = frozenset({"lex", "flex", "yacc", "bison", "bison -y", "byacc"})


def _odd_compiler(seen: Seen) -> bool:
    """A compiler or linker for builds that has no name of one: builds run the value as shell text."""
    return any(
        name in _TOOLS and value not in _LEXERS and _COMPILER.fullmatch(value) is None
        for name, value in _assigned(seen)
    )


_SHELL = re.compile(
    r"(?:/(?:usr/)?(?:local/)?bin/|/opt/homebrew/bin/|/run/current-system/sw/bin/)?(?:ba|da|a|z|k|mk|fi)?sh"
)


def _odd_shell(seen: Seen) -> bool:
    """A shell for others to start that is none of the usual ones."""
    return any(name == "SHELL" and _SHELL.fullmatch(value) is None for name, value in _assigned(seen))


_PYTEST_LOADS = re.compile(
    rf"(?:^|\s)(?:-p(?!\s*no:)|-[co]|--(?:basetemp|rootdir|confcutdir|config|override-ini|pyargs|pdbcls|junit|log-file"
    rf"|resultlog|import-mode|pastebin|report-log|html|cov-report|cov-config))|[{UNKNOWN}@]"
)


def _pytest_loads(seen: Seen) -> bool:
    """Options for pytest that load code, delete a folder or write a file."""
    return any(name == "PYTEST_ADDOPTS" and _PYTEST_LOADS.search(value) is not None for name, value in _assigned(seen))


def _git_elsewhere(seen: Seen) -> bool:
    """A repository or work tree that is not the one here: its settings name programs, and its files are replaced."""
    here = {"", ".", "./", ".git", "./.git", ".git/", *((seen.cwd, f"{seen.cwd}/.git") if seen.cwd else ())}
    return any(name in _GIT_PLACES and value not in here for name, value in _assigned(seen))


_GIT_PLACES = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"})


def _traces_to_file(seen: Seen) -> bool:
    """`GIT_TRACE=/a/file`: anything but a number or a word for yes or no is written to."""
    return any(
        name.startswith("GIT_TRACE") and (value[:1] in {"/", "~", UNKNOWN} or ":" in value)
        for name, value in _assigned(seen)
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "is_commonplace": _is_commonplace,
    "odd_compiler": _odd_compiler,
    "odd_shell": _odd_shell,
    "pytest_loads": _pytest_loads,
    "git_elsewhere": _git_elsewhere,
    "traces_to_file": _traces_to_file,
    "path_in_front": _path_in_front,
    "names_plain_programs": _names_plain_programs,
    "options_load_code": _options_load_code,
    "splits_on_letters": _splits_on_letters,
    "names_plain_ssh": _names_plain_ssh,
    "value_runs_commands": _value_runs_commands,
    "git_is_not_told": _git_is_not_told,
    "forgets_history": _forgets_history,
    "set_forgets_history": _set_forgets_history,
}
