"""Archives that the same text has just fetched and unpacked."""

from collections.abc import Callable

from signoff.policy.predicates.remote_code import program_file, runs_script
from signoff.policy.predicates.whole import DOWNLOADERS, absolute, downloaded, per_script, starts
from signoff.policy.programs import program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Command, Script

_TARGET_OPTIONS = ("-C", "--directory", "-d", "-o", "--output", "--output-directory", "-D")
_UNPACKERS = frozenset({
    "tar", "gtar", "bsdtar", "unzip", "bsdunzip", "7z", "7za", "7zz", "7zr", "unrar", "unar", "cpio", "ar", "jar",
    "dtrx", "ouch", "aunpack", "patool",
})  # fmt: skip


@per_script
def _unpacked(script: Script) -> tuple[str, ...]:
    """The folders into which the text unpacks what it fetched, each with a slash at its end."""
    if not starts(script, DOWNLOADERS) or not starts(script, _UNPACKERS):
        return ()
    files = downloaded(script)
    return tuple(
        absolute(_target(command), command.cwd).rstrip("/") + "/"
        for command in script.commands
        if program_name_of(command) in _UNPACKERS and _unpacks_fetched(command, files)
    )


def _unpacks_fetched(command: Command, files: frozenset[str]) -> bool:
    """Whether it reads a file that was fetched, or a stream that nobody has seen."""
    if command.fed and (command.stdin is None or UNKNOWN in command.stdin):
        return True
    return any(
        (word.given and (word.content is None or UNKNOWN in word.content)) or absolute(word.text, command.cwd) in files
        for word in command.words[1:]
    )


def _target(command: Command) -> str:
    """The folder it is told to unpack into, else the one it runs in."""
    texts = [word.text for word in command.words]
    for place, text in enumerate(texts[1:], 1):
        name, equals, value = text.partition("=")
        if text in _TARGET_OPTIONS and place + 1 < len(texts):
            return texts[place + 1]
        if equals and name in _TARGET_OPTIONS:
            return value
        if text[:2] in {"-C", "-o", "-d"} and text[2:3] in {"/", ".", "~"}:
            return text[2:]
    return "."


def _runs_unpacked(seen: Seen) -> bool:
    """The script that is run lies where such an archive was unpacked."""
    folders = _unpacked(seen.script)
    if not folders or not runs_script(seen):
        return False
    word = seen.words[0] if "/" in seen.words[0].text else program_file(seen)
    return word is not None and absolute(word.text, seen.cwd).startswith(folders)


PREDICATES: dict[str, Callable[[Seen], bool]] = {"runs_unpacked": _runs_unpacked}
