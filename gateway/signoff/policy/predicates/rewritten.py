"""Files that a text writes and then runs under another name, or has a tool read as its instructions."""

import re
from collections.abc import Callable

from signoff.policy.predicates.program_options import values_of
from signoff.policy.predicates.remote_code import program_file
from signoff.policy.predicates.whole import absolute, per_script, starts
from signoff.policy.programs import program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import Command, Script, Word
from signoff.policy.shell.options import OptionSpec, arguments

_COPIERS = frozenset({"cp", "gcp", "mv", "gmv", "ln", "gln", "install", "ginstall", "rsync", "ditto", "copy", "rename"})
_COPY = OptionSpec(short_values="tSgmo", long_values=("target-directory", "suffix", "mode", "owner", "group"))
_LINK = OptionSpec(short_values="tS", long_values=("target-directory", "suffix"))
_TEES = frozenset({"tee", "gtee", "sponge"})
_INPUTS = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


@per_script
def _written(script: Script) -> frozenset[str]:
    """The files that the text writes by redirections and tee, as normal paths."""
    found: set[str] = set()
    tees = starts(script, _TEES)
    for command in script.commands:
        if command.redirects:
            found.update(absolute(item.target.text, command.cwd) for item in command.redirects if item.writes)
        if tees and program_name_of(command) in _TEES:
            found.update(absolute(word.text, command.cwd) for word in command.own_words[1:] if word.text[:1] != "-")
    found.discard("/dev/null")
    return frozenset(found)


@per_script
def _copied(script: Script) -> frozenset[str]:
    """Where the text puts copies of files that it wrote, or links to them, and what it makes of an input."""
    if not starts(script, _COPIERS):
        return frozenset()
    copying = [command for command in script.commands if program_name_of(command) in _COPIERS]
    written, found = _written(script), set[str]()
    for command in copying:
        _copy(command, written, found)
    return frozenset(found)


@per_script
def _made(script: Script) -> frozenset[str]:
    return _written(script) | _copied(script)


def _copy(command: Command, written: frozenset[str], found: set[str]) -> None:
    links = program_name_of(command) in {"ln", "gln"}
    given = arguments(command.own_words, _COPY if program_name_of(command).endswith("install") else _LINK)
    folders = [
        option.value.text for option in given.options if option.name in {"-t", "--target-directory"} and option.value
    ]
    names = [word.text for _place, word in given.operands]
    sources, target = (names, folders[0]) if folders else (names[:-1], names[-1] if names else "")
    for source in sources:
        place = absolute(target, command.cwd)
        paths = {absolute(source, command.cwd)}
        if links:
            paths.add(absolute(source, place.rpartition("/")[0] or command.cwd))
        if source in _INPUTS or paths & written or paths & found or any(_holds(path, written) for path in paths):
            found.update((place, f"{place}/{source.rstrip('/').rpartition('/')[2]}"))


def _holds(folder: str, written: frozenset[str]) -> bool:
    """Whether a folder that is copied or moved holds a file that was written."""
    return any(path.startswith(folder.rstrip("/") + "/") for path in written)


_INTERPRETER = re.compile(
    r"(?:[bdkrz]|mk|fi|tc|c|a)?a?sh|source|\.|(?:python|pypy|perl|ruby|php|lua|node|tcl)[\w.]*|nodejs|deno|bun|tsx|ts-node"
    r"|luajit|Rscript|rscript|r|julia|elixir|groovy|guile|osascript|expect|tclsh|wish|busybox|emacs|raku|swift|go|java"
)
"""What runs the file that it is given."""


def _runs_rewritten(seen: Seen) -> bool:
    """A copy of a file, or a link to one, that the text wrote: what is in it was not followed to this name."""
    copies = _copied(seen.script)
    if not copies:
        return False
    if "/" in seen.words[0].text:
        file: Word | None = seen.words[0]
    else:
        file = program_file(seen) if _INTERPRETER.fullmatch(seen.name) else None
    if file is None:
        return False
    path = absolute(file.text, seen.cwd)
    while path not in copies:
        path = path.rpartition("/")[0]
        if not path:
            return False
    return True


_INSTRUCTIONS: dict[str, tuple[str, ...]] = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "gmake": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "npm": ("package.json", ".npmrc"),
    "pnpm": ("package.json", ".npmrc"),
    "yarn": ("package.json", ".yarnrc", ".yarnrc.yml"),
    "bun": ("package.json", "bunfig.toml"),
    "cmake": ("CMakeLists.txt",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    "gulp": ("gulpfile.js", "gulpfile.ts", "gulpfile.mjs"),
    "grunt": ("Gruntfile.js",),
    "ant": ("build.xml",),
    "scons": ("SConstruct",),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
    "mvn": ("pom.xml",),
    **dict.fromkeys(
        ("gradle", "gradlew", "./gradlew"),
        ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "init.gradle"),
    ),
    "cargo": ("build.rs", ".cargo/config.toml", "Makefile.toml"),
    "bundle": ("Gemfile",),
    "pre-commit": (".pre-commit-config.yaml",),
    "direnv": (".envrc",),
}
"""The files in which these tools find what they run."""


