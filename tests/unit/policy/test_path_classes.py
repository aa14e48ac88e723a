"""What paths and addresses rules take for start-up files, secrets, system configuration, and so on."""

from itertools import product

import pytest
from tests.tables import every

from signoff.policy import path_classes
from signoff.policy.path_classes import CLASSES
from signoff.policy.paths import PathFacts
from signoff.policy.shell import Word, read_shell

HOME = "/home/ana"
CWD = "/home/ana/project"
FACTS = PathFacts(home=HOME, start=CWD)


def word(text: str, cwd: str | None = CWD) -> Word:
    """The word as a shell would read it."""
    (command,) = read_shell(f"x {text}", home=HOME, cwd=cwd, clock=lambda: 0.0).commands
    return command.words[1]


YES = {
    "startup_file": [
        "~/.bashrc",
        "/root/.profile",
        "/home/bob/.zshrc",
        "$HOME/.bash_profile",
        "~/.config/fish/config.fish",
        "~/.config/autostart/x.desktop",
        "~/.config/systemd/user/x.service",
        "/etc/cron.d/x",
        "/etc/crontab",
        "/etc/systemd/system/x.service",
        "/etc/profile.d/x.sh",
        "/var/spool/cron/ana",
        "/etc/ld.so.preload",
        "~/Library/LaunchAgents/x.plist",
        ".git/hooks/pre-commit",
        "/srv/x/.git/hooks/post-merge",
        ".git/config",
        "venv/lib/python3.11/site-packages/x.pth",
        "x/sitecustomize.py",
        "~/.ssh/rc",
        "../.bashrc",
        "$X/.bashrc",
        "$X$HOME/.bashrc",
        "$X.$HOME/.bashrc",
        "~/.bash*",
        "of=/etc/rc.local",
        "~/.psqlrc",
        "~/.irbrc",
        "~/.gdbinit",
        "~/.lldbinit",
        "~/.Rprofile",
        "~/.emacs",
        "~/.emacs.d/init.el",
        "~/.vim/plugin/x.vim",
        "~/.screenrc",
        "~/.tmux.conf",
        "~/.cargo/config.toml",
        "~/.pip/pip.conf",
        "~/.config/pip/pip.conf",
        "~/.ipython/profile_default/startup/x.py",
        "~/.mailcap",
        "~/.forward",
        "~/.procmailrc",
        "~/.rhosts",
        "~/.local/share/applications/x.desktop",
    ],
    "secret_file": [
        "~/.ssh/id_rsa",
        "~/.ssh/id_ed25519",
        "~/.ssh/*",
        "~/.ssh",
        "~/.ssh/deploy_key",
        "/etc/shadow",
        "/etc/shado?",
        "/etc/gshadow-",
        "~/.aws/credentials",
        "~/.aws",
        "~/.config/gcloud/credentials.db",
        "~/.netrc",
        "~/.kube/config",
        "~/.docker/config.json",
        "~/.git-credentials",
        "~/.npmrc",
        "~/.pgpass",
        ".env",
        ".env.production",
        "config/prod.env",
        ".envrc",
        "@.env",
        "file=@.env",
        "-d@.env",
        "file:///etc/shadow",
        "$DIR/.ssh/id_rsa",
        "/proc/self/environ",
        "/proc/1/task/1/environ",
        "server.key",
        "certs/server.pem",
        "x.p12",
        "/run/secrets/db",
        "~/.gnupg/secring.gpg",
        "~/.local/share/keyrings/login.keyring",
        "~/.mozilla/firefox/x.default/logins.json",
        "~/.config/google-chrome/Default/Cookies",
        "terraform.tfstate",
        "~/.bash_history",
        "config/secrets.yml",
        "service-account-prod.json",
        "~/.ss?/id_rsa",
        "~/.config/gh/hosts.yml",
        "host:.ssh/id_rsa",
        "~/.ssh:/mnt",
        "/home/ana/./.ssh//id_rsa",
        "../.aws/credentials",
        "~/.codex/auth.json",
        "keys/id_ed25519",
        "/mnt/usb/id_rsa",
        "id_ecdsa_sk.bak",
        "certs/ca-key.pem",
        "privkey.pem",
        "/etc/kubernetes/admin.conf",
        "/etc/rancher/k3s/k3s.yaml",
        "/etc/NetworkManager/system-connections/home.nmconnection",
        "/etc/openvpn/client.conf",
        "work.ovpn",
        "wg0.conf",
        "www/.htpasswd",
        "auth.json",
        "prod.auto.tfvars",
        "/tmp/krb5cc_1000",
        "~/.local/share/fish/fish_history",
        "~/.Xauthority",
        "~/.msmtprc",
        "~/.sentryclirc",
        "~/.config/ngrok/ngrok.yml",
        "~/.config/openai/key",
        "~/.config/github-copilot/hosts.json",
        "~/.anthropic/api_key",
    ],
    "system_config": [
        "/etc/hosts",
        "/etc",
        "/private/etc/hosts",
        "/boot/grub/grub.cfg",
        "/etc/../etc/x",
        "/etc/pass*",
        "/proc/sys/x",
        "/sys/class/x",
    ],
    "ssh_material": [
        "~/.ssh/authorized_keys",
        "~/.ssh/config",
        "/etc/ssh/sshd_config",
        "authorized_keys",
        "user@host:.ssh/x",
    ],
    "policy_file": [
        "AGENTS.md",
        "docs/CLAUDE.md",
        "claude.md",
        "~/.claude/settings.json",
        ".codex/config.toml",
        ".cursorrules",
        ".cursor/mcp.json",
        ".mcp.json",
        "SOUL.md",
        "~/.hermes/config.yaml",
        ".github/copilot-instructions.md",
        "CLAUDE.local.md",
        "AGENT?.md",
        "~/.config/opencode/opencode.json",
    ],
    "executable_folder": [
        "/usr/bin/x",
        "/usr/local/bin",
        "/sbin/x",
        "~/.local/bin/x",
        "/opt/homebrew/bin/x",
        "/usr/lib/x.so",
        "node_modules/.bin/eslint",
        ".venv/bin/python",
    ],
    "outside": ["/etc/hosts", "../other", "~/other", "/srv/x", "~"],
    "elsewhere": ["/etc/hosts", "../other"],
    "raw_device": ["/dev/sda", "/dev/mem", "/dev/nvme0n1", "/dev/kmem"],
    "network_device": ["/dev/tcp/x/80", "/dev/udp/1.2.3.4/53"],
    "metadata_address": [
        "http://169.254.169.254/latest/meta-data",
        "169.254.169.254",
        "http://metadata.google.internal/x",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0xA9.0xFE.0xA9.0xFE/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://user@169.254.169.254:80/",
        "http://169.254.169.254.nip.io/",
        "http://169.254.170.2/v2",
        "--url=http://169.254.169.254",
    ],
}

