"""Options by which everyday programs empty a folder, or load and run code that their other words do not show."""

import re
from collections.abc import Callable
from functools import lru_cache

from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word
from signoff.policy.shell.options import Marks

_SCRATCH = re.compile(r"(?:^|[/._-])(?:tmp|temp|scratch|cache|basetemp|pytest)|tmp(?:/|\Z)", re.I)
_VIRTUAL = re.compile(r"(?:^|[/._-])v?env[\w.-]*/?\Z", re.I)


def _empties_folder(seen: Seen) -> bool:
    """`pytest --basetemp=src` and `venv --clear src` delete what is there; not where the name is that of scratch."""
    if seen.name in {"venv", "virtualenv"}:
        return seen.has("--clear") and any(not _VIRTUAL.search(word.text) for word in seen.operands)
    return any(not _SCRATCH.search(word.text) for word in values_of(seen, ("--basetemp",)))


def _clears_folder(seen: Seen) -> bool:
    """What is deleted with everything in it before, or instead of, anything else."""
    return seen.name == "remove_directory" or seen.has("--clear")


class OptionNames:
    """Names of options, and those among them of one letter. Equal to none but itself."""

    __slots__ = ("all", "short")

    def __init__(self, names: tuple[str, ...]) -> None:
        """Take them apart once."""
        self.all = frozenset(names)
        self.short = tuple(name for name in names if len(name) == 2)


@lru_cache(maxsize=1024)
def option_names(names: tuple[str, ...]) -> OptionNames:
    """Names of options to be looked for; long rows of them are best made ready once."""
    return OptionNames(names)


def _given_in(text: str, names: OptionNames, clustered: bool) -> tuple[str | None, ...]:
    """The values that a word with a dash has for one of these options: None for one that is the next word."""
    name, equals, value = text.partition("=")
    if text in names.all:
        return (None,)
    if equals and name in names.all:
        return (value,)
    if names.short and text.startswith(names.short):
        return (text[2:],)
    if not clustered or text[1:2] == "-":
        return ()
    places = (text.find(option[1], 2) for option in names.short)
    return tuple([text[at + 1 :] or None for at in places if at > 0])


_remembered_in = lru_cache(maxsize=8192)(_given_in)
_MAX_REMEMBERED = 256
"""Longer words are not kept."""


def values_of(seen: Seen, names: tuple[str, ...] | OptionNames, *, clustered: bool = False) -> list[Word]:
    """The values of options in any way of writing, `--name VALUE`, `--name=VALUE`, `-nVALUE`, whatever the options of
    the program are else; with `clustered` also behind other short options (`-sSLo VALUE`)."""
    dashed = seen.dashed
    if not dashed:
        return []
    found: list[Word] = []
    known = names if isinstance(names, OptionNames) else option_names(names)
    for place, word in dashed:
        text = word.text
        for value in (_remembered_in if len(text) <= _MAX_REMEMBERED else _given_in)(text, known, clustered):
            found += seen.words[place + 1 : place + 2] if value is None else (Word(value),)
    return found


_LOADS = ("-r", "--require", "--import", "--loader", "--experimental-loader", "--preload")
_LOAD_MARKS = Marks(
    (*_LOADS, "-d", "--define", "--node-options", "--node-option", "--script-shell", "--init-module", "-l", "--load")
)
_FROM_FILE = re.compile(r"(?:data|https?|file|blob):|\.{0,2}/|~", re.I)
_NODE_LOADS = re.compile(r"--(?:require|import|loader|experimental-loader|eval)\b|(?:^|\s)-[re]\b|--inspect")
_PHP_LOADS = re.compile(
    r"\s*(?:auto_(?:prepend|append)_file|(?:zend_)?extension|sendmail_path|opcache\.preload|ffi\.|include_path)", re.I
)
_AWK_PARTS = frozenset(
    {"filefuncs", "fnmatch", "inplace", "intdiv", "ordchr", "readdir", "readfile", "revoutput", "rwarray", "time"}
    | {"assert", "join", "ctime", "getopt"}
)


def _loads_code(seen: Seen) -> bool:
    """Code that an option has the program load before anything else."""
    if not _LOAD_MARKS.may_be_in(seen.words):
        return False
    if seen.name.startswith("php"):
        return any(_PHP_LOADS.match(word.text) for word in values_of(seen, ("-d", "--define")))
    if seen.name in {"npm", "pnpm", "yarn", "npx"}:
        texts = [word.text for word in values_of(seen, ("--node-options", "--node-option"))]
        return any(_NODE_LOADS.search(text) or UNKNOWN in text for text in texts) or bool(
            values_of(seen, ("--script-shell", "--init-module"))
        )
    if seen.name.endswith("awk"):
        return any(word.text not in _AWK_PARTS for word in values_of(seen, ("-l", "--load")))
    return any(_FROM_FILE.match(word.text) or word.given for word in values_of(seen, _LOADS))


_HARMLESS_STEPS = re.compile(
    r"\s*(?:c|cont|continue|n|next|s|step|r|return|b|break|tbreak|w|where|bt|l|list|ll|a|args|q|quit|until|u|up|d|down"
    r"|whatis|h|help)(?:\s[\w.:/ ]*)?"
)


def _debugger_evaluates(seen: Seen) -> bool:
    """`python -m pdb -c '!import os; …'`: whatever is no plain step is run as Python."""
    return any(not _HARMLESS_STEPS.fullmatch(word.text) for word in values_of(seen, ("-c", "--command")))


