"""Code from elsewhere, code that is only seen when it runs, and files that were just fetched or made executable."""

import re
from collections.abc import Callable

from signoff.policy.predicates.whole import absolute, cloned, downloaded, made_executable, per_script, starts
from signoff.policy.programs import is_installed, program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Script, Word
from signoff.policy.shell.options import OptionSpec, arguments

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "busybox"})
_SHELL = OptionSpec(short_values="oO", long_values=("rcfile", "init-file"))
_INTERPRETER = OptionSpec(
    short_values="cemrpWXIMxEilC",
    long_values=("eval", "print", "require", "import", "loader", "env-file", "input-type", "eval-file", "config"),
)
_STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_SUBCOMMANDS = frozenset({"run", "exec", "eval"})


def _spec(seen: Seen) -> OptionSpec:
    return _SHELL if seen.name in SHELLS else _INTERPRETER


def program_file(seen: Seen) -> Word | None:
    """The file a shell or an interpreter is told to run; None when it takes its code from somewhere else."""
    given = arguments(seen.words, _spec(seen), stop=True)
    if seen.name in {"source", "."}:
        return given.operands[0][1] if given.operands else None
    if given.has("-c", "--command", "-e", "-E", "--eval", "-p", "--print", "-r", "-m", "-pe", "-ne", "-s"):
        return None
    operands = [word for _place, word in given.operands]
    if operands and seen.name in {"deno", "bun"} and operands[0].text in _SUBCOMMANDS:
        operands = [word for word in operands[1:] if not word.text.startswith("-")]
    return operands[0] if operands and operands[0].text not in _STANDARD_INPUT else None


def reads_code_from_input(seen: Seen) -> bool:
    """A shell or an interpreter that is fed, and was told of neither a file nor a text to run."""
    if not seen.command.fed or program_file(seen) is not None:
        return False
    return not seen.has("-c", "--command", "-e", "-E", "--eval", "-r", "-m", "-n", "-p", "--version", "--help", "-V")


def _feeds_code(seen: Seen) -> bool:
    """An interpreter that is fed something, and was told of neither a file nor a text to run."""
    return _is_fed_text(seen) and reads_code_from_input(seen)


def _is_fed_text(seen: Seen) -> bool:
    """Whether it is fed more than nothing, as `< /dev/null` is."""
    if not seen.command.fed or seen.command.stdin is not None:
        return bool(seen.command.stdin)
    return not any(each.target.text == "/dev/null" and not each.writes for each in seen.command.redirects)


def _input_unseen(seen: Seen) -> bool:
    return seen.command.stdin is None or UNKNOWN in seen.command.stdin


def _code_unseen(seen: Seen) -> bool:
    """The text that a shell is told to run by `-c`, eval's words, or a stream it is given, is not fully known."""
    words = seen.command.words
    if seen.name in {"eval", "source", "."}:
        return any(UNKNOWN in word.text or (word.given and word.content is None) for word in words[1:])
    return (seen.has("-c", "--command") and any(UNKNOWN in word.text for word in words[1:])) or _given_stream(seen)


def _given_stream(seen: Seen) -> bool:
    """`bash <(curl ...)`: the file it runs is a stream that nobody has seen."""
    if not [word for word in seen.words if word.given]:
        return False
    file = program_file(seen)
    return file is not None and file.given and (file.content is None or UNKNOWN in file.content)


def _runs_given_code(seen: Seen) -> bool:
    """A shell that runs text and no file: by eval, by `-c`, or fed to it."""
    return seen.name == "eval" or seen.has("-c", "--command") or reads_code_from_input(seen) or _given_stream(seen)


def _runs_downloaded(seen: Seen) -> bool:
    """The program, or the file an interpreter runs, was fetched from the network by the same text."""
    files, folders = downloaded(seen.script), cloned(seen.script)
    if not (files or folders):
        return False
    word = seen.words[0] if "/" in seen.words[0].text else program_file(seen)
    if word is None:
        return False
    path = absolute(word.text, seen.cwd)
    return path in files or (path.startswith(folders) and runs_script(seen))


