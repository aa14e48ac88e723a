"""Checks of a call by name, for what the fields of a rule cannot say."""

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from signoff.policy import graphql, sql
from signoff.policy.python.model import Call, Local, PythonScript, Ref, Seq, Table, Value, Values, text_of
from signoff.policy.seen import OwnFacts
from signoff.policy.shell.model import UNKNOWN

_MAX_TEXTS = 400
"""As many texts of one call are looked at."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.I)
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FORGES = re.compile(
    r"//(?:api\.github\.com|[^/]*gitlab[^/]*/api/|api\.bitbucket\.org|codeberg\.org/api/|[^/]+/api/v[134]/)"
)
_MAX_STATEMENT_CHARS = 8_192
"""Longer statements are not read but searched for single words: reading takes 0.7 microseconds a character."""

_DESTRUCTIVE_WORD = re.compile(r"\b(?:drop|truncate|delete|purge|xp_cmdshell|program)\b", re.I)
_WORLD_WRITABLE = 0o002
_SET_ID = 0o6000


class Seen(msgspec.Struct, frozen=True):
    """One call as checks see it."""

    call: Call
    script: PythonScript
    facts: OwnFacts

    def texts(self) -> Iterator[str]:
        """All texts among the arguments, those inside of lists and dictionaries too."""
        todo: list[Value] = [value for row in self.call.args for value in row]
        todo.extend(value for _name, row in self.call.keywords for value in row)
        count = 0
        while todo and count < _MAX_TEXTS:
            count += 1
            value = todo.pop()
            if isinstance(value, Seq):
                todo.extend(value.items)
            elif isinstance(value, Table):
                todo.extend(item for _key, item in value.items)
            elif isinstance(value, Ref) and value.made is not None and value.name != "pathlib.Path":
                todo.extend(value.made)
            else:
                yield text_of(value)


def _mode(seen: Seen) -> Values:
    """The mode a file is opened with."""
    place = 0 if seen.call.name.endswith("Path.open") or seen.call.name == "?.open" else 1
    return seen.call.argument(place, "mode") or ("r",)


def _writes(seen: Seen) -> bool:
    return any(set("wax+") & set(text_of(mode)) or text_of(mode) == UNKNOWN for mode in _mode(seen))


def _reads(seen: Seen) -> bool:
    return any("r" in text_of(mode) or "+" in text_of(mode) or text_of(mode) == UNKNOWN for mode in _mode(seen))


def _not_literal(seen: Seen) -> bool:
    """The text to run is only known when the code runs."""
    call = seen.call
    if call.name in _TIMES:
        given = [call.argument(0, "stmt"), call.argument(1, "setup")]
        return any(_is_computed(values) and not _is_function(values) for values in given if values is not None)
    values = call.argument(0, "source") or call.argument(None, "statement")
    return values is None or _is_computed(values)


_TIMES = frozenset({"timeit.timeit", "timeit.repeat", "timeit.Timer"})


def _is_computed(values: Values) -> bool:
    return any(not isinstance(value, str) or UNKNOWN in value for value in values)


def _is_function(values: Values) -> bool:
    """A function of the code itself, which is looked at where it stands."""
    return all(isinstance(value, Local) for value in values)


def _local_file(seen: Seen) -> bool:
    """A file of the project, named in the code."""
    values = seen.call.argument(0) or ()
    return bool(values) and all(_is_local(value) for value in values)


_DATA_NAME = re.compile(
    r"\.(?:pkl|pickle|p|joblib|jl|pt|pth|bin|ckpt|np[yz]|model|sav|dump|dat|data|cache|db|shelve|marshal)"
    r"(?:\.(?:gz|bz2|xz|z|zst))?\Z",
    re.I,
)


def _local_data(seen: Seen) -> bool:
    """A file of the project, named in the code, with the name of data: projects load their own all the time."""
    values = seen.call.argument(0) or ()
    return _local_file(seen) and all(_DATA_NAME.search(_file_named(value)) is not None for value in values)


def _file_named(value: Value) -> str:
    if isinstance(value, Ref) and value.name in {"open", "pathlib.Path.open"}:
        return _file_named(value.of if value.name != "open" else (value.made or (UNKNOWN,))[0])
    return text_of(value)


def _is_local(value: Value) -> bool:
    if isinstance(value, Ref) and value.name in {"open", "pathlib.Path.open"}:
        inner = value.of if value.name != "open" else (value.made or (UNKNOWN,))[0]
        return _is_local(inner)
    text = text_of(value)
    return bool(text) and UNKNOWN not in text and not text.startswith(("/", "~", "..")) and not _SCHEME.match(text)


def _temporary(seen: Seen) -> bool:
    """What the code itself made with tempfile."""
    plain = seen.call.name.startswith(("os.", "shutil."))
    values = (seen.call.argument(0, "path") if plain or not seen.call.of else seen.call.of) or ()
    return bool(values) and all(_is_temporary(value) for value in values)


def _is_temporary(value: Value) -> bool:
    while isinstance(value, Ref):
        if value.name.startswith("tempfile."):
            return not value.name.startswith("tempfile.gettempdir")
        inner = value.made[0] if value.name == "pathlib.Path" and value.made else value.of
        if inner is value:
            break
        value = inner
    return False


# Addresses


def _addresses(seen: Seen) -> list[str]:
    found: list[str] = []
    call = seen.call
    for values in (call.argument(0, "url"), call.argument(1, "url"), call.argument(None, "base_url"), call.of):
        for value in values or ():
            if isinstance(value, Ref) and value.made:
                value = value.made[0]  # noqa: PLW2901  # a request, a session or a connection made for an address
            text = text_of(value)
            if isinstance(value, str) and (_SCHEME.match(text) or text.startswith(UNKNOWN)):
                found.append(text)
    return found


def _loopback(seen: Seen) -> bool:
    """All addresses are those of this host."""
    addresses = _addresses(seen)
    return bool(addresses) and all(_is_loopback_url(text) for text in addresses)


def _is_loopback_url(text: str) -> bool:
    try:
        return _is_loopback_host(urlsplit(text).hostname or "")
    except ValueError:
        return False


def _is_loopback_host(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _loopback_socket(seen: Seen) -> bool:
    """A socket's address of this host, or a file's."""
    values = seen.call.argument(0, "address") or ()
    return bool(values) and all(_is_loopback_pair(value) for value in values)


def _is_loopback_pair(value: Value) -> bool:
    if isinstance(value, Seq) and value.items:
        return _is_loopback_host(text_of(value.items[0]))
    text = text_of(value)
    return UNKNOWN not in text and not isinstance(value, Seq | Ref) and text.startswith(("/", "\0", "."))


def _method(seen: Seen) -> str:
    """The method of a request, upper case; empty where it only reads."""
    name = seen.call.name
    if name.startswith("urllib.request."):
        return _urllib_method(seen.call) if name.endswith((".urlopen", ".Request", ".build_opener.open")) else ""
    last = name.rpartition(".")[2].upper()
    if last in _CHANGING:
        return last
    if last not in {"REQUEST", "STREAM", "PUTREQUEST", "BUILD_REQUEST"}:
        return ""
    texts = [text_of(value).upper() for value in seen.call.argument(0, "method") or ()]
    return next((text for text in texts if text in _CHANGING or UNKNOWN in text), "")


def _urllib_method(call: Call) -> str:
    methods = [text_of(value).upper() for name, values in call.keywords if name == "method" for value in values]
    if methods:
        return next((text for text in methods if text in _CHANGING or UNKNOWN in text), "")
    data = call.argument(1, "data")
    return "POST" if data is not None and data != (None,) and not call.loose else ""


def _changes_something(seen: Seen) -> bool:
    """A request with a method that changes something; one that only asks a GraphQL service does not."""
    if not _method(seen):
        return False
    return _graphql(seen) is not False


def _graphql(seen: Seen) -> bool | None:
    """Whether a GraphQL request changes something; None where this is no such request."""
    if not any("graphql" in text for text in _addresses(seen)):
        return None
    found = [
        graphql.changes(text) if len(text) <= _MAX_STATEMENT_CHARS else "mutation" in text
        for text in seen.texts()
        if "{" in text
    ]
    if True in found:
        return True
    return False if found and None not in found else None


def _to_forge(seen: Seen) -> bool:
    """The address is that of a service that keeps repositories."""
    return any(_FORGES.search(text) for text in _addresses(seen))


# Values


def is_secret_name(name: str) -> bool:
    """Whether a variable is named like one that holds a secret."""
    words = set(re.split(r"[^A-Z0-9]+", name.upper()))
    if words & {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "CREDENTIALS", "PASSPHRASE", "PAT"}:
        return True
    return "KEY" in words and bool(words & {"API", "PRIVATE", "ACCESS", "SECRET", "SIGNING", "ENCRYPTION"})


def _opens_to_all(seen: Seen) -> bool:
    """A mode that lets everybody write, or run the file as its owner."""
    place = 0 if seen.call.name.endswith("Path.chmod") else 1
    modes = seen.call.argument(place, "mode") or ()
    return any(isinstance(mode, int) and mode & (_WORLD_WRITABLE | _SET_ID) for mode in modes)


def _harmless_signal(seen: Seen) -> bool:
    """Signal 0 only asks whether the process is there."""
    return seen.call.argument(1, "signal") == (0,)


def _own_process(seen: Seen) -> bool:
    """The process is the code's own."""
    values = seen.call.argument(0) or ()
    own = {"os.getpid", "os.getpgrp", "subprocess.Popen.pid", "multiprocessing.Process.pid"}
    return bool(values) and all(isinstance(value, Ref) and value.name in own for value in values)


