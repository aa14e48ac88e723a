"""Code in other languages that stands inside a command: whether it does more than print, and what it starts.

What only prints is told by its words: every name in it must be one that can do no harm. Anything else asks.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from signoff.policy.path_classes import CLASSES
from signoff.policy.predicates.files import sort_of
from signoff.policy.predicates.program_options import values_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Code, Word
from signoff.policy.shell.embedded import shell_texts

MAX_CHARS = 4096
"""Longer code is no one-liner that prints something."""

_HARMLESS: dict[str, frozenset[str]] = {
    "javascript": frozenset(
        {"console", "require", "JSON", "Math", "Date", "Object", "Array", "String", "Number", "Boolean"}
        | {"process", "import", "true", "false", "null", "undefined", "typeof", "const", "let", "var", "if", "else"}
        | {"for", "of", "in", "new", "return", "parseInt", "parseFloat", "isNaN", "void", "Set", "Map", "RegExp"}
        | {"Intl", "BigInt", "encodeURIComponent", "decodeURIComponent", "Buffer", "async", "await", "from"}
    ),
    "ruby": frozenset(
        {"puts", "print", "p", "pp", "printf", "RUBY_VERSION", "RUBY_PLATFORM", "RUBY_ENGINE", "Time", "Date"}
        | {"require", "SecureRandom", "now", "today", "hex", "uuid", "base64", "to_s", "to_i", "to_a", "inspect"}
        | {"if", "else", "end", "do", "each", "map", "join", "split", "length", "size", "nil", "true", "false"}
        | {"Gem", "VERSION", "RbConfig", "CONFIG", "strip", "upcase", "downcase", "gsub", "sub", "reverse", "sort"}
        | {"sum", "min", "max", "first", "last", "alphanumeric", "random_number", "chomp", "unless", "strftime"}
        | {"year", "rand", "Random", "STDIN"}
    ),
    "perl": frozenset(
        {"print", "printf", "say", "if", "unless", "else", "elsif", "for", "foreach", "while", "until", "next"}
        | {"last", "my", "our", "uc", "lc", "ucfirst", "lcfirst", "length", "substr", "index", "rindex", "join"}
        | {"split", "reverse", "sort", "map", "grep", "scalar", "keys", "values", "push", "pop", "shift", "unshift"}
        | {"chomp", "chop", "sprintf", "time", "localtime", "gmtime", "BEGIN", "END", "eof", "and", "or", "not"}
        | {"eq", "ne", "lt", "gt", "le", "ge", "cmp", "x", "undef", "defined", "exists", "sum", "abs", "int"}
        | {"sqrt", "hex", "oct", "ord", "chr", "STDIN", "STDOUT", "STDERR", "ARGV", "use", "strict", "warnings"}
        | {"delete", "local", "wantarray", "return", "pos", "quotemeta", "rand", "exit"}
    ),
    "php": frozenset(
        {"echo", "print", "printf", "PHP_VERSION", "PHP_EOL", "PHP_OS", "PHP_OS_FAMILY", "PHP_INT_MAX"}
        | {"PHP_BINARY", "phpversion", "phpinfo", "var_dump", "print_r", "var_export", "json_encode", "json_decode"}
        | {"date", "time", "php_uname", "extension_loaded", "ini_get", "php_ini_loaded_file", "php_sapi_name"}
        | {"get_loaded_extensions", "implode", "explode", "strlen", "count", "true", "false", "null"}
        | {"PHP_MAJOR_VERSION", "PHP_MINOR_VERSION", "random_int", "bin2hex", "random_bytes", "base64_encode", "if"}
        | {"exit", "hash", "md5", "sha1", "strtoupper", "strtolower", "trim", "substr", "function_exists"}
        | {"class_exists", "version_compare"}
    ),
    "lua": frozenset(
        {"print", "_VERSION", "jit", "version", "io", "write", "string", "format", "math", "tostring", "tonumber"}
        | {"type"}
    ),
    "r": frozenset(
        {"cat", "print", "R", "version", "string", "version.string", "packageVersion", "getRversion"}
        | {"sessionInfo", "Sys.time", "TRUE", "FALSE", "NULL", "mean", "sum", "c", "paste", "paste0"}
        | {"as.character", "R.version.string", "R.version", "installed.packages"}
    ),
    "julia": frozenset(
        {"println", "print", "VERSION", "show", "versioninfo", "sum", "string", "Threads", "nthreads", "using"}
        | {"InteractiveUtils"}
    ),
    "elixir": frozenset(
        {"IO", "puts", "inspect", "System", "version", "otp_release", "build_info", "erlang", "system_info", "io"}
        | {"format", "fwrite", "halt", "string"}
    ),
    "groovy": frozenset(
        {"println", "print", "GroovySystem", "version", "System", "display", "putStrLn", "newline", "out"}
    ),
    "elisp": frozenset({"message", "print", "princ", "emacs-version", "version", "kill-emacs", "t", "nil", "format"}),
    "applescript": frozenset(
        {"return", "version", "of", "get", "current", "date", "display", "notification", "with", "title"}
        | {"application", "beep", "name"}
    ),
}
"""Names that code in a language may use and still do nothing but compute and print."""

_JS_MODULES = re.compile(
    r"\b(?:require|import)\s*\(\s*(['\"])(?:node:)?"
    r"(?:(?!\.\./\.\./\.\.)[\w@./-]+\.json|os|path|util|crypto|url|querystring)\1\s*\)"
)
_JS_DANGEROUS = re.compile(
    r"\b(?:constructor|prototype|__proto__|mainModule|binding|_linkedBinding|dlopen|env|kill|abort|chdir|setuid|execve"
    r"|report|call|apply|bind|__define[GS]etter__|emit|on|once|config|permission|eval|Function|loadEnvFile|globalThis"
    r"|global|setEngine|require|import)\b"
)
_JS_COMPUTED = re.compile(r"""[\w)\]}.'"/]\s*\[(?!\s*(?:\d+|[ijkn]|'[\w@/. -]+'|"[\w@/. -]+")\s*\])|\]\s*:""")
"""Members that are worked out: `x[a + b]`, `{[a + b]: 1}`."""