def _instructed_here(seen: Seen) -> bool:
    """A tool that runs what a file says, in a text that writes this file and whose commands nobody has read."""
    written = _made(seen.script)
    if not written or _only_tells(seen):
        return False
    if seen.name.rpartition("/")[2] in {"make", "gmake", "just", "task", "rake"}:
        named = values_of(seen, ("-f", "--file", "--makefile", "--justfile", "--taskfile", "--rakefile"))
        if any(absolute(word.text, seen.cwd) in written for word in named):
            return True
        folders = values_of(seen, ("-C", "--directory", "-d", "--dir"))
        return any(_beside(name, folder, seen) in written for name in _names(seen) for folder in (*folders, Word(".")))
    if seen.name == "cmake" and any(absolute(word.text, seen.cwd) in written for word in values_of(seen, ("-P", "-C"))):
        return True
    if seen.name == "wrk":
        return any(absolute(word.text, seen.cwd) in written for word in values_of(seen, ("-s", "--script")))
    if seen.name in _COMPILES:
        verb = seen.texts[0] if seen.texts else ""
        files = seen.operands if verb in _RUNS or seen.name in _COMPILES_AT_ONCE else []
        return any(absolute(word.text, seen.cwd) in written for word in files if word.text.endswith(_SOURCES))
    first = seen.texts[0] if seen.texts else ""
    if (not first and seen.name not in _NEED_NO_NAME) or first in _NO_SCRIPTS:
        return False
    if seen.name == "cargo" and first in _RUNS_NOTHING:
        return False
    return any(_beside(name, Word("."), seen) in written for name in _names(seen))


def _only_tells(seen: Seen) -> bool:
    """`cmake --version`, and what pre-commit does to its file or to the hooks, as long as no command follows."""
    texts = [word.text for word in seen.words[1:]]
    if len(texts) != 1:
        return False
    if seen.name == "pre-commit" and texts[0] in {"install", "validate-config"}:
        return texts[0] != "install" or seen.command is seen.script.commands[-1]
    return texts[0] in {"--version", "--help"} or (texts[0] == "-v" and seen.name in _TELLS_VERSION)


_TELLS_VERSION = frozenset({"mvn", "gradle", "gradlew", "./gradlew", "bundle"})
_COMPILES_AT_ONCE = frozenset({"java", "swift", "runhaskell", "runghc", "escript"})
_COMPILES = _COMPILES_AT_ONCE | {"go", "zig", "dart", "crystal", "nim", "v"}
"""What compiles the source file that it is given and runs it; no rule has read what is in it."""
_SOURCES = (".go", ".java", ".zig", ".swift", ".dart", ".cr", ".nim", ".v", ".hs", ".erl", ".escript")
_RUNS = frozenset({"run", "r"})
_RUNS_NOTHING = frozenset({"fmt", "add", "remove", "tree", "metadata", "search"})
_NEED_NO_NAME = frozenset({"cmake", "nox", "tox", "gulp", "grunt", "ant", "scons", "bundle", "mvn", "direnv"})
"""Tools that run what their file says when they are told nothing."""

_NO_SCRIPTS = frozenset(
    {"view", "ls", "list", "config", "init", "outdated", "why", "help", "info", "audit", "pkg", "version"}
)


def _names(seen: Seen) -> tuple[str, ...]:
    return _INSTRUCTIONS.get(seen.name, ())


def _beside(name: str, folder: Word, seen: Seen) -> str:
    return absolute(f"{folder.text}/{name}" if folder.text != "." else name, seen.cwd)


def _module_written(seen: Seen) -> bool:
    """`python -m name`, where the text wrote `name.py` or a file of that package."""
    words = seen.command.words
    places = [place for place, word in enumerate(words[:-1]) if word.text == "-m"] if seen.dashed else []
    if not places:
        return False
    written = _made(seen.script)
    path = absolute(words[places[0] + 1].text.replace(".", "/"), seen.cwd)
    return any(file == f"{path}.py" or file.startswith(f"{path}/__") for file in written)


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "runs_rewritten": _runs_rewritten,
    "instructed_here": _instructed_here,
    "module_written": _module_written,
}


def _makes_files(seen: Seen) -> bool:
    if len(seen.script.commands) == 1 and not seen.command.redirects and seen.name not in _TEES:
        return False
    return bool(_made(seen.script))


NEEDS = dict.fromkeys(PREDICATES, _makes_files)