def _everything(seen: Seen) -> bool:
    """Every process there is, or the gateway's."""
    values = seen.call.argument(0) or ()
    pid = seen.facts.pid
    return any(value == -1 or (pid is not None and value in {pid, -pid}) for value in values if isinstance(value, int))


def _safe_loader(seen: Seen) -> bool:
    """A loader of YAML that makes plain values only."""
    loader = seen.call.argument(1, "Loader") or ()
    return bool(loader) and all(isinstance(value, Ref) and "Safe" in value.name for value in loader)


def _clears(seen: Seen) -> bool:
    """A virtual environment in whose place everything is deleted first."""
    clear = seen.call.argument(3 if seen.call.name == "venv.create" else 1, "clear")
    return (clear is not None and clear != (False,)) or any("--clear" in text for text in seen.texts())


def _replaces_table(seen: Seen) -> bool:
    """A table that is there already is dropped first."""
    return any(text_of(value) in {"replace", UNKNOWN} for value in seen.call.argument(3, "if_exists") or ())


def _weights_only(seen: Seen) -> bool:
    return seen.call.argument(None, "weights_only") == (True,)


def _allows_pickle(seen: Seen) -> bool:
    return seen.call.argument(2, "allow_pickle") == (True,)


def _command_unknown(seen: Seen) -> bool:
    return seen.call.command == "unknown"


