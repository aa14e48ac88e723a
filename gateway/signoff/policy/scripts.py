"""Commands that run a file: what such a file holds is not known from the command's words."""

from __future__ import annotations

from signoff.policy.contexts import Subject
from signoff.policy.programs import program_name_of
from signoff.policy.shell import UNKNOWN, Command
from signoff.policy.shell.options import OptionSpec, arguments

_SHELL = OptionSpec(short_values="oO", long_values=("rcfile", "init-file"))
_READERS: dict[str, OptionSpec] = {
    **dict.fromkeys(("bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "fish"), _SHELL),
    **dict.fromkeys((".", "source"), OptionSpec()),
    "python": OptionSpec(short_values="cmWX"),
    "pypy": OptionSpec(short_values="cmWX"),
    "node": OptionSpec(short_values="epr", long_values=("eval", "print", "require", "import")),
    "bun": OptionSpec(),
    "ruby": OptionSpec(short_values="eIr"),
    "perl": OptionSpec(short_values="eEIMm"),
    "php": OptionSpec(short_values="rdf"),
    "osascript": OptionSpec(short_values="el"),
    "pwsh": OptionSpec(long_single=True),
}
"""Programs whose first operand is a file of code, and which of their options take a value."""

_INLINE = frozenset({"-c", "-m", "-e", "-E", "-r", "-p", "-s", "--eval", "--print"})
"""Options with which they run something else than a file that the words name."""


def unread_file(subject: Subject) -> str:
    """The file that the action runs without its content having been read, if something about running it asks."""
    found = subject.found
    if found is None:
        return ""
    for finding in found.all:
        file = run_file(finding.command)
        if file and file not in subject.context.reviewed:
            return file
    return ""


def run_file(command: Command) -> str:
    """The file of code that a command runs, as written; empty where it runs none."""
    if not command.words or UNKNOWN in command.program:
        return ""
    name = program_name_of(command)
    if name.startswith("./"):
        return command.program
    options = _READERS.get(name.rstrip("0123456789.") or name)
    if options is None:
        return ""
    given = arguments(command.own_words, options, stop=True)
    if not given.operands or any(option.name in _INLINE for option in given.options):
        return ""
    file = given.operands[0][1].text.replace(UNKNOWN, "…")
    return "" if file in {"-", "/dev/stdin"} else file
