"""What the floors ask of a command."""

import re
from collections.abc import Callable
from itertools import pairwise

from signoff.policy import copying, paths
from signoff.policy.predicates.whole import per_command
from signoff.policy.programs import program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_FIND_NEUTRAL = frozenset(
    {"-delete", "-depth", "-d", "-type", "-xdev", "-x", "-mount", "-print", "-print0", "-ls", "-noleaf"}
    | {"-H", "-L", "-P", "-follow", "-mindepth", "-maxdepth", "-true", "-a", "-and", "-warn", "-nowarn"}
    | {"-daystart", "-ignore_readdir_race"}
)
"""Words of find that let everything through, or leave only the kind or the depth to choose."""


@per_command
def _find_deletes(seen: Seen) -> bool:
    """`find FOLDER -delete` or `-exec rm` without a test that leaves anything out."""
    texts = [word.text for word in seen.words[1:]]
    if "-delete" in texts:
        return _leaves_nothing_out(texts[: texts.index("-delete")])
    return any(
        text in {"-exec", "-execdir"} and following.rpartition("/")[2] == "rm" and _leaves_nothing_out(texts[:place])
        for place, (text, following) in enumerate(pairwise(texts))
    )


def _leaves_nothing_out(before: list[str]) -> bool:
    """Whether what stands before an action of find lets everything through to it."""
    if not {"(", ")", "!", "-not"} & set(before):
        ors = [place for place, text in enumerate(before) if text in {"-o", "-or", ","}]
        before = before[ors[-1] + 1 :] if ors else before
    options = {text for text in before if text.startswith("-")}
    if "!" in before or not options <= _FIND_NEUTRAL:
        return False
    # The topmost folders hold everything; the topmost files alone are a choice.
    return "-maxdepth" not in options or "-type" not in options or "d" in before


def _not_only_files(seen: Seen) -> bool:
    """Unless it is told of an image file, and of no device: then it makes a filesystem in that file."""
    facts, cwd = seen.facts.paths, seen.command.cwd
    operands = seen.operands
    if any(not paths.is_file(word, cwd, facts) for word in operands):
        return True
    return not any("/" in word.text or "." in word.text for word in operands)


def _last_is_disk(seen: Seen) -> bool:
    operands = seen.operands
    return bool(operands) and paths.is_disk(operands[-1], seen.command.cwd, seen.facts.paths)


def _moves_system(seen: Seen) -> bool:
    facts, cwd = seen.facts.paths, seen.command.cwd
    return any(
        paths.is_system(word, cwd, facts) or paths.is_root(word, cwd, facts) for word in copying.moved(seen.words)
    )


def _moves_home(seen: Seen) -> bool:
    """A home folder itself; to move what is in it is a person's choice."""
    facts, cwd = seen.facts.paths, seen.command.cwd
    return any(word.pattern is None and paths.is_home(word, cwd, facts) for word in copying.moved(seen.words))


def _moves_home_content(seen: Seen) -> bool:
    """All that is in a home folder, or the home folder of another user."""
    facts, cwd = seen.facts.paths, seen.command.cwd
    return any(
        (word.pattern is not None and paths.is_home(word, cwd, facts)) or _HOME.fullmatch(word.text)
        for word in copying.moved(seen.words)
    )


_HOME = re.compile(r"/+(?:home|Users)/+[^/]+/*(?:\*)?")


def _moves_own(seen: Seen) -> bool:
    """A folder in which our state lies is moved away; what is moved into one is nobody's harm."""
    return any(paths.holds_own(word, seen.cwd, seen.facts.paths) for word in copying.moved(seen.words))


def _copies_own(seen: Seen) -> bool:
    """A copy of a whole folder in which our state lies carries the state away."""
    sources = copying.sources(seen.words, seen.name, seen.command.cwd)
    if not sources:
        return False
    left_out = copying.left_out(seen.words)
    return any(paths.holds_own_state(word, base, seen.facts.paths, left_out) for word, base in sources)


