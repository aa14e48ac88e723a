"""What is done to the gateway itself, and a few tools that either read or change."""

import re
from collections.abc import Callable

from signoff.policy.seen import Seen

_OWN_NAME = re.compile(r"(?:^|[/@:_-])signoff(?:$|[\s@:=<>!~\[._-])")
_PACKAGE = re.compile(r"signoff(?:$|[\s@=<>!~\[])")
_CHANGING = frozenset(
    {"uninstall", "remove", "purge", "install", "upgrade", "rm", "erase", "autoremove", "update", "add"}
    | {"reinstall", "inject", "del", "unlink", "-e", "-r", "-P", "-R", "-Rs", "-Rns", "-S", "-U", "--remove"}
    | {"--purge", "--erase", "tool", "pip"}
)
_SETTING_UP = frozenset(
    {"serve", "init", "stop", "migrate", "run", "demo", "policy", "hook", "soak", "restart", "reload"}
)
_ENDING = frozenset(
    {"stop", "kill", "rm", "restart", "down", "pause", "remove", "delete", "update", "scale", "kill-session"}
    | {"quit", "uninstall", "rollout", "-X", "exec", "cp"}
)


def _names_own_package(seen: Seen) -> bool:
    texts = [word.text for word in seen.words[1:]]
    return not _CHANGING.isdisjoint(texts) and any(_PACKAGE.match(text) for text in texts)


def _own_setup(seen: Seen) -> bool:
    return seen.texts[:1] != [] and seen.texts[0] in _SETTING_UP


def _stops_own_container(seen: Seen) -> bool:
    texts = [word.text for word in seen.words[1:]]
    return any(text in _ENDING for text in texts) and any(_OWN_NAME.search(text) for text in texts)


# Tools that read or change

_STORE_PRINTS: dict[str, frozenset[str]] = {
    "secret-tool": frozenset({"lookup", "search", "clear"}),
    "op": frozenset({"read", "item", "document", "inject", "run", "signin"}),
    "bw": frozenset({"get", "export", "unlock", "list", "delete", "edit", "create", "send"}),
    "rbw": frozenset({"get", "unlock", "edit", "remove", "search"}),
    "lpass": frozenset({"show", "export", "edit", "rm"}),
    "keepassxc-cli": frozenset({"show", "export", "clip", "open", "rm", "edit", "add", "attachment-export"}),
    "kpcli": frozenset(),
    "doppler": frozenset({"secrets", "run"}),
    "infisical": frozenset({"secrets", "export", "run"}),
    "chamber": frozenset({"read", "export", "exec", "env", "write", "delete"}),
    "keyring": frozenset({"get", "set", "del"}),
    "keyctl": frozenset({"print", "read", "pipe", "purge", "revoke", "unlink", "clear"}),
    "berglas": frozenset({"access", "exec", "delete", "update", "create", "grant", "revoke", "edit"}),
    "credstash": frozenset({"get", "getall", "put", "delete", "putall"}),
    "akeyless": frozenset({"get-secret-value", "get-dynamic-secret-value", "delete-item", "update-secret-val"}),
}
_PASS_READS = frozenset({"ls", "list", "find", "search", "help", "version", "git", "init", "--version", "--help"})


def _store_prints(seen: Seen) -> bool:
    """Whether a password store is asked for what it stores, or told to change it."""
    texts = seen.texts
    if seen.name in {"pass", "gopass"}:
        return bool(texts) and texts[0] not in _PASS_READS
    known = _STORE_PRINTS.get(seen.name)
    if known is None:
        return bool(texts)
    return bool(texts) and texts[0] in known and texts[1:2] not in (["list"], ["ls"], ["lookup"])


def _accounts_only_read(seen: Seen) -> bool:
    if seen.name in {"dscl", "userdbctl", "homectl", "sysadminctl", "realm"}:
        return any(
            word.text
            in {"-read", "-list", "-search", "read", "list", "user", "inspect", "discover", "-secureTokenStatus"}
            for word in seen.words
        )
    if seen.name == "faillock":
        return not seen.has("--reset")
    if seen.name == "visudo":
        return seen.has("-c", "--check")
    if seen.name == "htpasswd":
        return seen.has("-n") or any(re.match(r"-\w*n", word.text) for word in seen.words[1:])
    return False


_BOOT_READS = frozenset(
    {"status", "list", "-v", "--version", "--help", "-h", "-p", "-xp", "get-devices", "get-updates", "security"}
    | {"--info", "-l", "--list", "--info=ALL", "--info=DEFAULT", "--default-kernel", "-L", "--list-installed"}
    | {"isactive", "--sb-state", "--list-enrolled", "verify", "get-history", "--status"}
)


def _boot_only_reads(seen: Seen) -> bool:
    texts = [word.text for word in seen.words[1:]]
    if not texts:
        return seen.name in {"efibootmgr", "bootctl", "fwupdmgr"}
    return texts[0] in _BOOT_READS


_PROTECTION_READS = frozenset(
    {"--version", "--help", "-h", "list", "-l", "-L", "status", "dump", "-CAROOT", "show", "--show", "-V"}
)


def _protection_only_read(seen: Seen) -> bool:
    words = [word.text for word in seen.words[1:]]
    if seen.name == "mkcert":
        return "-install" not in words and "-uninstall" not in words
    if seen.name == "certutil":
        return "-L" in words or "-hashfile" in words
    return bool(words) and (words[0] in _PROTECTION_READS or words[1:2] in (["-l"], ["--list"]))


_POWER_CHANGES = re.compile(
    r"-(?:pm|pl|lgc|rgc|lmc|rmc|ac|rac|e|c|mig|cgi|cci|dgi|dci|r|dm|fdm)\Z"
    r"|--(?:gpu-reset|persistence-mode|power-limit|compute-mode|ecc-config)"
)


def _power_only_reads(seen: Seen) -> bool:
    words = [word.text for word in seen.words[1:]]
    if seen.name == "nvidia-smi":
        return not any(_POWER_CHANGES.match(text) for text in words)
    if seen.name in {"pmset", "tlp", "cpupower", "powertop", "ipmitool", "racadm"}:
        reads = {
            "-g",
            "--version",
            "--help",
            "frequency-info",
            "idle-info",
            "monitor",
            "-C",
            "--csv",
            "--html",
            "stat",
            "status",
            "sensor",
            "sel",
            "sdr",
            "info",
            "help",
        }
        return not words or any(text in reads or text.startswith("--html") for text in words)
    return bool(words) and words[0] in {"--version", "--help", "-h"}


def _kernel_tool_reads(seen: Seen) -> bool:
    """`bpftool prog list`; not what comes from a file (`-B FILE`), and no dump into one."""
    if seen.name != "bpftool" or any(_BATCH.match(word.text) for _place, word in seen.dashed):
        return False
    if len(seen.texts) > 2 and seen.texts[1] == "dump":
        return not any("file".startswith(text) for text in seen.texts[2:])
    return len(seen.texts) < 2 or seen.texts[1] in {"list", "show", "dump", "help"}


_BATCH = re.compile(r"--b|-\w*B")


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "kernel_tool_reads": _kernel_tool_reads,
    "names_own_package": _names_own_package,
    "own_setup": _own_setup,
    "stops_own_container": _stops_own_container,
    "store_prints": _store_prints,
    "accounts_only_read": _accounts_only_read,
    "boot_only_reads": _boot_only_reads,
    "protection_only_read": _protection_only_read,
    "power_only_reads": _power_only_reads,
}
