"""Processes, services, modes of files, and tools that either read or change."""

import re
from collections.abc import Callable

from signoff.policy.predicates.whole import searches_processes
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

# Signals

_LISTING = frozenset({"-l", "-L", "--list", "--help", "--table"})
_FORCED = frozenset({"9", "kill", "sigkill"})


def _signal(seen: Seen) -> str:
    """The signal a kill sends, in lower case; empty for the usual one."""
    for option in seen.given.options:
        if option.name in {"-s", "-n", "--signal"} and option.value is not None:
            return option.value.text.lower()
    first = seen.words[1].text if len(seen.words) > 1 else ""
    return first[1:].lower() if first.startswith("-") and len(first) > 1 and first != "--" else ""


def _lists(seen: Seen) -> bool:
    return len(seen.words) > 1 and seen.words[1].text in _LISTING


def _targets(seen: Seen) -> list[str]:
    """The processes a kill names, behind its signal; a group is a number with a dash."""
    texts = [word.text for word in seen.words[1:]]
    if texts[:1] and texts[0] in {"-s", "-n", "--signal"}:
        texts = texts[2:]
    elif len(texts) > 1 and texts[0].startswith("-") and texts[0] != "--":
        texts = texts[1:]
    return [text for text in texts if text != "--"]


def _kill_forced(seen: Seen) -> bool:
    return not _lists(seen) and _signal(seen) in _FORCED


def _kill_own_jobs(seen: Seen) -> bool:
    targets = _targets(seen)
    return bool(targets) and all(text.startswith("%") for text in targets)


def _kill_searched(seen: Seen) -> bool:
    return any(UNKNOWN in text for text in _targets(seen)) and not _lists(seen) and searches_processes(seen.script)


def _kill_vital(seen: Seen) -> bool:
    if _lists(seen) or _signal(seen) == "0":
        return False
    return any(text in {"1", "0"} or re.fullmatch(r"-\d+", text) for text in _targets(seen))


def _signal_zero(seen: Seen) -> bool:
    return any(word.text in {"-0", "-l", "--list", "-V", "--version", "--help", "-h"} for word in seen.words[1:])


def _init_script(seen: Seen) -> bool:
    """`/etc/init.d/nginx restart`: the program is a start script."""
    program = seen.words[0].text if seen.words else ""
    return program.startswith(("/etc/init.d/", "/etc/rc.d/")) and seen.texts[:1] != ["status"]


def _initctl_reads(seen: Seen) -> bool:
    return seen.name == "initctl" and seen.texts[:1] in (["list"], ["status"], ["version"], ["help"], ["show-config"])


# Modes of files

_WRITE_OTHERS = re.compile(r"[ugo]*[oa][ugoa]*[+=][rwxXst]*w")
_READ_OTHERS = re.compile(r"[ugoa]*[goa][ugoa]*[+=][rwxXst]*r|[+=]r")
_SPECIAL = re.compile(r"[ugoa]*[+=][rwxXt]*s")
_LOCKING = re.compile(r"[ug]*[ua][ugo]*(?:-[wxXt]*r|-[rxXt]*w|=(?:,|\Z))|-[wxX]*r|[ua]=[wx]*(?:,|\Z)")


def _modes(seen: Seen) -> list[str]:
    """The mode, and what would be one: `chmod -- 777 f`, `chmod g-s f`, `chmod -x f`."""
    found = [word.text for word in seen.operands[:1]]
    return found + [word.text for word in seen.words[1:] if re.match(r"-[rwxst]+\Z", word.text)]


def _made_with(bits: int, letters: re.Pattern[str]) -> Callable[[Seen], bool]:
    """Whether `install -m MODE` or `mkdir -m MODE` gives these rights."""

    def made(seen: Seen) -> bool:
        return any(_gives(word.text, bits, letters) for word in seen.values("-m", "--mode"))

    return made


def _gives(mode: str, bits: int, letters: re.Pattern[str]) -> bool:
    octal = _octal(mode)
    return bool(octal & bits) if octal is not None else any(map(letters.match, mode.split(",")))


def _octal(mode: str) -> int | None:
    return int(mode, 8) if re.fullmatch(r"[0-7]{1,5}", mode) else None


def _mode_opens_writing(seen: Seen) -> bool:
    return any(_gives(mode, 0o002, _WRITE_OTHERS) for mode in _modes(seen))


def _mode_opens_reading(seen: Seen) -> bool:
    return any(_gives(mode, 0o044, _READ_OTHERS) for mode in _modes(seen))


def _mode_sets_user(seen: Seen) -> bool:
    return any(_gives(mode, 0o6000, _SPECIAL) for mode in _modes(seen))


