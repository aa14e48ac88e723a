"""Variables of single programs that name a program for it to start, or options that make it load or start one."""

import re
from collections.abc import Callable

from signoff.policy.matching import DECLARERS
from signoff.policy.predicates.helpers import STARTS_PROGRAM
from signoff.policy.predicates.program_options import DOES_HARM
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_MAX_CHARS = 256
"""Longer values are no names of programs and no options that anybody wrote."""

_INSTALLED = re.compile(
    r"(?:/(?:usr|opt|nix|snap|Library|Applications|System)/[\w./+ -]*/|/s?bin/|[\w./~$-]*venv[\w./-]*/bin/)?[\w.+:-]*"
    r"(?: -[\w=.,+/:-]+)*"
)


def _values(seen: Seen) -> list[tuple[str, str]]:
    found = list(seen.command.assignments)
    if seen.name in DECLARERS:
        parts = (word.text.partition("=") for word in seen.words[1:])
        found += [(name, value) for name, equals, value in parts if equals]
    return found


def _odd_program(seen: Seen) -> bool:
    """A program for another one to start that is not where programs are installed, or that does harm."""
    for name, value in _values(seen):
        if name not in _PROGRAMS or UNKNOWN in value:
            continue
        if len(value) > _MAX_CHARS or _INSTALLED.fullmatch(value) is None or DOES_HARM.match(value):
            return True
    return False


_PROGRAMS = frozenset(
    {"RUSTDOC", "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER", "CMAKE_C_COMPILER_LAUNCHER"}
    | {"CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_CUDA_COMPILER_LAUNCHER", "CMAKE_LINKER_LAUNCHER", "CONFIG_SHELL"}
    | {"PKG_CONFIG", "LIBTOOL", "MAKE", "AWK", "SED", "GREP", "M4", "AUTOCONF", "AUTOHEADER", "AUTOMAKE"}
    | {"ACLOCAL", "AUTOM4TE", "NINJA", "SWIFT_EXEC", "TERRAGRUNT_TFPATH", "TG_TF_PATH", "CLOUDSDK_PYTHON"}
    | {"ANSIBLE_SSH_EXECUTABLE", "CCACHE_COMPILER", "CCACHE_PREFIX", "DISTCC_SSH", "SSH_SK_PROVIDER", "SSH_SK_HELPER"}
    | {"SSH_PKCS11_HELPER", "npm_config_git", "NPM_CONFIG_GIT", "npm_config_node_gyp", "YARN_YARN_PATH"}
    | {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "OMPI_MCA_plm_rsh_agent", "HYDRA_LAUNCHER_EXEC", "CONDA_EXE"}
    | {"PIP_PYTHON", "PIPX_DEFAULT_PYTHON", "BAZEL_SH", "GH_PATH", "PHP_COMMAND", "BZR_SSH", "HGMERGE", "P4MERGE"}
    | {"P4DIFF", "R_PDFVIEWER", "RCLONE_SFTP_SSH", "RSYNC_CONNECT_PROG"}
)

_LOADS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(
        ("ERL_AFLAGS", "ERL_FLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS"), re.compile(r".*-(?:eval|run|s)\b")
    ),
    "BUN_OPTIONS": re.compile(r".*(?:--preload|--require|--import|-r)\b"),
    "RAKEOPT": re.compile(r".*-[rRfIeEp]|.*--(?:require|execute|rakefile|libdir)"),
    "LESS": re.compile(r"[^+]*+\+.*[!|]|.*(?:^|\s)-(?:k|-lesskey)"),
    "SYSTEMD_LESS": re.compile(r"[^+]*+\+.*[!|]"),
    "MANOPT": re.compile(r".*(?:-P|-H|--pager|--html|-p)"),
    "ZIPOPT": re.compile(r".*(?:-TT|--unzip-command)"),
    "BAT_OPTS": re.compile(r".*--pager"),
    "NIX_CONFIG": re.compile(r".*(?:-hook|build-users-group|plugin-files|ssh-|builders)\b", re.S),
    **dict.fromkeys(
        ("ANSIBLE_SSH_ARGS", "ANSIBLE_SSH_COMMON_ARGS", "ANSIBLE_SSH_EXTRA_ARGS", "NIX_SSHOPTS", "BORG_RSH"),
        re.compile(r".*(?:ProxyCommand|LocalCommand|KnownHostsCommand)", re.I),
    ),
    "PASSWORD_STORE_GPG_OPTS": re.compile(r".*--(?:photo-viewer|[a-z0-9-]*program|exec-path)"),
    "TF_CLI_ARGS_init": re.compile(r".*-plugin-dir"),
}


def _options_start(seen: Seen) -> bool:
    """Options in a variable of one program that have it load code or start a program."""
    return any(
        (known := _LOADS.get(name)) is not None and (len(value) > _MAX_CHARS * 16 or known.match(value) is not None)
        for name, value in _values(seen)
    )


def _flags_start(seen: Seen) -> bool:
    """Flags for compilers that have them start or load a program: `RUSTFLAGS='-C linker=./x'`."""
    return any(name.endswith("FLAGS") and STARTS_PROGRAM.search(value) is not None for name, value in _values(seen))


_NOWHERE = frozenset({"", "/dev/null"})


def _names_settings(seen: Seen) -> bool:
    """A file of settings that can name programs, which is not an empty one."""
    return any(name in _SETTINGS and value not in _NOWHERE for name, value in _values(seen))


_SETTINGS = frozenset(
    {"HGRCPATH", "PSQLRC", "IRBRC", "PRYRC", "SCREENRC", "OPENSSL_CONF", "OPENSSL_MODULES", "GTK_PATH"}
    | {"GIO_EXTRA_MODULES", "GCC_EXEC_PREFIX", "COMPILER_PATH", "GROFF_COMMAND_PREFIX", "LESSKEY", "LESSKEYIN"}
    | {"LESSKEY_CONTENT", "OCTAVE_SITE_INITFILE", "MAGICK_CODER_MODULE_PATH", "JJ_CONFIG", "MAILCAPS", "APT_CONFIG"}
    | {"PACKER_PLUGIN_PATH", "HELM_PLUGINS"}
)

PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "odd_program": _odd_program,
    "options_start": _options_start,
    "flags_start": _flags_start,
    "names_settings": _names_settings,
}
