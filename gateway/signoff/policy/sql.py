"""Whether SQL text only reads: a tokenizer for what shells hand to database clients, of no one dialect."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from signoff.policy.shell import UNKNOWN

Effect = Literal["reads", "writes", "destroys", "runs", "unknown"]
"""What a text does: `destroys` loses data for good, `runs` starts a program or touches files of the server."""

_RANK: tuple[Effect, ...] = ("reads", "unknown", "writes", "destroys", "runs")

_TOKEN = re.compile(
    r"""'(?:[^'\\]|''|\\.)*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[A-Za-z_ ]+\]"""
    r"""|--[^\n]*|\#(?![>-])[^\n]*|/\*(?!!).*?(?:\*/|\Z)"""
    r"""|/\*!\d*|\*/|\$(\w*)\$.*?(?:\$\1\$|\Z)|\\[^\s\\;]+|[A-Za-z_][\w$]*|[;()=,*]|\s+|.""",
    re.S,
)
_WORD = re.compile(r"[A-Z_]+")
_READ_STARTS = frozenset(
    {
        "SELECT",
        "SHOW",
        "DESCRIBE",
        "DESC",
        "VALUES",
        "TABLE",
        "USE",
        "BEGIN",
        "START",
        "COMMIT",
        "ROLLBACK",
        "END",
        "SAVEPOINT",
        "RELEASE",
    }
    | {
        "EXPLAIN",
        "WITH",
        "PRAGMA",
        "HELP",
        "LIST",
        "CHECK",
        "FETCH",
        "DECLARE",
        "CLOSE",
        "DEALLOCATE",
        "EXISTS",
        "SET",
        "ANALYZE",
        "STATUS",
        "PRINT",
        "GO",
    }
)
_WRITES_INSIDE = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"})
_DESTROYING = frozenset({"DROP", "TRUNCATE", "PURGE"})
_RUNNING = frozenset(
    {
        "XP_CMDSHELL",
        "SP_OACREATE",
        "SYS_EXEC",
        "SYS_EVAL",
        "LO_IMPORT",
        "LO_EXPORT",
        "PG_READ_FILE",
        "PG_READ_BINARY_FILE",
        "PG_LS_DIR",
        "LOAD_FILE",
    }
)
_RUNNING_MORE = frozenset(
    {
        "LOAD_EXTENSION",
        "PG_EXECUTE_SERVER_PROGRAM",
        "DBLINK",
        "DBLINK_EXEC",
        "WRITEFILE",
        "READFILE",
        "EDIT",
        "PG_WRITE_FILE",
        "PG_FILE_WRITE",
    }
)
_ENDING = frozenset(
    {
        "PG_TERMINATE_BACKEND",
        "PG_CANCEL_BACKEND",
        "PG_SWITCH_WAL",
        "PG_PROMOTE",
        "PG_RELOAD_CONF",
        "SETVAL",
        "NEXTVAL",
        "PG_DROP_REPLICATION_SLOT",
        "LO_UNLINK",
        "LO_PUT",
        "LO_TRUNCATE",
        "LO_FROM_BYTEA",
    }
)
_READ_PRAGMAS = frozenset(
    {
        "TABLE_INFO",
        "TABLE_XINFO",
        "TABLE_LIST",
        "INDEX_LIST",
        "INDEX_INFO",
        "DATABASE_LIST",
        "FOREIGN_KEY_LIST",
        "INTEGRITY_CHECK",
        "QUICK_CHECK",
    }
    | {"FOREIGN_KEY_CHECK", "COMPILE_OPTIONS", "COLLATION_LIST", "FUNCTION_LIST", "PRAGMA_LIST", "MODULE_LIST"}
)
_READ_META = re.compile(
    r"\\(?:d\S*|l\+?|z|conninfo|c|connect|x|timing|q|quit|h|help|\?|echo|qecho|warn|pset|a|t|H|f|encoding|sf\+?|sv\+?|p|r|set|unset|if|elif|else|endif|watch|G|g|s|copyright|errverbose)\Z"
)
_READ_DOT = frozenset(
    {
        "tables",
        "schema",
        "headers",
        "header",
        "mode",
        "indexes",
        "indices",
        "databases",
        "quit",
        "exit",
        "help",
        "show",
        "dump",
        "width",
        "separator",
        "timer",
    }
    | {
        "nullvalue",
        "fullschema",
        "stats",
        "echo",
        "print",
        "eqp",
        "explain",
        "dbinfo",
        "lint",
        "changes",
        "bail",
        "version",
        "timeout",
        "sha3sum",
        "dbconfig",
        "limit",
    }
)


MAX_CHARS = 16 * 1024
"""Longer texts are not read: 14 ms (measured)."""


def effects(texts: Sequence[str]) -> frozenset[Effect]:
    """The worst that each of the texts does; unknown where they are longer than is read."""
    if sum(map(len, texts)) > MAX_CHARS:
        return frozenset({"unknown"})
    return frozenset(map(effect, texts))


