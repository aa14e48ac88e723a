"""What rules about database clients ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable

from signoff.policy import paths, sql
from signoff.policy.path_classes import CLASSES, text_classes
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word

_OPTIONS: dict[str, tuple[str, ...]] = {
    "psql": ("-c", "--command"),
    "pgcli": ("-c", "--command"),
    "mysql": ("-e", "--execute", "--init-command"),
    "mariadb": ("-e", "--execute", "--init-command"),
    "mycli": ("-e", "--execute"),
    "sqlite3": ("-cmd",),
    "sqlite": ("-cmd",),
    "duckdb": ("-c", "-s", "-cmd"),
    "clickhouse-client": ("-q", "--query"),
    "clickhouse": ("-q", "--query"),
    "cqlsh": ("-e", "--execute"),
    "cockroach": ("-e", "--execute"),
    "sqlcmd": ("-Q", "-q"),
    "usql": ("-c", "--command"),
    "snowsql": ("-q", "--query"),
    "trino": ("--execute",),
    "presto": ("--execute",),
    "hive": ("-e",),
    "beeline": ("-e",),
    "spark-sql": ("-e",),
    "impala-shell": ("-q", "--query"),
    "isql": (),
    "sqlplus": (),
    "litecli": ("-e", "--execute"),
    "wrangler": ("--command",),
    "turso": (),
    "bq": (),
    **dict.fromkeys(("vsql", "ysqlsh", "nzsql", "gsql", "yasql"), ("-c", "--command")),
    "osql": ("-Q", "-q"),
    "mclient": ("-s", "--statement"),
    "ksql": ("-e", "--execute"),
}
"""The options by which each client is given SQL."""

_BEHIND_OPERAND = {"sqlite3": 1, "sqlite": 1, "duckdb": 1, "litecli": 1, "turso": 3, "bq": 1, "db2": 0, "gsql": 0}
"""Clients whose operands behind so many others are SQL."""

_FILES = ("-f", "--file", "-i", "--input-file", "--queries-file", "-init", "--init")


def _texts(seen: Seen) -> list[str]:
    """The SQL that is known: in options, operands or standard input."""
    found = [value.text for value in seen.values(*_OPTIONS.get(seen.name, ()))]
    skip = _BEHIND_OPERAND.get(seen.name)
    if skip is not None and (seen.name != "bq" or seen.texts[:1] == ["query"]):
        found += seen.texts[skip:]
    if not found and seen.command.stdin is not None:
        found.append(seen.command.stdin)
    return found


def _effects(seen: Seen) -> frozenset[str]:
    return sql.effects(_texts(seen))


def _destroys(seen: Seen) -> bool:
    return bool(_effects(seen) & {"destroys"})


def _runs(seen: Seen) -> bool:
    if any(value.text.startswith("|") for value in seen.values("-o", "--output")):
        return True
    return "runs" in _effects(seen)


def _writes(seen: Seen) -> bool:
    effects = _effects(seen)
    return "writes" in effects and not effects & {"destroys", "runs"} and not _adds_here(seen)


_ADDS = re.compile(
    r"\s*(?:create\s+(?:temp(?:orary)?\s+)?(?:table|view|(?:unique\s+)?index)\b|insert\s+into\b"
    r"|copy\b[^']*\bto\s+'(?P<file>[^']+)'\s*(?:\([^']*\))?\s*\Z)",
    re.I,
)


_CHANGES_MORE = re.compile(r"\b(?:update|overwrite\w*)\b|^\s*\.", re.I | re.M)
"""`on conflict do update`, `copy ... (overwrite)`, which empties the folder first, and commands of the client."""
_ADDING_OPTIONS = frozenset(
    {
        "-c",
        "-s",
        "-csv",
        "-json",
        "-jsonlines",
        "-line",
        "-list",
        "-column",
        "-box",
        "-table",
        "-markdown",
        "-html",
        "-bail",
    }
    | {"-batch", "-echo", "-header", "-noheader", "-separator", "-newline", "-nullvalue"}
)
"""Options that run no more and open no other file."""


def _adds_here(seen: Seen) -> bool:
    """Tables and rows that are added to a database in memory or in a file of the project, or copied out into one."""
    if seen.name not in {"sqlite3", "sqlite", "duckdb"}:
        return False
    if not all(word.text.replace("--", "-") in _ADDING_OPTIONS for _place, word in seen.dashed):
        return False
    files = [word.text for word in seen.operands[:1] if word.text != ":memory:"]
    for part in (part for text in _texts(seen) for part in text.split(";")):
        if sql.effect(part) == "reads":
            continue
        found = _ADDS.match(part)
        if found is None or _CHANGES_MORE.search(part) is not None:
            return False
        files += [found["file"]] if found["file"] else []
    return all(_is_here(file, seen) for file in files)


_NO_PLAIN_FILE = re.compile(rf"^[~|-]|[:$%*?\\{UNKNOWN}]")
"""Names that stand for another place: `~/x`, `file:../x`, `md:x`, `$HOME/x`."""


def _is_here(file: str, seen: Seen) -> bool:
    """A path within the project or to a scratch file, that decides nothing."""
    if _NO_PLAIN_FILE.search(file) is not None:
        return False
    word, facts = Word(file), seen.facts.paths
    decides = text_classes(word, seen.cwd, facts) or paths.holds_own(word, seen.cwd, facts)
    return not CLASSES["outside"](word, seen.cwd, facts) and not decides


def _unknown_sql(seen: Seen) -> bool:
    """SQL from a file or a pipe that the text does not show, or with unknown parts outside of strings."""
    if "unknown" in _effects(seen):
        return True
    named = any(value.text not in {"-", "/dev/stdin"} for value in seen.values(*_FILES)) and seen.name not in {
        "bq",
        "sqlite3",
        "duckdb",
    }
    if named:
        return True
    if seen.command.stdin is None and not _texts(seen):
        return seen.command.fed or any("<" in redirect.operator for redirect in seen.command.redirects)
    return False


def _only_asks_client(seen: Seen) -> bool:
    """`psql -l`, `--version`: nothing is sent that changes anything."""
    return seen.has("-l", "--list", "--version", "-V", "--help", "-?", "-version", "-help")


def _opens_session(seen: Seen) -> bool:
    return not _texts(seen) and not _only_asks_client(seen) and not _unknown_sql(seen)


_NODE_READS = frozenset(
    {"info", "ring", "netstats", "tpstats", "tablestats", "cfstats", "describecluster", "gossipinfo", "describering"}
    | {"compactionstats", "proxyhistograms", "tablehistograms", "getendpoints", "listsnapshots", "statusgossip"}
)
"""What `nodetool` reports."""
_KAFKA_CHANGES = re.compile(r"--(?:a(?!ll-|t-)|cr|del|r)")
"""How options of Kafka's tools begin that change something; they may be shortened."""


