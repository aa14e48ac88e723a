"""What a whole text does besides the command at hand: what it downloads, decodes, writes and sends."""

import posixpath
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from signoff.policy.programs import program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Command, Script
from signoff.policy.shell.options import OptionSpec, arguments

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


def per_script(work: Callable[[Script], _Found]) -> Callable[[Script], _Found]:
    """Work it out once for all commands of a text: the last text is remembered."""
    return _remembered(work)


def per_command(work: Callable[[Seen], _Found]) -> Callable[[Seen], _Found]:
    """Work it out once for all rows that look at a command in the same way: the last one is remembered."""
    return _remembered(work)


def per_text(work: Callable[[Seen], _Found]) -> Callable[[Seen], _Found]:
    """Like `per_script`, for what needs to know the surroundings as well, which are the same for a whole text."""
    kept: tuple[Script, _Found] | None = None

    def remembered(given: Seen) -> _Found:
        nonlocal kept
        last, of = kept, given.script
        if last is not None and last[0] is of:
            return last[1]
        found = work(given)
        kept = (of, found)
        return found

    return remembered


def _remembered(work: Callable[[_Given], _Found]) -> Callable[[_Given], _Found]:
    kept: tuple[_Given, _Found] | None = None  # replaced as a whole, since texts may be judged on several threads

    def remembered(given: _Given) -> _Found:
        nonlocal kept
        last = kept
        if last is not None and last[0] is given:
            return last[1]
        found = work(given)
        kept = (given, found)
        return found

    return remembered


@per_script
def _programs(script: Script) -> frozenset[str]:
    return frozenset([program_name_of(command) for command in script.commands])


def starts(script: Script, names: Iterable[str]) -> bool:
    """Whether the text starts one of these programs: few do, and without them nothing has to be looked for."""
    return not _programs(script).isdisjoint(names)


DOWNLOADERS = frozenset(
    {"curl", "wget", "http", "https", "xh", "aria2c", "axel", "fetch", "lynx", "w3m", "links", "elinks", "nc"}
    | {"ncat", "netcat", "socat", "telnet", "ftp", "lftp", "tftp", "sftp", "scp", "gh", "glab", "dig", "nslookup"}
    | {"ssh", "iwr", "invoke-webrequest", "gsutil", "rclone", "youtube-dl", "yt-dlp"}
)
"""Programs that bring text from another machine."""

SENDERS = DOWNLOADERS | frozenset(
    {"ping", "host", "mail", "mailx", "sendmail", "mutt", "msmtp", "swaks", "rsync", "websocat", "grpcurl"}
)
"""Programs that can carry text to another machine, a name that is looked up included."""

_DECODERS: dict[str, tuple[str, ...]] = {
    "base64": ("-d", "-D", "--decode"),
    "gbase64": ("-d", "-D", "--decode"),
    "base32": ("-d", "-D", "--decode"),
    "basenc": ("-d", "--decode"),
    "xxd": ("-r", "-revert"),
    "openssl": ("-d",),
    "gpg": ("-d", "--decrypt"),
    "uudecode": (),
    "rev": (),
    "tr": (),
    "gunzip": (),
    "zcat": (),
}
"""Programs that turn unreadable text into readable one, with the option that makes them do it, if one does."""


def downloads(script: Script) -> bool:
    """Whether a command of the text brings something from the network."""
    return starts(script, DOWNLOADERS)


@per_script
def decodes(script: Script) -> bool:
    """Whether a command of the text decodes something."""
    return starts(script, _DECODERS) and any(_decodes(command) for command in script.commands)


def _decodes(command: Command) -> bool:
    options = _DECODERS.get(program_name_of(command))
    if options is None:
        return False
    return not options or any(word.text.startswith(options) for word in command.words[1:])


def absolute(text: str, cwd: str | None) -> str:
    """A path in normal form, from the folder the command runs in where that is known."""
    path = posixpath.normpath(text if text.startswith("/") or cwd is None else f"{cwd}/{text}")
    return path[1:] if path.startswith("//") else path


