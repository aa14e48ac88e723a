"""Whether an entry of an allowlist lets any command run, because its star stands where a program takes one. Pure."""

from __future__ import annotations

from signoff.policy import JudgeContext
from signoff.policy.deny import pattern_parts
from signoff.policy.explaining import explain

_PROBE = "probe-command"
_FILLINGS = (
    f"{_PROBE} now",
    f"'{_PROBE} now'",
    f"1 {_PROBE} now",
    f"-c '{_PROBE} now'",
    f"-exec {_PROBE} now ;",
    f"-c \"import os; os.system('{_PROBE} now')\"",
    f"\"import os; os.system('{_PROBE} now')\"",
    f"-e 'system(\"{_PROBE} now\")'",
    f"'system(\"{_PROBE} now\")'",
    f"'BEGIN{{system(\"{_PROBE} now\")}}'",
)
"""How programs take a command: as words, as a text, behind an operand, behind an option, in their own language."""
_CONTEXT = JudgeContext(kind="chat", attended=True)


def carries_any(entry: str) -> bool:
    """Whether a command that nobody named would be run by one that the entry fits, such as `sudo *` or `bash -c *`."""
    parts = pattern_parts(entry)
    return any(_runs(parts, place, filling) for place in range(1, len(parts)) for filling in _FILLINGS)


def _runs(parts: list[str], place: int, filling: str) -> bool:
    """Whether the probe is run when it stands for the star before `place`, the other stars for nothing."""
    text = "".join(parts[:place]) + filling + "".join(parts[place:])
    found = explain("command", text, _CONTEXT).commands
    return any(command.words[:1] and command.words[0].split()[:1] == [_PROBE] for command in found[1:])
