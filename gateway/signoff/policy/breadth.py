"""How far a standing approval of one finding reaches: the rule for a program, narrowed to the deed that was seen.

Many rules speak of whole programs: `aws` changes something, `rm` deletes. Who approves one such deed for a session has
seen that deed. So a name of a grant holds besides the rule and the program whose rights and which place it runs in,
which of the program's own commands it is, where the files are that it deletes, and the like. Whatever narrows is told.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from shlex import quote

import msgspec

from signoff.policy import paths
from signoff.policy.path_classes import is_outside
from signoff.policy.programs import name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word
from signoff.policy.verdict import MAX_LABEL_CHARS

MAX_LOOKED_AT = 64
"""With more targets than this a command is a deed of its own: nobody has read them all."""

MAX_COMMANDS = 200
"""In a text of more commands a wrapper stands with all of its words: what it carries is not looked for."""

MAX_NARROW_CHARS = 200
"""How much of a text from the command stands in the name of a grant; a longer one is approved by itself."""

_PRIVILEGED = frozenset(
    {
        *("sudo", "doas", "pkexec", "run0", "gksudo", "kdesudo", "gksu", "dzdo", "pfexec", "sudo-rs", "please", "su"),
        *("calife", "super", "runuser", "gosu", "su-exec", "sg", "setpriv", "runcon", "capsh", "machinectl", "ksu"),
        *("chroot", "unshare", "nsenter", "systemd-nspawn", "start-stop-daemon"),
    }
)
_PLACES = frozenset(
    {
        *("docker", "podman", "nerdctl", "docker-compose", "podman-compose", "kubectl", "oc", "kubecolor", "ssh"),
        *("distrobox", "toolbox", "lxc", "incus", "multipass", "vagrant", "mosh", "autossh", "sshpass", "flyctl"),
    }
)
_CHANGES_WHO_OR_WHERE = _PRIVILEGED | _PLACES


class Narrow(msgspec.Struct, frozen=True):
    """One thing that narrows a grant: as it stands in the name, as it is told, and on a button where that fits."""

    name: str
    told: str
    label: str = ""


class Breadth(msgspec.Struct, frozen=True):
    """What a grant names beside the rule: the program with those that carry it, and what narrows it."""

    program: str
    narrow: tuple[Narrow, ...] = ()

    @property
    def coverage(self) -> str:
        """What stands behind the key of the rule."""
        return " ".join((self.program, *(f"[{item.name}]" for item in self.narrow if item.name)))

    @property
    def label(self) -> str:
        """What a button says instead of the rule's label; empty where that says it well enough."""
        labels = [item.label for item in self.narrow if item.label]
        fits = bool(labels) and labels[0].isprintable() and labels[0].isascii() and len(labels[0]) <= MAX_LABEL_CHARS
        return labels[0] if fits else ""

    @property
    def told(self) -> str:
        """What is told behind the breadth of the rule; empty where nothing narrows it."""
        return ", ".join(dict.fromkeys(item.told for item in self.narrow if item.told))

    @property
    def inside(self) -> bool:
        """Whether it reaches no farther than the folder that the action starts in, and only to a part of it."""
        found = False
        for item in self.narrow:  # of thousands of findings a generator for each would cost more
            if item is _WHOLE or item is _HISTORY:
                return False
            found = found or item.told == _INSIDE
        return found


def breadth_of(key: str, seen: Seen) -> Breadth:
    """How far an approval of the rule `key` for this command reaches."""
    command = seen.command
    around = [name for name in command.chain if name in _CHANGES_WHO_OR_WHERE]
    name = seen.name.removeprefix("./")
    program = " ".join([*around, name])
    narrow = list(_around(around, name))
    for starts, look in _BY_KEY:
        if key.startswith(starts):
            narrow += look(seen)
    if name in _WORDS:
        narrow += _deed(seen, _WORDS[name])
    return Breadth(program, tuple(dict.fromkeys(narrow)))


def _around(around: list[str], name: str) -> Iterator[Narrow]:
    if around:
        text = " ".join([*around, name])
        yield Narrow("", f"by {text}", text)  # the program says it


def _short(text: str) -> str:
    """A text of the command as it stands in a name; unknown stretches show as dots."""
    plain = " ".join(text.replace(UNKNOWN, "…").split())
    return plain if len(plain) <= MAX_NARROW_CHARS else f"{plain[: MAX_NARROW_CHARS - 20]}… {_digest(plain)}"


# Somebody else's rights


