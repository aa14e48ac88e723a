"""Classes of paths and addresses that rules name: start-up files, secrets, system configuration, and so on.

A class is told a word as written, so it also looks behind `=`, `@`, `:` and `,` (`file=@.env`, `~/.ssh:/mnt`), and a
word that is partly unknown is judged by the part that is known (`$DIR/.ssh/id_rsa`).
"""

import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache, lru_cache

from signoff.policy import paths
from signoff.policy.paths import PathFacts
from signoff.policy.shell import UNKNOWN, UNKNOWN_HOME, Word

PathClass = Callable[[Word, str | None, PathFacts], bool]

MAX_PATH_CHARS = 4096
"""Linux takes no longer path (PATH_MAX)."""

_ANY_HOME = re.compile(r"(?:/home/[^/]+|/Users/[^/]+|/root|/var/root)(?=/|\Z)")
_PIECES = re.compile(r"[=@:,]")
_PROSE = re.compile(r"[^/~.\x00][^/\s]*(?:(?:\s[^/\s]*){3}|(?:\s[^/\s]+)*\s[^\w/])|[^\n]*\n")
"""A text of several words before its first slash, one behind whose first words a path begins (`less ~/.netrc`), or of
several lines, is about paths but names none; `My Documents/x` does."""

_ALIVE = re.compile(r"[*?\[]")


def _pattern(*alternatives: str) -> str:
    return "|".join(alternatives)


# Home is `~` in the texts these are tried on, and paths that are not known to be absolute start with their first name.

_STARTUP = _pattern(
    r"^(?:~/|(?:.*/)?\x00/)?\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|"
    r"zlogin|zlogout|kshrc|mkshrc|cshrc|tcshrc|login|xprofile|xinitrc|xsession(?:rc)?|xbindkeysrc|pam_environment|gitconfig"
    r"|g?vimrc|exrc|emacs(?:\.el)?|inputrc|screenrc|tmux\.conf|psqlrc|sqliterc|duckdbrc|mongorc\.js|mongoshrc\.js|irbrc|pryrc"
    r"|pythonrc(?:\.py)?|pdbrc(?:\.py)?|Rprofile|Renviron|octaverc|ghci|sbclrc|gdbinit|lldbinit|lesskey|mailcap|forward|qmail"
    r"|procmailrc|rhosts|shosts|cargo/config(?:\.toml)?|pip/pip\.conf|gradle/init\.gradle(?:\.kts)?|hgrc)\Z",
    r"^(?:~/|(?:.*/)?\x00/)?\.(?:emacs\.d|vim|ipython|jupyter|gradle/init\.d|zsh\.d|bashrc\.d|profile\.d|oh-my-zsh)/",
    r"(?:^|/)\.config/(?:fish|autostart|systemd/user|environment\.d|zsh|nushell|git|nvim|emacs|tmux|pip|hg|i3|sway|hypr|ghc)/",
    r"(?:^|/)\.local/share/(?:systemd/user|applications|dbus-1)/",
    r"(?:^|/)Library/Launch(?:Agents|Daemons)(?:/|\Z)",
    r"^/etc/(?:profile|profile\.d|bash\.bashrc|bashrc|zsh|zshrc|zshenv|zprofile|environment|cron[\w.]*|crontab|anacrontab|"
    r"init\.d|rc\.local|rc\d\.d|systemd|xdg/autostart|ld\.so\.preload|inittab|udev/rules\.d|rc\.d|periodic)(?:/|\Z)",
    r"^/var/spool/cron(?:/|\Z)",
    r"^(?:/usr)?(?:/local)?/lib/systemd/(?:system|user)(?:/|\Z)",
    r"(?:^|/)\.git/(?:hooks(?:/|\Z)|config(?:\.worktree)?\Z|info/attributes\Z|(?:modules|worktrees)/.*/(?:hooks/|config\Z))",
    r"(?:^|/)(?:site|user)customize\.py\Z",
    r"site-packages/[^/]+\.pth\Z",
    r"(?:^|/)\.ssh/rc\Z",
    r"PowerShell_profile\.ps1\Z",
    r"Start Menu/Programs/Startup(?:/|\Z)",
)

