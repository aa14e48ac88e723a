"""What rules about containers and clusters ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable, Iterator

from signoff.policy import paths
from signoff.policy.path_classes import CLASSES, text_classes
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Command, Word
from signoff.policy.shell.options import OptionSpec, arguments

_SENSITIVE = ("startup_file", "secret_file", "system_config", "ssh_material", "raw_device", "disk", "holds_own")
_OPEN_FOLDERS = (
    "/var",
    "/usr",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/root",
    "/home",
    "/Users",
)
_HARMLESS_SOURCES = frozenset(
    {
        "/etc/localtime",
        "/etc/timezone",
        "/etc/passwd",
        "/etc/group",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/dev/null",
        "/etc/os-release",
    }
    | {"/dev/shm", "/dev/dri", "/lib/modules", "/etc/ssl/certs"}  # noqa: S108  # a name to compare with
)


_VOLUMES, _MOUNT = ("-v", "--volume"), "--mount"


def _sources(seen: Seen) -> Iterator[tuple[Word, bool]]:
    """The host's paths that are mounted, each with whether it is read-only."""
    for value in seen.values(*_VOLUMES):
        source, colon, rest = value.text.removeprefix("=").partition(":")
        if colon:
            yield Word(source), "ro" in rest.split(":")[-1].split(",")
    for value in seen.values(_MOUNT):
        fields = [part.partition("=") for part in value.text.split(",")]
        known = {name.strip(): text for name, _equals, text in fields}
        source = known.get("source", known.get("src", ""))
        if source and known.get("type", "bind") == "bind":
            yield Word(source), "ro" in known or "readonly" in known


def _mounts_host(seen: Seen) -> bool:
    """Mounts the root, a system folder, a home, secrets, devices or the socket of the container engine."""
    return any(_opens(source, seen, read_only=read_only) for source, read_only in _sources(seen))


def _opens(source: Word, seen: Seen, *, read_only: bool) -> bool:
    text = source.text.rstrip("/") or "/"
    if not text.startswith(("/", "~", ".")) and UNKNOWN not in text:
        return False  # a volume by name
    if text.rpartition("/")[2] in {"docker.sock", "podman.sock", "containerd.sock", "crio.sock"}:
        return True
    if text in _HARMLESS_SOURCES and (read_only or text.startswith("/dev/")):
        return False
    facts = seen.facts.paths
    if any(check(source, seen.cwd, facts) for check in (paths.is_root, paths.is_system, paths.is_home)):
        return True
    return text in _OPEN_FOLDERS or any(CLASSES[name](source, seen.cwd, facts) for name in _SENSITIVE)


_PRIVILEGED, _CAPABILITIES, _SECURITY, _DEVICE = "--privileged", "--cap-add", "--security-opt", "--device"
_HOST_SPACES = ("--pid", "--ipc", "--uts", "--userns", "--cgroupns")
_SAFE_CAPABILITIES = frozenset({"NET_BIND_SERVICE", "CHOWN", "SETUID", "SETGID", "KILL", "SYS_NICE", "IPC_LOCK"})


def _breaks_out(seen: Seen) -> bool:
    """Options that take the walls down between container and host."""
    if seen.has(_PRIVILEGED):
        return not any(value.text == "false" for value in seen.values(_PRIVILEGED))
    if any(value.text == "host" for value in seen.values(*_HOST_SPACES)):
        return True
    if any(value.text.upper().removeprefix("CAP_") not in _SAFE_CAPABILITIES for value in seen.values(_CAPABILITIES)):
        return True
    if any("unconfined" in value.text or "disable" in value.text for value in seen.values(_SECURITY)):
        return True
    return any(
        CLASSES["disk"](Word(value.text.partition(":")[0]), seen.cwd, seen.facts.paths)
        for value in seen.values(_DEVICE)
    )


_HOST_NETWORK = ("--network", "--net")


def _shares_network(seen: Seen) -> bool:
    """The host's own network: everything that listens on this machine only can be reached."""
    return any(value.text == "host" for value in seen.values(*_HOST_NETWORK))


def _copies_in(seen: Seen) -> bool:
    """`docker cp FILE CONTAINER:PATH`: the container's files change."""
    texts = seen.texts[2:] if seen.texts[:1] == ["container"] else seen.texts[1:]
    return bool(texts) and ":" in texts[-1] and not texts[-1].startswith((".", "/", "~"))


_SOCKETS = frozenset(
    {
        "unix:///var/run/docker.sock",
        "unix:///run/docker.sock",
        "default",
        "desktop-linux",
        "orbstack",
        "colima",
        "rancher-desktop",
    }
)


_LEADING = OptionSpec(short_values="Hcl", long_values=("host", "context", "url", "connection", "config", "log-level"))


