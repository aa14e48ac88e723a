"""What rules about the clients of Redis and MongoDB ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable

from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_REDIS_READS = frozenset(
    {
        "get",
        "mget",
        "keys",
        "scan",
        "info",
        "ping",
        "ttl",
        "pttl",
        "exists",
        "type",
        "strlen",
        "hget",
        "hgetall",
        "hkeys",
        "hlen",
        "hscan",
        "hexists",
        "hvals",
        "hmget",
        "hstrlen",
    }
    | {
        "lrange",
        "llen",
        "lindex",
        "lpos",
        "smembers",
        "scard",
        "sismember",
        "smismember",
        "sscan",
        "srandmember",
        "sinter",
        "sunion",
        "sdiff",
        "zrange",
        "zrangebyscore",
        "zrangebylex",
    }
    | {
        "zrevrange",
        "zrevrangebyscore",
        "zcard",
        "zscore",
        "zmscore",
        "zcount",
        "zscan",
        "zrank",
        "zrevrank",
        "dbsize",
        "memory",
        "object",
        "monitor",
        "slowlog",
        "lastsave",
        "time",
        "echo",
    }
    | {
        "randomkey",
        "xrange",
        "xrevrange",
        "xlen",
        "xinfo",
        "xread",
        "xpending",
        "getrange",
        "bitcount",
        "getbit",
        "command",
        "latency",
        "role",
        "lolwut",
        "dump",
        "expiretime",
        "pexpiretime",
    }
    | {
        "geopos",
        "geodist",
        "georadius_ro",
        "geosearch",
        "pfcount",
        "touch",
        "wait",
        "hello",
        "auth",
        "select",
        "help",
        "json.get",
        "ft.search",
        "ft.info",
        "ts.get",
        "ts.range",
        "pubsub",
        "subscribe",
        "psubscribe",
    }
)
_REDIS_GROUPS = {
    "config": frozenset({"get", "help"}),
    "client": frozenset({"list", "info", "id", "getname", "help"}),
    "cluster": frozenset({"info", "nodes", "slots", "shards", "myid", "keyslot", "links", "help"}),
    "acl": frozenset({"list", "whoami", "users", "cat", "getuser", "log", "help"}),
    "script": frozenset({"exists", "help"}),
    "module": frozenset({"list", "help"}),
    "function": frozenset({"list", "stats", "help", "dump"}),
    "slowlog": frozenset({"get", "len", "help"}),
    "memory": frozenset({"usage", "stats", "doctor", "help"}),
    "latency": frozenset({"latest", "history", "doctor", "graph", "help"}),
}
_REDIS_GRAVE = frozenset(
    {
        "flushall",
        "flushdb",
        "shutdown",
        "debug",
        "swapdb",
        "failover",
        "replicaof",
        "slaveof",
        "eval",
        "evalsha",
        "fcall",
        "migrate",
        "restore",
        "module",
        "script",
        "function",
        "acl",
    }
)


def _redis_commands(seen: Seen) -> list[list[str]]:
    """The commands that redis-cli is told: its operands, or the lines of its input."""
    if seen.operands:
        return [seen.texts]
    lines = (seen.command.stdin or "").splitlines()
    return [line.split() for line in lines if line.strip()]


def _redis_reads(seen: Seen) -> bool:
    if seen.has("--eval", "--pipe", "--cluster", "--replica", "--functions-rdb", "-x", "-X"):
        return False
    commands = _redis_commands(seen)
    if not commands:
        return not seen.command.fed or seen.has(
            "--version", "--help", "--stat", "--bigkeys", "--memkeys", "--hotkeys", "--latency", "--scan", "--rdb"
        )
    return all(map(_redis_read, commands))


def _redis_read(words: list[str]) -> bool:
    name = words[0].casefold()
    group = _REDIS_GROUPS.get(name)
    if group is not None:
        return len(words) > 1 and words[1].casefold() in group
    return name in _REDIS_READS


def _redis_grave(seen: Seen) -> bool:
    """Empties databases, stops the server, runs scripts or changes how the server is set up."""
    if seen.has("--eval"):
        return True
    commands = _redis_commands(seen)
    return any(
        words[0].casefold() in _REDIS_GRAVE
        or (
            words[0].casefold() == "config"
            and words[1:2] != []
            and words[1].casefold() in {"set", "rewrite", "resetstat"}
        )
        for words in commands
    )


_MONGO_CALL = re.compile(r"\.\s*([A-Za-z]\w*)\s*\(")
_MONGO_READS = frozenset(
    {
        "find",
        "findOne",
        "count",
        "countDocuments",
        "estimatedDocumentCount",
        "distinct",
        "aggregate",
        "explain",
        "limit",
        "skip",
        "sort",
        "pretty",
        "toArray",
        "forEach",
        "stats",
        "getIndexes",
        "dataSize",
        "storageSize",
    }
    | {
        "totalSize",
        "getCollectionNames",
        "getCollectionInfos",
        "getCollection",
        "getSiblingDB",
        "getMongo",
        "getDBNames",
        "adminCommand",
        "version",
        "serverStatus",
        "hostInfo",
        "status",
        "conf",
        "hello",
        "isMaster",
        "projection",
        "hint",
    }
    | {
        "size",
        "map",
        "batchSize",
        "itcount",
        "hasNext",
        "next",
        "currentOp",
        "printReplicationInfo",
        "getName",
        "listCommands",
        "getUsers",
        "getRoles",
        "ping",
        "listDatabases",
        "getDB",
        "project",
        "maxTimeMS",
        "help",
        "length",
        "join",
        "filter",
        "stringify",
        "log",
    }
)
_MONGO_ADMIN = re.compile(r"(?:runCommand|adminCommand)\s*\(\s*(?:\{\s*)?['\"]?(\w+)")
_MONGO_ADMIN_READS = frozenset(
    {
        "ping",
        "listDatabases",
        "serverStatus",
        "buildInfo",
        "hostInfo",
        "isMaster",
        "hello",
        "dbStats",
        "collStats",
        "connectionStatus",
        "getParameter",
        "replSetGetStatus",
        "listCollections",
        "count",
        "explain",
        "top",
        "whatsmyuri",
    }
)
_MONGO_GRAVE = re.compile(
    r"\b(?:drop\w*|deleteMany|remove|shutdownServer|renameCollection|killOp|fsyncLock|compact|resync)\s*\(|\$out\b|\$merge\b"
)


_MONGO_COMPUTED = re.compile(r"\]\s*\(")
"""A function by a name in brackets, which may be worked out: `db["dr" + "op"]()`."""


def _mongo_code(seen: Seen) -> list[str]:
    code = [value.text for value in seen.values("--eval")]
    return code or ([seen.command.stdin] if seen.command.stdin is not None else [])


def _mongo_reads(seen: Seen) -> bool:
    code = _mongo_code(seen)
    if not code:
        return not seen.command.fed and (
            seen.has("--version", "--help", "-h") or not any(text.endswith(".js") for text in seen.texts)
        )
    return all(map(_mongo_code_reads, code))


def _mongo_code_reads(code: str) -> bool:
    if UNKNOWN in code or _MONGO_GRAVE.search(code) or _MONGO_COMPUTED.search(code):
        return False
    calls = set(_MONGO_CALL.findall(code)) - {"runCommand", "print", "printjson"}
    admin = _MONGO_ADMIN.findall(code)
    return calls <= _MONGO_READS and all(name in _MONGO_ADMIN_READS for name in admin)


def _mongo_grave(seen: Seen) -> bool:
    return any(_MONGO_GRAVE.search(code) for code in _mongo_code(seen))


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "redis_reads": _redis_reads,
    "redis_grave": _redis_grave,
    "mongo_reads": _mongo_reads,
    "mongo_grave": _mongo_grave,
}