_SECRET = _pattern(
    r"(?:^|/)\.ssh(?:\Z|/\*|/(?:identity|id_|[^/]*(?:_rsa|_dsa|_ecdsa|_ed25519|key))(?![^/]*\.pub\Z)[^/]*\Z)",
    r"(?:^|/)(?!(?:[^/]*[-_.])?(?:certs?|fullchain|chain|ca|cacert|ca-bundle|public|pub)[^/]*\.pem\Z)[^/]+"
    r"\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)\Z",
    r"(?:^|/)id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-](?![^/]*(?:pub|md|rst|py|rb|go|sh|[jt]s)\Z)[^/]*)?\Z",
    r"(?:^|/)(?![^/]*pub)[^/]*key\.pem\Z",
    r"^/etc/(?:g?shadow-?(?=/|\Z)|sudoers|security/opasswd|krb5\.keytab|ssl/private|wireguard|openvpn|ssh/ssh_host_[a-z0-9]+_key\Z"
    r"|kubernetes/[^/]+\.conf\Z|rancher/[^/]+/[^/]+\.yaml\Z|NetworkManager/system-connections|ppp/(?:chap|pap)-secrets\Z)",
    r"(?:^|/)(?:[^/]+\.ovpn|wg\d+\.conf|\.htpasswd|auth\.json|[^/]+\.tfvars(?:\.json)?)\Z",
    r"(?:^|/)\.aws(?:\Z|/(?:credentials|config|sso|cli)(?:/|\Z))",
    r"(?:^|/)\.config/(?:gcloud|gh|hub|glab-cli|op|doctl|rclone|sops|flyctl|stripe|configstore|ngrok|heroku|netlify|openai"
    r"|anthropic|github-copilot|hcloud|scw|composer/auth\.json)(?:/|\Z)",
    r"(?:^|/)\.(?:azure|gnupg|password-store|oci|fly|vault-token|git-credentials|pgpass|my\.cnf|pypirc|s3cfg|boto|kaggle|"
    r"dockercfg|huggingface|databrickscfg|snowsql|Xauthority|ICEauthority|msmtprc|sentryclirc|fetchmailrc|mbsyncrc|anthropic"
    r"|openai|ngrok2?|netlify|terraformrc|mylogin\.cnf)(?:/|\Z)",
    r"(?:^|/)[._]netrc\Z",
    r"^~/\.circleci(?:/|\Z)",
    r"^~/\.(?:npmrc|yarnrc\.yml|wgetrc|curlrc|smbcredentials)\Z",
    r"(?:^|/)\.(?:kube(?:/config)?\Z|docker/config\.json|cargo/credentials|gem/credentials|terraform\.d/credentials|"
    r"m2/settings|gradle/gradle\.properties|config/containers/auth\.json)",
    r"(?:^|/)[^/]*kubeconfig[^/]*\Z",
    r"(?:^|/)\.(?:bash|zsh|python|psql|mysql|mariadb|node_repl|sqlite|duckdb|rediscli|ash|irb|pry|php)_history\Z",
    r"(?:^|/)fish_history\Z",
    r"^/tmp/krb5cc_\w+\Z",
    r"(?:^|/)\.env(?:rc)?\Z",
    r"(?:^|/)\.env\.(?!(?:example|sample|template|dist|defaults?|schema|test)\Z)[\w.*-]+\Z",
    r"(?:^|/)[\w-]+\.env\Z",
    r"^/proc/[^/]+/(?:task/[^/]+/)?environ\Z",
    r"^(?:/var)?/run/secrets(?:/|\Z)",
    r"(?:^|/)(?:\.local/share/keyrings|Library/Keychains)(?:/|\Z)",
    r"(?:^|/)(?:google-chrome|chromium|Chrome|BraveSoftware|microsoft-edge|Microsoft Edge)/.*"
    r"(?:Cookies|Login Data|Web Data|Local State)",
    r"(?:^|/)(?:\.mozilla/)?firefox/.*(?:logins\.json|key[34]\.db|cookies\.sqlite)",
    r"(?:^|/)(?:[^/]*[-_.])?(?:credentials?|secrets?|tokens?)\.(?:json|ya?ml|toml|ini|txt|env|cfg|conf|xml|db)\Z",
    r"(?:^|/)\.(?:credentials?|secrets?|tokens?|api[-_]?keys?|passwords?|vault[-_]pass(?:word)?)(?:/|\.txt\Z|\Z)",
    r"(?:^|/)(?:service[-_]?account|client_secret|application_default_credentials|serviceaccountkey)[^/]*\.json\Z",
    r"(?:^|/)(?:passwords?|api[-_]?keys?)\.(?:txt|json|ya?ml|csv)\Z",
    r"(?:^|/)terraform\.tfstate(?:\.backup)?\Z",
    r"(?:^|/)\.config/(?:git/credentials\Z|solana(?:/|\Z)|Signal(?:/|\Z)|1Password(?:/|\Z)|Bitwarden[^/]*(?:/|\Z))",
    r"(?:^|/)(?:\.ethereum/keystore|\.?keystores?/UTC--[^/]*|\.(?:bitcoin|litecoin|dogecoin)/(?:.*/)?wallets?|\.electrum/wallets"
    r"|\.(?:near-credentials|aptos|sui|monero|cardano|brownie/accounts|foundry/keystores))(?:/|\Z)",
    r"(?:^|/)(?:[^/]*[-_.])?wallet\.(?:dat|json|keys)\Z",
    r"(?:^|/)(?:[^/]*[-_.])?(?:private|secret|sec|priv)(?:[-_]?keys?)?\.(?:asc|gpg|pgp|pem|key)\Z",
    r"^~/\.claude\.json\Z",
    r"(?:^|/)(?:\.claude/\.credentials\.json|\.codex/auth\.json|\.local/share/opencode/auth\.json)\Z",
)