_JS_PROCESS = re.compile(
    r"\bprocess\b(?!\.(?:version|versions|platform|arch|argv|stdout|stderr|uptime|cwd|release|pid|exit"
    r"|hrtime|memoryUsage)\b)"
)
_DECLARED = re.compile(r"\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)|([A-Za-z_$][\w$]*)\s*=>|\(([\w$,\s]*)\)\s*=>")
_STRINGS = r"""(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_TOKEN = re.compile(_STRINGS + r"|(?P<name>[A-Za-z_][\w.-]*[\w]|[A-Za-z_])|(?P<number>\d[\w.]*)|(?P<other>.)", re.S)
_JS_TOKEN = re.compile(_STRINGS + r"|(?P<name>[A-Za-z_$][\w$]*)|(?P<number>\d[\w.]*)|(?P<other>.)", re.S)
_STRING_CALLED = re.compile(r"""['"]\s*\(""")
_PERL_QUOTE = re.compile(
    r"(?<![\w$@%&>{-])(?:s|tr|y)(?:([/#|,!])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1"
    r"|\{(?:[^{}\\\n]|\\.)*\}\s*\{(?:[^{}\\\n]|\\.)*\})(?P<flags>[a-z]*)"
    r"|(?<![\w$@%&>{-])(?:m|qr)([/#|,!])(?:(?!\3)[^\\\n]|\\.)*\3[a-z]*"
    r"|(?P<before>\A|(?<![$@])[(,;{!~&|=]|(?<![\w$@%&>-])(?:if|unless|and|or|not|split|grep|while|until|print)\b)"
    r"\s*/(?:[^/\\\n]|\\.)*/[a-z]*"
)
"""What perl reads as a pattern or a replacement; where that is not certain it is left, and its names are looked at."""

_PERL_RUNS = re.compile(r"@\{|\$\{\s*\\|\(\?\??\{|`|<\s*\$|->\s*\(|(?<!&)&(?!&)\s*\w|\bqx\b|\$\{\^|::|\|-|<<|\bENV\b")
_RUBY_RUNS = re.compile(r"#\{|`|%x|\bENV\b")
_PHP_RUNS = re.compile(r"`|\$\{|\{\$|\$_|\$\w+\s*\(")


def _plain_javascript(text: str) -> bool:
    bare = _JS_MODULES.sub("0", text)
    if "`" in bare or any(bad.search(bare) for bad in (_JS_COMPUTED, _JS_DANGEROUS, _JS_PROCESS)):
        return False
    known = _declared(bare)
    before = ""
    for match in _JS_TOKEN.finditer(bare):
        name = match.group("name")
        if name is not None and before != "." and name not in known and not _is_key(bare, match.end()):
            return False
        if not match.group().isspace():
            before = match.group()
    return True


def _declared(text: str) -> set[str]:
    """The harmless names, and those that the text defines itself."""
    groups = (group for match in _DECLARED.finditer(text) for group in match.groups() if group)
    return {name for group in groups for name in _JS_NAME.findall(group)} | _HARMLESS["javascript"]


_JS_NAME = re.compile(r"[\w$]+")


def _is_key(text: str, end: int) -> bool:
    """Whether a name is the key of an object: `{a: 1}`."""
    return text[end : end + 8].lstrip().startswith(":")


_PERL_VARIABLE = re.compile(
    r"\$ENV\{\s*(['\"]?)(?!\w*(?:TOKEN|SECRET|PASS|KEY|CRED|AUTH|PAT\b))[A-Za-z_]\w*\1\s*\}|\$#[A-Za-z_]\w*\b", re.I
)
"""`$ENV{HOME}`, but no variable that may be a secret, and `$#F`, the last place of a list."""


def _plain_perl(text: str) -> bool:
    text = _PERL_VARIABLE.sub("$x", text)
    if _PERL_RUNS.search(text) or any("e" in (match.group("flags") or "") for match in _PERL_QUOTE.finditer(text)):
        return False
    bare = _PERL_QUOTE.sub(lambda match: f"{match.group('before') or ''} ", text)
    return _only_names(bare, _HARMLESS["perl"], sigils="$@")


def _plain_php(text: str) -> bool:
    return not _PHP_RUNS.search(text) and _only_names(text, _HARMLESS["php"], sigils="$")


_RUBY_PATTERN = re.compile(
    r"(?:(?<![\w$@.:])(?:if|unless|and|or|not|while|until|when)\b\s*"
    r"|(?<![$?:.])(?:[(,~]|(?<!\w)!)\s*)(?P<of>/(?:[^/\\\n\"';]|\\.)*/[imxo]*)"
)
"""A pattern where nothing can be divided: its words are no names. One with a quote in it may begin within a text."""


_RUBY_LITERAL = re.compile(r"%[\WqQwWiIrs]")
"""A text that may begin without a quote, in which a slash begins nothing: `%[~/]`."""


def _plain_ruby(text: str) -> bool:
    if _RUBY_RUNS.search(text):
        return False
    if _RUBY_LITERAL.search(text) is None:
        text = _RUBY_PATTERN.sub(lambda match: match.group()[: match.start("of") - match.start()] + "0", text)
    return _only_names(text, _HARMLESS["ruby"], sigils="$@")


def _plain_other(language: str) -> Callable[[str], bool]:
    known = _HARMLESS[language]
    return lambda text: not any(bad in text for bad in ("`", "$(", "${")) and _only_names(text, known, sigils="")


def _only_names(text: str, known: frozenset[str], *, sigils: str) -> bool:
    """Whether every name outside strings is a known one, or a variable, and no string is called."""
    if _STRING_CALLED.search(text):
        return False
    before = ""
    for match in _TOKEN.finditer(text):
        name = match.group("name")
        if name is not None and not (before and before in sigils) and not _is_known(name, known):
            return False
        before = match.group()
    return True


def _is_known(name: str, known: frozenset[str]) -> bool:
    return name in known or all(part in known for part in _PARTS.split(name) if part)


_PARTS = re.compile(r"[.-]")

_PLAIN: dict[str, Callable[[str], bool]] = {
    "javascript": _plain_javascript,
    "perl": _plain_perl,
    "php": _plain_php,
    "ruby": _plain_ruby,
    **{name: _plain_other(name) for name in ("lua", "r", "julia", "elixir", "groovy", "elisp", "applescript")},
}


@lru_cache(maxsize=1024)
def only_prints(language: str, text: str) -> bool:
    """Whether code in this language does nothing but compute and print, as far as its names tell."""
    if len(text) > MAX_CHARS or UNKNOWN in text or not text.isascii():
        return False
    check = _PLAIN.get(language)
    return check is not None and check(text)


MAX_SEARCHED_CHARS = 32 * 1024
"""Longer texts of editors and debuggers are not searched, and count as doing what is looked for."""


def _has(wanted: re.Pattern[str], text: str) -> bool:
    return len(text) > MAX_SEARCHED_CHARS or wanted.search(text) is not None


_DEBUGGER_CALLS = re.compile(
    r"(?:^|\n)[^\S\n]*(?:call|python|py|pi|python-interactive|compile|attach|source|jump|restore|expr|expression"
    r"|script)\b|\w\s*+\("
)


def _debugger_calls(seen: Seen) -> bool:
    """Commands for a debugger that call functions of the program, run scripts or attach to a process."""
    return any(code.language == "escape" and _has(_DEBUGGER_CALLS, code.text) for code in seen.command.code)


_TEXT_TOOLS = frozenset({"awk", "sed", "vi", "escape", "tcl", "m4", "mlr"})
_SCRIPTING = frozenset(_PLAIN) | {"tcl"}


_AWK_LOADS = re.compile(r"@\s*+(?:load|include)\b")
_AWK_CALLS = re.compile(r"@\s*+\w++\s*+\(")
"""Functions whose name only a variable tells (`@f("x")`)."""
_AWK_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*')
_AWK_PATTERN = re.compile(r"/(?:[^/\\\n\[]|\\.)*/")
_NO_OPERAND = frozenset("~!(,{;&|}")
"""Signs of awk behind which nothing can be divided, so a slash begins a pattern."""


def _awk_without_texts(text: str) -> str:
    """The code without its texts, comments and patterns, as far as it is certain which slash begins one."""
    kept, at = "", 0
    for match in _AWK_MARK.finditer(text):
        if match.start() < at:
            continue
        kept += text[at : match.start()]
        at = match.start()
        before = kept.rstrip()[-1:]
        form = _AWK_PATTERN if match.group() == "/" else _AWK_TEXT
        found = form.match(text, at) if form is _AWK_TEXT or not before or before in _NO_OPERAND else None
        if found is None:
            break
        kept, at = f"{kept}0", found.end()
    return kept + text[at:]


_AWK_MARK = re.compile(r'["#/]')


def _awk_loads(text: str) -> bool:
    if _has(_AWK_LOADS, text):
        return True
    calls = _AWK_CALLS.search(text) is not None
    return calls and (len(text) > MAX_CHARS or _AWK_CALLS.search(_awk_without_texts(text)) is not None)


@lru_cache(maxsize=1024)
def _starts_programs(language: str, text: str) -> bool:
    return bool(shell_texts(language, text)) or (language == "awk" and _awk_loads(text))


def _code_starts_programs(seen: Seen) -> bool:
    """Text of an editor, of awk or sed, or of a debugger that starts a program or a shell."""
    for code in seen.command.code:  # a generator would cost more
        if code.language in _TEXT_TOOLS and _starts_programs(code.language, code.text):
            return True
    return False


_ALIAS = re.compile(r"-[AMX](?::[\w.-]+)+")


def _runs_alias(seen: Seen) -> bool:
    """`clojure -M:test`, `clj -X:build:prod`: what the project's own file names, though its letters look like `-e`."""
    words = [word.text for word in seen.words[1:]]
    fed = seen.command.fed or seen.command.stdin is not None
    return bool(words) and not fed and all(map(_ALIAS.fullmatch, words))


def _code_does_more(seen: Seen) -> bool:
    """Code in a scripting language that may do more than print."""
    if seen.name in {"clojure", "clj"} and _runs_alias(seen):
        return False
    for code in seen.command.code:
        if code.language in _SCRIPTING and not only_prints(code.language, code.text):
            return True
        if code.language == "perl" and any(
            word.text.strip()[:1] == "|" or word.text.rstrip()[-1:] == "|" for word in seen.words[2:]
        ):
            return True  # perl -n and -p open their operands, and `id|` is a command to them
    return False


_QUOTED = re.compile(r'"(?=([^"\n]{1,200})")')
_FILE_NAMES = {
    "awk": _QUOTED,
    "mlr": _QUOTED,
    "sed": re.compile(r"[rRwW](?=(?:\s{1,50}|(?=[/~.]))([^\s;}]{2,200}))"),
}
_AWK_HOME = re.compile(r'ENVIRON\s*\[\s*"HOME"\s*\]\s*"')
_SED_COMMAND = re.compile(r"(?:^|[;\n}/\d$])[gpIiMm\d]*\s*\Z")
_MLR_STATEMENT_ENDS = re.compile(r"[;{}]")
_SED_COMMAND_CHARS = 32
"""So far before its letter a command of sed is looked for; where more stands between, it counts as one."""


def _is_name(code: Code, match: re.Match[str]) -> bool:
    """Whether what was found is a file name: to sed only behind a command, not within the text of one."""
    if code.language == "mlr":  # it opens no file but to write it: `tee > "x" . $y`
        return ">" in _MLR_STATEMENT_ENDS.split(match.string[: match.start()])[-1]
    before = code.text[max(0, match.start() - _SED_COMMAND_CHARS) : match.start()]
    return code.language != "sed" or _SED_COMMAND.search(before) is not None


def _is_written(code: Code, match: re.Match[str]) -> bool:
    """Whether the file that was found is written: `print > "x"` of awk, `w x` of sed."""
    if code.language == "sed":
        return match.group() in {"w", "W"}
    return code.text[max(0, match.start() - _SED_COMMAND_CHARS) : match.start()].rstrip()[-1:] == ">"


def _code_names_sensitive_file(seen: Seen) -> bool:
    """A script of awk or sed that names a start-up, login, system or secret file to read or to write."""
    for code in seen.command.code:
        names = _FILE_NAMES.get(code.language)
        text = _AWK_HOME.sub('"~', code.text[:MAX_CHARS])
        for match in names.finditer(text) if names else ():
            word = Word(match.group(1))
            if not _is_name(code, match):
                continue
            if ("/" in word.text or word.text.startswith(".") or _is_written(code, match)) and (
                CLASSES["secret_file"](word, seen.cwd, seen.facts.paths)
                or sort_of(word, seen) in {"startup", "ssh", "policy", "system"}
            ):
                return True
    return False


_VI_LOADS = re.compile(
    r"(?:^|[|:\n])[^\S\n]*(?:py\w*|python\w*|lua|luado|perl|perldo|ruby|rubydo|tcl|mzscheme|so|source|call|exe|execute"
    r"|luafile|pyfile|eval|w|wq|x|saveas)\b!*+\s++\S"
)


def _editor_runs_script(seen: Seen) -> bool:
    """Commands for an editor that load a script or write elsewhere."""
    return any(code.language == "vi" and _has(_VI_LOADS, code.text) for code in seen.command.code)


def _code_unknown(seen: Seen) -> bool:
    """Text of awk, sed or an editor that is wholly unknown until it runs."""
    for code in seen.command.code:  # a generator would cost more
        if code.language in _TEXT_TOOLS and code.text and not code.text.strip(UNKNOWN + " \n"):
            return True
    return False


_PATTERN_SIGNS = re.compile(r"[/{(;$<`]|\A(?:unlink|rmdir|exec|system|do|eval|require|use)\b")


def _rename_runs(seen: Seen) -> bool:
    """`rename 'unlink'`: Perl's program of this name runs its first operand as code, the other one takes texts."""
    given = values_of(seen, ("-e", "-E")) or seen.operands[:1]
    return any(
        _PATTERN_SIGNS.search(word.text) is not None and not only_prints("perl", word.text.strip()) for word in given
    )


def _nim_evaluates(seen: Seen) -> bool:
    """`nim --eval:CODE`."""
    return any(word.text.startswith("--eval") for word in seen.words[1:])


_ERLANG_CALLS = frozenset({"-run", "-s"})
_ERLANG_MODULE = re.compile(r"[a-z][a-z0-9_]*", re.A)
_ERLANG_REACHES = frozenset(
    {"os", "file", "filelib", "prim_file", "c", "code", "erl_eval", "erl_scan", "erl_parse", "erl_tar", "zip", "shell"}
    | {"rpc", "erpc", "slave", "peer", "inets", "httpc", "ftp", "tftp", "elixir"}
)
"""Modules of Erlang that run commands or code, change files or reach other hosts."""


def _erlang_calls(seen: Seen) -> bool:
    """`erl -run os cmd COMMAND`, `erl -s file delete NAME`: a function that is no start of a program of the project."""
    texts = [word.text for word in seen.words]
    if "-extra" in texts:
        texts = texts[: texts.index("-extra")]
    modules = [texts[place + 1] for place, text in enumerate(texts[:-1]) if text in _ERLANG_CALLS]
    return any(name in _ERLANG_REACHES or _ERLANG_MODULE.fullmatch(name) is None for name in modules)


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "nim_evaluates": _nim_evaluates,
    "rename_runs": _rename_runs,
    "erlang_calls": _erlang_calls,
    "code_starts_programs": _code_starts_programs,
    "debugger_calls": _debugger_calls,
    "code_does_more": _code_does_more,
    "code_names_sensitive_file": _code_names_sensitive_file,
    "editor_runs_script": _editor_runs_script,
    "code_unknown": _code_unknown,
}

_OF_CODE = (
    "code_starts_programs", "code_does_more", "code_names_sensitive_file", "editor_runs_script", "code_unknown",
)  # fmt: skip
NEEDS: dict[str, Callable[[Seen], bool]] = dict.fromkeys(_OF_CODE, lambda seen: bool(seen.command.code))
