"""Daily work in cmd and PowerShell: files of the project, pages that are fetched, values that are shown or set."""

import re
from collections.abc import Callable, Collection, Iterator

from signoff.policy.path_classes import CLASSES, text_classes
from signoff.policy.paths import PathFacts
from signoff.policy.python.checks import is_secret_name
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import Word
from signoff.policy.windows_options import SHELLS, name_of

_FILE = re.compile(r"(?:\.[\\/])?(?!.*\.\.)(?!.*[\\/]{2})[\w.][\w. +-]*(?:[\\/][\w. +-]+)*")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.I)
_SCRIPT = re.compile(r"(?=\.)(?!.*\.\.)(?:[\w.-]+[\\/])+[\w-][\w.-]*", re.I)
_ENDING = re.compile(r"\.(?:ps1|cmd|bat|exe)\Z", re.I)
_ADDRESS = re.compile(r"https?://[\w.-]+(?::\d+)?(?:[/?#](?:[\w./?&=~+,:@#-]|%[0-9a-f]{2})*)?", re.I)
_VALUE = re.compile(r"\$(?:env:(?P<name>[a-z_]\w*)|psversiontable(?:\.\w+)?|[a-z_]\w*)", re.I)
_SET = re.compile(r"\$env:(?P<name>[a-z_]\w*)=[\w.:*/-]*", re.I)
_REDIRECTION = re.compile(r"[^<>]*>>?(?P<target>[^<>&]*)")
FETCHERS = frozenset({"invoke-webrequest", "iwr", "invoke-restmethod", "irm", "curl", "wget"})
"""Programs and cmdlets that fetch a page."""
_MOVERS = frozenset(
    {"copy-item", "cpi", "copy", "move-item", "move", "mi", "mv", "rename-item", "rename", "ren", "rni"}
)
_WRITERS = frozenset({"set-content", "add-content", "ac", "out-file", "tee-object", "tee", "new-item", "ni"})
_PATH_OPTIONS = frozenset({"-path", "-filepath", "-literalpath", "-destination", "-newname", "-name", "-outfile"})
_TAKES_WORD = _PATH_OPTIONS | {"-value", "-itemtype", "-encoding", "-uri", "-timeoutsec"}
_SHOWS = frozenset({"type", "cat", "gc", "get-content", "more", "findstr", "sls", "select-string"})
_GIT_SHOWS = frozenset({"add", "blame", "commit", "diff", "log", "show", "status"})
_GOES = frozenset({"cd", "chdir", "pushd", "popd", "push-location", "pop-location", "set-location", "sl"})
_GOES_AT_ONCE = re.compile(r"[\w@]+:[\\/]?|@?(?:cd|chdir|pushd)[.\\/].*", re.I)
"""`D:`, `cd..`, `cd\\windows`: cmd needs no blank there."""
_LINKS = frozenset({"ln", "gln", "mklink", "subst"})
_DASHES = "-\u2013\u2014\u2015"
_NOWHERE = frozenset({">$null", "2>$null", "*>$null", ">nul", "2>nul", "2>&1", "1>&2"})
NULL = frozenset({"$null", "nul", "&1"})
"""What a redirection into nothing names."""
_NO_FACTS = PathFacts()


def is_project_file(word: str) -> bool:
    """Whether a word is a plain path below the current folder, to a file that decides nothing."""
    if _FILE.fullmatch(word) is None or _DEVICE.fullmatch(re.split(r"[\\/]", word)[-1]):
        return False
    parts = re.split(r"[\\/]", word.removeprefix(".\\").removeprefix("./"))
    if any(part[-1] in ". " for part in parts):
        return False  # Windows drops these ends: `CLAUDE.md.` is `CLAUDE.md`
    return not text_classes(Word(word.replace("\\", "/")), None, _NO_FACTS)


def names_own(words: list[str], facts: OwnFacts) -> bool:
    """Whether a word may mean a file of the gateway's: one of that name, in a folder that is not known."""
    names = {re.split(r"[\\/]", path.casefold())[-1] for path in facts.paths.own}
    files = {name for name in names if "." in name}
    return any(re.split(r"[\\/>]", word.casefold())[-1] in files for word in words[1:])


def redirects_away(word: str, following: str) -> bool:
    """Whether a word redirects into a file that is none of the project; its name may be the next word."""
    if ">" not in word or word.casefold() in _NOWHERE or word[:2] in {"->", "=>"}:
        return False
    if word.endswith(">") and following.casefold() in NULL:
        return False
    found = _REDIRECTION.fullmatch(word)
    return found is None or not is_project_file(found["target"] or following)


def empties(words: list[str]) -> bool:
    """`type nul > app.db`, `$null > app.db`: the file is empty afterwards."""
    plain, redirected = _apart(tuple(words))
    told = " ".join(plain).casefold()
    return bool(redirected) and (told in {"", "type nul", "$null", "copy nul", "echo."} or told[:3] in {"rem", "cd "})


def shows_value(words: list[str]) -> bool:
    """`$env:PATH`, `$PSVersionTable`, alone: PowerShell prints it."""
    found = _VALUE.fullmatch(words[0]) if len(words) == 1 else None
    return found is not None and not is_secret_name(found["name"] or "")


def sets_value(words: list[str], values: Collection[str]) -> bool:
    """`$env:NODE_ENV='test'`: a variable that nothing takes for code."""
    found = _SET.fullmatch(words[0]) if len(words) == 1 else None
    return found is not None and found["name"].casefold() in values


def is_script(words: list[str]) -> bool:
    """Whether the program is a file of the project, named from its folder on: `.\\build.ps1`, `.venv\\Scripts\\x`."""
    return _SCRIPT.fullmatch(words[0]) is not None