_SYSTEM_CONFIG = _pattern(
    r"^/(?:private/)?etc(?:/|\Z)",
    r"^/boot(?:/|\Z)",
    r"^/(?:usr/)?(?:local/)?(?:lib|etc)/(?:systemd|udev|modprobe\.d|sysctl\.d|tmpfiles\.d|sysusers\.d)(?:/|\Z)",
    r"^/(?:usr/local|opt/homebrew)/etc(?:/|\Z)",
    r"^/proc/sys(?:/|rq)",
    r"^/sys/",
    r"^/(?:System/)?Library/(?:Preferences|Extensions|Security|Frameworks)(?:/|\Z)",
    r"^/var/spool/cron(?:/|\Z)",
    r"^[a-z]:/windows(?:/|\Z)",
)

_SSH = _pattern(r"(?:^|/)\.ssh(?:/|\Z)", r"^/(?:private/)?etc/ssh(?:/|\Z)", r"(?:^|/)authorized_keys2?\Z")

_POLICY = _pattern(
    r"(?:^|/)(?:AGENTS?|CLAUDE|SOUL|GEMINI|HERMES|QWEN|COPILOT|CONVENTIONS|WARP|CRUSH)(?:\.(?:local|override))?\.md\Z",
    r"(?:^|/)\.(?:cursorrules|windsurfrules|clinerules|goosehints|roorules|roomodes|kilocoderules|aider\.conf\.yml|hermes\.md|claude\.json)"
    r"(?:/|\Z)",
    r"(?:^|/)\.(?:claude|codex|cursor|gemini|windsurf|hermes|continue|opencode|kiro|roo|cline|amazonq|junie|goose|openclaw"
    r"|kilocode|qwen|augment|trae|factory|agents|amp|crush)"
    r"(?:/|\Z)",
    r"(?:^|/)\.github/(?:copilot-instructions\.md|(?:instructions|prompts|chatmodes|agents)/)",
    r"(?:^|/)\.?(?:mcp|mcp[-_]?(?:config|settings|servers?)|claude_desktop_config|opencode|crush)\.jsonc?\Z",
    r"(?:^|/)\.config/(?:opencode|goose|amp|github-copilot|claude|Claude|Cursor)(?:/|\Z)",
)

