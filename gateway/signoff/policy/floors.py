"""Floors: commands that end the host or this gateway, which no person, grant or mode may allow."""

import msgspec

from signoff.policy import paths, python, ruleset
from signoff.policy.findings import CHECK_EVERY, shown
from signoff.policy.python import PythonScript
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import Script, Word
from signoff.policy.shell.deadline import Deadline

__all__ = ["Hit", "OwnFacts", "find", "own_file"]


class Hit(msgspec.Struct, frozen=True):
    """A floor that a command fell under."""

    key: str
    description: str
    command: str


def find(script: Script, facts: OwnFacts, deadline: Deadline, codes: tuple[PythonScript, ...] = ()) -> Hit | None:
    """The first floor that a command of the script, or the Python code it runs, falls under.

    Raises `OutOfTimeError`.
    """
    if script.fork_bombs:
        return Hit("floor.fork_bomb", "starts a fork bomb", f"{script.fork_bombs[0]}()")
    rows = ruleset.floors()
    for place, command in enumerate(script.commands):
        if place % CHECK_EVERY == CHECK_EVERY - 1:
            deadline.check()
        fired = rows.fired(command, script, facts, deadline)
        if fired:
            rule = fired[0][0].rule
            return Hit(rule.key, rule.sentence, shown(command))
    for code in codes:
        for found in python.find(code, facts, deadline):
            if found.rule.verdict == "block":
                return Hit(found.rule.key, found.rule.sentence, found.text)
    return None


def own_file(path: str, cwd: str | None, facts: OwnFacts) -> Hit | None:
    """The floor that the change of one file falls under: the gateway's own files are nobody's to write."""
    text = path
    if facts.paths.home is not None and (path == "~" or path.startswith("~/")):
        text = facts.paths.home + path[1:]
    if not paths.is_own(Word(text), cwd, facts.paths):
        return None
    return Hit("floor.own_state", "changes or deletes the gateway's own state or configuration", path)
