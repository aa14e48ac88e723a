"""Secret files that a program reads although none of its operands names them: by an option, a list or a filter."""

import re
from collections.abc import Callable

from signoff.policy.path_classes import CLASSES
from signoff.policy.predicates.program_options import OptionNames, values_of
from signoff.policy.predicates.secrets import ONLY_NAME, names_secret_file
from signoff.policy.predicates.whole import per_script, starts
from signoff.policy.programs import program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Command, Script, Word

_GREPS = frozenset({"grep", "egrep", "fgrep", "ggrep", "zgrep", "rg", "ugrep"})

_INPUTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_GREPS, ("-f", "--file")),
    **dict.fromkeys(("sort", "gsort", "wc", "gwc", "du", "gdu"), ("--files0-from",)),
    **dict.fromkeys(("xargs", "gxargs"), ("-a", "--arg-file")),
    **dict.fromkeys(("parallel",), ("-a", "--arg-file")),
    **dict.fromkeys(("date", "gdate", "logger"), ("-f", "--file")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "sed", "gsed"), ("-f", "--file")),
    **dict.fromkeys(("tar", "gtar", "bsdtar"), ("-T", "--files-from", "-X", "--exclude-from")),
    "file": ("-f", "--files-from"),
    "wget": ("-i", "--input-file"),
    "aria2c": ("-i", "--input-file"),
    "rsync": ("--files-from", "--include-from", "--exclude-from"),
    "git": ("-F", "--file", "-f"),
}
"""Options whose file a program shows, hands on, or complains about line by line."""

_NAMES = {program: OptionNames(options) for program, options in _INPUTS.items()}
_ALL_OPTIONS = tuple(sorted({option for options in _INPUTS.values() for option in options}))
_GIT_READS = frozenset({"commit", "tag", "notes", "merge", "config"})


def _is_secret(word: Word, seen: Seen) -> bool:
    return CLASSES["secret_file"](word, seen.cwd, seen.facts.paths)


def _input_is_secret(seen: Seen) -> bool:
    """`xargs -a ~/.ssh/id_rsa`, `grep -vf .env x`, `wc --files0-from=.env`: what the option names is shown."""
    names = _NAMES.get(seen.name)
    if names is None or (seen.name == "git" and _GIT_READS.isdisjoint(seen.texts[:1])):
        return False
    shortened = seen.values(*_INPUTS[seen.name])  # `--arg=FILE`
    return any(_is_secret(word, seen) for word in (*values_of(seen, names, clustered=True), *shortened))


_EDITOR_READS = re.compile(r"(?:^|\|)[\s:]*(?:r|re|read|e|edit|sp|split|vs|vsplit|view|tabe|tabedit)!?\s+([^\s|!]+)")


def _editor_reads_secret(seen: Seen) -> bool:
    """`vim -es -c 'r .env' -c '%p' -c 'q!'`."""
    texts = [value.text for value in values_of(seen, ("-c", "--cmd"))]
    texts += [word.text[1:] for word in seen.words[1:] if word.text[:1] == "+"]
    return any(_is_secret(Word(match[1]), seen) for text in texts for match in _EDITOR_READS.finditer(text))


_FROM_INPUT = frozenset({"-", "/dev/stdin"})
_LISTED = {
    **{name: OptionNames(("--files0-from",)) for name in ("sort", "gsort")},
    **{name: OptionNames(("-T", "--files-from")) for name in ("tar", "gtar", "bsdtar")},
    "rsync": OptionNames(("--files-from",)),
    "file": OptionNames(("-f", "--files-from")),
}


def _list_names_secret(seen: Seen) -> bool:
    """`echo .env | cpio -o`, `sort --files0-from=- <<< ~/.netrc`: the names of what is read come by standard input."""
    listed = seen.command.stdin
    if not listed or not _takes_list(seen):
        return False
    return any(_is_secret(Word(name), seen) for name in re.split(rf"[\n{UNKNOWN}]|\\0", listed) if name)


def _takes_list(seen: Seen) -> bool:
    if seen.name == "cpio":
        return seen.has("-o", "-p", "--create", "--pass-through")
    if seen.name == "zip":
        return "-@" in {word.text for word in seen.words}
    names = _LISTED.get(seen.name)
    return names is not None and any(word.text in _FROM_INPUT for word in values_of(seen, names, clustered=True))


_LISTERS = frozenset({"ls", "gls", "exa", "eza", "locate", "plocate", "mdfind", "git"})


def _listed_secret_is_shown(seen: Seen) -> bool:
    """`ls ~/.ssh/id_rsa | xargs cat`, `git ls-files | grep '\\.env' | xargs cat`: what is listed, or kept of a list,
    is shown by the program that xargs starts."""
    if seen.name == "git" and seen.texts[:1] != ["ls-files"]:
        return False
    if not _shows_some(seen.script):
        return False
    if seen.name in _LISTERS:
        return any(_is_secret(word, seen) for word in seen.operands)
    texts = seen.texts
    return seen.command.fed and len(texts) == 1 and names_secret_file(re.sub(r"[\\^$]|\.\*", "", texts[0]))


@per_script
def _shows_some(script: Script) -> bool:
    return any(map(_shows_arguments, script.commands))


def _shows_arguments(command: Command) -> bool:
    return not _HAND_ON.isdisjoint(command.chain) and program_name_of(command) not in ONLY_NAME


_HAND_ON = frozenset({"xargs", "gxargs", "parallel"})


_SETTINGS = re.compile(r"(?:env(?:rc)?|secrets?|tokens?|pass(?:words?)?|api[-_]?keys?|\.sh)(?:[.\w-]*|/.*)\Z", re.I)
"""Names of files that hold secrets as settings of a shell."""
_MOST_LOOKED_AT = 256


def _sources_no_settings(seen: Seen) -> bool:
    """`. ~/.ssh/id_rsa`: no settings for a shell, so all that happens is that it complains about each line."""
    return any(
        _is_secret(word, seen) and not _SETTINGS.search(word.text[-_MOST_LOOKED_AT:]) for word in seen.operands[:1]
    )


def _traced(seen: Seen) -> bool:
    """`set -x; . .env`: what is read from a secret file is written out as it is read."""
    if not any(_is_secret(word, seen) for word in seen.operands[:1]):
        return False
    for command in seen.script.commands:
        if command is seen.command:
            return False
        if program_name_of(command) == "set" and any(map(_traces, command.own_words[1:])):
            return True
    return False


def _traces(word: Word) -> bool:
    return word.text in {"xtrace", "verbose"} or re.fullmatch(r"-\w*[xv]\w*", word.text) is not None


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "input_is_secret": _input_is_secret,
    "editor_reads_secret": _editor_reads_secret,
    "list_names_secret": _list_names_secret,
    "listed_secret_is_shown": _listed_secret_is_shown,
    "sources_no_settings": _sources_no_settings,
    "sources_traced": _traced,
}

NEEDS: dict[str, Callable[[Seen], bool] | tuple[str, ...]] = {
    "input_is_secret": _ALL_OPTIONS,
    "listed_secret_is_shown": lambda seen: starts(seen.script, _HAND_ON),
    "list_names_secret": lambda seen: seen.command.stdin is not None,
}