_EXECUTABLES = _pattern(
    r"^(?:/usr|/usr/local|/opt/homebrew|/opt/local|/snap)?/s?bin(?:/|\Z)",
    r"^(?:/usr(?:/local)?)?/(?:libexec|lib(?:32|64)?)(?:/|\Z)",
    r"^~/(?:\.local/bin|bin|\.cargo/bin|go/bin|\.bun/bin|\.deno/bin)(?:/|\Z)",
    r"(?:^|/)(?:node_modules/\.bin|\.?venv/bin|vendor/bin)/[^/]+\Z",
)

_DEVICES = _pattern(r"^/dev/(?:mem|kmem|port|nvram|mtd\w*|loop\d+|fb\d+|hwrng|watchdog\d*|kvm|cpu/.+|bus/.+|ubi\w*)\Z")

_NETWORK = _pattern(r"^/dev/(?:tcp|udp)/")

_TEXTS = {
    "network_device": _NETWORK,
    "startup_file": _STARTUP,
    "secret_file": _SECRET,
    "system_config": _SYSTEM_CONFIG,
    "ssh_material": _SSH,
    "policy_file": _POLICY,
    "executable_folder": _EXECUTABLES,
    "raw_device": _DEVICES,
}

_DOTTED = r"\.(?<!\w\.)\w|-(?<=^-)\w\."
"""A name that begins with a dot. Each hint begins with a plain character, for which the search then skips ahead."""
_HINTS = {
    "network_device": r"dev",
    "startup_file": _DOTTED + r"|etc|launch|cron|systemd|customize|\.pth|profile|startup|site-packages",
    "secret_file": _DOTTED
    + r"|\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|env|ovpn|tfvars)|id_[rde]|wg\d|auth\.json|krb5|_history|etc"
    r"|kubeconfig|proc|_netrc|keyrings|keychains|chrom|brave|edge|firefox|credential|secret|wallet|keystore|priv"
    r"|\.(?:asc|gpg|pgp)|token|passw|api[-_]?key|account|tfstate|vault",
    "system_config": r"etc|boot|lib|proc|sys|cron|windows",
    "ssh_material": _DOTTED + r"|ssh|authorized_keys",
    "policy_file": _DOTTED + r"|agent|claude|soul|gemini|hermes|qwen|copilot|conventions|mcp|opencode|warp|crush",
    "executable_folder": r"bin|lib",
    "raw_device": r"dev",
}
"""What a path of a class has in it somewhere: most words have none of it, and trying these costs a tenth (measured)."""

_SAMPLES = {
    "startup_file": ("~/.bashrc", "~/.profile", "~/.zshrc", "~/.bash_profile", "/etc/profile", "/etc/crontab"),
    "secret_file": (
        "~/.ssh/id_rsa",
        "~/.ssh/id_ed25519",
        "/etc/shadow",
        "~/.aws/credentials",
        "~/.netrc",
        "~/.kube/config",
        "~/.git-credentials",
        ".env",
    ),
    "system_config": ("/etc/passwd", "/etc/hosts", "/etc/sudoers", "/etc/shadow"),
    "ssh_material": ("~/.ssh/authorized_keys", "~/.ssh/id_rsa", "~/.ssh/config"),
    "policy_file": ("AGENTS.md", "CLAUDE.md", "SOUL.md", ".cursorrules", ".mcp.json", ".claude/settings.json"),
    "executable_folder": ("/usr/bin/env", "/bin/sh"),
    "raw_device": (),
    "network_device": (),
}
"""For words with stars: what they are compared with, name by name."""