def _unknown_name(seen: Seen) -> bool:
    """A module whose name is only known when the code runs."""
    values = seen.call.argument(0, "name")
    return values is None or any(not isinstance(value, str) or UNKNOWN in value for value in values)


def _destructive_sql(seen: Seen) -> bool:
    return any(_is_destructive(text) for text in seen.texts() if text != UNKNOWN)


def _is_destructive(text: str) -> bool:
    if len(text) > _MAX_STATEMENT_CHARS:
        return bool(_DESTRUCTIVE_WORD.search(text))
    return sql.effect(text) in {"destroys", "runs"}


def _hard_reset(seen: Seen) -> bool:
    """Words of git that drop work, or the arguments that do."""
    if seen.call.argument(None, "working_tree") == (True,):
        return True
    texts = set(seen.texts())
    return bool(texts & {"--hard", "-f", "--force", "-fd", "-fdx", "-D"})


def _names_no_file(seen: Seen) -> bool:
    """No file is named, or one that is looked for: it is the `.env` that is found."""
    values = seen.call.argument(0, "dotenv_path") or ()
    return all((isinstance(value, Ref) and value.name == "dotenv.find_dotenv") or value is None for value in values)


def _only_reads(seen: Seen) -> bool:
    """A path that is opened to read."""
    return seen.call.name.endswith(".open") and not _writes(seen)


