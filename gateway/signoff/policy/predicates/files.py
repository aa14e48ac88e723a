"""What a command writes, and what the files it writes decide."""

import re
from collections.abc import Callable
from functools import lru_cache

from signoff.policy.path_classes import CLASSES, is_inside, text_classes
from signoff.policy.predicates.whole import per_command
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word
from signoff.policy.shell.options import OptionSpec, arguments

# What a program writes


def _target(seen: Seen) -> list[Word]:
    """Copiers write their last operand, or into the folder of `-t`; what they move away counts as well."""
    operands = seen.operands
    folders = seen.values("-t", "--target-directory")
    if folders:
        return [*folders, *(_inside(folders[0], word) for word in operands)]
    if len(operands) < 2:
        return operands if seen.name in {"ln", "gln"} else []
    sources, target = operands[:-1], operands[-1]
    found = [target]
    if target.text.endswith("/") or target.text in {".", ".."} or _is_home(target, seen):
        found += [_inside(target, word) for word in sources]
    return found + sources if seen.name in {"mv", "gmv"} else found


def _is_home(word: Word, seen: Seen) -> bool:
    return CLASSES["home"](word, seen.cwd, seen.facts.paths)


def _inside(folder: Word, word: Word) -> Word:
    return Word(f"{folder.text.rstrip('/')}/{word.text.rstrip('/').rpartition('/')[2]}")


def _operands(seen: Seen) -> list[Word]:
    return seen.operands


def _all_words(seen: Seen) -> list[Word]:
    """Every word behind the program, those that count as a command it carries as well."""
    return list(seen.command.words[1:])


def _copied_out(seen: Seen) -> list[Word]:
    """`scp` and `rsync` write on this host unless the target names another one."""
    return [word for word in _target(seen) if not re.match(r"[\w.@-]+:", word.text)]


def _of(seen: Seen) -> list[Word]:
    return [Word(word.text[3:]) for word in seen.operands if word.text.startswith("of=")]


_SED = OptionSpec(short_values="efl", long_values=("expression", "file", "line-length"))


def _sed(seen: Seen) -> list[Word]:
    """`sed -i` writes its files; the first operand is the script unless an option gives it."""
    dashed = [word.text for _place, word in seen.dashed if "i" in word.text]
    if not dashed or not any(text.startswith(("-i", "--in-place")) or _clustered(text, "i") for text in dashed):
        return []
    given = arguments(seen.words, _SED)
    files = [word for _place, word in given.operands]
    return files if given.has("-e", "--expression", "-f", "--file") else files[1:]


def _clustered(text: str, letter: str) -> bool:
    """Whether a word of several short options has the letter (`-ni`)."""
    if letter not in text or len(text) <= 2 or text[0] != "-" or text[1] == "-":
        return False
    return letter in re.split(r"[^A-Za-z]", text[1:])[0]


def _perl(seen: Seen) -> list[Word]:
    if not any(re.match(r"-[a-zA-Z0]*i", word.text) for word in seen.words[1:]):
        return []
    return [word for word in seen.words[2:] if not word.text.startswith("-")]


def _gawk(seen: Seen) -> list[Word]:
    return seen.operands if any(word.text in {"inplace", "-iinplace"} for word in seen.words) else []


def _yq(seen: Seen) -> list[Word]:
    return seen.operands if seen.has("-i", "--inplace", "--in-place") else []


def _second(seen: Seen) -> list[Word]:
    """`uniq IN OUT`, `xxd IN OUT`."""
    return seen.operands[1:2]


_FIND_WRITES = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})


def _find(seen: Seen) -> list[Word]:
    words = seen.words
    return [words[place + 1] for place, word in enumerate(words[:-1]) if word.text in _FIND_WRITES]


_TAR = OptionSpec(short_values="fCXTbgHKLNVI", long_values=("file", "directory", "exclude", "use-compress-program"))


