"""What leaves the machine, and where it goes."""

import re
from collections.abc import Callable

from signoff.policy.path_classes import CLASSES
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word

_LOOPBACK = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?"
    r"(?:localhost|127(?:\.\d+){1,3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost|host\.docker\.internal)"
    r"(?::[\d\x00]+)?(?:[/?#].*)?|:\d*(?:/.*)?",
    re.I | re.S,
)
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"})
_DATA = (
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--data-ascii",
    "--json",
    "-F",
    "--form",
    "--form-string",
)
_UPLOADS = ("-T", "--upload-file")
_SENDS = (*_UPLOADS, "-Q", "--quote", "--mail-from", "--mail-rcpt")
_METHOD = ("-X", "--request")


def is_loopback(word: Word) -> bool:
    """Whether an address is this machine's own."""
    return _LOOPBACK.fullmatch(word.text) is not None


def _addresses(seen: Seen) -> list[Word]:
    return [*seen.operands, *seen.values("--url")]


def _stays_here(seen: Seen) -> bool:
    """All addresses are of this machine; none of an approval gateway's own routes."""
    addresses = _addresses(seen)
    if seen.has("--unix-socket", "--abstract-unix-socket"):  # whoever listens there, it is no development server
        return False
    return bool(addresses) and all(is_loopback(word) and not _OWN_ROUTE.search(word.text) for word in addresses)


_OWN_ROUTE = re.compile(r"/v1/(?:approvals|grants|keys|drills|sessions|turns)(?:[/?]|\Z)")


def _own_route(seen: Seen) -> bool:
    """An address of this gateway's own interface."""
    found = [word for word in _addresses(seen) if _OWN_ROUTE.search(word.text)]
    return any(map(is_loopback, found))


def _curl_sends(seen: Seen) -> bool:
    methods = [word.text.upper() for word in seen.values(*_METHOD)]
    if any(method not in _SAFE_METHODS for method in methods):
        return True
    if seen.has(*_SENDS):
        return True
    return seen.has(*_DATA) and not seen.has("-G", "--get")


def _curl_query_file(seen: Seen) -> bool:
    """`curl -G -d @file`: the content of a file in the address."""
    return any("@" in word.text for word in seen.values(*_DATA))


def _wget_sends(seen: Seen) -> bool:
    if seen.has("--post-data", "--post-file", "--body-data", "--body-file"):
        return True
    return any(word.text.upper() not in _SAFE_METHODS for word in seen.values("--method"))


_HTTPIE_ITEM = re.compile(r"[^:/=@\s]+(?::=@?|=@?|@)(?!=).*", re.S)


def _httpie_sends(seen: Seen) -> bool:
    """`http POST url`, or items of a body behind the address."""
    texts = seen.texts
    if _httpie_method(texts):
        return texts[0].upper() not in _SAFE_METHODS
    items = [text for text in texts[1:] if _HTTPIE_ITEM.fullmatch(text) and "==" not in text]
    return bool(items) or seen.command.fed


def _httpie_stays_here(seen: Seen) -> bool:
    texts = seen.texts
    address = texts[1:2] if _httpie_method(texts) else texts[:1]
    return bool(address) and is_loopback(Word(address[0])) and not _OWN_ROUTE.search(address[0])


def _httpie_method(texts: list[str]) -> bool:
    """Whether the first word is the method, in any case: it has letters only, and the address follows."""
    return len(texts) > 1 and texts[0].isalpha() and texts[0] != "localhost"


def _names_metadata(seen: Seen) -> bool:
    return any(
        CLASSES["metadata_address"](word, seen.cwd, seen.facts.paths) or _METADATA_NAME.fullmatch(word.text)
        for word in seen.words[1:]
    )


_METADATA_NAME = re.compile(r"http://(?:metadata|instance-data)(?::\d+)?(?:/.*)?", re.S)
"""The short names that a cloud's own name server knows."""


def _device_of_network(seen: Seen) -> bool:
    """bash's own `/dev/tcp/host/port`."""
    return any(
        redirect.target.text.startswith(("/dev/tcp/", "/dev/udp/"))
        and not _LOOPBACK.fullmatch(redirect.target.text.split("/")[3])
        for redirect in seen.command.redirects
    )


def _fed_with_text(seen: Seen) -> bool:
    """Something is piped in that is more than an end of input (`echo | ...`, `< /dev/null`)."""
    command = seen.command
    if not command.fed or any(redirect.target.text == "/dev/null" for redirect in command.redirects):
        return False
    return command.stdin is None or len(command.stdin.strip()) > 1


def _netcat_only_looks(seen: Seen) -> bool:
    """`nc -z host port` tries whether something answers; `nc -h` tells about itself."""
    return seen.has("-z", "-h", "--help", "--version") and not seen.has("-e", "-c", "-l", "--exec", "--sh-exec")


def _netcat_runs(seen: Seen) -> bool:
    return seen.has("-e", "-c", "--exec", "--sh-exec", "--lua-exec") or any(
        re.match(r"(?:exec|system|shell):", word.text, re.I) for word in seen.operands
    )


# Settings of the network