def _carried(seen: Seen) -> Iterator[Narrow]:
    """The programs that run with other rights: `sudo ls` says nothing of `sudo useradd`, nor does `sudo env ls`."""
    names = [] if seen.name == "sudoedit" or seen.has("-e", "--edit") else _carried_names(seen)
    text = _short(" ".join([seen.name, *dict.fromkeys(names)]) if names else seen.command.text)
    yield Narrow(text, f"only {text}", text)
    for user in seen.values("-u", "--user", "-g", "--group"):
        yield Narrow(f"as {_short(user.text)}", f"as {_short(user.text)}")


def _carried_names(seen: Seen) -> list[str]:
    """The programs this one carries, in order; none where there are too many commands to look through."""
    commands = seen.script.commands
    if len(commands) > MAX_COMMANDS:
        return []
    place = next((index for index, command in enumerate(commands) if command is seen.command), len(commands))
    depth = len(seen.command.chain)
    behind = takewhile(lambda each: len(each.chain) > depth and each.chain[depth] == seen.name, commands[place + 1 :])
    return [_short(name_of(each.words[0].text, each.cwd)) for each in behind if each.words]


# Files


_INSIDE = "inside the folder it starts in"
_WHOLE = Narrow("whole", "the whole folder", "the whole folder")
_HISTORY = Narrow("history", "what git keeps of it", "git's own files")
_OF_HISTORY = re.compile(r"(?:\A|/)\.git(?:/*\Z|/(?:\*|objects|refs))")
_UNKNOWN_TARGETS = Narrow("unknown targets", "what is only known when it runs", "unknown targets")


def _operands_of(seen: Seen) -> list[Word]:
    if seen.name in {"find", "gfind"}:
        roots: list[Word] = []
        for word in seen.words[1:]:
            if word.text[:1] in {"-", "(", "!"}:
                break
            roots.append(word)
        return roots or [Word(".")]
    return seen.operands


def _deleted(seen: Seen) -> Iterator[Narrow]:
    """Where the files are: inside the folder the action starts in, the whole of it, outside, or unknown."""
    redirected = [redirect.target for redirect in seen.command.redirects if redirect.writes]
    targets = [*_operands_of(seen), *redirected]
    start = seen.facts.paths.start
    if len(targets) > MAX_LOOKED_AT:
        text = _digest_of(targets)
        yield Narrow(f"these {text}", "only these files")
        return
    unknown = any(UNKNOWN in word.text for word in targets) or _is_lost(seen)
    if unknown:
        yield _UNKNOWN_TARGETS
    if seen.command.place != "here":
        return
    start = start or seen.cwd
    outside = sorted(quote(_short(word.text)) for word in targets if _is_outside(word, seen))
    if outside:
        yield Narrow(
            f"outside {' '.join(outside)}", f"only {' '.join(outside)}, outside of the folder", "outside files"
        )
    elif start is not None:
        yield Narrow(f"in {start}", "" if unknown else _INSIDE)
    if seen.name not in {"find", "gfind"} and any(_is_whole(word, seen) for word in targets):
        yield _WHOLE
    if any(_OF_HISTORY.search(word.text) for word in targets):
        yield _HISTORY


def _is_lost(seen: Seen) -> bool:
    """Whether the command runs in a folder that is not known, although the text or the action speaks of one."""
    if seen.cwd is not None:
        return False
    commands = seen.script.commands
    return (
        seen.facts.paths.start is not None
        or len(commands) > MAX_COMMANDS
        or any(command.program in {"cd", "pushd", "popd"} for command in commands)
    )


def _digest_of(words: Iterable[Word]) -> str:
    """A short text that differs where the words do."""
    return _digest("\0".join(word.text for word in words))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _is_outside(word: Word, seen: Seen) -> bool:
    return UNKNOWN not in word.text[:1] and is_outside(word, seen.cwd, seen.facts.paths)


def _is_whole(word: Word, seen: Seen) -> bool:
    """The folder itself, or all that is in it."""
    text = word.text.rstrip("/")
    for ending in ("/*", "/.*", "/**"):
        text = text.removesuffix(ending)
    if text in {"", ".", "..", "*", ".*", "**", "./"}:
        return True
    start = seen.facts.paths.start
    return start is not None and paths.parts(Word(text), seen.cwd) == paths.parts(Word(start), None)


_KINDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), told)
    for pattern, told in (
        (r"/etc/(?:passwd|group|g?shadow|sudoers|pam|security|polkit|login|securetty|ld\.so)", "accounts and rights"),
        (r"authorized_keys|/\.ssh/rc|/etc/ssh", "who may log in"),
        (r"/\.ssh(?:\Z|/(?!config\Z|known_hosts|authorized_keys|rc\Z))|id_(?:rsa|e?c?dsa|ed25519)", "keys for logins"),
        (r"/\.aws|/gcloud|/\.kube|/\.azure|kubeconfig|/\.oci|/doctl|service[-_]?account", "keys of clouds"),
        (r"/\.gnupg|keyrings|keychains|password-store|netrc|git-credentials|kdbx|cookies|/login", "passwords"),
        (r"/\.git/|/\.config/git|/\.gitconfig", "hooks and settings of git"),
        (r"systemd|/etc/cron|/var/spool/cron|/etc/init|launch(?:agents|daemons)|autostart", "services and jobs"),
        (r"/\.(?:bash|zsh|profile|zprofile|zlog|config/fish|xprofile|inputrc|login)", "files of the shell"),
        (r"/etc/hosts", "/etc/hosts"),
        (r"/boot/|/etc/(?:fstab|grub|default/grub)|/proc/sys|/sys/", "how the machine starts"),
        (r"\.env(?:[./]|\Z|rc)|\.env\.", ".env files"),
    )
)


def _kinds_of_files(seen: Seen) -> Iterator[Narrow]:
    """Which kinds of files a command about sensitive ones names, and whether they are outside of the folder."""
    words = [*seen.command.words[1:], *(redirect.target for redirect in seen.command.redirects)]
    if len(words) > MAX_LOOKED_AT:
        yield Narrow(f"these {_digest_of(words)}", "only these files")
        return
    for pattern, told in _KINDS:
        if any(pattern.search(form) for word in words for form in _forms(word.text, seen.cwd)):
            yield Narrow(told, f"only {told}", told)
    if any(_is_outside(word, seen) for word in words):
        yield Narrow("outside", "outside of the folder it starts in")


def _forms(text: str, cwd: str | None) -> tuple[str, ...]:
    piece = text.partition("=")[2] or text
    return (text, piece if piece.startswith(("/", "~")) else f"{cwd or ''}/{piece}")


# Git

_GRAVE_BRANCH = re.compile(
    r"(?:refs/heads/)?(?:main|master|trunk|develop|stable|prod\w*|live|head|release\b.*|\d.*)", re.I
)


def _pushed(seen: Seen) -> Iterator[Narrow]:
    """Where a push goes and to which branches."""
    if seen.texts[:1] != ["push"]:
        yield Narrow(_short(" ".join(seen.texts)), f"only git {_short(' '.join(seen.texts))}")
        return
    remote, refs = (seen.texts[1] if len(seen.texts) > 1 else ""), seen.texts[2:]
    repo = seen.values("--repo")
    remote = repo[0].text if repo else remote
    if remote not in {"", "origin"}:
        yield Narrow(f"to {_short(remote)}", f"only to {_short(remote)}")
    for flags, told in _PUSH_FLAGS:
        if seen.has_any(flags):
            yield Narrow(told, told, told)
    targets = [ref.lstrip("+").rpartition(":")[2] for ref in refs]
    if any(ref.startswith(":") for ref in refs):
        yield Narrow("deleting branches", "deleting branches", "deleting branches")
    if any(UNKNOWN in ref for ref in refs):
        yield Narrow("unknown branches", "branches that are only known when it runs")
    grave = sorted({_short(target) for target in targets if _GRAVE_BRANCH.fullmatch(target)})
    if grave:
        yield Narrow(f"to branch {' '.join(grave)}", f"only the branch {' '.join(grave)}", f"pushes to {grave[0]}")
    if not refs:
        yield Narrow("the current branch", "the branch that is checked out")


_PUSH_FLAGS = (
    (frozenset({"--all", "--branches"}), "all branches"),
    (frozenset({"--mirror", "--prune"}), "mirroring"),
    (frozenset({"-d", "--delete"}), "deleting branches"),
    (frozenset({"--tags", "--follow-tags"}), "tags"),
)

_SETTING = re.compile(r"(?:-c)?([A-Za-z][\w-]*\.[^\s=]+)(?:=.*)?", re.S)


def _settings(seen: Seen) -> Iterator[Narrow]:
    """The names of the settings: what runs on each commit and where git fetches from are two deeds."""
    names = {match.group(1).casefold() for word in seen.words[1:] if (match := _SETTING.fullmatch(word.text))}
    text = _short(" ".join(sorted(names)))
    if text:
        yield Narrow(text, f"only {text}")


def _whole_text(seen: Seen) -> Iterator[Narrow]:
    """Nothing but the same words of this program; where some are not known, as they are written."""
    text = _short(" ".join(word.text for word in seen.words))
    unknown = any(UNKNOWN in word.text for word in seen.words)
    name = f"{text} {_digest(seen.command.source)}" if unknown else text
    yield Narrow(name, f"only {text}", text)