def _archive_extracts(seen: Seen) -> bool:
    """Whether tar is told to unpack."""
    first = seen.words[1].text if len(seen.words) > 1 else ""
    return seen.has("-x", "--extract", "--get") or (not first.startswith("-") and "x" in first)


def _archive_absolute(seen: Seen) -> bool:
    """Whether tar unpacks names that begin at the root as they are; `tar xPf` needs no dash."""
    first = seen.words[1].text if len(seen.words) > 1 else ""
    letters = "" if first.startswith("-") else first
    return _archive_extracts(seen) and (seen.has("-P", "--absolute-names") or "P" in letters)


def _tar(seen: Seen) -> list[Word]:
    """Where tar unpacks, or the archive it makes."""
    words = seen.words
    if len(words) > 1 and re.fullmatch(r"[A-Za-z]+", words[1].text):
        words = (words[0], Word("-" + words[1].text), *words[2:])
    given = arguments(words, _TAR)
    names = ("-C", "--directory") if given.has("-x", "--extract", "--get") else ("-f", "--file")
    if given.has("-t", "--list"):
        return []
    found = [option.value for option in given.options if option.name in names and option.value is not None]
    # To unpack, operands are the files that come out.
    return [*found, *(word for _place, word in given.operands)] if names[0] == "-C" else found


def _unzip(seen: Seen) -> list[Word]:
    words = seen.words
    return [words[place + 1] for place, word in enumerate(words[:-1]) if word.text == "-d"] + [
        Word(word.text[2:]) for word in words if word.text.startswith("-o/")
    ]


_WRITTEN: dict[str, Callable[[Seen], list[Word]]] = {
    **dict.fromkeys(("cp", "gcp", "mv", "gmv", "ln", "gln", "install", "ginstall", "ditto"), _target),
    **dict.fromkeys(("rsync", "scp"), _copied_out),
    **dict.fromkeys(("tee", "gtee", "patch", "truncate", "crudini", "mkdir", "touch", "rmdir"), _operands),
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim", "nano", "pico", "emacs", "micro", "code"), _operands),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("uniq", "xxd"), _second),
    **dict.fromkeys(("find", "gfind"), _find),
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _tar),
    **dict.fromkeys(("unzip", "7z"), _unzip),
    "sponge": _all_words,
    "dd": _of,
    "perl": _perl,
    "gawk": _gawk,
    "awk": _gawk,
    "yq": _yq,
}


def written(seen: Seen) -> list[Word]:
    """The files the command writes, as far as its words name them."""
    found = _WRITTEN.get(seen.name)
    return found(seen) if found is not None else []


# What the files decide

_SYSTEM_AREA = re.compile(
    r"/(?:private/)?(?:etc|boot|lib(?:32|64|x32)?|sys|proc|usr|var|opt|srv|System|Library|root)(?:/|\Z)"
)
_NOT_SYSTEM = re.compile(
    r"/(?:private/)?(?:var/(?:tmp|folders)|proc/(?:self|\d+)/fd|usr/local/(?:share|src)"
    r"|opt/(?:homebrew|hostedtoolcache))(?:/|\Z)"
)
_SAMPLE = re.compile(r"(?:^|/)[\w.-]*env[\w.-]*(?:example|sample|template|dist)\Z", re.I)
_ORDER = (
    ("startup", "startup_file"),
    ("ssh", "ssh_material"),
    ("policy", "policy_file"),
    ("secret", "secret_file"),
    ("system", "system_config"),
    ("programs", "executable_folder"),
)


def sort_of(word: Word, seen: Seen) -> str:
    """The first class a file belongs to: startup, ssh, policy, secret, system, programs, outside (of the folder the
    action starts in, where that is known), or an empty text."""
    facts, cwd = seen.facts.paths, seen.cwd
    if is_inside(word, cwd, facts):
        return ""
    found = text_classes(word, cwd, facts)
    if found:
        for name, known in _ORDER:
            if known in found:
                return name
    if CLASSES["root"](word, cwd, facts):
        return "system"
    if not CLASSES["outside"](word, cwd, facts):
        return ""
    if _in_system_area(word.text, cwd, facts.home):
        return "system"
    return "outside" if CLASSES["elsewhere"](word, cwd, facts) else ""


