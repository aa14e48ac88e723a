"""What rules about other machines and about other HTTP clients ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable

from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_REMOTE = re.compile(
    r"[^/:\s]+@[^/:\s@]+:|(?:[^/:\s]+@)?(?:\[[^\]]+\]|[^/:\s@]{2,}):(?!//)"
    r"|(?:scp|sftp|rsync|ssh)://|[^/\s]+::",
    re.S,
)
"""`host:path`, `user@host:path`, `rsync://host/path`; one letter before a colon is a drive."""


def _is_remote(text: str) -> bool:
    return bool(_REMOTE.match(text))


def _copies_out(seen: Seen) -> bool:
    """scp and rsync: whether the last operand, the destination, is on another machine, or cannot be told."""
    texts = [text for text in seen.texts if text]
    if len(texts) < 2:
        return False
    return _is_remote(texts[-1]) or (
        UNKNOWN in texts[-1].partition("/")[0]
        and not texts[-1].startswith(("/", ".", "~", UNKNOWN + "/"))
        and seen.name == "scp"
    )


_SSH_PROGRAMS = re.compile(
    r"(?:proxycommand|localcommand|knownhostscommand|permitlocalcommand|match|proxyusefdpass|remotecommand|pkcs11provider|securitykeyprovider|include)\b",
    re.I,
)


def _ssh_runs_here(seen: Seen) -> bool:
    """`-o ProxyCommand=...`, `-F file`, `-S program`: programs that ssh, scp, sftp and rsync start on this machine."""
    if any(
        _SSH_PROGRAMS.match(value.text.strip()) and not re.search(r"=\s*none\Z|\sno\Z", value.text, re.I)
        for value in seen.values("-o")
    ):
        return True
    if seen.name in {"ssh", "autossh", "mosh"}:
        return seen.has("-F") and not any(value.text in {"none", "/dev/null"} for value in seen.values("-F"))
    if seen.name in {"scp", "sftp"}:
        return seen.has("-S", "-D")
    return any(
        value.text.split()[:1] != ["ssh"] or "ProxyCommand" in value.text for value in seen.values("-e", "--rsh")
    ) or seen.has("--rsync-path")


def _ssh_forwards(seen: Seen) -> bool:
    return seen.has("-R", "-L", "-D", "-w", "-W", "-A", "-N")


def _ssh_asks_only(seen: Seen) -> bool:
    """`ssh -V`, `ssh -G host`, `ssh -T git@github.com`: nothing is run on the other side."""
    return seen.has("-V", "-G", "-Q") or (
        seen.has("-T")
        and seen.texts[:1] != []
        and seen.texts[0].startswith("git@")
        and len(seen.command.words) - len(seen.words) == 0
    )


def _has_command(seen: Seen) -> bool:
    """Whether something is known to run on the other side: words behind the host, or standard input."""
    return (
        len(seen.command.words) > len(seen.words)
        or len(seen.operands) > 1
        or seen.command.fed
        or seen.command.stdin is not None
    )


_RCLONE_READS = frozenset(
    {
        "ls",
        "lsl",
        "lsd",
        "lsf",
        "lsjson",
        "size",
        "cat",
        "check",
        "cryptcheck",
        "about",
        "version",
        "listremotes",
        "tree",
        "ncdu",
        "md5sum",
        "sha1sum",
        "hashsum",
        "help",
        "checksum",
        "completion",
    }
)


def _rclone_reads(seen: Seen) -> bool:
    texts = seen.texts
    if not texts or seen.has("--dry-run", "-n", "--help"):
        return True
    if texts[0] in _RCLONE_READS:
        return True
    return texts[0] in {"copy", "copyto"} and len(texts) > 2 and ":" not in texts[-1]


_METHODS = re.compile(r"(?:POST|PUT|PATCH|DELETE|MKCOL|MOVE|COPY|LOCK|PURGE)")


def _sends_by_http(seen: Seen) -> bool:
    """curlie, xhs, hurl and others of the kind: a method or fields that change something."""
    if any(_METHODS.fullmatch(value.text.upper()) for value in seen.values("-X", "--request", "--method", "-m")):
        return True
    if any(_METHODS.fullmatch(text) for text in seen.texts[:1]):
        return True
    if seen.name == "wrk":
        return False  # its `-d` is a duration
    if seen.has(
        "-d",
        "--data",
        "--data-binary",
        "--data-raw",
        "--data-urlencode",
        "-F",
        "--form",
        "-T",
        "--upload-file",
        "--json",
        "-b",
        "--body",
        "-D",
    ):
        return True
    return any(re.match(r"[\w.-]+(?:=|:=|@)", text) and "://" not in text for text in seen.texts[1:])


def _grpc_reads(seen: Seen) -> bool:
    """grpcurl and evans: lists and descriptions."""
    return (
        any(text in {"list", "describe", "ls", "desc", "show"} for text in seen.texts)
        or not seen.operands
        or seen.has("-help", "--help", "-version", "--version")
    )


def _mail_reads(seen: Seen) -> bool:
    """`mail` without a recipient reads the box; `sendmail -bp` shows the queue."""
    if seen.name in {"mail", "mailx", "s-nail", "mutt", "neomutt"}:
        return not seen.operands
    return any(
        option.name == "-b" and option.value is not None and option.value.text in {"p", "v", "t", "d"}
        for option in seen.given.options
    ) or seen.has("-V", "--version", "--help")


def _listens(seen: Seen) -> bool:
    """Clients that only listen: `kcat -C`, `stripe listen`, `nats sub`, `wscat -l`."""
    return seen.has("-C", "-L", "--listen", "-l", "--version", "--help") or seen.texts[:1] in (
        ["listen"],
        ["sub"],
        ["subscribe"],
        ["logs"],
        ["status"],
        ["get"],
        ["version"],
        ["help"],
        ["list"],
        ["server"],
        ["account"],
        ["samples"],
        ["stream"],
    )


_MESSAGE_READS = frozenset(
    {
        "login",
        "config",
        "list",
        "receive",
        "listContacts",
        "listGroups",
        "listAccounts",
        "listDevices",
        "help",
        "version",
        "--version",
        "timeline",
        "notifications",
        "whoami",
        "auth",
        "env",
        "profiles",
        "validate",
        "doctor",
        "manifest",
        "serve",
        "subscribe",
        "sub",
        "status",
    }
)


def _message_reads(seen: Seen) -> bool:
    return seen.texts[:1] != [] and seen.texts[0] in _MESSAGE_READS


_TRACKER_READS = frozenset(
    {
        "list",
        "view",
        "show",
        "search",
        "get",
        "me",
        "open",
        "serverinfo",
        "help",
        "version",
        "agenda",
        "calw",
        "calm",
        "login",
        "init",
    }
)


def _tracker_reads(seen: Seen) -> bool:
    return bool(_TRACKER_READS & set(seen.texts[:3]))


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "copies_out": _copies_out,
    "ssh_runs_here": _ssh_runs_here,
    "ssh_forwards": _ssh_forwards,
    "ssh_asks_only": _ssh_asks_only,
    "ssh_has_command": _has_command,
    "rclone_reads": _rclone_reads,
    "http_sends": _sends_by_http,
    "grpc_reads": _grpc_reads,
    "mail_reads": _mail_reads,
    "http_listens": _listens,
    "message_reads": _message_reads,
    "tracker_reads": _tracker_reads,
}
