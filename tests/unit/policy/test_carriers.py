"""Every program that carries another command: what it is seen to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import every

from signoff.policy.shell import UNKNOWN, Code, Script, carriers, embedded
from signoff.policy.shell import read_shell as read_in_time
from signoff.policy.shell.carriers import code_variables, table

INNER = "rm -r x"


def read_shell(text: str) -> Script:
    """The script, with all the time that reading it takes."""
    return read_in_time(text, clock=lambda: 0.0)


CARRYING = [
    # Shells and builtins
    ("bash sh dash zsh ksh mksh ash rbash fish csh tcsh rksh lksh oksh yash posh elvish xonsh nu", "{} -c 'rm -r x'"),
    ("bash sh zsh", "{} <<< 'rm -r x'"),
    ("bash sh", "echo 'rm -r x' | {} -s a"),
    ("bash", "{} -ec 'rm -r $1' zero x"),
    ("bash", "{} --rcfile <(echo 'rm -r x') -i"),
    ("fish", "{} -C 'rm -r x'"),
    ("eval", "{} rm -r x"),
    ("source .", "{} <(echo rm -r x)"),
    ("trap", "{} 'rm -r x' EXIT"),
    ("alias", "{} l='rm -r x'"),
    ("command builtin coproc exec", "{} rm -r x"),
    ("coproc", "{} NAME {{ rm -r x; }}"),
    ("mapfile readarray", "{} -C 'rm -r x #' -c 1 lines"),
    ("compgen complete compopt", "{} -C 'rm -r x #' word"),
    ("fc", "{} -e 'rm -r x'"),
    ("bind", "{} -x '\"\\C-x\":rm -r x'"),
    # Who runs it
    ("sudo", "{} -u ana -- A=1 rm -r x"),
    ("sudo doas pkexec run0", "{} rm -r x"),
    ("sudo doas", "echo 'rm -r x' | {}  -s"),
    ("su runuser", "{} ana -c 'rm -r x'"),
    ("runuser", "{} -u ana -- rm -r x"),
    ("gosu su-exec setuidgid s6-setuidgid setuser", "{} ana rm -r x"),
    ("sg newgrp", "{} wheel -c 'rm -r x'"),
    ("sg", "{} wheel 'rm -r x'"),
    ("setpriv", "{} --reuid 5 rm -r x"),
    ("capsh", "{} --drop=all -- -c 'rm -r x'"),
    ("runcon", "{} ctx rm -r x"),
    # How it runs
    ("env genv", "{} -u HOME A=1 rm -r x"),
    ("env", "{} -S 'rm -r' x"),
    ("nohup setsid chronic ifne fakeroot unbuffer catchsegv noglob nocorrect tini dumb-init catatonit", "{} rm -r x"),
    ("caffeinate dbus-run-session dbus-launch", "{} rm -r x"),
    ("time gtime", "{} -f %e rm -r x"),
    ("timeout gtimeout", "{} -s KILL 5 rm -r x"),
    ("nice ionice stdbuf gnice gstdbuf", "{} -n 5 rm -r x"),
    ("chrt taskset", "{} 1 rm -r x"),
    ("cpulimit trickle", "{} -l 5 rm -r x"),
    ("prlimit softlimit chpst", "{} -o 5 rm -r x"),
    ("envdir with-contenv envchain setarch", "{} a rm -r x"),
    ("numactl", "{} -N 0 rm -r x"),
    ("arch linux32 linux64 i386 x86_64 busybox toybox", "{} rm -r x"),
    ("flock lockf", "{} l rm -r x"),
    ("flock lockf", "{} l -c 'rm -r x'"),
    ("script", "{} -qc 'rm -r x' out"),
    ("rlwrap ts tsp", "{} rm -r x"),
    ("strace ltrace", "{} -f -o out rm -r x"),
    ("valgrind heaptrack rr bear scan-build ccache sccache distcc icecc", "{} rm -r x"),
    ("rr", "{} record rm -r x"),
    ("perf", "{} stat -e cycles rm -r x"),
    ("firejail proot fakechroot", "{} rm -r x"),
    ("sshpass", "{} -e rm -r x"),
    ("xvfb-run", "{} -a rm -r x"),
    ("systemd-run", "{} --uid 5 rm -r x"),
    ("systemd-inhibit gnome-session-inhibit", "{} --why w rm -r x"),
    ("systemd-nspawn", "{} -D root rm -r x"),
    ("tmux", "{} new-session -d 'rm -r x'"),
    ("tmux", "{} send-keys -t a 'rm -r x' Enter"),
    ("screen", "{} -dm rm -r x"),
    ("screen", "{} -X stuff 'rm -r x'"),
    ("start-stop-daemon", "{} --start --pidfile p --exec rm -- -r x"),
    # One command for each of many
    ("xargs gxargs", "echo x | {} rm -r"),
    ("xargs", "echo x | {} -I N rm -r N"),
    ("xargs", "echo y x | {} -n 1 rm -r"),
    ("parallel sem", "{} rm -r '{{}}' ::: y x"),
    ("parallel", "{} ::: ls 'rm -r x'"),
    ("parallel", "echo 'rm -r x' | {}"),
    ("parallel", "echo x | {} rm -r"),
    ("find gfind", "{} . -ok ls \\; -exec rm -r x \\;"),
    ("fd fdfind", "{} . a -x rm -r x '{{}}'"),
    ("entr watch", "{} rm -r x"),
    ("watchexec", "{} -w src -- rm -r x"),
    ("nodemon", "{} --exec 'rm -r x' a.js"),
    ("concurrently conc", "{} -n a,b ls 'rm -r x'"),
    ("hyperfine", "{} ls 'rm -r x'"),
    ("hyperfine", "{} --prepare 'rm -r x' ls"),
    ("cargo", "{} watch -s 'rm -r x'"),
    ("at batch", "echo 'rm -r x' | {} now"),
    # Another place
    ("chroot gchroot", "{} root rm -r x"),
    ("arch-chroot schroot", "{} root rm -r x"),
    ("unshare nsenter", "{} -m rm -r x"),
    ("ip", "{} netns exec a rm -r x"),
    ("bwrap", "{} --ro-bind / / --dev /dev rm -r x"),
    ("lxc-attach", "{} -n a -- rm -r x"),
    ("lxc incus", "{} exec a -- rm -r x"),
    ("multipass", "{} exec a -- rm -r x"),
    ("limactl", "{} shell a rm -r x"),
    ("lima", "{} rm -r x"),
    ("machinectl", "{} shell ana@ rm -r x"),
    ("toolbox", "{} run -c a rm -r x"),
    ("distrobox", "{} enter a -- rm -r x"),
    ("flatpak", "{} run --command=rm org.x -r x"),
    ("wsl", "{} -d a -e rm -r x"),
    ("ssh autossh mosh tsh", "{} host rm -r x"),
    ("ssh scp sftp ssh-copy-id sshfs autossh", "{} -o 'ProxyCommand=rm -r x' host"),
    ("mosh", "{} --ssh='ssh rm -r x' host"),
    ("scp sftp", "{} -S 'rm -r x' a"),
    ("ssh-agent", "{} rm -r x"),
    ("pdsh clush pssh parallel-ssh", "{} -w hosts rm -r x"),
    ("ansible", "{} all -m shell -a 'rm -r x'"),
    ("salt", "{} '*' cmd.run 'rm -r x'"),
    ("adb", "{} shell rm -r x"),
    ("vagrant", "{} ssh -c 'rm -r x'"),
    ("gcloud", "{} compute ssh host --command='rm -r x'"),
    ("fly flyctl", "{} ssh console -C 'rm -r x'"),
    ("eb az", "{} ssh --command 'rm -r x'"),
    ("heroku railway dokku", "{} run rm -r x"),
    ("docker podman nerdctl finch", "{} exec -it a rm -r x"),
    ("docker podman nerdctl finch", "{} run --rm -v a:b image rm -r x"),
    ("docker", "{} run --entrypoint rm image -r x"),
    ("docker", "{} compose -f a.yml run web rm -r x"),
    ("docker-compose podman-compose", "{} exec web rm -r x"),
    ("docker-compose podman-compose", "{} run web rm -r x"),
    ("kubectl oc k3s microk8s minikube", "{} exec -n a pod -c b -- rm -r x"),
    ("kubectl oc", "{} run a --image=b -- rm -r x"),
    # Environments of languages and secrets
    ("uv poetry pipenv pdm hatch rye pixi pipx", "{} run rm -r x"),
    ("hatch", "{} env run rm -r x"),
    ("uvx", "{} --from a rm -r x"),
    ("uv", "{} tool run rm -r x"),
    ("conda mamba micromamba", "{} run -n a rm -r x"),
    ("npx pnpx bunx", "{} rm -r x"),
    ("npx", "{} -c 'rm -r x'"),
    ("npm pnpm yarn bun corepack", "{} exec -- rm -r x"),
    ("npm", "{} exec -c 'rm -r x'"),
    ("bundle bundler rbenv pyenv nodenv asdf opam cabal stack", "{} exec rm -r x"),
    ("direnv", "{} exec . rm -r x"),
    ("mise rtx", "{} x node@20 -- rm -r x"),
    ("mise rtx", "{} exec node@20 -- rm -r x"),
    ("mise rtx", "{} exec -c 'rm -r x'"),
    ("rustup nvm", "{} run stable rm -r x"),
    ("fnm", "{} exec --using 5 rm -r x"),
    ("volta", "{} run --node 5 rm -r x"),
    ("nix-shell", "{} -p a --run 'rm -r x'"),
    ("nix", "{} develop -c rm -r x"),
    ("guix", "{} shell a -- rm -r x"),
    ("cross-env", "{} A=1 rm -r x"),
    ("cross-env-shell", "{} A=1 'rm -r x'"),
    ("dotenv dotenvx env-cmd infisical teller op doppler", "{} run -- rm -r x"),
    ("doppler", "{} run --command 'rm -r x'"),
    ("dotenv", "{} -f .env rm -r x"),
    ("env-cmd summon", "{} -f a rm -r x"),
    ("foreman honcho forego", "{} run rm -r x"),
    ("aws-vault chamber", "{} exec a -- rm -r x"),
    ("sops", "{} exec-env a 'rm -r x'"),
    # git
    ("git", "{} -c alias.a='!rm -r x' a"),
    ("git", "{} -c core.sshCommand='rm -r x' fetch"),
    ("git", "{} config --global core.editor 'rm -r x'"),
    ("git", "{} submodule foreach 'rm -r x'"),
    ("git", "{} bisect run rm -r x"),
    ("git", "{} rebase -i -x ls --exec 'rm -r x' main"),
    ("git", "{} filter-branch --tree-filter 'rm -r x' HEAD"),
    ("git", "{} difftool -x 'rm -r x'"),
    ("git", "{} clone --upload-pack='rm -r x' a"),
    ("git", "{} clone -u 'rm -r x' a"),
    ("git", "{} clone 'ext::rm -r x'"),
    ("git", "{} grep --open-files-in-pager='rm -r x' a"),
    ("git", "{} send-email --sendmail-cmd='rm -r x'"),
    ("hg", "{} --config 'alias.a=!rm -r x' a"),
    # An option that runs something
    ("tar gtar bsdtar", "{} -I 'rm -r x' -cf a b"),
    ("tar gtar", "{} -cf a --checkpoint=1 --checkpoint-action=exec='rm -r x' b"),
    ("rsync", "{} -e 'rm -r x' a h:b"),
    ("rsync", "{} --rsync-path='rm -r x' a h:b"),
    ("rg ripgrep", "{} --pre 'rm -r x' a"),
    ("sort gsort", "{} --compress-program='rm -r x' a"),
    ("split gsplit", "{} --filter='rm -r x' a"),
    ("zip", "{} a -T --unzip-command='rm -r x'"),
    ("wget", "{} --use-askpass='rm -r x' u"),
    ("ag ack bat batcat delta man dmesg journalctl", "{} --pager='rm -r x' a"),
    ("man apropos", "{} -P 'rm -r x' ls"),
    ("psql make gmake logrotate fzf sk", "{} --preview='rm -r x'"),
    ("zip", "{} a b -T -TT rm -r x"),
    ("fzf sk", "{} --bind 'enter:execute(rm -r x)'"),
    ("nc ncat netcat", "{} -l -e 'rm -r x' 5"),
    ("socat", "{} TCP-LISTEN:5 'EXEC:rm -r x'"),
    ("make gmake", "{} SHELL='rm -r x' all"),
    ("make gmake", "{} --eval='$(shell rm -r x)'"),
    ("osqueryi sqlite3 sqlite duckdb", "{} a.db '.shell rm -r x'"),
    ("sqlite3 sqlite duckdb", "{} a.db -cmd '.shell rm -r x'"),
    ("psql mysql mariadb", "{} -e a -c '\\! rm -r x'"),
    ("ftp sftp lftp telnet mail mailx dc", "{} <<< '!rm -r x'"),
    ("gdb", "{} -batch -ex 'shell rm -r x' a"),
    ("gdb", "{} --args rm -r x"),
    ("lldb", "{} -o 'platform shell rm -r x' a"),
    ("lldb", "{} -- rm -r x"),
    # Shell text inside other languages
    ("awk gawk mawk nawk original-awk", "{} -F: 'BEGIN {{ system(\"rm -r x\") }}' f"),
    ("awk", "{} '{{ print $1 | \"rm -r x\" }}' f"),
    ("awk", "{} 'BEGIN {{ \"rm -r x\" | getline line }}'"),
    ("sed gsed", "{} -n -e p -e '1e rm -r x' f"),
    ("sed", "{} 's/.*/rm -r x/e' f"),
    ("vi vim nvim gvim view vimdiff nvi rvim ex gview", "{} -c ':silent !rm -r x' f"),
    ("vi vim nvim gvim view nvi ex less more most man nano mcedit kak emacs", "{} '+!rm -r x' f"),
    ("ed red", "{} f <<< '!rm -r x'"),
    ("expect tclsh wish", "{} -c 'spawn rm -r x'"),
    ("perl", "{} -we 'system(\"rm -r x\")'"),
    ("perl", "{} -e 'print `rm -r x`'"),
    ("ruby jruby irb truffleruby", '{} -e \'system("rm", "-r", "x")\''),
    ("node nodejs bun tsx ts-node qjs iojs", '{} -e \'require("child_process").execSync("rm -r x")\''),
    ("deno", "{} eval 'exec(\"rm -r x\")'"),
    ("mongosh mongo", "{} --eval 'run(\"rm -r x\")'"),
    ("php php-cgi", "{} -r 'shell_exec(\"rm -r x\");'"),
    ("lua luajit texlua", "{} -e 'os.execute(\"rm -r x\")'"),
    ("Rscript R littler rscript", "{} -e 'system(\"rm -r x\")'"),
    ("julia", "{} -e 'run(`rm -r x`)'"),
    ("elixir erl iex", "{} -e 'System.cmd(1); system(\"rm -r x\")'"),
    ("groovy scala kotlin clojure clj ghc guile racket sbcl", "{} -e 'exec(\"rm -r x\")'"),
    ("osascript", "{} -e 'do shell script \"rm -r x\"'"),
    # Tools that run a program among their other work
    ("cmake", "{} -E rm -r x"),
    ("chdir", "cmake -E {} a rm -r x"),
    ("tox", "{} exec -e py -- rm -r x"),
    ("npm", "{} explore a -- rm -r x"),
    ("npm", "{} explore a rm -r x"),
    ("meson", "{} devenv rm -r x"),
    ("meson", "{} devenv -C build -- rm -r x"),
    ("just", "{} -f a --command rm -r x"),
]

LANGUAGES_ONLY = {"emacs": 3, "emacsclient": 1, "python": 1, "pypy": 1, "ipython": 1, "jython": 1, "micropython": 1}
"""Names of rows that only keep a text in a language of their own; `test_code_is_kept_with_its_language` has them."""


def _cases() -> list[tuple[str, str]]:
    return [(name, form.format(name)) for names, form in CARRYING for name in names.split()]


def _is_carried(name: str, text: str) -> bool:
    carried = [command for command in read_shell(text).commands if command.text.rstrip(f" {UNKNOWN}") == INNER]
    return any(name == "alias" or name in command.chain for command in carried)


def _codes(text: str) -> list[Code]:
    return [code for command in read_shell(text).commands for code in command.code]


@every("name, text", _cases())
def test_what_is_carried_is_found(name: str, text: str) -> None:
    assert _is_carried(name, text), [command.text for command in read_shell(text).commands]


def test_every_program_of_the_table_has_a_case() -> None:
    assert set(table()) - {name for name, _text in _cases()} == set(LANGUAGES_ONLY) - {"emacs"}


def _passing(names: tuple[str, ...]) -> list[str]:
    """The cases of these programs that are read as they should be."""
    found = [text for name, text in _cases() if name in names and _is_carried(name, text)]
    return found + [text for text, code in KEPT_CODE if code in _codes(text)]


@every("row", range(len(carriers.rows())), ids=lambda row: carriers.rows()[row].names[0])
def test_no_row_can_be_deleted_unnoticed(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any one row of the table, the test of some case fails."""
    deleted = carriers.rows()[row]
    kept = {name: tuple(each for each in found if each is not deleted) for name, found in table().items()}
    before = _passing(deleted.names)
    carriers._rows.cache_clear()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(carriers, "table", lambda: kept)
            assert _passing(deleted.names) != before
    finally:
        carriers._rows.cache_clear()