def _folded(path: str, home: str | None) -> str:
    """A normal path with the home directory, anybody's, as `~`."""
    for known in (home, UNKNOWN_HOME):
        if known and (path == known or path.startswith(known + "/")):
            return "~" + path[len(known) :]
    match = _ANY_HOME.match(path)
    return "~" + path[match.end() :] if match else path


def _form(text: str, cwd: str | None, home: str | None) -> str:
    if text.startswith("file://"):
        text = text[7:]
    if text[:1] not in {"/", "~", UNKNOWN} and cwd is not None:
        text = f"{cwd}/{text}"
    path = posixpath.normpath(text)
    return _folded(path[1:] if path.startswith("//") else path, home)


@lru_cache(maxsize=4096)
def _forms(text: str, cwd: str | None, home: str | None) -> tuple[str, ...]:
    """The paths a word may name, in normal form: itself, and what stands behind a mark in it or a short option."""
    if not text or ("://" in text[:12] and not text.startswith("file://")) or _PROSE.match(text):
        return ()
    found = [text]
    if text[0] == "-":
        found = [text[2:]] if len(text) > 2 and text[1] != "-" else []
    if _PIECES.search(text) and " " not in text:
        found += _PIECES.split(text)
    found += _behind_nothing(text, home)
    return tuple(dict.fromkeys(_form(piece, cwd, home) for piece in found if piece))


def _behind_nothing(text: str, home: str | None) -> list[str]:
    """`$x$HOME/.bashrc`: what is not set adds nothing, and before a home directory nobody means a folder."""
    if text[0] != UNKNOWN:
        return []
    rest = text.lstrip(UNKNOWN + "./")
    return [f"/{rest}" for known in (home, UNKNOWN_HOME) if known and f"/{rest}".startswith(f"{known}/")]


def _covers(pattern: str, sample: str) -> bool:
    """Whether a path with stars is aimed at a sample: name by name, and no name is left to stars alone."""
    ours, theirs = pattern.split("/"), sample.split("/")
    if sample[0] not in "~/":
        ours = ours[-len(theirs) :]
    if len(ours) != len(theirs):
        return False
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one == other:
            continue
        # In a hidden folder that was hit, everything is what the folder is known for.
        if one == "*" and place > 1 and place == len(ours) - 1 and theirs[place - 1][:1] == ".":
            continue
        stem = one if one[:1] == "." else one.rpartition(".")[0] or one
        if len(_ALIVE.sub("", stem)) < 2 or not fnmatchcase(other, one) or (other[:1] == "." and one[:1] != "."):
            return False
    return True


@cache
def _compiled(name: str) -> re.Pattern[str]:
    """The expression of a class, made when it is first needed: together they take 16 ms (measured)."""
    return re.compile(_TEXTS[name], re.I)


@cache
def _hint(name: str) -> re.Pattern[str]:
    return re.compile(_HINTS[name], re.M)


@cache
def _some_hint() -> re.Pattern[str]:
    return re.compile("|".join(_HINTS.values()), re.M)


@lru_cache(maxsize=256)
def _folder_hints_some(cwd: str) -> bool:
    return any(_folder_hints(name, cwd) for name in _HINTS)


def prepare() -> None:
    """Make the expressions of all classes."""
    for name in _TEXTS:
        _compiled(name)
        _hint(name)
    _some_hint()


@lru_cache(maxsize=256)
def _folder_hints(name: str, cwd: str) -> bool:
    return not cwd.isascii() or _hint(name).search(cwd.lower()) is not None


def may_fit(name: str, text: str, cwd: str | None) -> bool:
    """Whether a text without stars, or the folder it is relative to, has anything in it that paths of a class have."""
    if not text.isascii() or _hint(name).search(text.lower()) is not None:
        return True
    return cwd is not None and _folder_hints(name, cwd)


