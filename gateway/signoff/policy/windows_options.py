"""How programs of Windows are told what to run, and options with which harmless names do more than look."""

import re
from functools import lru_cache

SHELLS = {"cmd": "cmd", "powershell": "powershell", "pwsh": "powershell", "pwsh-preview": "powershell"}
"""The shells whose text is read as that of Windows, and the language of each; any other is read as a POSIX shell."""

_FOLDERS = re.compile(
    r"(?:[a-z]:/(?:windows|program files(?: \(x86\))?)|/usr|/opt/(?:microsoft|homebrew)|/snap)/(?:[^/]+/)*|/bin/|", re.I
)
"""Where these shells are installed."""

_DASHES = re.compile("^[/\u2013\u2014\u2015]")
"""Signs that PowerShell takes for the one before an option."""

_ONE_VALUE = ("-executionpolicy", "-ep", "-ex", "-windowstyle", "-version", "-configurationname", "-inputformat", "-if")
_ONE_VALUE_MORE = ("-outputformat", "-of", "-psconsolefile", "-workingdirectory", "-wd", "-settingsfile")
_ALSO_UNIX = frozenset({"find", "sort", "tree", "more"})


def powershell_command(words: list[str]) -> int:
    """The place of the first word of the text that `powershell` runs: behind `-Command`, else the first that is no
    option and no value of one. 0 where there is none."""
    place = 1
    while place < len(words):
        word = _DASHES.sub("-", words[place].casefold())
        if len(word) > 1 and "-command".startswith(word):
            return place + 1
        if word[:1] != "-" or word == "-":
            return place if word != "-" and "<" not in word else 0
        place += 2 if len(word) > 1 and any(name.startswith(word) for name in _ONE_VALUE + _ONE_VALUE_MORE) else 1
    return 0


def does_more(name: str, words: list[str]) -> bool:
    """Whether a harmless name may mean the program of Unix, which does more: `find . -delete`."""
    return name in _ALSO_UNIX and any(word[:1] == "-" for word in words[1:])


def sets_path(name: str, words: list[str]) -> bool:
    """`path x` of cmd."""
    return name == "path" and len(words) > 1


@lru_cache(maxsize=2048)
def name_of(program: str) -> str:
    """The plain name of a program: without folders, case and `.exe`."""
    return program.replace("\\", "/").rpartition("/")[2].casefold().removesuffix(".exe")


def shell_of(program: str) -> str:
    """The language that a shell of Windows reads, or an empty text."""
    return SHELLS.get(name_of(program), "")


def is_installed(program: str) -> bool:
    """Whether it is found by its name alone or lies where such shells are installed."""
    folder, slash, _name = program.replace("\\", "/").rpartition("/")
    return ".." not in folder and _FOLDERS.fullmatch(folder + slash) is not None