NO = {
    "startup_file": [
        ".bashrc",
        "dotfiles/.bashrc",
        ".cargo/config.toml",
        ".vim/x",
        "~/emacs",
        "~/.tmux.conf.md",
        "profile",
        "~/bashrc",
        "~/.config/app/x",
        ".githooks/x",
        ".git/hooksx/x",
        "/etc/hosts",
        "x.pth",
        "*",
        "src/*",
        "https://x.org/.git/config",
    ],
    "secret_file": [
        "~/.ssh/known_hosts",
        "~/.ssh/id_rsa.pub",
        "~/.ssh/config",
        ".env.example",
        ".env.sample",
        "env",
        "environment.ts",
        "cacert.pem",
        "fullchain.pem",
        "token",
        "src/tokens.py",
        "secrets",
        "credentials",
        "keys.py",
        "/etc/passwd",
        "README.md",
        "*",
        "*.json",
        ".npmrc",
        "monkey",
        "tests/test_secrets.py",
        "https://x.org/.env",
        "id_rsa.md",
        "keys/id_ed25519.pub",
        "pubkey.pem",
        "certs/ca.pem",
        "author.json",
        "kubernetes/admin.conf",
        "'less ~/.ssh/id_rsa'",
        "$'a\\n/etc/shadow'",
    ],
    "system_config": ["etc/hosts", "~/etc/x", "/etcetera", "/home/ana/etc/x", "/var/etc"],
    "ssh_material": ["ssh/config", "~/.sshx", "id_rsa"],
    "policy_file": ["README.md", "agents.py", "AGENTS.md.bak", "claude/x", "docs/agents/x.md", "*.md"],
    "executable_folder": ["bin/x", "~/bin2/x", "/usr/share/x", "/home/ana/project/bin/x"],
    "outside": [
        "x",
        "./x/y",
        "/home/ana/project/x",
        "/tmp/x",
        "/dev/null",
        "/var/tmp/x",
        "~/.cache/x",
        "x/../y",
        "$X/y",
        "-x",
        "https://x.org/y",
    ],
    "elsewhere": ["x", "/tmp/x", "~/Downloads", "~/Downloads/x.csv"],
    "raw_device": ["/dev/null", "/dev/tty", "dev/sda", "/dev/stdout"],
    "network_device": ["/dev/null", "dev/tcp/x"],
    "metadata_address": [
        "http://169.254.1.1/",
        "http://example.com/169",
        "10.0.0.1",
        "2852039167",
        "http://100.100.100.20/",
        "v1.2.3",
    ],
}


