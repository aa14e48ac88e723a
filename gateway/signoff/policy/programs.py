"""Which program a word names."""

import posixpath
import re
import unicodedata
from functools import lru_cache

from signoff.policy.shell import UNKNOWN, Command, Word
from signoff.policy.shell.names import without_version
from signoff.policy.shell.options import OptionSpec, arguments

_IN_FOLDER = re.compile(r"/?(?:[^/]+/)*(?:s?bin|\.bin|libexec|games)/([^/]+)")
"""A program inside a folder of programs: of the system, of a virtual environment, of node packages."""

_HOME_OF_PROGRAMS = re.compile(
    r"/(?:usr|bin|sbin|lib\d*|opt|snap|nix|gnu|System|Library|Applications|run/current-system|home/linuxbrew)/"
    r"|(?:/home/[^/]+|/Users/[^/]+|/root|~)/(?:\.[^/]+|go|bin|sdk|Library|[^/]*(?:conda|forge|mamba)[^/]*)/"
    r"|(?:.*/)?(?:[^/]*venv[^/]*|env|\.(?:tox|nox|pixi|devenv|direnv|mise)(?:/[^/]+)*|node_modules|vendor)/(?:\.?bin)/",
    re.I,
)
"""Where programs are installed: by the system, by its user, by the project's own package manager."""

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[td]?")
_PYTHON_OPTIONS = OptionSpec(short_values="cmWX")

_IN_VERSIONS = frozenset({
    "pip", "pipx", "easy_install", "pydoc", "ipython", "uv", "virtualenv", "conda", "node", "nodejs", "npm", "npx",
    "yarn", "pnpm", "deno", "bun", "ruby", "gem", "bundle", "bundler", "irb", "erb", "rake", "php", "composer",
    "lua", "luajit", "luarocks", "tclsh", "wish", "expect", "guile", "racket", "ghc", "ghci", "runghc",
    "runhaskell", "cabal", "stack", "ocaml", "julia", "octave", "octave-cli", "scala", "kotlin", "groovy",
    "clojure", "elixir", "iex", "erl", "swift", "go", "cargo", "rustc", "rustup", "java", "mvn", "gradle", "dotnet",
    "bash", "dash", "zsh", "ksh", "fish", "gawk", "mawk", "vim", "gvim", "nvim", "vi", "ex", "view", "vimdiff",
    "rvim", "rview", "emacs", "emacsclient", "gdb", "lldb", "psql", "createdb", "dropdb", "createuser", "dropuser",
    "pg_dump", "pg_dumpall", "pg_restore", "pg_ctl", "vacuumdb", "mysql", "mysqladmin", "mysqldump", "mariadb",
    "mariadb-admin", "mongo", "mongosh", "redis-cli", "cqlsh", "git", "svn", "hg", "docker", "podman", "kubectl",
    "helm", "terraform", "tofu", "aws", "gcloud", "az", "gh", "ssh", "scp", "rsync", "curl", "wget", "tar", "make",
    "cmake", "gcc", "clang",
})  # fmt: skip
"""Programs that systems install in several versions, or that are started by their names of Windows."""


@lru_cache(maxsize=4096)
def name_of(text: str, cwd: str | None) -> str:
    """The program that a text names, folded to plain letters, without its version.

    A file outside the folders of programs is `./` and its name: whatever it is called, it is somebody's own program.
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    plain = plain.casefold()
    if "/" not in plain:
        return _unversioned(plain)
    if not plain.startswith("/") and cwd is not None:
        plain = f"{cwd}/{plain}"
    path = posixpath.normpath(plain)
    found = _IN_FOLDER.fullmatch(path.replace("//", "/"))
    return _unversioned(found.group(1)) if found else "./" + path.rpartition("/")[2]


def _unversioned(name: str) -> str:
    base = without_version(name)
    return base if base in _IN_VERSIONS else name


@lru_cache(maxsize=1024)
def is_installed(text: str, cwd: str | None) -> bool:
    """Whether a program is found by its name alone, or lies where programs are installed."""
    if "/" not in text:
        return True
    path = text if text[:1] in "/~" or cwd is None else f"{cwd}/{text}"
    return _HOME_OF_PROGRAMS.match(posixpath.normpath(path).replace("//", "/")) is not None


def program_name(word: Word, cwd: str | None) -> str:
    """The program a word names; see `name_of`."""
    return name_of(word.text, cwd)


def program_name_of(command: Command) -> str:
    """The program of a command, or an empty text."""
    return name_of(command.words[0].text, command.cwd) if command.words else ""


def module_of(words: tuple[Word, ...], name: str) -> tuple[str, tuple[Word, ...]] | None:
    """`python -m pip install x` is also the program pip: its name, and the words as it sees them."""
    if len(words) < 2 or words[1].text[:1] != "-" or not name.startswith("py") or not _PYTHON.fullmatch(name):
        return None
    module = arguments(words, _PYTHON_OPTIONS, stop=True).value(("-m",))
    if module is None or module.value is None or UNKNOWN in module.value.text:
        return None
    at = module.index + (1 if words[module.index].text != "-m" + module.value.text else 0)
    return module.value.text, words[at:]