@lru_cache(maxsize=8192)
def _fits(name: str, text: str, globbed: bool, cwd: str | None, home: str | None) -> bool:
    pattern = _compiled(name)
    for form in _forms(text, cwd, home):
        if pattern.search(form):
            return True
        if globbed and _ALIVE.search(form) and any(_covers(form, sample) for sample in _SAMPLES[name]):
            return True
    return False


def may_be_of(name: str, words: tuple[Word, ...], cwd: str | None) -> bool:
    """Whether one of a command's words may be of a class, told by all of them together."""
    if cwd is not None and _folder_hints(name, cwd):
        return True
    texts: list[str] = []
    for word in words:
        if word.pattern is not None:
            return True
        texts.append(word.text)
    text = "\n".join(texts)
    return not text.isascii() or _hint(name).search(text.lower()) is not None


def _text_class(name: str) -> PathClass:
    def fits(word: Word, cwd: str | None, facts: PathFacts) -> bool:
        text, globbed = word.text, word.pattern is not None
        if len(text) > MAX_PATH_CHARS or not (globbed or may_fit(name, text, cwd)):
            return False
        return _fits(name, text, globbed, cwd, facts.home)

    return fits


TEXT_CLASSES = frozenset(_TEXTS) - {"raw_device"}
"""The classes that the text of a path decides."""


@lru_cache(maxsize=4096)
def _all_of(text: str, globbed: bool, cwd: str | None, home: str | None) -> frozenset[str]:
    hinted = globbed or not text.isascii() or _some_hint().search(text.lower()) is not None
    if not hinted and (cwd is None or not _folder_hints_some(cwd)):
        return frozenset()
    names = (name for name in TEXT_CLASSES if globbed or may_fit(name, text, cwd))
    return frozenset(name for name in names if _fits(name, text, globbed, cwd, home))


def text_classes(word: Word, cwd: str | None, facts: PathFacts) -> frozenset[str]:
    """All of `TEXT_CLASSES` that the word is of, for those who ask for many of them."""
    if len(word.text) > MAX_PATH_CHARS:
        return frozenset()
    return _all_of(word.text, word.pattern is not None, cwd, facts.home)


_PLAIN_PATH = re.compile(r"\w[\w./+-]*", re.A)


@lru_cache(maxsize=256)
def _is_calm(cwd: str, start: str | None) -> bool:
    """Whether a folder lies in the one where the action starts, and has nothing in it that paths of any class have."""
    inside = start or cwd
    within = inside != "/" and (cwd == inside or cwd.startswith(inside.rstrip("/") + "/"))
    plain = len(cwd) > 1 and cwd[:2] != "//" and posixpath.normpath(cwd) == cwd
    return within and plain and not _folder_hints_some(cwd)


def is_inside(word: Word, cwd: str | None, facts: PathFacts) -> bool:
    """Whether a word is a plain path within such a folder, and has nothing of those in it either: it is of no class."""
    text = word.text
    if word.pattern is not None or cwd is None or not text or not _is_calm(cwd, facts.start):
        return False
    plain = "/." not in text and ".." not in text and _PLAIN_PATH.fullmatch(text) is not None
    return plain and _some_hint().search(text.lower()) is None


def is_raw_device(word: Word, cwd: str | None, facts: PathFacts) -> bool:
    """A disk, or a device that reaches memory or hardware."""
    return paths.is_disk(word, cwd, facts) or _DEVICE(word, cwd, facts)


_DEVICE = _text_class("raw_device")

# Where scratch files belong

_SCRATCH = re.compile(
    r"(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm)(?:/|\Z)|~/(?:tmp|\.cache)(?:/|\Z)"
    r"|/dev/(?:null|zero|full|stdin|stdout|stderr|tty|u?random|fd/\d+)\Z"
)


@lru_cache(maxsize=4096)
def _outside(text: str, cwd: str | None, start: str | None, home: str | None) -> bool:
    path = text if text.startswith("/") or cwd is None else f"{cwd}/{text}"
    path = posixpath.normpath(path)
    path = path[1:] if path.startswith("//") else path
    if not path.startswith("/"):
        return path == ".." or path.startswith("../")
    inside = start or cwd
    if inside is not None and inside != "/" and (path == inside or path.startswith(inside.rstrip("/") + "/")):
        return False
    return not _SCRATCH.match(_folded(path, home))


