"""Secrets that a command reads, prints or takes along."""

import re
from collections.abc import Callable

from signoff.policy.path_classes import CLASSES, may_be_of
from signoff.policy.paths import PathFacts
from signoff.policy.predicates.files import written
from signoff.policy.predicates.whole import (
    SENDERS,
    absolute,
    dumps_environment,
    per_command,
    per_script,
    per_text,
    prints_environment,
)
from signoff.policy.programs import program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Command, Script, Word

ONLY_NAME = frozenset(
    {"ls", "gls", "exa", "eza", "lsd", "stat", "file", "du", "find", "gfind", "fd", "fdfind", "tree", "realpath"}
    | {"readlink", "dirname", "basename", "touch", "mkdir", "rmdir", "chmod", "gchmod", "chown", "chgrp", "rm"}
    | {"unlink", "shred", "trash", "echo", "printf", "test", "[", "[[", "cd", "pushd", "set", "export", "source"}
    | {".", "true", ":", "which", "type", "wc", "sha256sum", "sha1sum", "md5sum", "shasum", "cksum", "b2sum", "ssh"}
    | {"ssh-add", "ssh-keygen", "ssh-copy-id", "mosh", "autossh", "sshfs", "env-cmd", "dotenv", "dotenvx"}
    | {"godotenv", "direnv", "dotenv-linter", "signoff", "locate", "cmp", "mktemp", "tail-f", "inotifywait"}
    | {"fswatch", "entr", "watchexec", "ssh-keyscan", "gpgconf", "xargs", "for", "logger"}
)
"""Programs that show no more of a file than that it is there, or that use a key for what it is made for."""

_USES = re.compile(
    r"-{1,2}[\w-]*(?:key|cert|env-?file|envfile|env|config|identity|credential|kubeconfig|ca|cacert|tls|ssl)[\w-]*",
    re.I,
)
"""Options whose value is a key or a settings file that the program works with."""

_MAX_OPTION_CHARS = 64
"""No option's name is longer."""

_GIT_SHOWS = frozenset(
    {"add", "stage", "show", "diff", "cat-file", "grep", "archive", "blame", "commit", "hash-object"}
)
_PUBLIC_ONLY = frozenset({"-q", "--quiet", "--silent", "-c", "--count", "-l", "--files-with-matches", "-L"})
_SEARCHERS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack"})
_COPIERS = frozenset({"cp", "gcp", "mv", "gmv", "install", "rsync", "scp", "ditto"})


KEEPS_SECRETS = re.compile(
    r"(?:~|/home/[^/]+|/Users/[^/]+|/root)(?:/\.(?:config|local/share|docker|kube|aws|azure|gnupg|ssh|password-store)|"
    r"/Library(?:/Application Support)?|/)*/?\Z"
)


_RECURSIVE = frozenset({"-r", "-R", "--recursive", "-rn", "-d"})


def _searches_secret_folder(seen: Seen) -> bool:
    """A search through all files of a home directory or a folder of settings, which shows the lines it finds."""
    recursive = seen.name in {"rg", "ag", "ack", "ugrep"} or seen.has_any(_RECURSIVE)
    if not recursive or seen.flags & _PUBLIC_ONLY:
        return False
    facts = seen.facts.paths
    for given in seen.operands[1:] or [Word(".")]:
        word = Word(absolute(given.text, seen.cwd)) if given.text[:1] == "." else given
        if KEEPS_SECRETS.match(word.text) or CLASSES["home"](word, seen.cwd, facts):
            return True
        if word.text in {"/", "/home", "/Users", "/root", "/proc"}:
            return True
    return False


_NAME_TESTS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename"})


def _finds_secret_for_program(seen: Seen) -> bool:
    """`find ~ -name 'id_*' -exec cat {} ;`: only what is looked for tells that secrets are read."""
    if not any(_shows_found(command, seen.name) for command in seen.script.commands):
        return False
    words = seen.command.words
    patterns = [words[place + 1].text for place, word in enumerate(words[:-1]) if word.text in _NAME_TESTS]
    if seen.name.startswith("fd"):
        patterns = [re.sub(r"[\\^$]", "", text) for text in seen.texts[:1]]
    return any(_is_secret(word, seen) for word in seen.operands) or any(map(names_secret_file, patterns))