CODE_VARIABLES = [
    "PROMPT_COMMAND",
    "EDITOR",
    "VISUAL",
    "FCEDIT",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "SUDO_EDITOR",
    "KUBE_EDITOR",
    "HGEDITOR",
    "SVN_EDITOR",
    "CVSEDITOR",
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "AWS_PAGER",
    "PSQL_PAGER",
    "BAT_PAGER",
    "DELTA_PAGER",
    "GH_PAGER",
    "GH_EDITOR",
    "GH_BROWSER",
    "BROWSER",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_PROXY_COMMAND",
    "RSYNC_RSH",
    "CVS_RSH",
    "SVN_SSH",
    "HGMERGE",
    "LESSOPEN",
    "LESSCLOSE",
    "MANROFFOPT",
    "FZF_DEFAULT_COMMAND",
    "FZF_CTRL_T_COMMAND",
    "GZIP_PROGRAM",
    "RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "PSQL_EDITOR",
]


def test_the_variables_that_some_program_runs() -> None:
    assert set(CODE_VARIABLES) == code_variables()


@every("name", CODE_VARIABLES)
def test_variables_that_some_program_runs(name: str) -> None:
    for text in (f"{name}='rm -r x' git log", f"export {name}='rm -r x'", f"env {name}='rm -r x' git log"):
        assert INNER in [command.text for command in read_shell(text).commands], text