def _kill_targets(seen: Seen) -> list[str]:
    """The processes a kill names, behind its signal."""
    texts = [word.text for word in seen.words[1:]]
    if not texts:
        return []
    if texts[0] in {"-l", "-L", "--list", "--help"}:
        return []
    if texts[0] in {"-s", "-n", "--signal"}:
        texts = texts[2:]
    elif texts[0].startswith("-") and texts[0] != "--" and len(texts) > 1:
        texts = texts[1:]
    return [text for text in texts if text != "--"]


def _kills_everything(seen: Seen) -> bool:
    return "-1" in _kill_targets(seen)


def _kills_own(seen: Seen) -> bool:
    targets = _kill_targets(seen)
    if seen.facts.pid is not None and {str(seen.facts.pid), f"-{seen.facts.pid}"} & set(targets):
        return True
    if not any(UNKNOWN in text for text in targets):
        return False
    lookups = [command for command in seen.script.commands if program_name_of(command) in {"pgrep", "pidof"}]
    return any("signoff" in command.text for command in lookups)


def _names_own(seen: Seen) -> bool:
    """A name or pattern that means the gateway; a piece of its name counts, since pkill searches for pieces."""
    return any("signoff" in word.text or (len(word.text) > 3 and word.text in "signoff") for word in seen.operands)


_STOPPING = frozenset(
    {"stop", "restart", "try-restart", "reload-or-restart", "kill", "disable", "mask", "unload", "bootout", "remove"}
)
_OWN_SERVICE = re.compile(r"(?:^|[./@-])signoff(?:$|[.@-])")


def _stops_own_service(seen: Seen) -> bool:
    texts = [word.text for word in seen.words[1:]]
    return any(text in _STOPPING for text in texts) and any(map(_OWN_SERVICE.search, texts))


def _power_target(seen: Seen) -> bool:
    targets = {"poweroff", "reboot", "halt", "kexec", "shutdown", "runlevel0", "runlevel6", "soft-reboot"}
    units = [word.text for word in seen.operands[1:]]
    return any(unit.endswith(".target") and unit.removesuffix(".target") in targets for unit in units)


_OWN_COMMANDS = frozenset(
    {"demo", "serve", "init", "doctor", "drill", "ask", "run", "check", "pending", "approve", "deny", "stop", "grants"}
    | {"actions", "audit", "key", "policy", "yolo", "hook", "mcp", "watch", "soak", "bench", "migrate", "console"}
    | {"revoke", "why", "allowlist"}
)
_OWN_FORBIDDEN = frozenset({"approve", "deny", "key", "grants", "yolo", "actions", "console", "allowlist"})
"""`console` prints a link by which whoever opens it decides as the person it names."""


def _own_command(seen: Seen) -> bool:
    """The first word that is a command of ours decides: what stands before it may be an option's value."""
    texts = [word.text for word in seen.words[1:]]
    first = next((text for text in texts if text in _OWN_COMMANDS), "")
    if first in {"ask", "run"}:
        # It is answered at the terminal it runs in, and an agent's shell can make one and type.
        options = texts[: texts.index("--")] if "--" in texts else texts
        return "--here" in options
    return first in _OWN_FORBIDDEN


_PRINTERS = frozenset({"echo", "printf", "true", ":", "cd", "pwd", "signoff"})
"""Programs whose words are text to print, and our own, which may be told of its configuration."""


def _touches_own(seen: Seen) -> bool:
    facts, cwd = seen.facts.paths, seen.command.cwd
    words = paths.maybe_own(seen.words, cwd, facts) if facts.own else []
    if not words or seen.name in _PRINTERS or (seen.name == "git" and seen.texts[:1] == ["commit"]):
        return False
    return any(paths.is_own(word, cwd, facts) for word in words)


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "find_deletes": _find_deletes,
    "not_only_files": _not_only_files,
    "last_is_disk": _last_is_disk,
    "moves_system": _moves_system,
    "moves_own": _moves_own,
    "moves_home": _moves_home,
    "moves_home_content": _moves_home_content,
    "copies_own": _copies_own,
    "kills_everything": _kills_everything,
    "kills_own": _kills_own,
    "names_own": _names_own,
    "stops_own_service": _stops_own_service,
    "power_target": _power_target,
    "own_command": _own_command,
    "touches_own": _touches_own,
}

NEEDS: dict[str, Callable[[Seen], bool]] = {"find_deletes": _find_deletes}