def _shows_found(command: Command, finder: str) -> bool:
    """Whether a command may be told of what was found, and shows more of it than its name."""
    if program_name_of(command) in ONLY_NAME:
        return False
    carried = finder in command.chain or "xargs" in command.chain
    return carried or any(UNKNOWN in word.text for word in command.own_words[1:])


def names_secret_file(pattern: str) -> bool:
    """Whether a pattern for names is aimed at files that hold secrets."""
    names = (pattern.replace("*", ""), pattern.replace("*", "rsa"))
    return any(
        CLASSES["secret_file"](Word(folder + name.lstrip("/")), None, _NO_FACTS)
        for name in names
        if name
        for folder in ("", "/home/x/.ssh/" if "id_" in name else "")
    )


_NO_FACTS = PathFacts()

_ENV_OBJECTS = frozenset({"process.env", "import.meta.env", "Deno.env", "Bun.env"})
"""What code calls its environment; no files."""


_ENV_FILE = re.compile(r"(?:^|/)\.env[\w.]*\Z")
"""Projects share these by links."""


def _is_secret(word: Word, seen: Seen) -> bool:
    return word.text not in _ENV_OBJECTS and CLASSES["secret_file"](word, seen.cwd, seen.facts.paths)


@per_command
def may_name_secret(seen: Seen) -> bool:
    """Whether one of its words may be a file that holds secrets, and it may show more of it than its name."""
    if seen.name in ONLY_NAME or (seen.name == "git" and seen.texts[:1] and seen.texts[0] not in _GIT_SHOWS):
        return False
    return may_be_of("secret_file", seen.words, seen.cwd)


def _reads_secret(seen: Seen) -> bool:
    """Whether an operand is a secret file whose content the program sees, shows or takes along."""
    name, words = seen.name, seen.words
    if len(words) < 2 or not may_name_secret(seen):
        return False
    if name == "git":  # messages and the like are about files
        return any(_is_secret(word, seen) for word in seen.operands)
    found = [place for place in range(1, len(words)) if _is_secret(words[place], seen)]
    if name in _FILTERS and seen.operands and "/" not in seen.texts[0]:
        found = [place for place in found if words[place] is not seen.operands[0]]
    if not found:
        return False
    if name in {"ln", "gln"}:
        return any(not _ENV_FILE.search(words[place].text) for place in found)
    if name in _SEARCHERS:
        return not seen.flags & _PUBLIC_ONLY and any(_is_secret(word, seen) for word in seen.operands[1:])
    if name in _COPIERS:
        return any(_is_secret(word, seen) for word in _sources(seen))
    targets = {word.text for word in written(seen)}
    return any(_shows(words, place) and words[place].text not in targets for place in found)


_FILTERS = frozenset({"jq", "yq", "gojq", "jaq"})
"""Their first operand is a filter: `.token` is a field."""


def _sources(seen: Seen) -> list[Word]:
    return seen.operands if seen.has("-t", "--target-directory") else seen.operands[:-1]


def _shows(words: tuple[Word, ...], place: int) -> bool:
    """Whether the secret at this place is content, and not a key or a settings file that an option names."""
    text = words[place].text
    if text.startswith("-"):
        name = text.partition("=")[0][:_MAX_OPTION_CHARS]
        return "@" in text or text[:2] == "-T" or (bool(_READS.fullmatch(name)) and not _USES.fullmatch(name))
    before = words[place - 1].text
    return text.startswith("@") or not (
        before in _OUTPUTS or (len(before) <= _MAX_OPTION_CHARS and _USES.fullmatch(before))
    )


_READS = re.compile(
    r"--(?!\S*(?:pass|token|secret|auth|netrc|cookie|login|ignore|exclude|output))"
    r"(?:[\w-]{1,32}-)?(?:files?|input|infile|from|data|body|list)"
)
"""Long options whose file is read for what is in it."""


_OUTPUTS = frozenset({"-o", "-out", "-O", "--out", "--output"})
"""Options whose value is written and not read."""


_STEM = (
    r"(?:[A-Za-z0-9_]*_)?(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|PASS|PAT|CREDENTIALS?|APIKEY|SECRET_?KEY"
    r"|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|ENCRYPTION_KEY|SIGNING_KEY|SIGNOFF_KEY|AUTH)"
)
_VARIABLE = (
    rf"{_STEM}"
    r"(?:_(?!(?:HOSTS?|UR[LI]|FILE|PATH|DIR|NAME|PORT|TYPE|COUNT|LEN|LENGTH|SIZE|TTL|MODE|ENDPOINT|EXPIRY|LIMIT|FORMAT"
    r"|METHOD|SERVER|SERVICE|DOMAIN|ENABLED)(?![A-Za-z0-9_]))[A-Z0-9]{1,8})?"
)
SECRET_VARIABLE_NAME = re.compile(_VARIABLE)
"""The whole name of a variable that holds a secret."""