_DOWNLOAD_OPTIONS = OptionSpec(
    short_values="oHXdFAuebcTmOPUDKwxrzyYCEQt",
    long_values=("output", "output-document", "out", "header", "data", "request"),
)
_CURL = OptionSpec(short_values="oHXdFAuebcTmUDKwxrzyYCEQt", long_values=_DOWNLOAD_OPTIONS.long_values)
_OUTPUT = ("-o", "--output", "-O", "--output-document", "--out")
_COPIERS = frozenset({"cp", "mv", "install", "ln", "gcp", "gmv"})


@per_script
def downloaded(script: Script) -> frozenset[str]:
    """The files the text fetches from the network, or writes from what it fetched, as normal paths."""
    if not starts(script, DOWNLOADERS):
        return frozenset()
    found: set[str] = set()
    fetched = False
    for command in script.commands:
        name = program_name_of(command)
        fetches = name in DOWNLOADERS
        fetched = fetched or fetches
        if fetches:
            found.update(_outputs(command, name))
        if fetches or (fetched and command.fed and (command.stdin is None or UNKNOWN in command.stdin)):
            found.update(
                absolute(redirect.target.text, command.cwd) for redirect in command.redirects if redirect.writes
            )
            if name in {"tee", "sponge"}:
                found.update(absolute(word.text, command.cwd) for word in command.words[1:])
        elif name in _COPIERS and found:
            _copied(command, found)
    return frozenset(found)


def _outputs(command: Command, name: str) -> list[str]:
    """The files a downloader names: by an option, else by the last part of the address."""
    curl = name == "curl"
    given = arguments(command.own_words, _CURL if curl else _DOWNLOAD_OPTIONS)
    named = [
        option.value.text
        for option in given.options
        if option.value is not None and (option.name in _OUTPUT[:2] if curl else option.name in _OUTPUT)
    ]
    if not named and (not curl or given.has("-O", "--remote-name", "-J")):
        named = [word.text.partition("?")[0].rstrip("/").rpartition("/")[2] for _place, word in given.operands]
    if name in {"scp", "sftp"} and given.operands:
        target = given.operands[-1][1].text
        named = [target, *(f"{target}/{text.rpartition(':')[2]}" for text in named)]
    return [absolute(text, command.cwd) for text in named if text and text != "-"]


def _copied(command: Command, found: set[str]) -> None:
    operands = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    if len(operands) > 1 and any(absolute(text, command.cwd) in found for text in operands[:-1]):
        target = operands[-1]
        found.add(absolute(target, command.cwd))
        found.update(absolute(f"{target}/{text.rpartition('/')[2]}", command.cwd) for text in operands[:-1])


@per_script
def cloned(script: Script) -> tuple[str, ...]:
    """The folders into which the text clones repositories of other machines, each with a slash at its end."""
    if not starts(script, _CLONERS):
        return ()
    return tuple(
        absolute(folder, command.cwd) + "/"
        for command in script.commands
        if program_name_of(command) in _CLONERS and (folder := _clone_target(command))
    )


_CLONERS = frozenset({"git", "gh", "hg", "svn"})
_CLONE = OptionSpec(short_values="bocju", long_values=("branch", "depth", "origin", "config", "reference", "template"))
_REMOTE_MARKS = ("://", "@", "/")


def _clone_target(command: Command) -> str:
    """The folder of `git clone ADDRESS [FOLDER]`; empty for anything else and for folders of this machine."""
    texts = [word.text for _place, word in arguments(command.own_words, _CLONE).operands]
    if "clone" not in texts and "checkout" not in texts[:1]:
        return ""
    rest = texts[texts.index("clone") + 1 :] if "clone" in texts else texts[1:]
    if not rest or rest[0].startswith((".", "/", "~")) or not any(mark in rest[0] for mark in _REMOTE_MARKS):
        return ""
    return rest[1] if len(rest) > 1 else rest[0].rstrip("/").rpartition("/")[2].removesuffix(".git")