@every("name, text", [(name, text) for name, texts in YES.items() for text in texts])
def test_it_is_of_the_class(name: str, text: str) -> None:
    assert CLASSES[name](word(text), CWD, FACTS)


@every("name, text", [(name, text) for name, texts in NO.items() for text in texts])
def test_it_is_not_of_the_class(name: str, text: str) -> None:
    assert not CLASSES[name](word(text), CWD, FACTS)


def test_a_relative_path_in_an_unknown_folder_counts_by_its_name() -> None:
    assert CLASSES["startup_file"](word(".bashrc", None), None, FACTS)
    assert CLASSES["secret_file"](word(".ssh/id_rsa", None), None, FACTS)
    assert not CLASSES["outside"](word("x", None), None, PathFacts())
    assert not CLASSES["elsewhere"](word("/srv/x", None), None, PathFacts())
    assert CLASSES["outside"](word("../x", None), None, PathFacts())


def test_a_change_of_folder_changes_what_a_path_is() -> None:
    assert CLASSES["startup_file"](Word(".bashrc"), HOME, FACTS)
    assert CLASSES["system_config"](Word("hosts"), "/etc", FACTS)
    assert CLASSES["outside"](Word("hosts"), "/etc", FACTS)


ODD = ["", "/", "~", "=", "@", "-", "--", "\x00", "x" * 5000, "[" * 50, "://", "a:b@c=d", "/../..", "0x", "\n"]


@every("name, text", list(product(sorted(CLASSES), ODD)))
def test_nothing_raises(name: str, text: str) -> None:
    assert CLASSES[name](Word(text), CWD, FACTS) in {True, False}
    assert CLASSES[name](Word(text, pattern=text), None, PathFacts()) in {True, False}


@pytest.mark.parametrize("name", sorted(path_classes.TEXT_CLASSES))
@pytest.mark.parametrize("cwd", [None, CWD, "/", "/etc", "/proc", f"{HOME}/.ssh", f"{HOME}/.config", "/usr/bin"])
def test_the_cheap_look_at_a_word_passes_every_path_of_a_class(name: str, cwd: str | None) -> None:
    """What `may_fit` turns away is never tried on the expression, so it may turn nothing away that would fit."""
    texts = {text for some in (*YES.values(), *NO.values()) for text in some}
    made = {form for text in texts for form in (text, f"-o{text}", f"x=@{text}", text.upper(), f"a/../{text}")}
    lost = [
        text
        for text in made
        if path_classes._fits(name, text, False, cwd, HOME) and not path_classes.may_fit(name, text, cwd)
    ]
    assert lost == []