def _mode_in_digits(seen: Seen) -> bool:
    """A mode that leaves nothing of the one before."""
    return any(_octal(mode) is not None for mode in _modes(seen))


def _mode_locks_out(seen: Seen) -> bool:
    for mode in _modes(seen):
        octal = _octal(mode)
        if (octal & 0o600) != 0o600 if octal is not None else any(map(_LOCKING.match, mode.split(","))):
            return octal is not None or "+" not in mode
    return False


def _umask_opens_writing(seen: Seen) -> bool:
    octal = _octal(seen.texts[0]) if seen.operands else None
    return octal is not None and not octal & 0o002


def _date_sets(seen: Seen) -> bool:
    """`date 010100002030` sets the clock: digits and no format."""
    return any(re.fullmatch(r"\d{8,12}(?:\.\d\d)?", word.text) for word in seen.operands)


# Tools that read or change

_READING: dict[str, frozenset[str]] = {
    "diskutil": frozenset({"list", "info", "activity", "listfilesystems", "help"}),
    "hdiutil": frozenset({"info", "imageinfo", "help", "verify", "checksum", "plugins"}),
    "cryptsetup": frozenset({"status", "luksdump", "isluks", "benchmark", "luksuuid", "tcryptdump"}),
    "zfs": frozenset({"list", "get", "diff", "holds", "help", "version", "userspace", "groupspace"}),
    "zpool": frozenset({"list", "get", "status", "iostat", "history", "events", "help", "version"}),
    "btrfs": frozenset({"version", "help"}),
    "bcachefs": frozenset({"version", "show-super", "list"}),
    "dmsetup": frozenset({"ls", "info", "table", "status", "deps", "version", "targets", "help"}),
    "nvme": frozenset({"list", "list-subsys", "id-ctrl", "id-ns", "smart-log", "error-log", "version", "help"}),
    "stratis": frozenset({"report", "daemon"}),
    "vdo": frozenset({"status", "list", "printconfigfile"}),
}
_READING_FLAGS: dict[str, frozenset[str]] = {
    "mdadm": frozenset(
        {"--detail", "-D", "--examine", "-E", "-Q", "--query", "--monitor", "--help", "-h", "--version", "-V"}
    ),
    "hdparm": frozenset({"-t", "-T", "-tT", "-Tt", "-i", "-g", "-C", "-h"}),
    "badblocks": frozenset({"-s", "-v", "-sv", "-vs"}),
    "tune2fs": frozenset({"-l"}),
    "debugfs": frozenset({"-R"}),
}


def _disk_tool_reads(seen: Seen) -> bool:
    texts = seen.texts
    reading = _READING.get(seen.name)
    if reading is not None:
        second = texts[1:2] in (["list"], ["show"], ["usage"], ["df"], ["get-default"], ["status"], ["help"])
        return bool(texts) and (texts[0].lower() in reading or (seen.name in {"btrfs", "stratis"} and second))
    flags = _READING_FLAGS.get(seen.name)
    options = {word.text for word in seen.words[1:] if word.text.startswith("-")}
    return flags is not None and bool(options) and options <= flags


def _parted_prints(seen: Seen) -> bool:
    return seen.name == "parted" and "print" in seen.texts[1:2]


def _options_unknown(seen: Seen) -> bool:
    """Whether a word that is only known when the command runs may be an option."""
    return seen.perhaps_options


_VERSION = frozenset({"--version", "--help", "-h", "-V", "list", "status", "show", "list-images"})


def _only_asks_version(seen: Seen) -> bool:
    return len(seen.words) == 2 and seen.words[1].text in _VERSION


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "kill_forced": _kill_forced,
    "kill_own_jobs": _kill_own_jobs,
    "kill_searched": _kill_searched,
    "kill_vital": _kill_vital,
    "signal_zero": _signal_zero,
    "init_script": _init_script,
    "initctl_reads": _initctl_reads,
    "mode_in_digits": _mode_in_digits,
    "mode_opens_writing": _mode_opens_writing,
    "mode_opens_reading": _mode_opens_reading,
    "mode_sets_user": _mode_sets_user,
    "mode_locks_out": _mode_locks_out,
    "made_with_open_mode": _made_with(0o002, _WRITE_OTHERS),
    "made_with_user_mode": _made_with(0o6000, _SPECIAL),
    "date_sets": _date_sets,
    "umask_opens_writing": _umask_opens_writing,
    "disk_tool_reads": _disk_tool_reads,
    "parted_prints": _parted_prints,
    "options_unknown": _options_unknown,
    "only_asks_version": _only_asks_version,
}