def _other_daemon(seen: Seen) -> bool:
    """`-H`, `--host`, `--context`, `--url`, `--connection` before the command, or the variables that say the same."""
    leads = len(seen.words) > 1 and seen.words[1].text[:1] == "-"
    for option in arguments(seen.words, _LEADING, stop=True).options if leads else ():
        if option.name in {"-H", "--host", "--context", "--url", "--connection", "-c"} and option.value is not None:
            return option.value.text not in _SOCKETS
        if option.name == "--remote":
            return True
    return any(
        name in {"DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "CONTAINER_CONNECTION"} and value not in _SOCKETS
        for name, value in seen.command.assignments
    )


def _pushes(seen: Seen) -> bool:
    """An image goes to a registry: by `push`, or by a build that pushes its result."""
    texts = seen.texts
    if "push" in texts[:2] or texts[:3] == ["buildx", "imagetools", "create"]:
        return True
    return not {"build", "bake"}.isdisjoint(texts[:2]) and (
        seen.has("--push")
        or any("type=registry" in value.text or "push=true" in value.text for value in seen.values("--output", "-o"))
    )


_READERS = frozenset(
    {
        "ls",
        "cat",
        "ps",
        "df",
        "du",
        "head",
        "tail",
        "grep",
        "egrep",
        "wc",
        "stat",
        "file",
        "date",
        "id",
        "whoami",
        "uname",
        "hostname",
    }
    | {
        "uptime",
        "free",
        "pwd",
        "echo",
        "printf",
        "which",
        "true",
        "test",
        "[",
        "sort",
        "uniq",
        "cut",
        "top",
        "w",
        "who",
        "last",
        "lscpu",
    }
    | {
        "lsblk",
        "netstat",
        "ss",
        "ip",
        "journalctl",
        "dmesg",
        "readlink",
        "realpath",
        "basename",
        "dirname",
        "md5sum",
        "sha256sum",
        "nproc",
    }
    | {
        "vmstat",
        "iostat",
        "mount",
        "getent",
        "dig",
        "nslookup",
        "ping",
        "cd",
        "less",
        "more",
        "jq",
        "tr",
        "column",
        "zcat",
        "zgrep",
        "rg",
        "tree",
    }
    | {
        "systemctl",
        "service",
        "docker",
        "kubectl",
        "git",
        "find",
        "awk",
        "sed",
        "exit",
        "nvidia-smi",
        "lsof",
        "pgrep",
        "locale",
        "groups",
        "set",
        "psql",
        "mysql",
        "curl",
        "nginx",
    }
)
"""Programs that report. Those among them that can also change things are judged by their own rules where they run."""

_CAREFUL = {
    "systemctl": frozenset(
        {
            "status",
            "is-active",
            "is-enabled",
            "list-units",
            "list-timers",
            "show",
            "cat",
            "list-unit-files",
            "is-failed",
        }
    ),
    "docker": frozenset({"ps", "logs", "images", "inspect", "version", "info", "stats", "top", "port", "diff"}),
    "kubectl": frozenset({"get", "describe", "logs", "top", "version"}),
    "git": frozenset({"status", "log", "diff", "show", "rev-parse", "branch", "describe", "remote"}),
    "ip": frozenset({"a", "addr", "address", "r", "route", "link", "l", "neigh", "-br", "-4", "-6"}),
}


def _inner_reads(seen: Seen) -> bool:
    """Whether everything that runs on the other side, as far as it is known, only reports."""
    inner = [command for command in seen.script.commands if _is_inside(command.chain, command.place, seen)]
    return (
        bool(inner)
        and all(_reports(command.words) for command in inner if command.words)
        and not any(map(_writes, inner))
    )


def _writes(command: Command) -> bool:
    return any(
        redirect.writes and redirect.target.text not in {"/dev/null", "1", "2"} for redirect in command.redirects
    )


def _is_inside(chain: tuple[str, ...], place: str, seen: Seen) -> bool:
    return place != "here" and seen.words[0].text.rpartition("/")[2] in chain


_SENDERS = {
    "curl": re.compile(
        r"-[sSfLkiIvg]+|-m|--max-time|--silent|--show-error|--fail|--location|--insecure|--include|--head|--verbose|\d+"
        r"|(?!-)(?:https?://)?[\w.-]+(?::\d+)?(?:/[\w./?&=%+~,-]*)?"
    ),
    "psql": re.compile(r"-[tAxqXUhpdcw]+.*|--(?:command|dbname|host|port|username|tuples-only|csv|no-psqlrc).*", re.S),
    "mysql": re.compile(r"-[BNeuhPDpt]+.*|--(?:execute|user|host|port|database|password|batch|table).*", re.S),
}
"""Programs that only read with these words; those of curl are all of its words."""


def _reports(words: tuple[Word, ...]) -> bool:
    name = (
        words[0].text.rpartition("/")[2]
        if words[0].text.startswith(("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"))
        else words[0].text
    )
    if name in {"sh", "bash"}:
        return any(word.text == "-c" for word in words[1:])
    if name not in _READERS:
        return False
    if name == "service":
        return len(words) > 2 and words[-1].text == "status"
    if name in _CAREFUL:
        operands = [word.text for word in words[1:] if not word.text.startswith("-") or name == "ip"]
        return bool(operands) and operands[0] in _CAREFUL[name] and not {"add", "del", "set", "flush"} & set(operands)
    texts = [word.text for word in words[1:]]
    if name in _SENDERS:
        return all(_SENDERS[name].fullmatch(text) for text in texts if text[:1] == "-" or name == "curl")
    if name == "nginx":
        return len(texts) == 1 and texts[0] in {"-t", "-T", "-v", "-V"}
    if name == "sed":
        return not any(text.startswith(("-i", "--in-place")) for text in texts)
    return name != "find" or not {"-delete", "-exec", "-execdir", "-ok", "-fprint"} & set(texts)


_SECRET_KINDS = ("secret", "secrets", "sealedsecret")


def _reads_cluster_secret(seen: Seen) -> bool:
    """`kubectl get secret NAME -o yaml`: the values, not only the names."""
    texts = seen.texts
    if texts[:1] != ["get"] or len(texts) < 2:
        return texts[:2] == ["config", "view"] and seen.has("--raw", "--flatten")
    kinds = texts[1].split(",")
    if not any(kind.partition("/")[0].casefold() in _SECRET_KINDS for kind in kinds):
        return False
    return any(
        value.text.partition("=")[0] not in {"wide", "name"} for value in seen.values("-o", "--output", "--template")
    )


def _dry_run(seen: Seen) -> bool:
    """`--dry-run`, but not `--dry-run=none` or `=false`."""
    if not seen.has("--dry-run"):
        return False
    return not any(value.text in {"none", "false"} for value in seen.values("--dry-run"))


_GRAVE_KINDS = frozenset(
    {
        "namespace",
        "namespaces",
        "ns",
        "pv",
        "persistentvolume",
        "persistentvolumes",
        "pvc",
        "crd",
        "customresourcedefinition",
        "node",
        "nodes",
    }
)
_GRAVE_KINDS = _GRAVE_KINDS | {
    "persistentvolumeclaim",
    "persistentvolumeclaims",
    "crds",
    "customresourcedefinitions",
    "project",
    "projects",
    "statefulset",
    "sts",
}


def _deletes_much(seen: Seen) -> bool:
    """All objects of a kind, a namespace with all that is in it, or what holds data."""
    texts = seen.texts
    if texts[:1] != ["delete"]:
        return False
    kinds = [kind.partition("/")[0].casefold() for kind in texts[1].split(",")] if len(texts) > 1 else []
    return seen.has("--all", "-A", "--all-namespaces") or bool(_GRAVE_KINDS & set(kinds))


_OWN_RULES = frozenset(
    {"exec", "delete", "drain", "cordon", "taint", "evict", "replace", "rsh", "debug", "attach", "run", "cp", "rsync"}
)


def _copies_here(seen: Seen) -> bool:
    """`kubectl cp web:/var/log/x .`: out of a pod, to where files of the project or scratch files are."""
    operands = seen.operands
    if len(operands) != 3 or operands[0].text != "cp" or ":" not in operands[1].text or UNKNOWN in operands[2].text:
        return False
    cwd, facts = seen.cwd, seen.facts.paths
    name = operands[1].text.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    if name[:1] == ".":
        return False  # `.git`, which decides as a whole
    # Into a folder, it keeps its name.
    places = (operands[2], Word(f"{operands[2].text.rstrip('/')}/{name}"))
    used = {place.text.rstrip("/").rpartition("/")[2] for place in places} - {"", "."}
    if any(
        word.text.rstrip("/").rpartition("/")[2] in used
        for command in seen.script.commands
        if command is not seen.command
        for word in command.words
    ):
        return False
    return ":" not in operands[2].text and not any(
        CLASSES["outside"](place, cwd, facts)
        or text_classes(place, cwd, facts)
        or (place.text not in {".", "./"} and paths.holds_own(place, cwd, facts))
        for place in places
    )


def _told_otherwise(seen: Seen) -> bool:
    """Commands that have a rule with a sentence of their own."""
    texts = seen.texts
    return bool(texts) and (
        texts[0] in _OWN_RULES or (texts[0] == "adm" and texts[1:2] != [] and texts[1] in _OWN_RULES)
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "container_mounts_host": _mounts_host,
    "container_breaks_out": _breaks_out,
    "container_shares_network": _shares_network,
    "container_copies_in": _copies_in,
    "container_other_daemon": _other_daemon,
    "container_pushes": _pushes,
    "inner_reads": _inner_reads,
    "cluster_secret": _reads_cluster_secret,
    "cluster_dry_run": _dry_run,
    "cluster_copies_here": _copies_here,
    "cluster_told_otherwise": _told_otherwise,
    "cluster_deletes_much": _deletes_much,
}

NEEDS: dict[str, tuple[str, ...]] = {
    "container_mounts_host": (*_VOLUMES, _MOUNT),
    "container_breaks_out": (_PRIVILEGED, *_HOST_SPACES, _CAPABILITIES, _SECURITY, _DEVICE),
    "container_shares_network": _HOST_NETWORK,
    "cluster_dry_run": ("--dry-run",),
}
