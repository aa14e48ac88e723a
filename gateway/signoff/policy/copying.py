"""What a program that copies whole folders reads: `tar`, `cp -a`, `rsync`, `zip -r` and their kin."""

import re

from signoff.policy.shell import Word
from signoff.policy.shell.options import Arguments, OptionSpec, arguments

_ARCHIVES = OptionSpec(
    short_values="fCXTbgHKLNV",
    long_values=("file", "directory", "exclude", "exclude-from", "files-from", "transform", "use-compress-program"),
)
_SPECS = {
    "cp": OptionSpec(short_values="tS", long_values=("target-directory", "suffix")),
    "mv": OptionSpec(short_values="tS", long_values=("target-directory", "suffix")),
    "rsync": OptionSpec(short_values="efBTM", long_values=("exclude", "include", "rsh", "filter", "exclude-from")),
    "scp": OptionSpec(short_values="cDFiJloPSX"),
    "zip": OptionSpec(short_values="btnx", long_values=("exclude",)),
    "rclone": OptionSpec(long_values=("exclude", "include", "config", "transfers")),
}
_RECURSIVE: dict[str, tuple[str, ...]] = {
    "cp": ("-r", "-R", "-a", "--recursive", "--archive"),
    "rsync": ("-r", "-a", "--recursive", "--archive"),
    "scp": ("-r",),
    "zip": ("-r", "--recurse-paths"),
}
_TARS = frozenset({"tar", "gtar", "bsdtar"})
MAX_PATH_CHARS = 4096
"""Linux takes no longer path (PATH_MAX)."""

_READING_MODE = re.compile(r"-?[A-Za-z]*[cru][A-Za-z]*")
_READING_SUBCOMMANDS = {"rclone": ("copy", "sync", "move", "copyto", "moveto"), "7z": ("a", "u")}


def sources(words: tuple[Word, ...], name: str, cwd: str | None) -> list[tuple[Word, str | None]]:
    """The folders and files that are read with all they hold, each with the folder it is relative to.

    Empty for a call that copies no folders (`cp a b`, `tar -x`).
    """
    if name in _TARS:
        return _archived(words, cwd)
    kin = "7z" if name.startswith("7z") else name.removeprefix("g") if name in {"gcp", "gmv"} else name
    if kin in _RECURSIVE and not any(word.text[:1] == "-" for word in words):
        return []
    given = arguments(words, _SPECS.get(kin, OptionSpec()))
    if kin in _RECURSIVE and not given.has(*_RECURSIVE[kin]):
        return []
    operands = [word for _place, word in given.operands]
    if kin in _READING_SUBCOMMANDS:
        if not operands or operands[0].text not in _READING_SUBCOMMANDS[kin]:
            return []
        operands = operands[1:]
    if kin in {"zip", "7z"}:
        return [(word, cwd) for word in operands[1:]]
    return [(word, cwd) for word in _all_but_target(given, operands)]


def moved(words: tuple[Word, ...]) -> list[Word]:
    """What `mv` takes away from its place."""
    given = arguments(words, _SPECS["mv"])
    return _all_but_target(given, [word for _place, word in given.operands])


def _all_but_target(given: Arguments, operands: list[Word]) -> list[Word]:
    return operands if given.has("-t", "--target-directory") else operands[:-1]


def _archived(words: tuple[Word, ...], cwd: str | None) -> list[tuple[Word, str | None]]:
    """What `tar` puts into an archive: its first word may be options without a dash, and `-C` changes the folder."""
    if len(words) > 1 and re.fullmatch(r"[A-Za-z]+", words[1].text):
        words = (words[0], Word("-" + words[1].text), *words[2:])
    given = arguments(words, _ARCHIVES)
    shorts = [option.name for option in given.options if re.fullmatch(r"-[A-Za-z]", option.name)]
    reads = any(_READING_MODE.fullmatch(name) for name in shorts) or given.has("--create", "--append", "--update")
    if not reads or {"-x", "-t"} & set(shorts) or given.has("--extract", "--list"):
        return []
    found: list[tuple[Word, str | None]] = []
    base = cwd
    folders = [option for option in given.options if option.name in {"-C", "--directory"} and option.value is not None]
    folders.reverse()
    for place, word in given.operands:
        while folders and folders[-1].index < place:
            base = _joined(base, folders.pop().value)
        found.append((word, base))
    return found


def _joined(cwd: str | None, folder: Word | None) -> str | None:
    """A folder below another; None where that is not known, or is longer than any path."""
    if folder is None or folder.literal is None:
        return None
    if folder.text.startswith("/"):
        return folder.text
    return None if cwd is None or len(cwd) > MAX_PATH_CHARS else f"{cwd}/{folder.text}"


def left_out(words: tuple[Word, ...]) -> list[str]:
    """The last names of what the call leaves out (`--exclude=.cache`)."""
    given = arguments(words, OptionSpec(long_values=("exclude",)))
    values = [option.value.text for option in given.options if option.name == "--exclude" and option.value is not None]
    return [value.rstrip("/").rpartition("/")[2] for value in values]