# What goes over the network

_HOST = re.compile(r"//(?:[^/@\s]*+@)?(\[[^]]*\]|[^/:?#\s]+)")
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def _requested(seen: Seen) -> Iterator[Narrow]:
    """The method where it is not the usual one, and the machine it goes to."""
    methods = {word.text.upper() for word in seen.values("-X", "--request", "--method")}
    methods |= _METHODS.intersection(seen.texts)
    for method in sorted(methods - {"POST", "GET"}):
        yield Narrow(f"method {_short(method)}", f"only {_short(method)}", f"{seen.name} {_short(method)}")
    if seen.has("-T", "--upload-file"):
        yield Narrow("uploads", "only uploads")
    hosts = set()
    for word in seen.words[1:]:
        match = _HOST.search(word.text)
        if match is not None:
            hosts.add(_short(match.group(1)).lower())
    if not hosts and seen.texts:
        hosts.add(_short(re.split(r"[/:?#]", seen.texts[-1])[0]).lower())
    if hosts:
        text = " ".join(sorted(hosts))
        yield Narrow(f"to {text}", f"only to {text}")


def _hosts(seen: Seen) -> Iterator[Narrow]:
    """The machines that an SSH client or copier talks to."""
    if seen.name in {"ssh", "mosh", "autossh", "slogin", "ssh-copy-id", "sftp"}:
        named = seen.texts[:1]
    else:
        named = [text.partition(":")[0] for text in seen.texts if re.match(r"[\w.@-]+:", text)]
    text = _short(" ".join(sorted(set(named))))
    if text:
        yield Narrow(f"to {text}", f"only {text}", f"{seen.name} {text}")
    if seen.has("--delete", "--delete-after", "--delete-before", "--delete-during", "--remove-source-files"):
        yield Narrow("deleting", "deleting what is not in the source")


# Databases

_RIGHTS = re.compile(
    r"\b(?:grant|revoke|(?:create|alter|drop)\s+(?:user|role|login)|set\s+password|identified\s+by)\b", re.I
)
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "[::1]", ""})


def _database(seen: Seen) -> Iterator[Narrow]:
    """Whether rights are given, and the machine the database is on."""
    text = f"{seen.command.text}\n{seen.command.stdin or ''}"
    if _RIGHTS.search(text):
        yield Narrow("rights", "rights and users", "rights and users")
    hosts = {word.text for word in seen.values("-h", "--host", "-S", "--server")}
    hosts |= {match.group(1) for word in seen.words[1:] if "://" in word.text and (match := _HOST.search(word.text))}
    hosts |= {word.text[2:] for word in seen.words[1:] if re.match(r"-h[\w.]", word.text)}
    hosts |= {match.group(1) for word in seen.words[1:] if (match := re.search(r"\bhost=(\S+)", word.text))}
    hosts |= {value for name, value in seen.command.assignments if name in {"PGHOST", "MYSQL_HOST", "DATABASE_URL"}}
    elsewhere = _short(" ".join(sorted(host for host in hosts if not host.startswith("/") and host not in _LOCAL)))
    if elsewhere:
        yield Narrow(f"on {elsewhere}", f"only on {elsewhere}", f"{seen.name} on {elsewhere}")


# Clients with commands of their own

_TWO = (
    "aws", "gh", "glab", "hub", "tea", "kubectl", "oc", "kubecolor", "npm", "pnpm", "yarn", "bun", "cargo", "gem",
    "systemctl", "service", "rc-service", "invoke-rc.d", "sv", "launchctl", "supervisorctl", "pm2", "stripe", "twurl",
    "terraform", "tofu", "terragrunt", "pulumi", "helm", "flux", "argocd", "doctl", "flyctl", "fly", "heroku", "vercel",
    "now", "netlify", "ntl", "firebase", "wrangler", "railway", "supabase", "vault", "consul", "nomad", "gsutil", "bq",
    "ip", "nmcli", "flask", "prisma", "update-rc.d", "rc-update", "chkconfig", "hcloud", "scw", "mc", "b2", "s3cmd",
    "s3api", "conda", "eksctl", "minikube", "kind", "k3d", "loginctl", "security", "rabbitmqctl", "sls", "serverless",
)  # fmt: skip
_WORDS: dict[str, int] = {
    **dict.fromkeys(_TWO, 2),
    **dict.fromkeys(("gcloud", "az", "ibmcloud", "oci", "linode-cli"), 4),
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), 1),
    **dict.fromkeys(("brew", "ufw", "apt", "apt-get", "pip", "pip3", "dnf", "yum", "pacman", "snap", "port"), 1),
    **dict.fromkeys(("alembic", "liquibase", "flyway", "dbmate", "goose", "sqlx", "diesel", "firewall-cmd"), 1),
    **dict.fromkeys(("make", "gmake", "just", "task", "rake", "invoke", "fab", "redis-cli", "valkey-cli"), 1),
    **dict.fromkeys(("twine", "poetry", "hatch", "uv", "pdm", "kadmin", "pg_ctl", "nginx", "helmfile", "skaffold"), 1),
}
"""How many of the first operands say what a client does."""