def is_outside(word: Word, cwd: str | None, facts: PathFacts) -> bool:
    """A path outside the folder the action started in and outside the folders for scratch files.

    A word that is unknown from its beginning on may be anywhere: it does not count.
    """
    text = word.text
    if not text or len(text) > MAX_PATH_CHARS or text[0] in {UNKNOWN, "-"} or "://" in text[:12]:
        return False
    return _outside(text, cwd, facts.start, facts.home)


def is_elsewhere(word: Word, cwd: str | None, facts: PathFacts) -> bool:
    """The same where that folder is known: nobody can tell what lies outside of one that is not. What a person drops on
    the way, in `Downloads` and on the desktop, does not count."""
    if facts.start is None or not is_outside(word, cwd, facts):
        return False
    return _DROPPED.match(_form(word.text, cwd, facts.home)) is None


_DROPPED = re.compile(r"~/(?:Downloads|Desktop)(?:/|\Z)")


# Addresses

_METADATA_FORMS = (
    r"169[.-]254[.-]169[.-]254|169\.254\.170\.2\b|169\.254\.43518|metadata\.google\.internal|metadata\.goog\b"
    r"|fd00(?<=\bfd00):0?ec2:(?:0+:)*:?0*254|fd00:ec2::254|100\.100\.100\.200"
    r"|instance(?<=\binstance)-data(?:\.ec2\.internal)?\b"
    r"|192\.0\.0\.192|metadata\.(?:tencentyun\.com|azure\.(?:com|internal)|packet\.net|platformequinix\.com|oraclecloud)"
)
_METADATA = re.compile(_METADATA_FORMS, re.I)
_METADATA_LOWER = re.compile(_METADATA_FORMS)
"""For texts in small letters, in which it skips ahead."""
_NUMERIC_HOST = re.compile(r"(?:\A|//|@|\s)((?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3})(?=[:/?#]|\Z)", re.I)
_METADATA_NUMBERS = frozenset({0xA9FEA9FE, 0xA9FEAA02, 0x646464C8, 0xC00000C0})
"""169.254.169.254, 169.254.170.2, 100.100.100.200 and 192.0.0.192."""


def _address(host: str) -> int | None:
    """The number of an IPv4 address in any way of writing that the C library takes."""
    numbers: list[int] = []
    for part in host.split("."):
        try:
            numbers.append(int(part, 16) if part[:2].lower() == "0x" else int(part, 8 if part[:1] == "0" else 10))
        except ValueError:
            return None
    value = 0
    for number in numbers[:-1]:
        value = value << 8 | number & 0xFF
    return value << 8 * (5 - len(numbers)) | numbers[-1] if len(numbers) <= 4 else None


def is_metadata_address(word: Word, _cwd: str | None, _facts: PathFacts) -> bool:
    """An address at which a cloud hands out the credentials of its machines."""
    text = word.text
    if len(text) < 7 or len(text) > MAX_PATH_CHARS:
        return False
    if (_METADATA_LOWER.search(text.lower()) if text.isascii() else _METADATA.search(text)) is not None:
        return True
    return any(_address(match.group(1)) in _METADATA_NUMBERS for match in _NUMERIC_HOST.finditer(text))


CLASSES: dict[str, PathClass] = {
    "root": paths.is_root,
    "system": paths.is_system,
    "home": paths.is_home,
    "disk": paths.is_disk,
    "own": paths.is_own,
    "holds_own": paths.holds_own,
    "file": paths.is_file,
    **{name: _text_class(name) for name in _TEXTS if name != "raw_device"},
    "raw_device": is_raw_device,
    "outside": is_outside,
    "elsewhere": is_elsewhere,
    "metadata_address": is_metadata_address,
}
"""All classes that `operands`, `writes` and `reads` of a rule may name."""
