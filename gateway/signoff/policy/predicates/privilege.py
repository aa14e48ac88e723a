"""What a program is told to do with somebody else's rights."""

from collections.abc import Callable

from signoff.policy.seen import Seen

_SWITCHERS = frozenset({"su", "runuser", "ksu"})


def _opens_shell(seen: Seen) -> bool:
    """`sudo -i`, `sudo -s`, and `su` without a command: what is typed there later, nobody sees."""
    if seen.command.own < len(seen.command.words) or seen.has("-c", "--command", "--session-command"):
        return False
    return seen.name in _SWITCHERS or seen.has("-i", "-s", "--login", "--shell")


PREDICATES: dict[str, Callable[[Seen], bool]] = {"privilege_opens_shell": _opens_shell}