_STREAM = re.compile(r"/dev/(?:stdin|fd/)|/proc/[^/]+/fd/|-\Z")


def is_stream(word: Word) -> bool:
    """Whether a file is a substitution or a descriptor, whose content no file of the project holds."""
    return word.given or not word.text.strip(UNKNOWN) or _STREAM.match(word.text) is not None


def _script_is_stream(seen: Seen) -> bool:
    """Rules for make, or a script for cmake, from a substitution or a descriptor."""
    return any(map(is_stream, values_of(seen, ("-f", "--file", "--makefile", "-P"), clustered=True)))


_CODE_FILES = option_names(
    (
        *("-f", "--file", "-c", "--config", "--conf", "-C", "-S", "--script", "-script", "-l", "--load", "-s", "-t"),
        *("-I", "--init-script", "-b", "--build-file", "--justfile", "--taskfile", "--rakefile", "--gulpfile"),
        *("--gruntfile", "--makefile", "--noxfile", "-init", "--init", "--procfile", "-u"),
    )
)
"""Options behind which runners, editors and clients take a file of what they run."""


def _code_is_stream(seen: Seen) -> bool:
    """What a runner, an editor or an interpreter runs comes from a substitution or a descriptor: no file holds it."""
    one = seen.name == "rscript" or (seen.name == "java" and _names_archive(seen))
    return _code_option_is_stream(seen) or any(_is_named_stream(word) for word in seen.operands[: 1 if one else 3])


def _names_archive(seen: Seen) -> bool:
    """`java -jar FILE`: what follows are the words of the program in it."""
    first = seen.given.operands[0][0] if seen.operands else 0
    return any(word.text == "-jar" and place < first for place, word in seen.dashed)


def _code_option_is_stream(seen: Seen) -> bool:
    """The same where only an option tells it: an editor shows a stream that is an operand."""
    return any(_is_named_stream(word, "-") for word in values_of(seen, _CODE_FILES))


def _is_named_stream(word: Word, *names: str) -> bool:
    return word.given or word.text in names or _DESCRIPTOR.match(word.text) is not None


_DESCRIPTOR = re.compile(r"/dev/(?:stdin|fd/)|/proc/[^/]+/fd/")
_VARIABLE = re.compile(r"[\w.-]+\s*(?::{0,3}|\+|\?|!)?=", re.A)
_SHELL_SIGNS = re.compile(r"[;|&<>`\n]|\$[({]\s*(?:shell|eval|call|file|guile|foreach)\b|\$\(\(?\w+ ")
DOES_HARM = re.compile(
    r"@?(?:\S*/)?(?:rm|sh|bash|dash|zsh|ksh|eval|exec|curl|wget|dd|sudo|doas|shred|find|unlink|mkfs\S*|chmod|chown|kill"
    r"|nc|ncat|ssh|scp|rsync|git push|env|xargs|perl|ruby|node|php|python\d?(?:\.\d+)? -c)(?:\s|\Z)"
)
"""How a command begins that does harm, or hides what it does."""

_PLAIN_SHELLS = re.compile(r"(?:/usr)?(?:/bin/)?(?:ba|da|z)?sh|rm -r?f|rm|node|perl|ruby|php|curl(?: -\w+)*|env|find")


def _variable_runs(seen: Seen) -> bool:
    """`make CC='rm -rf src;'`, `make 'X:=$(shell …)'`: rules run what variables hold."""
    for word in seen.words[1:]:
        match = _VARIABLE.match(word.text)
        if match is None or word.text[:1] == "-":
            continue
        value = word.text[match.end() :].strip()
        if "!" in match.group() or _SHELL_SIGNS.search(value):
            return True
        if DOES_HARM.match(value) and not _PLAIN_SHELLS.fullmatch(value):
            return True
    return False


_PERL_MODULE = re.compile(r"-[mM]-?[\w:]*(?:[= ][\w:,.$@%&/-]*)?", re.A)


def _module_is_code(seen: Seen) -> bool:
    """`perl -M'strict;system("id")'`: what stands behind `-M` is put behind a `use`."""
    return any(word.text[1:2] in {"m", "M"} and not _PERL_MODULE.fullmatch(word.text) for _place, word in seen.dashed)


_GLUED = re.compile(r"-[A-Za-z]*m(?:timeit|pdb|cProfile|profile|trace)")
_GLUED_CONSOLE = re.compile(r"-[A-Za-z]*m(?:code|asyncio|IPython|idlelib|bpython|ptpython)")


def _module_glued(seen: Seen) -> bool:
    """`python -mtimeit TEXT`: the text behind it, or its input, is not read as code when it is written like this."""
    words = seen.command.words
    if seen.command.fed and any(_GLUED_CONSOLE.fullmatch(word.text) for word in words[1:3]):
        return True
    return len(words) > 2 and any(_GLUED.fullmatch(word.text) for word in words[1:3])


def _dc_runs(seen: Seen) -> bool:
    """`dc -e '!command'`."""
    return any("!" in word.text for word in values_of(seen, ("-e", "--expression")))


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "empties_folder": _empties_folder,
    "clears_folder": _clears_folder,
    "loads_code": _loads_code,
    "debugger_evaluates": _debugger_evaluates,
    "script_is_stream": _script_is_stream,
    "code_is_stream": _code_is_stream,
    "code_option_is_stream": _code_option_is_stream,
    "variable_runs": _variable_runs,
    "dc_runs": _dc_runs,
    "module_is_code": _module_is_code,
    "module_glued": _module_glued,
}