@lru_cache(maxsize=4096)
def _in_system_area(text: str, cwd: str | None, home: str | None) -> bool:
    path = text if text.startswith("/") or cwd is None else f"{cwd}/{text}"
    if home and path.startswith(home + "/"):
        return False
    return bool(_SYSTEM_AREA.match(path)) and not _NOT_SYSTEM.match(path)


def _fills_in_sample(seen: Seen) -> bool:
    """`cp .env.example .env`: how every project with such a file is set up."""
    operands = seen.operands
    return len(operands) == 2 and seen.name in {"cp", "gcp"} and bool(_SAMPLE.search(operands[0].text))


@per_command
def _sorts_written(seen: Seen) -> frozenset[str]:
    """The classes of all files the command writes."""
    return frozenset([sort_of(word, seen) for word in written(seen)])


@per_command
def _sorts_redirected(seen: Seen) -> frozenset[str]:
    """The classes of all files its output goes to."""
    return frozenset(sort_of(redirect.target, seen) for redirect in seen.command.redirects if redirect.writes)


def _lands_on(name: str) -> Callable[[Seen], bool]:
    return lambda seen: name in _sorts_written(seen)


def _lands_on_secret(seen: Seen) -> bool:
    return "secret" in _sorts_written(seen) and not _fills_in_sample(seen)


def _lands_outside(seen: Seen) -> bool:
    """`ln -s ../data` alone makes the link here."""
    return "outside" in _sorts_written(seen) and not (seen.name in {"ln", "gln"} and len(seen.operands) < 2)


def _redirects_to(name: str) -> Callable[[Seen], bool]:
    return lambda seen: name in _sorts_redirected(seen)


_OUTPUT_SENSITIVE = frozenset({"startup", "ssh", "policy", "system", "programs"})
_OUTPUT_OPTIONS = (
    "--output",
    "--out",
    "--output-file",
    "--output-document",
    "--dump-header",
    "--log-file",
    "--logfile",
)


OUTPUT_STARTS = ("-o", "-O", "--out", "--dump", "--log")
"""How the options begin that are looked at for any program."""


def _output_option_sensitive(seen: Seen) -> bool:
    """Any program's `-o FILE` or `--output=FILE`: many have it, and it means the same."""
    dashed = seen.dashed
    if not dashed or seen.name == "git":  # has rows of its own for this
        return False
    for fetched in fetched_to(seen):
        if sort_of(fetched, seen) in _OUTPUT_SENSITIVE:
            return True
    words = seen.words
    for place, word in dashed:
        text = word.text
        if not text.startswith(OUTPUT_STARTS):
            continue
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            if not any(option.startswith(name) for option in _OUTPUT_OPTIONS):
                continue
            target = Word(value) if equals else None
        else:
            target = Word(text[2:]) if len(text) > 2 else None
        if target is None:
            target = words[place + 1] if place + 1 < len(words) else None
        if target is not None and sort_of(target, seen) in _OUTPUT_SENSITIVE:
            return True
    return False


def fetched_to(seen: Seen) -> list[Word]:
    """The other files and folders that curl and wget write into."""
    if seen.name == "curl":
        return seen.values("-D", "--dump-header", "-c", "--cookie-jar", "--output-dir", "--trace", "--trace-ascii")
    if seen.name == "wget":
        return seen.values("-P", "--directory-prefix", "-a", "--append-output", "--save-cookies")
    return []


_SCRATCH_NAME = re.compile(
    r"\.(?:log|txt|out|tmp|temp|csv|tsv|md|err|lock|pid|ndjson|jsonl|trace|cache|stamp)\Z|^/tmp/|/tmp/"
)
_REDIRECTS = frozenset("<>&0123456789")
"""What a redirection without a command begins with; that of a construct begins with the construct."""