_GROUPS = frozenset(
    {"container", "image", "volume", "network", "compose", "system", "service", "stack", "swarm", "node", "secret"}
    | {"config", "context", "builder", "buildx", "machine", "plugin", "manifest", "pod", "services", "bundle", "cask"}
)
_VERB = re.compile(r"[A-Za-z][\w:.-]*")
_WHERE = ("--context", "--kube-context", "--kubeconfig", "--profile", "--project", "--subscription", "--host", "--app")


def _deed(seen: Seen, count: int) -> Iterator[Narrow]:
    """Which command of a client: `aws s3 cp` is not `aws iam attach-user-policy`."""
    verbs: list[str] = []
    for text in seen.texts[: count + 1 if seen.texts[:1] and seen.texts[0] in _GROUPS else count]:
        verb = text.partition("/")[0]
        if not _VERB.fullmatch(verb):
            verbs += ["…"] if UNKNOWN in text else []
            break
        verbs.append(verb)
    text = _short(" ".join([seen.name, *verbs]))
    if verbs:
        yield Narrow(text, f"only {text}", text)
    if any(UNKNOWN in word.text for word in seen.words):
        yield Narrow("unknown targets", "what is only known when it runs")
    yield from _deed_options(seen)


def _deed_options(seen: Seen) -> Iterator[Narrow]:
    for name in _WHERE:
        for value in seen.values(name):
            yield Narrow(f"{name} {_short(value.text)}", f"with {name} {_short(value.text)}")
    for value in seen.values("--replicas"):
        yield Narrow(f"{value.text} replicas", f"{_short(value.text)} replicas")
    if seen.texts[:1] == ["api"]:
        methods = " ".join(sorted(word.text.upper() for word in seen.values("-X", "--method")))
        path = _short(" ".join([methods, *seen.texts[1:2]]).strip())
        yield Narrow(f"api {path}", f"only {path}")
    forced = seen.has("--force", "--force-conflicts", "--all", "--visibility", "--delete", "--recursive")
    if forced or (seen.name in {"docker", "podman", "nerdctl"} and seen.texts[:1] != ["compose"] and seen.has("-f")):
        yield Narrow("by force", "by force or all of them")


def _firewall(seen: Seen) -> Iterator[Narrow]:
    """Adding a line to a firewall and emptying it are two deeds: the options say which."""
    given = " ".join(sorted(option.name for option in seen.given.options if option.name != "-t"))
    yield Narrow(f"{seen.name} {given}", f"only {seen.name} {given}", f"{seen.name} {given}")


def _firewalls_only(seen: Seen) -> Iterator[Narrow]:
    if seen.name in {"iptables", "ip6tables", "nft", "pfctl", "ipset", "arptables", "ebtables", "firewall-cmd"}:
        yield from _firewall(seen)


def _migrated(seen: Seen) -> Iterator[Narrow]:
    text = _short(" ".join([seen.name, *seen.texts[:4]]))
    yield Narrow(text, f"only {text}", text)


_BY_KEY: tuple[tuple[str | tuple[str, ...], Callable[[Seen], Iterator[Narrow]]], ...] = (
    ("privilege.", _carried),
    (("delete.", "permissions."), _deleted),
    (("files.", "secrets.read", "secrets.searched", "git.writes_", "git.prints_", "git.keeps_"), _kinds_of_files),
    (("git.push", "git.force_push"), _pushed),
    ("git.config_runs", _settings),
    (("git.remote_address", "processes.kill_by_name", "vcs.push", "machine.accounts", "schedule.crontab"), _whole_text),
    (("network.send", "http.send"), _requested),
    ("remote.", _hosts),
    (("sql.", "database.", "redis.", "mongo.", "cache."), _database),
    ("migration.", _migrated),
    (("machine.", "network.", "firewall."), _firewalls_only),
)
"""What narrows the rules whose keys begin so."""

__all__ = ["Breadth", "Narrow", "breadth_of"]