@per_script
def made_executable(script: Script) -> frozenset[str]:
    """The files the text makes executable, as normal paths."""
    if not starts(script, _CHMOD):
        return frozenset()
    found: set[str] = set()
    for command in script.commands:
        if program_name_of(command) not in _CHMOD:
            continue
        texts = [word.text for word in command.own_words[1:]]
        modes = [text for text in texts if _adds_running(text)]
        if modes:
            found.update(absolute(text, command.cwd) for text in texts if text not in modes)
    return frozenset(found)


_CHMOD = frozenset({"chmod", "gchmod"})


def _adds_running(mode: str) -> bool:
    """Whether a mode lets the owner run the file."""
    if mode.isdigit():
        return len(mode) >= 3 and int(mode[-3]) % 2 == 1
    return any(sign in mode and "x" in mode.partition(sign)[2] for sign in "+=")


@per_script
def dumps_environment(script: Script) -> bool:
    """Whether a command of the text prints the whole environment."""
    return starts(script, _DUMPERS) and any(map(prints_environment, script.commands))


_SHELL_DUMPERS = frozenset({"printenv", "set", "export", "declare", "typeset"})
_DUMPING_WORDS = {
    **dict.fromkeys(("make", "gmake"), re.compile(r"-[bBdeikLnqrRsStvw]*p[bBdeikLnpqrRsStvw]*|--print-data-base")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), re.compile(r"env")),
    "systemctl": re.compile(r"show-environment"),
    "launchctl": re.compile(r"export"),
    "tmux": re.compile(r"show-?env(?:ironment)?"),
    "php": re.compile(r"-i|--info"),
    "direnv": re.compile(r"dump"),
}
"""A word that has a program print its whole environment, or the one that it hands to others."""
_DUMPERS = frozenset({*_SHELL_DUMPERS, "env", "genv", *_DUMPING_WORDS})


def prints_environment(command: Command) -> bool:
    """`env`, `export -p`, `set`, `tmux show-environment`: all variables with their values."""
    name = program_name_of(command)
    if name not in _DUMPERS:
        return False
    texts = [word.text for word in command.own_words[1:]]
    if name == "set":
        return not texts  # `-x` and `-p` mean something else to it
    if name in _SHELL_DUMPERS:
        return all(text in {"-p", "-x", "-0", "--null", "-px", "-xp"} for text in texts)
    if name in {"env", "genv"}:
        return command.own == len(command.words) and not any(map(_NOT_ALL_OF_ENV.match, texts))
    return _dumps_by_word(name, texts)


_NOT_ALL_OF_ENV = re.compile(r"-(?!-)\w*[iS]|-\Z|--(?:i|sp|h|ver)")
"""Options of env with which it begins with nothing, reads a text, or tells about itself."""


def _dumps_by_word(name: str, texts: list[str]) -> bool:
    fits = _DUMPING_WORDS[name].fullmatch
    if name in {"npm", "pnpm", "yarn"}:
        return len(texts) == 2 and texts[0] in {"run", "run-script", "exec"} and fits(texts[1]) is not None
    if name == "tmux":  # with a name it prints that one
        return any(map(fits, texts[:1])) and all(text[:1] == "-" for text in texts[1:])
    return any(map(fits, texts if name in {"make", "gmake", "systemctl"} else texts[:1]))


def searches_processes(script: Script) -> bool:
    """Whether a command of the text looks for processes."""
    return starts(script, _SEARCHERS)


_SEARCHERS = frozenset({"pgrep", "pidof", "lsof", "ps", "fuser", "ss", "netstat", "docker", "systemctl"})


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "text_downloads": lambda seen: downloads(seen.script),
    "text_decodes": lambda seen: decodes(seen.script),
}


def _fetches(seen: Seen) -> bool:
    return starts(seen.script, _FETCHERS)


_FETCHERS = DOWNLOADERS | _CLONERS
NEEDS: dict[str, Callable[[Seen], bool]] = {
    **PREDICATES,
    **dict.fromkeys(("runs_downloaded", "installs_downloaded"), _fetches),
    "environment_leaves": lambda seen: starts(seen.script, _DUMPERS),
}