_NAMES_MANY = frozenset(".*")
"""Signs of a file with an ending, or of all of a folder."""
_SAYS_NOTHING = frozenset({":", "true"})
_FINDERS = frozenset({"find", "gfind", "fd", "fdfind", "xargs", "parallel"})
"""What hands on the names of many files."""


def _redirect_empties(seen: Seen) -> bool:
    """`> app.db`, `: > app.db`, `cat /dev/null > app.db`: the file is empty afterwards. Scratch files and logs are not
    asked about."""
    words = seen.words
    silent = (
        (not words and seen.command.source[:1] in _REDIRECTS)
        or seen.name in _SAYS_NOTHING
        or (seen.name == "cat" and seen.texts == ["/dev/null"])
    )
    found = not _FINDERS.isdisjoint(seen.command.chain)
    return silent and any(
        redirect.operator in {">", ">|"}
        and (not _NAMES_MANY.isdisjoint(redirect.target.text) or (found and UNKNOWN in redirect.target.text))
        and not _SCRATCH_NAME.search(redirect.target.text)
        for redirect in seen.command.redirects
    )


_SETTINGS_READ = frozenset(
    {"get", "list-schemas", "list-keys", "list-children", "list-recursively", "describe", "range", "monitor"}
    | {"read", "list", "dump", "watch", "query", "check", "-lint", "-p", "-convert", "writable", "help", "-c"}
)


def _settings_change(seen: Seen) -> bool:
    words = [word.text for word in seen.words[1:]]
    return bool(words) and words[0] not in _SETTINGS_READ and not words[0].startswith("--")


def _dd_discards(seen: Seen) -> bool:
    return all(
        word.text in {"/dev/null", "/dev/stdout", "/dev/zero"} or (_is_scratch(word.text) and _is_kept(word.text, seen))
        for word in _of(seen)
    )


_SCRATCH = re.compile(r"/(?:var/)?tmp/(?!.*\.\.)[^" + UNKNOWN + "]+", re.S)
_ENDLESS = frozenset({"if=/dev/zero", "if=/dev/random", "if=/dev/urandom"})


def _is_kept(path: str, seen: Seen) -> bool:
    """Whether the file is written to its end, and nothing else in the text makes use of it or leads it elsewhere."""
    texts = [word.text for word in seen.words]
    if _ENDLESS.intersection(texts) and not any(text.startswith("count=") for text in texts):
        return False
    return not any(
        path == word.text for command in seen.script.commands if command is not seen.command for word in command.words
    )


def _is_scratch(path: str) -> bool:
    """A file in a folder for scratch files, named whole."""
    return _SCRATCH.fullmatch(path) is not None


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "lands_on_startup": _lands_on("startup"),
    "lands_on_ssh": _lands_on("ssh"),
    "lands_on_policy": _lands_on("policy"),
    "lands_on_secret": _lands_on_secret,
    "lands_on_system": _lands_on("system"),
    "lands_on_programs": _lands_on("programs"),
    "lands_outside": _lands_outside,
    "redirects_to_startup": _redirects_to("startup"),
    "redirects_to_ssh": _redirects_to("ssh"),
    "redirects_to_policy": _redirects_to("policy"),
    "redirects_to_secret": _redirects_to("secret"),
    "redirects_to_system": _redirects_to("system"),
    "redirects_to_programs": _redirects_to("programs"),
    "redirects_outside": _redirects_to("outside"),
    "output_option_sensitive": _output_option_sensitive,
    "redirect_empties": _redirect_empties,
    "archive_absolute": _archive_absolute,
    "settings_change": _settings_change,
    "dd_discards": _dd_discards,
}


def _lands_on_some(seen: Seen) -> bool:
    return any(_sorts_written(seen))


_LANDS = ("on_startup", "on_ssh", "on_policy", "on_secret", "on_system", "on_programs", "outside")
NEEDS: dict[str, Callable[[Seen], bool]] = dict.fromkeys([f"lands_{name}" for name in _LANDS], _lands_on_some)