NAMES_SECRET_VARIABLE = re.compile(rf"\$(?:\{{!?{_VARIABLE}(?![A-Za-z0-9_]|:?\+)|{_VARIABLE}(?![A-Za-z0-9_]))")
"""A variable that holds a secret, as a shell expands it."""

_FILE_VARIABLE = rf"\$\{{?{_STEM}_(?:FILE|PATH|DIR)(?![A-Za-z0-9_])"
"""A variable whose value is the name of a file that holds a secret: harmless to print, but not to open."""

_NAMES_SECRET_FILE = re.compile(_FILE_VARIABLE)
_MORE_THAN_NAME = rf"\s*+(?!(?:{'|'.join(map(re.escape, sorted(ONLY_NAME)))})\s)"
_READ_INSIDE = re.compile(
    rf"\$\({_MORE_THAN_NAME}[^)`]{{0,200}}?{_FILE_VARIABLE}"
    rf"|`{_MORE_THAN_NAME}[^`]{{0,200}}?{_FILE_VARIABLE}[^`]*+`|(?P<other>`[^`]*+`)"
)
"""`$(<$TOKEN_FILE)`, `$(base64 $TOKEN_FILE)`: the secret itself, in place of the file's name."""

_CUT_SHORT = re.compile(r"\$\{(?:#[A-Za-z0-9_]+|[A-Za-z0-9_]++(?::?\+[^}$]*+|:\d+:\d))\}")
"""`${#TOKEN}`, `${TOKEN:+set}`, `${TOKEN:0:4}`: its length, whether it is set, a few letters of it."""

_QUOTED = re.compile(r"""(?P<kept>"(?:\\.|[^"\\])*")|'[^']*'|\\.""", re.S)
"""What keeps a dollar from being one: single quotes that stand in no others, and a backslash."""

_TAKES_SECRET = re.compile(
    r"--password-stdin|--with-token|--token-stdin|\blogin\b|\bsecret\b|--passphrase-fd|ssh-add|--stdin\b|\bgpg\b"
    r"|sha\d+sum|\bopenssl\b(?! s_client)|\bwc\b|\bkubectl\b|\bage\b|\bsops\b|\bcut -c ?1?-\d\b|\bmd5sum\b"
)
_SEARCH = re.compile(r"\bgrep\b")
_QUIETLY = re.compile(r" -\w*q")


def _prints_secret_variable(seen: Seen) -> bool:
    """`echo $API_TOKEN` to the terminal; not into a file, nor into a program that logs in with it."""
    if into_file(seen.command) or not _expanded(seen):
        return False
    return not _takes_secret(seen.script)


def _prints_named_file(seen: Seen) -> bool:
    """`cat $TOKEN_FILE` to the terminal: a program that shows the files it is given, and the name of such a file."""
    if into_file(seen.command) or _NAMES_SECRET_FILE.search(_unquoted(seen)) is None:
        return False
    return not _takes_secret(seen.script)


@per_script
def _takes_secret(script: Script) -> bool:
    """Whether a command of the text is fed what it logs in or encrypts with."""
    return any(command.fed and _takes(command.text) for command in script.commands)


def _takes(text: str) -> bool:
    if _TAKES_SECRET.search(text):
        return True
    search = _SEARCH.search(text)
    return search is not None and _QUIETLY.search(text, search.end()) is not None


def _prints_named_secret(seen: Seen) -> bool:
    """`printenv API_TOKEN`."""
    return any(re.fullmatch(_VARIABLE, word.text) for word in seen.operands)


_SEARCHED_SECRET = re.compile(
    r"token|secret|passw|passphrase|credential|(?:api|access|private).?key|(?:^|[_|(^])(?:key|pat|auth|pass)(?:[_|)=$]|$)",
    re.I,
)


def _searches_environment(seen: Seen) -> bool:
    """`env | grep -i token`: prints what the environment holds under such names."""
    if seen.flags & _PUBLIC_ONLY or seen.has("-v", "--invert-match") or not _fed_environment(seen):
        return False
    wanted = [*(value.text for value in seen.values("-e", "--regexp")), *seen.texts[:1]]
    return len(seen.texts) < 2 and any(_SEARCHED_SECRET.search(text) for text in wanted)