_IP_CHANGES = frozenset(
    {"add", "del", "delete", "change", "append", "replace", "set", "flush", "restore", "exec", "attach"}
    | {"identify", "prepend", "a", "d", "chg", "repl", "update", "enable", "disable", "up", "down"}
)


def _ip_changes(seen: Seen) -> bool:
    texts = seen.texts
    if seen.has("-batch", "-b") or (texts[1:2] == ["s"] and {"up", "down"} & set(texts[2:])):
        return True
    return any(
        text in _IP_CHANGES for text in texts[1:3] if text != "a" or texts[0] not in {"a", "addr", "address"}
    ) and (
        len(texts) > 1 and texts[1] not in {"show", "list", "ls", "get", "lst", "monitor", "help", "save", "showdump"}
    )


_FIREWALL_READS = frozenset(
    {"-L", "-S", "-nL", "-Ln", "-nvL", "-vnL", "-Lnv", "-nLv", "-Lv", "-vL", "-C", "-V", "-h", "--list"}
    | {"--list-rules", "--check", "--version", "--help", "--list-all", "--list-all-zones", "--state", "--get-zones"}
    | {"--get-active-zones", "--get-default-zone", "--list-ports", "--list-services", "-s", "-si", "-sr", "-sa"}
    | {"-ss", "-sn", "-nvv"}
)
_FIREWALL_WORDS = frozenset(
    {"status", "list", "show", "version", "verbose", "numbered", "app", "--dry-run", "help", "info"}
)


def _firewall_reads(seen: Seen) -> bool:
    texts = [word.text for word in seen.words[1:]]
    if not texts:
        return not seen.name.endswith("-restore")
    first = seen.texts[:1]
    if (
        seen.name in {"ufw", "nft", "firewall-cmd", "pfctl", "ipset", "fail2ban-client"}
        and first
        and first[0] in _FIREWALL_WORDS
    ):
        return True
    return any(text in _FIREWALL_READS or re.fullmatch(r"-[nvxtL]*L[nvx]*", text) for text in texts)


_NETWORK_READS = frozenset(
    {"show", "status", "list", "s", "monitor", "help", "query", "statistics", "-a", "-s", "-n", "-rn", "-v", "-i"}
    | {"-e", "-h", "-V", "--version", "--help", "--json", "ping", "ip", "netcheck", "version", "get", "genkey"}
    | {"pubkey", "genpsk", "showconf", "whois"}
)


def _network_tool_reads(seen: Seen) -> bool:
    words = [word.text for word in seen.words[1:]]
    if seen.name == "ifconfig":
        return len(seen.operands) < 2
    if seen.name == "nmcli":
        verbs = seen.texts[1:2]
        return not verbs or (
            verbs[0] in {"show", "status", "list", "s", "monitor", "wifi"} and "connect" not in seen.texts
        )
    if seen.name in {"tc", "bridge", "iw"}:
        return _link_tool_reads(seen)
    if seen.name in {"networksetup", "scutil"}:
        return not words or words[0].startswith(
            ("-get", "-list", "-print", "--get", "--dns", "--proxy", "--nwi", "-version", "-show")
        )
    return not words or words[0] in _NETWORK_READS


_LINK_READS = frozenset({"show", "list", "ls", "info", "link", "get"})


def _link_tool_reads(seen: Seen) -> bool:
    """`tc qdisc show`, `iw dev NAME info`; what is done stands at one place, and names may be the same words."""
    if seen.name != "iw" and any(word.text.lstrip("-").startswith(("b", "force")) for _place, word in seen.dashed):
        return False  # from a file
    at = 2 if seen.name == "iw" and seen.texts[:1] and seen.texts[0] in {"dev", "phy", "wdev"} else 1
    return len(seen.texts) <= at or seen.texts[at] in _LINK_READS


def _scans_others(seen: Seen) -> bool:
    return any(UNKNOWN in word.text or not is_loopback(word) for word in seen.operands)


def _name_holds_output(seen: Seen) -> bool:
    """`ping $(whoami).example.com`: whoever keeps the names of example.com learns what was printed."""
    source = seen.command.source
    return ("$(" in source or "`" in source) and any(
        UNKNOWN in text and "." in text.strip(UNKNOWN) for text in seen.texts
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "name_holds_output": _name_holds_output,
    "stays_here": _stays_here,
    "own_route": _own_route,
    "curl_sends": _curl_sends,
    "curl_query_file": _curl_query_file,
    "wget_sends": _wget_sends,
    "httpie_sends": _httpie_sends,
    "httpie_stays_here": _httpie_stays_here,
    "names_metadata": _names_metadata,
    "device_of_network": _device_of_network,
    "fed_with_text": _fed_with_text,
    "netcat_only_looks": _netcat_only_looks,
    "netcat_runs": _netcat_runs,
    "ip_changes": _ip_changes,
    "firewall_reads": _firewall_reads,
    "network_tool_reads": _network_tool_reads,
    "scans_others": _scans_others,
}

NEEDS: dict[str, tuple[str, ...]] = {"curl_sends": (*_METHOD, *_SENDS, *_DATA), "curl_query_file": _DATA}