KEPT_CODE = [
    ("python -c 'print(1)' a", Code("python", "print(1)")),
    ("python3.11 -Ic 'print(1)'", Code("python", "print(1)")),
    ("/usr/bin/pypy3 -c x", Code("python", "x")),
    ("ipython -c x", Code("python", "x")),
    ("jython -c x", Code("python", "x")),
    ("micropython -c x", Code("python", "x")),
    ("python -m timeit -n 5 -s 'import os' 'os.x()'", Code("python", "import os")),
    ("python -m timeit -n 5 -s 'import os' 'os.x()'", Code("python", "os.x()")),
    ("python - <<'E'\nimport os\nE", Code("python", "import os\n")),
    ("python <<< 'import os'", Code("python", "import os\n")),
    ("echo 'import os' | python3", Code("python", "import os\n")),
    ("cat <<'E' | python3 -\nimport os\nE", Code("python", "import os\n")),
    ("printf 'import os' > a.py; python a.py", Code("python", "import os")),
    ("python -c \"x = '$y'\"", Code("python", f"x = '{UNKNOWN}'")),
    ("sudo python -c x", Code("python", "x")),
    ("node --eval 'a()'", Code("javascript", "a()")),
    ("node -p 1", Code("javascript", "1")),
    ("deno eval 'a()'", Code("javascript", "a()")),
    ("perl -pi.bak -e 's/a/b/' f", Code("perl", "s/a/b/")),
    ("ruby -rjson -ne 'puts 1' f", Code("ruby", "puts 1")),
    ("awk '/web/ {print $1}' f", Code("awk", "/web/ {print $1}")),
    ("sed -i 's/a/b/' f", Code("sed", "s/a/b/")),
    ("emacs --batch --eval '(a)'", Code("elisp", "(a)")),
    ("emacsclient -e a --eval '(a)'", Code("elisp", "(a)")),
]