def _fed_environment(seen: Seen) -> bool:
    """Whether the pipe that ends here begins with the whole environment."""
    if seen.command.stdin or not dumps_environment(seen.script):
        return False
    commands = seen.script.commands
    place = next((at for at, command in enumerate(commands) if command is seen.command), 0)
    while place and commands[place].fed:
        place -= 1
    return prints_environment(commands[place])


_SHOWS_ALL = frozenset(
    {"sort", "gsort", "uniq", "cat", "tac", "nl", "less", "more", "most", "bat", "batcat", "tee", "head", "tail"}
    | {"column", "fmt", "fold", "rev", "base64", "xxd", "od", "hexdump", "gzip", "tr", "pr", "strings", "expand", "ts"}
)
"""Programs that hand on what they are fed, in whatever form; others choose from it."""


def _prints_whole_environment(seen: Seen) -> bool:
    """`env`, `printenv | sort`, `export -p`: every variable, so every secret among them; not into a file."""
    command, commands = seen.command, seen.script.commands
    if not prints_environment(command) or into_file(command):
        return False
    place = next((at for at, each in enumerate(commands) if each is command), len(commands))
    for following in commands[place + 1 :]:
        if not following.fed:
            break
        shows = program_name_of(following) in _SHOWS_ALL or _hands_all_on(following)
        if not shows or into_file(following):
            return False
    return True


_EVERYTHING = {
    **dict.fromkeys(("grep", "egrep", "ggrep", "rg"), frozenset({".", "", "=", "^", "$", ".*", "[A-Z]", "[a-z]"})),
    **dict.fromkeys(("awk", "gawk", "mawk"), frozenset({"1", "{print}", "{print $0}", "{ print }", "{ print $0 }"})),
    **dict.fromkeys(("sed", "gsed"), frozenset({"", "p"})),
    "xargs": frozenset({None, "echo", "printf"}),
}
"""What makes a program that chooses choose everything: its first operand, or none at all."""


def _hands_all_on(command: Command) -> bool:
    """`env | grep .`, `env | awk 1`, `env | xargs`."""
    given = _EVERYTHING.get(program_name_of(command))
    if given is None:
        return False
    texts = [word.text for word in command.words[1:]]
    if any(text in _PUBLIC_ONLY for text in texts):
        return False
    return next((text for text in texts if text[:1] != "-"), None) in given


def into_file(command: Command) -> bool:
    """Whether its output goes into a file and not to whoever reads the terminal."""
    return any(redirect.writes and redirect.target.text[:5] != "/dev/" for redirect in command.redirects)


def _names_secret_value(seen: Seen) -> bool:
    """`terraform output -raw db_password`: an output that is called a secret."""
    return any(_SECRET_NAME.fullmatch(text) is not None for text in seen.texts[1:])


_SECRET_NAME = re.compile(
    r"[\w./-]*(?:token|secret|password|passwd|passphrase|credentials?|(?:api|private|access|secret)_?key)", re.I
)
_TO_SECRET = rf"(?:(?!://)[^\s\"'$]|\$(?!\{{?{_VARIABLE}(?![A-Za-z0-9_])))*+\$"
"""A word on to the dollar of a secret variable."""

_ADDRESS_SECRET = re.compile(
    rf"://{_TO_SECRET}"
    rf"|(?<![^\s\"'])(?<!-u )(?<!-u[ =][\"'])(?<!--user )(?<!--user[ =][\"'])[\w.$][\w.:${{}}-]*+[/?]{_TO_SECRET}"
    rf"|(?<!\S)(?:-A|-e|--user-agent|--referer|--url|--url-query)[\s=]?[\"']?{_TO_SECRET}"
    rf"|(?<![^\s\"'])[\w.-]++=={_TO_SECRET}"
    rf"|(?<![^\s\"'])\$\{{?{_VARIABLE}\}}?\.[\w$]"
)
"""What an address is, with or without a scheme, with a secret in it; and what stands in the logs beside it."""
_QUERY_SECRET = re.compile(rf"(?<!\S)(?:-d|--data[\w-]*)[\s=]?[\"']?{_TO_SECRET}")


