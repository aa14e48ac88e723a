"""What rules about package managers ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

import msgspec

from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_ADDRESS = re.compile(
    r"(?:[A-Za-z0-9._-]+(?:\[[\w,-]*\])?\s*@\s*)?(?:(?:git|hg|svn|bzr)\+|https?:|ftp:|git:|ssh:|git@|svn:|file:|github:|gitlab:|bitbucket:|gist:)",
    re.I,
)
_GITHUB_SHORT = re.compile(r"(?:[\w.@-]+@)?(?!@)[\w-]+/[\w.-]+(?:#\S+)?")
_ARCHIVE = re.compile(
    r"(?:\.whl|\.tar\.gz|\.tgz|\.tar\.bz2|\.zip|\.gem|\.crate|\.conda|\.nupkg|\.egg)(?:\[[\w,-]*\])?\Z", re.I
)


_WITH = ("--with", "--with-requirements", "--with-editable")


def _from_elsewhere(seen: Seen) -> bool:
    """A package named by an address or as an archive, not by its name in the usual registry."""
    names = (
        *seen.texts,
        *_carried(seen),
        *(
            value.text
            for value in seen.values(
                "-r", "--requirement", "-c", "--constraint", "-e", "--editable", "--git", "--from", *_WITH
            )
        ),
    )
    return any(_ADDRESS.match(text) or _ARCHIVE.search(text) for text in names)


def _carried(seen: Seen) -> list[str]:
    """What `uvx`, `npx` and `pipx run` fetch and run: the first word behind their own."""
    if (
        seen.name in {"uvx", "npx", "bunx", "pnpx"}
        or seen.texts[:1] == ["dlx"]
        or (seen.name == "pipx" and seen.texts[:1] == ["run"])
    ):
        return [word.text for word in seen.command.words[seen.command.own : seen.command.own + 1]]
    return []


def _node_from_elsewhere(seen: Seen) -> bool:
    """The same for node packages, where `owner/name` means a repository on GitHub."""
    if _from_elsewhere(seen):
        return True
    return any(_GITHUB_SHORT.fullmatch(text) and not text.startswith((".", "@", "~")) for text in seen.texts[1:])


class _KnownTools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    node: frozenset[str]
    python: frozenset[str]


@cache
def _known_tools() -> frozenset[str]:
    """The tools of `known_tools.toml`."""
    tools = msgspec.toml.decode(files(__package__).joinpath("known_tools.toml").read_bytes(), type=_KnownTools)
    return tools.node | tools.python


def _tool_names(seen: Seen) -> list[str]:
    """The packages that `npx`, `uvx`, `pnpm dlx` and the like fetch and run.

    Those of `--package` and `--from`, else the one whose program is run.
    """
    named = seen.values(*(("--from", "--spec") if seen.name == "uvx" else ("-p", "--package", "--from", "--spec")))
    more = [value.text for value in seen.values("--with")]
    if named:
        return [*(value.text for value in named), *more]
    carried = seen.command.words[seen.command.own :]
    if carried:
        return [carried[0].text, *more]
    skip = 0 if seen.name in {"npx", "uvx", "bunx", "pnpx"} else 2 if seen.texts[:2] == ["tool", "run"] else 1
    return [*seen.texts[skip : skip + 1], *more]


def _plain_name(text: str) -> str:
    at = text.find("@", 1)
    text = text[:at] if at > 0 else text
    return re.split(r"[=<>~!\[]", text, maxsplit=1)[0]


def _runs_known_tool(seen: Seen) -> bool:
    """Whether every package that is fetched and run is a well-known tool, or a file of the project."""
    names = _tool_names(seen)
    if any(UNKNOWN in name for name in names):
        return False
    return all(_plain_name(name) in _known_tools() or name.startswith(("./", "../")) for name in names)


def _runs_added(seen: Seen) -> bool:
    """`uv run --with x x`: what is run is no file, nor a program that is known, but what the package brings."""
    added = [_plain_name(name.strip()) for value in seen.values("--with") for name in value.text.split(",")]
    unknown = {name.replace("-", "_") for name in added if name not in _known_tools()}
    if not unknown:
        return False
    program, *rest = [word.text for word in seen.command.words[seen.command.own :]] or [UNKNOWN]
    if re.fullmatch(r"(?:.*/)?python[\d.]*", program):
        module = rest[rest.index("-m") + 1 :] if "-m" in rest else []
        return bool(module) and module[0].partition(".")[0].replace("-", "_") in unknown
    return "/" not in program and "." not in program and program not in _known_tools()


_CREATE = re.compile(
    r"(?:@[\w-]+(?:/create)?|vite|next-app|react-app|vue|svelte|astro|remix|expo-app|turbo|electron-app|nuxt|solid|t3-app|docusaurus|playwright|cloudflare|hono|redwood-app)(?:@[\w.-]+)?"
)


def _creates_known(seen: Seen) -> bool:
    """`npm create vite@latest`: a generator of a well-known framework; plain `npm init` writes a package.json."""
    texts = seen.texts[1:]
    return not texts or bool(_CREATE.fullmatch(texts[0]))


_SAFE_PIP_INDEX = re.compile(
    r"https://(?:pypi\.org/simple|download\.pytorch\.org/whl(?:/[\w./-]*)?|pypi\.nvidia\.com|wheels\.vllm\.ai(?:/[\w./-]*)?)/?"
)


def _other_index(seen: Seen) -> bool:
    """Packages from an index that is not the usual one."""
    values = seen.values("-i", "--index-url", "--extra-index-url", "--index", "--default-index", "-f", "--find-links")
    return any(_is_address(value.text) and not _SAFE_PIP_INDEX.fullmatch(value.text) for value in values)


def _is_address(text: str) -> bool:
    return "://" in text or UNKNOWN in text


def _go_runs_remote(seen: Seen) -> bool:
    """`go run example.com/cmd@v1`: fetched and run at once; so is what is written as an address."""
    return any(("@" in text and not text.startswith((".", "/"))) or "://" in text for text in seen.texts[1:2])


_NPM_SETTINGS = re.compile(
    r"(?:.*:)?(?:registry|npmRegistryServer|npmPublishRegistry|npmAuth\w*|yarnPath|plugins|unsafeHttpWhitelist|script-shell|shell|node-options|init-module|proxy|https-proxy|cafile|strict-ssl|_auth\w*|git|onload-script|ignore-scripts|prefix|userconfig|globalconfig|editor|viewer|browser)(?:=.*)?|//.*",
    re.I,
)


def _npm_setting(seen: Seen) -> bool:
    """Settings that name another registry, a shell or a secret."""
    texts = seen.texts
    if texts[:1] == ["config"] or texts[:1] == ["c"]:
        return texts[1:2] == ["set"] and any(_NPM_SETTINGS.fullmatch(text) for text in texts[2:])
    return texts[:1] == ["set"] and any(_NPM_SETTINGS.fullmatch(text) for text in texts[1:])


def _query_only(seen: Seen) -> bool:
    """pacman, rpm and dpkg: query modes, and simulations of the others."""
    if seen.name in {"pacman", "yay", "paru"}:
        return seen.has("-Q", "--query", "-F", "--files", "-T", "--deptest", "-V", "--version", "-h", "--help") or (
            seen.has("-S", "--sync")
            and seen.has("-s", "--search", "-i", "--info", "-l", "--list", "-g", "-p", "--print")
        )
    if seen.name == "rpm":
        return seen.has(
            "-q", "--query", "-V", "--verify", "--version", "-K", "--checksig", "--eval", "-E", "--showrc", "--help"
        ) and not seen.has("--import")
    return not seen.has(
        "-i",
        "--install",
        "-r",
        "--remove",
        "-P",
        "--purge",
        "--unpack",
        "--configure",
        "--set-selections",
        "--clear-selections",
        "--add-architecture",
        "--remove-architecture",
        "--force-all",
    )


_NOT_INSTALLING = frozenset(
    {
        "publish",
        "config",
        "show",
        "search",
        "list",
        "freeze",
        "check",
        "index",
        "new",
        "init",
        "build",
        "self",
        "cache",
        "login",
        "test",
        "bench",
        "clippy",
        "doc",
        "yank",
        "owner",
        "info",
        "env",
        "export",
        "lock",
        "tree",
        "version",
        "source",
    }
)


def _does_not_install(seen: Seen) -> bool:
    """Commands whose addresses and archives are no packages to install, such as the script that `uv run` starts."""
    texts = seen.texts
    if not texts:
        return True
    if texts[0] == "run" or texts[:2] == ["tool", "run"]:
        return seen.name not in {"pipx", "uv", "cargo"} or (
            seen.name in {"uv", "cargo"} and not seen.values("--from", *_WITH)
        )
    return texts[0] in _NOT_INSTALLING


_USUAL_REGISTRY = re.compile(
    r"https?://(?:registry\.npmjs\.org|registry\.yarnpkg\.com|localhost(?::\d+)?|127\.0\.0\.1(?::\d+)?)/?"
)


def _usual_registry(seen: Seen) -> bool:
    return all(_USUAL_REGISTRY.fullmatch(value.text) for value in seen.values("--registry"))


_USUAL_INDEX = re.compile(
    r"(?:https://(?:pypi\.org/simple|download\.pytorch\.org/whl\S*|registry\.npmjs\.org|registry\.yarnpkg\.com|proxy\.golang\.org|index\.crates\.io)/?|direct|off|,)*"
)
_INDEX_NAMES = re.compile(r"(?:PIP_|UV_|NPM_CONFIG_|YARN_|GO|BUNDLE_|CARGO_)", re.I)


def _index_is_usual(seen: Seen) -> bool:
    """Whether the variables that name a source name the usual one; `GOPROXY=direct` is one too."""
    given = [(name, value) for name, value in seen.command.assignments if _INDEX_NAMES.match(name)]
    return bool(given) and all(
        _USUAL_INDEX.fullmatch(value)
        for name, value in given
        if re.search(r"INDEX|PROXY|REGISTRY|FIND_LINKS|TRUSTED|INSECURE|NOSUM|MIRROR|SOURCE|REGISTRIES", name, re.I)
    )


def _runs_script(seen: Seen) -> bool:
    """`bun run build`, `uv run pytest`, `pnpm exec x`: a script or an installed program of the project."""
    verb = seen.texts[0]
    return (verb == "run" and seen.name != "pipx") or (verb == "exec" and seen.name != "npm")


_USUAL_WRAPPERS = frozenset({"", "sccache", "ccache", "cargo-auditable"})


def _usual_wrapper(seen: Seen) -> bool:
    """Compiler caches, and variables of a target that name no program (its linker flags)."""
    given = [(name, value) for name, value in seen.command.assignments if name.startswith(_TOOL_VARIABLES)]
    return bool(given) and all(map(_names_no_program, given))


_TOOL_VARIABLES = ("RUSTC", "CARGO_TARGET_", "CARGO_BUILD_", "GOFLAGS")


def _names_no_program(given: tuple[str, str]) -> bool:
    name, value = given
    if name == "GOFLAGS":
        return UNKNOWN not in value and not re.search(r"-(?:tool)?exec\b|-vettool\b", value)
    if name in {"CARGO_TARGET_DIR", "RUSTC_BOOTSTRAP", "RUSTC_LOG"} or name.endswith(("_RUSTFLAGS", "_AR")):
        return True
    return value.rpartition("/")[2] in _USUAL_WRAPPERS


def _script_from_elsewhere(seen: Seen) -> bool:
    """`uv run https://...`: a script that is fetched and run."""
    carried = seen.command.words[seen.command.own : seen.command.own + 1]
    return any(_ADDRESS.match(text) for text in (*seen.texts[1:], *(word.text for word in carried)))


def _local_tool(seen: Seen) -> bool:
    """`dotnet tool install` without `--global`, `gem uninstall` and `poetry env` of the project stay in the project."""
    if seen.name == "dotnet" and seen.texts[:1] == ["tool"]:
        return not seen.has("-g", "--global")
    return seen.name == "gem" and seen.texts[:1] == ["uninstall"]


def _only_lists(seen: Seen) -> bool:
    """Commands of system package managers that share a word with others but change nothing."""
    texts = seen.texts
    if texts[:1] == ["update"]:
        return seen.name in {"apt", "apt-get", "aptitude", "brew", "apk", "scoop"}
    if texts[:1] == ["clean"] or texts[:1] == ["refresh"]:
        return seen.name not in {"snap"}
    if texts[:1] == ["services"]:
        return texts[1:2] in (["list"], ["info"])
    if texts[:1] in (["group"], ["module"], ["bundle"]):
        return texts[1:2] in (["list"], ["info"], ["check"], ["exec"], ["dump"])
    return texts[:1] in (["grouplist"], ["groupinfo"])


def _reports(seen: Seen) -> bool:
    return (
        seen.has(
            "--list",
            "-l",
            "--query",
            "--display",
            "-p",
            "--print-path",
            "--version",
            "-v",
            "--help",
            "--get-selections",
            "--pkgs",
            "--print",
            "--packagelist",
            "--pkg-info",
        )
        or not seen.words[1:]
    )


def _edits_project(seen: Seen) -> bool:
    """`uv remove` takes a package out of the project's own list, which can be put back."""
    return seen.name == "uv" and seen.texts[:1] == ["remove"]


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "edits_project": _edits_project,
    "package_from_elsewhere": _from_elsewhere,
    "package_node_from_elsewhere": _node_from_elsewhere,
    "package_known_tool": _runs_known_tool,
    "package_runs_added": _runs_added,
    "package_creates_known": _creates_known,
    "package_other_index": _other_index,
    "package_go_runs_remote": _go_runs_remote,
    "package_npm_setting": _npm_setting,
    "package_query_only": _query_only,
    "package_does_not_install": _does_not_install,
    "package_usual_registry": _usual_registry,
    "package_index_is_usual": _index_is_usual,
    "package_runs_script": _runs_script,
    "package_usual_wrapper": _usual_wrapper,
    "package_script_from_elsewhere": _script_from_elsewhere,
    "package_local_tool": _local_tool,
    "package_only_lists": _only_lists,
    "package_reports": _reports,
}