def runs_script(seen: Seen) -> bool:
    """A script or program of what was just fetched; not what projects are built and started with."""
    return (seen.name.startswith("./") or seen.name in SHELLS) and not _PROJECT_TOOL.search(seen.name)


_PROJECT_TOOL = re.compile(
    r"(?:gradlew|mvnw|configure|autogen\.sh|bootstrap|buildconf|sbt|artisan|manage\.py|pants|bazelisk|gw"
    r"|wait-for-it\.sh)\Z"
)


def _runs_made_executable(seen: Seen) -> bool:
    """It was made executable by the same text; not what projects are built with."""
    files = made_executable(seen.script)
    if not files or _PROJECT_TOOL.search(seen.name):
        return False
    path = absolute(seen.words[0].text, seen.cwd)
    return path in files and path not in downloaded(seen.script)


@per_script
def _copies_of_programs(script: Script) -> frozenset[str]:
    """Where the text puts copies of installed programs, or links to them."""
    found: set[str] = set()
    for command in script.commands if starts(script, _COPIERS) else ():
        if program_name_of(command) not in _COPIERS:
            continue
        texts = [word.text for word in command.own_words[1:] if word.text[:1] != "-"]
        looked_up = _LOOKS_UP.search(command.source) is not None or starts(script, _FINDERS)
        if len(texts) >= 2 and any(_may_be_installed(text, looked_up) for text in texts[:-1]):
            found.add(absolute(texts[-1], command.cwd))
    return frozenset(found)


_LOOKS_UP = re.compile(r"\$\(|`")
_FINDERS = frozenset({"which", "gwhich", "command", "type", "whence", "where", "whereis"})


def _may_be_installed(path: str, looked_up: bool) -> bool:
    """A file in a folder of programs, or one that the text has looked up, as in `cp "$(which rm)" x`."""
    return (looked_up and not path.strip(UNKNOWN)) or (path[:1] == "/" and is_installed(path, None))


_COPIERS = frozenset({"cp", "gcp", "ln", "gln", "mv", "gmv", "install", "ginstall"})


def _runs_copied(seen: Seen) -> bool:
    """It is a copy of an installed program under another name, made by the same text."""
    copies = _copies_of_programs(seen.script)
    return bool(copies) and absolute(seen.words[0].text, seen.cwd) in copies


def _opens_program(seen: Seen) -> bool:
    """macOS `open` on something that runs, or with a terminal."""
    if any(value.text.casefold().removesuffix(".app") in _TERMINALS for value in seen.values("-a", "-b")):
        return True
    return any(word.text.endswith((".command", ".tool", ".pkg", ".terminal", ".workflow")) for word in seen.operands)


_TERMINALS = frozenset({"terminal", "iterm", "iterm2", "warp", "kitty", "alacritty", "com.apple.terminal"})


def _installs_downloaded(seen: Seen) -> bool:
    """A package that the same text fetched."""
    files = downloaded(seen.script)
    return bool(files) and any(absolute(word.text, seen.cwd) in files for word in seen.operands)


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "reads_code_from_input": reads_code_from_input,
    "feeds_code": _feeds_code,
    "is_fed_text": _is_fed_text,
    "input_unseen": _input_unseen,
    "code_unseen": _code_unseen,
    "given_stream": _given_stream,
    "runs_given_code": _runs_given_code,
    "runs_downloaded": _runs_downloaded,
    "runs_copied": _runs_copied,
    "opens_program": _opens_program,
    "runs_made_executable": _runs_made_executable,
    "installs_downloaded": _installs_downloaded,
}

NEEDS: dict[str, Callable[[Seen], bool]] = dict.fromkeys(("feeds_code", "is_fed_text"), lambda seen: seen.command.fed)