def _unquoted(seen: Seen) -> str:
    """The source without what a shell does not expand; empty where it expands nothing that is unknown."""
    source = seen.command.source
    if "$" not in source:
        return ""
    if not any(UNKNOWN in word.text for word in seen.words) and UNKNOWN not in (seen.command.stdin or ""):
        return ""
    return _CUT_SHORT.sub("", _QUOTED.sub(lambda match: match.group("kept") or "", source))


def _expanded(seen: Seen) -> str:
    """The source without what a shell does not expand, with secrets from files as variables; empty where it expands no
    secret."""
    plain = _unquoted(seen)
    if _NAMES_SECRET_FILE.search(plain):
        plain = _READ_INSIDE.sub(lambda match: match.group("other") or "$TOKEN", plain)
    return plain if NAMES_SECRET_VARIABLE.search(plain) or ("${!" in plain and _by_its_name(seen.script, plain)) else ""


_INDIRECT = re.compile(r"\$\{!(\w+)")


def _by_its_name(script: Script, plain: str) -> bool:
    """`x=API_TOKEN; echo ${!x}`: a secret by the name that another variable was given in the same text."""
    names = set(_INDIRECT.findall(plain))
    return any(
        name in names and SECRET_VARIABLE_NAME.fullmatch(value) is not None
        for command in script.commands
        for name, value in (*command.assignments, *(word.text.partition("=")[::2] for word in command.words[1:]))
    )


def _address_holds_secret(seen: Seen) -> bool:
    """A secret variable inside an address: it would stand in the logs of the other side."""
    source = _expanded(seen)
    if not source:
        return False
    asks_by_query = seen.name == "curl" and seen.has("-G", "--get")
    return bool(_ADDRESS_SECRET.search(source)) or (asks_by_query and bool(_QUERY_SECRET.search(source)))


def _name_holds_secret(seen: Seen) -> bool:
    """`ping $TOKEN.example.com`: whoever keeps the names of example.com, or answers there, learns it."""
    return bool(_expanded(seen))


_BEHIND_HOST = re.compile(rf"://[^\s\"'/@]*+@?[^\s\"'/@]*+/{_TO_SECRET}|://(?![^\s\"'/]*@){_TO_SECRET}")


def _remote_holds_secret(seen: Seen) -> bool:
    """`git ls-remote https://example.com/$TOKEN`; a secret before the `@` is what the other side asks for."""
    return bool(_BEHIND_HOST.search(_expanded(seen)))


def _environment_leaves(seen: Seen) -> bool:
    """A text that prints the environment and a program that sends what it cannot show."""
    if seen.name not in SENDERS or not dumps_environment(seen.script):
        return False
    return (seen.command.fed and seen.command.stdin is None) or any(UNKNOWN in word.text for word in seen.words[1:])


def _reads_process_memory(seen: Seen) -> bool:
    texts = [text for text in seen.texts if text[:6] == "/proc/"]
    return any(_PROCESS_MEMORY.match(text) is not None for text in texts)


_PROCESS_MEMORY = re.compile(r"/proc/[^/]+/(?:mem|maps|environ|auxv|fd)(?:/|\Z)")


def _sends_secrets_read(seen: Seen) -> bool:
    """A sender that is fed, in a text one of whose commands was given a secret file."""
    return seen.command.fed and seen.command.stdin is None and _secret_given(seen)


@per_text
def _secret_given(seen: Seen) -> bool:
    facts = seen.facts.paths
    return any(
        program_name_of(command) not in ONLY_NAME
        and any(CLASSES["secret_file"](word, command.cwd, facts) for word in command.own_words[1:])
        for command in seen.script.commands
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "reads_secret": _reads_secret,
    "names_secret": _names_secret_value,
    "searches_environment": _searches_environment,
    "searches_secret_folder": _searches_secret_folder,
    "finds_secret_for_program": _finds_secret_for_program,
    "prints_secret_variable": _prints_secret_variable,
    "prints_named_file": _prints_named_file,
    "prints_named_secret": _prints_named_secret,
    "address_holds_secret": _address_holds_secret,
    "name_holds_secret": _name_holds_secret,
    "remote_holds_secret": _remote_holds_secret,
    "prints_whole_environment": _prints_whole_environment,
    "environment_leaves": _environment_leaves,
    "reads_process_memory": _reads_process_memory,
    "sends_secrets_read": _sends_secrets_read,
}

NEEDS: dict[str, Callable[[Seen], bool]] = {"reads_secret": may_name_secret}