def _loopback_host(seen: Seen) -> bool:
    """The host is named by an argument of its own, and it is this one."""
    values = seen.call.argument(0, "host") or ()
    return bool(values) and all(isinstance(value, str) and _is_loopback_host(value) for value in values)


def _open_to_all(seen: Seen) -> bool:
    """The address to listen at is not this host's own."""
    place = 1 if seen.call.name == "asyncio.start_server" else 0
    values = seen.call.argument(place, "host") or seen.call.argument(0, "address") or ()
    hosts = [value.items[0] if isinstance(value, Seq) and value.items else value for value in values]
    return any(isinstance(host, str) and UNKNOWN not in host and not _is_local_end(host) for host in hosts)


def _is_local_end(host: str) -> bool:
    return host.startswith(("/", "\0", ".")) or _is_loopback_host(host)


def _trusts_remote_code(seen: Seen) -> bool:
    trust = seen.call.argument(None, "trust_remote_code")
    return trust == (True,) or seen.call.name == "torch.hub.load"


def _anonymous_map(seen: Seen) -> bool:
    """Memory mapped from no file, or from one for reading only."""
    reading = seen.call.argument(None, "access")
    only = reading is not None and all(isinstance(v, Ref) and v.name == "mmap.ACCESS_READ" for v in reading)
    return seen.call.name == "mmap.mmap" and (seen.call.argument(0) == (-1,) or only)


_CODE_VARIABLES = frozenset(
    {"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "BASH_ENV", "ENV", "PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_SSH"}
    | {"GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "EDITOR", "VISUAL", "BROWSER", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT"}
    | {"JAVA_TOOL_OPTIONS", "PATH", "SSH_ASKPASS", "GIT_ASKPASS", "LESSOPEN", "MANPAGER"}
)
"""Variables that name programs which others start, or code that they load."""


def _code_variable(seen: Seen) -> bool:
    names = [name for name, _values in seen.call.keywords]
    for value in seen.call.argument(0) or ():
        names += [key for key, _value in value.items] if isinstance(value, Table) else [text_of(value)]
    return any(name.startswith(("LD_", "DYLD_", "GIT_CONFIG")) or name in _CODE_VARIABLES for name in names)


CHECKS: dict[str, Callable[[Seen], bool]] = {
    "writes": _writes,
    "reads": _reads,
    "not_literal": _not_literal,
    "local_file": _local_file,
    "local_data": _local_data,
    "clears": _clears,
    "temporary": _temporary,
    "loopback": _loopback,
    "loopback_socket": _loopback_socket,
    "changes_something": _changes_something,
    "to_forge": _to_forge,
    "opens_to_all": _opens_to_all,
    "harmless_signal": _harmless_signal,
    "own_process": _own_process,
    "everything": _everything,
    "safe_loader": _safe_loader,
    "replaces_table": _replaces_table,
    "weights_only": _weights_only,
    "allows_pickle": _allows_pickle,
    "command_unknown": _command_unknown,
    "unknown_name": _unknown_name,
    "destructive_sql": _destructive_sql,
    "hard_reset": _hard_reset,
    "names_no_file": _names_no_file,
    "only_reads": _only_reads,
    "loopback_host": _loopback_host,
    "open_to_all": _open_to_all,
    "trusts_remote_code": _trusts_remote_code,
    "anonymous_map": _anonymous_map,
    "code_variable": _code_variable,
}