def _admin_reads(seen: Seen) -> bool:
    """`mysqladmin status` and the others that report; `pg_ctl status`."""
    reads = {
        "ping",
        "list_queues",
        "list_exchanges",
        "list_bindings",
        "list_connections",
        "list_channels",
        "list_consumers",
        "list_vhosts",
        "cluster_status",
        "status",
        "version",
        "variables",
        "processlist",
        "extended-status",
        "health",
        "member list",
        "bucket list",
        "org list",
        "task list",
        "get",
        "endpoint",
        "list",
    }
    if seen.name.startswith("kafka-"):
        return seen.has("--list", "--describe") and not any(map(_KAFKA_CHANGES.match, seen.flags))
    if seen.name == "nodetool" and seen.texts[:1] and seen.texts[0] in _NODE_READS:
        return True
    return (bool(seen.texts) and (seen.texts[0] in reads or " ".join(seen.texts[:2]) in reads)) or seen.has(
        "--version", "--help", "-V"
    )


def _restores_to_text(seen: Seen) -> bool:
    """`pg_restore -l` and `-f -` print instead of restoring into a database."""
    return seen.has("-l", "--list", "--version", "--help") or (
        seen.has("-f", "--file") and not seen.has("-d", "--dbname")
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "sql_destroys": _destroys,
    "sql_runs": _runs,
    "sql_writes": _writes,
    "sql_unknown": _unknown_sql,
    "sql_session": _opens_session,
    "database_admin_reads": _admin_reads,
    "database_restores_to_text": _restores_to_text,
}