def script_path(program: str) -> str:
    """Such a program as other systems name it: `./build`, `.venv/bin/x`."""
    return re.sub("/scripts/", "/bin/", _ENDING.sub("", program.replace("\\", "/")), flags=re.I)


def is_plain(words: list[str], options: Collection[str]) -> bool:
    """Whether a command of `daily` is told of no more than files of the project, an address to fetch, and text."""
    name = name_of(words[0])
    told = list(_told(words))
    if name != words[0].casefold().removesuffix(".exe") or any(map(_LEADS_ON.match, words[1:])):
        return False
    if words[-1].casefold() in _TAKES_WORD or any(
        option == "-itemtype" and word.casefold() not in {"file", "directory"} for option, word in told
    ):
        return False
    if any(option is not None and option not in options for option, _word in told):
        return False
    if name in FETCHERS:
        addresses = [word for option, word in told if option in {None, "-uri"}]
        files = [word for option, word in told if option == "-outfile"]
        return len(addresses) == 1 and _is_plain_address(addresses[0]) and all(map(is_project_file, files))
    operands = [word for option, word in told if option is None]
    files = [word for option, word in told if option in _PATH_OPTIONS]
    files += operands if name in _MOVERS else operands[: 0 if files else 1]
    return bool(files) and all(map(is_project_file, files)) and (name not in _MOVERS or len(files) == 2)


_LEADS_ON = re.compile(r"[,@\u2013\u2014\u2015]|.*,\Z", re.S)
"""Words that stand for more than they look like: a list's, options from a variable, options behind a longer dash."""


def address_of(words: list[str]) -> str:
    """What a fetching command fetches; empty where nothing is told."""
    return next((word for option, word in _told(words) if option in {None, "-uri"}), "")


def _is_plain_address(word: str) -> bool:
    return _ADDRESS.fullmatch(word) is not None and not CLASSES["metadata_address"](Word(word), None, _NO_FACTS)


def _told(words: list[str]) -> Iterator[tuple[str | None, str]]:
    """Each word behind the program with the option that it is the value of; an option without one comes alone."""
    place = 1
    while place < len(words):
        word = words[place]
        place += 1
        if ">" in word:
            place += word.endswith(">")
        elif word[:1] != "-" and (word[:1] != "/" or len(word) > 2):
            yield None, word
        elif word.casefold() in _TAKES_WORD and place < len(words):
            yield word.casefold(), words[place]
            place += 1
        else:
            yield word.casefold(), ""


def runs_what_it_wrote(commands: list[list[str]], names_only: Collection[str]) -> bool:
    """Whether a command uses a file that the same text writes, copies or fetches, for more than to show it."""
    written: set[str] = set()
    for words in dict.fromkeys(map(tuple, filter(None, commands))):
        name = name_of(words[0])
        plain, redirected = _apart(words)
        writes = name in _WRITERS | _MOVERS
        shows = words[1:2] != () and words[1] in _GIT_SHOWS if name == "git" else name in _SHOWS or name in names_only
        if written and not shows:
            used = plain[:1] if writes else plain
            if not written.isdisjoint(_stem(part) for word in used for part in word.split("<")):
                return True
        written.update(map(_stem, redirected))
        if writes:
            written.update(_stem(word) for word in plain[1:] if word[:1] not in "-/")
        elif name in FETCHERS:
            written.update(_stem(word) for option, word in _told(list(words)) if option == "-outfile")
    return False


def is_more(commands: list[list[str]], looks: Callable[[list[str]], bool]) -> bool:
    """Whether what stands around daily work makes more of it: the text goes to another folder before it writes, tells
    further options behind a bracket, or may run what it fetched or what a variable holds."""
    away = unseen = works = False
    carries = any(name_of(words[0]) in CARRYING for words in commands if words)
    for words in filter(None, commands):
        name = name_of(words[0])
        shows = shows_value(words)
        writes = name in (_WRITERS | _MOVERS | FETCHERS) - {"copy"} or any(map(_goes_somewhere, words[1:]))
        if (writes and away) or (works and words[0][:1] in "," + _DASHES) or (shows and carries):
            return True
        if unseen and not looks(words):
            return True
        away = away or name in _LINKS or goes_away(words)
        unseen = unseen or shows or name in FETCHERS
        works = works or writes
    return False


CARRYING = frozenset({*SHELLS, "invoke-expression", "iex"})
"""Programs and cmdlets that may run text of cmd or PowerShell."""


def _goes_somewhere(word: str) -> bool:
    return ">" in word and word.casefold() not in _NOWHERE


def goes_away(words: list[str]) -> bool:
    """Whether a command leaves the folder for one that is not plainly below it."""
    if _GOES_AT_ONCE.fullmatch(words[0]) is not None:
        return True
    if name_of(words[0].lstrip("@")) not in _GOES:
        return False
    folders = [word.removeprefix(".\\").removeprefix("./") for word in words[1:] if word.casefold() not in _GO_OPTIONS]
    return not folders or not all(is_project_file(word) and not _HIDDEN_FOLDER.search(word) for word in folders)


_GO_OPTIONS = frozenset({"-path", "-literalpath", "/d"})
_HIDDEN_FOLDER = re.compile(r"(?:\A|[\\/])\.")


def _apart(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The words of a command, and the names of the files into which it is redirected."""
    plain: list[str] = []
    redirected: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if ">" not in word:
            plain.append(word)
            continue
        target = word.rpartition(">")[2]
        if not target and place < len(words):
            target = words[place]
            place += 1
        redirected.append(target)
    return plain, redirected


def _stem(path: str) -> str:
    """A file's name without folders and ending: cmd and PowerShell find it by that."""
    return re.split(r"[\\/]", path.strip("\"'").casefold())[-1].partition(".")[0]