@lru_cache(maxsize=64)
def effect(text: str) -> Effect:
    """The worst that any statement of the text does; unknown where it is longer than is read."""
    if len(text) > MAX_CHARS:
        return "unknown"
    worst: Effect = "reads"
    for statement in _statements(text):
        found = _of_statement(statement)
        if _RANK.index(found) > _RANK.index(worst):
            worst = found
    return worst


def _statements(text: str) -> list[list[str]]:
    """The significant tokens of each statement, names in capitals; strings and comments are left out."""
    found: list[list[str]] = [[]]
    lines_end_it = False
    for match in _TOKEN.finditer(text):
        part = match.group()
        if part.isspace():
            if lines_end_it and "\n" in part:
                found.append([])
                lines_end_it = False
            continue
        first = part[0]
        if (
            first in "'\"`"
            or part[:2] in {"--", "/*", "*/"}
            or (first == "#" and len(part) > 1)
            or (first == "$" and len(part) > 1)
        ):
            if first == "$" and found[-1][:1] == ["DO"]:
                found[-1] += _WORD.findall(part.upper())  # the body of a block that runs at once
            elif first in "'\"`$" and found[-1]:
                found[-1].append("''")
            continue
        if part == ";":
            found.append([])
        elif first == "\\":
            found += [[part]]
            lines_end_it = True
        else:
            if first == "." and not found[-1]:
                lines_end_it = True
            found[-1].append(part.upper() if first.isalpha() or first == "_" else part)
    return [statement for statement in found if statement]


def _of_statement(tokens: list[str]) -> Effect:
    first = tokens[0]
    if first[0] == "\\":
        return _of_meta(first)
    if first == ".":
        return _of_dot(tokens)
    names = frozenset(tokens)
    if any(UNKNOWN in part for part in tokens):
        return "destroys" if names & _DESTROYING else "unknown"
    if names & (_RUNNING | _RUNNING_MORE) or ("PROGRAM" in names and first == "COPY"):
        return "runs"
    if first in {"SYSTEM", "SOURCE"} and len(tokens) > 1:
        return "runs"
    if first in _READ_STARTS:
        return _of_reading(first, tokens, names)
    return _of_writing(first, tokens, names)


def _of_meta(part: str) -> Effect:
    """Commands of psql that start with a backslash."""
    if _READ_META.match(part):
        return "reads"
    return "runs"


def _of_dot(tokens: list[str]) -> Effect:
    """Commands of sqlite3 that start with a full stop."""
    return "reads" if tokens[1:] and tokens[1].lower() in _READ_DOT else "runs"


def _of_reading(first: str, tokens: list[str], names: frozenset[str]) -> Effect:
    if first == "EXPLAIN":
        rest = [
            part
            for part in tokens[1:]
            if part
            not in {"(", ")", "ANALYZE", "VERBOSE", "BUFFERS", "FORMAT", "JSON", "QUERY", "PLAN", ",", "EXTENDED", "="}
        ]
        if "ANALYZE" not in names or not rest or rest[0] not in _WRITES_INSIDE | {"WITH", "CREATE"}:
            return "reads"
        return _of_statement(rest)
    if first == "PRAGMA":
        return "writes" if "=" in names and not names & _READ_PRAGMAS else "reads"
    if first == "SET":
        return "writes" if names & {"GLOBAL", "PERSIST", "PASSWORD", "PERSIST_ONLY"} else "reads"
    if names & {"OUTFILE", "DUMPFILE"}:
        return "runs"
    if names & _ENDING:
        return "writes"
    if first == "SELECT" and "INTO" in names:
        return "writes"
    if first == "WITH":
        return _of_inner_writes(tokens, names)
    return "reads"


def _of_inner_writes(tokens: list[str], names: frozenset[str]) -> Effect:
    """`WITH gone AS (DELETE ...) SELECT ...`."""
    if not names & _WRITES_INSIDE:
        return "reads"
    at = next(place for place, part in enumerate(tokens) if part in _WRITES_INSIDE)
    return _of_writing(tokens[at], tokens[at:], names)


def _of_writing(first: str, tokens: list[str], names: frozenset[str]) -> Effect:
    if first in _DESTROYING or (first == "ALTER" and "DROP" in names):
        return "destroys"
    if first in {"DELETE", "UPDATE"}:
        return "writes" if "WHERE" in names and not _always_true(tokens) else "destroys"
    if first == "COPY":
        return "reads" if "TO" in names and "STDOUT" in names else "writes"
    if first in {"LOAD", "BULK"}:
        return "runs" if "EXTENSION" in names else "writes"
    if first in {"FLUSH", "KILL", "SHUTDOWN", "RESET"}:
        return "destroys" if first == "SHUTDOWN" else "writes"
    if names & _DESTROYING and first in {"DO", "CREATE", "EXEC", "EXECUTE", "CALL", "BEGIN"}:
        return "destroys"
    return "writes"


def _always_true(tokens: list[str]) -> bool:
    """`WHERE 1=1` and `WHERE true` leave nothing out."""
    rest = [part for part in tokens[tokens.index("WHERE") + 1 :] if part not in {"(", ")"}]
    return rest in (["1", "=", "1"], ["TRUE"], ["1"])
