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
    r"|meld|difft|none|firefox|chromium|google-chrome|open|xdg-open|wslview)?(?: -{1,2}[\w=.,+-]+)*"
)


def _names_plain_programs(seen: Seen) -> bool:
    """Whether every pager or editor that is set is a usual one with nothing but options."""
    return all(
        _PLAIN_PAGER.fullmatch(value) is not None
        for name, value in _assigned(seen)
        if name.endswith(("PAGER", "EDITOR", "VISUAL", "BROWSER", "DIFF"))
    )


_NODE_LOADS = re.compile(r"(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader|--inspect\S*)(?:[\s=]|\Z)")
_JAVA_LOADS = re.compile(r"-(?:javaagent|agentlib|agentpath|XX:OnOutOfMemoryError|XX:OnError)\b")


def _options_load_code(seen: Seen) -> bool:
    """Options in the environment that load code into the interpreter."""
    return any(
        (name == "NODE_OPTIONS" and _NODE_LOADS.search(value) is not None)
        or (name.endswith(("JAVA_OPTIONS", "TOOL_OPTIONS", "JAVA_OPTS")) and _JAVA_LOADS.search(value) is not None)
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


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "is_commonplace": _is_commonplace,
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