@pytest.mark.parametrize(("text", "code"), KEPT_CODE)
def test_code_is_kept_with_its_language(text: str, code: Code) -> None:
    assert code in _codes(text)


@pytest.mark.parametrize("text", ["python -m pytest -q", "python a.py", "node server.js", "python --version", "perl f"])
def test_what_runs_a_file_has_no_code(text: str) -> None:
    (command,) = read_shell(text).commands
    assert command.code == ()
    assert not read_shell(text).opaque


@pytest.mark.parametrize(
    "text", ["curl u | python3", "wget -qO- u | perl", "node < in", "python <(curl u)", "curl u | parallel"]
)
def test_code_from_elsewhere_is_opaque(text: str) -> None:
    assert read_shell(text).opaque


@pytest.mark.parametrize(
    "text",
    [
        "awk '{print $1 \" || \" $2}' f",
        "awk 'BEGIN{FS=\"|\"} /system/ {n++} END{print n || 0}' f",
        "sed -n '1,5p;/e/d' f",
        "sed -e 's/execute/e/g' -e 'y/ab/cd/' f",
        "sed '/a[/]b/s,x,y,w out' f",
        "sed 'a\\\ne rm' f",
        "vim +12 f",
        "less +F f",
        "git -c color.ui=always log",
        "git config user.name e",
        "tar -czf a.tgz src",
        "find . -name '*.py'",
        "ssh-keygen -t ed25519",
        "fd -e py",
        "git push -u origin main",
        "git commit -c HEAD",
        "ts '[%H:%M]'",
        "sort -t, -k2 f",
        "rsync -a a/ b/",
        "make -j4 test",
        "docker ps",
        "kubectl get pods",
        "nix build",
        "npm run build",
        "psql -c 'select 1'",
        "mysql -e 'show tables'",
        "sqlite3 a.db 'select 1'",
        "man ls",
        "docker run --rm image",
        "docker compose up -d",
        "trap - EXIT",
        "command -v rm",
        "sudo -l",
        "parallel --version",
    ],
)
def test_what_carries_nothing(text: str) -> None:
    script = read_shell(text)
    assert len(script.commands) == 1, [command.text for command in script.commands]
    assert not script.opaque


def test_places_of_what_is_carried() -> None:
    places = {
        "docker run -it image ls": "container",
        "kubectl exec a -- ls": "container",
        "machinectl shell a ls": "container",
        "ssh h ls": "remote",
        "adb shell ls": "remote",
        "ansible all -a ls": "remote",
        "sudo ls": "here",
        "xargs ls": "here",
    }
    for text, place in places.items():
        assert read_shell(text).commands[-1].place == place, text


def test_functions_and_aliases_are_not_known_to_programs() -> None:
    def programs(text: str) -> list[str]:
        return [command.text for command in read_shell(text).commands if command.program in {"ls", "rm"}]

    assert programs("ls() { rm x; }; env ls")[-1] == "ls"
    assert programs("ls() { rm x; }; command ls")[-1] == "ls"
    assert programs("ls() { rm x; }; time ls")[-1] == "rm x"
    assert "ls" not in programs("ls() { rm x; }; ls")


@given(st.from_regex(embedded._PLAIN_SED, fullmatch=True))
def test_a_plain_script_of_sed_runs_nothing(text: str) -> None:
    assert list(embedded._Sed(text).run()) == []
