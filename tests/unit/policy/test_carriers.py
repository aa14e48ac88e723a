"""Every program that carries another command: what it is seen to run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import every

from signoff.policy import JudgeContext, judge
from signoff.policy.shell import UNKNOWN, Code, Script, carriers, embedded
from signoff.policy.shell import read_shell as read_in_time
from signoff.policy.shell.carriers import code_variables, table

INNER = "rm -r x"
CARRYING: list[tuple[str, str]] = msgspec.toml.decode(
    (Path(__file__).parent / "carrying.toml").read_bytes(), type=dict[str, list[tuple[str, str]]]
)["carrying"]
"""Names of programs, and how each of them carries that command."""


def read_shell(text: str) -> Script:
    """The script, with all the time that reading it takes."""
    return read_in_time(text, clock=lambda: 0.0)


LANGUAGES_ONLY = {
    "emacs", "emacsclient", "python", "pypy", "ipython", "jython", "micropython", "pythonw", "py", "graalpy", "bpython",
    "ptpython", "pylint", "blender", "pyspark", "pyinstrument", "debugpy", "viztracer", "pex", "memray", "pyp", "jello",
    "sqlite-utils",
}  # fmt: skip
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
    assert set(table()) - {name for name, _text in _cases()} == LANGUAGES_ONLY - {"emacs"}


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


OPTIONS = [
    "--pre-command", "--b2-cmd", "--git-hook", "--prehook", "--posthook", "--hook", "--gpg-program", "--exec",
    "--build-exec", "--rsh", "--x-rsh", "--editor", "--diff-editor", "--pager", "--x-pager", "--browser", "--x-browser",
    "--viewer", "--photo-viewer", "--rustc-wrapper", "--compiler-launcher", "--script-shell", "--test-runner",
    "--runner", "--post-renderer", "--pre-invoke", "--post-invoke", "--run-under", "--run_under", "--reloadcmd",
    "--on-success", "--on-failure", "--on-complete", "--on-completion", "--on-download-stop",
    "--on-bt-download-complete", "--on-exit", "--on-change", "--on-start", "--on-stop", "--on-error", "--on-finish",
    "--onSuccess", "--onFailure", "--onCompilationStarted", "--onpass", "--onfail", "--onexit", "--onsuccess",
    "--onchange", "--beforerun", "--afterrun", "--exec-before-download", "--passwordeval",
    "--renderer-cmd-prefix", "--command", "--buildCommand", "--cmd", "--sshcmd", "--buildCmd", "--postHook",
    "--onStart", "--onEnd", "--onChange", "--onExit", "--onFirstSuccess", "--on-save", "--on-update", "--wrapper",
    "--launcher", "--opener", "--locker", "--speller", "--askpass", "--use-askpass", "--external-diff",
]  # fmt: skip


@every("option", OPTIONS)
def test_an_option_that_says_that_it_takes_a_command(option: str) -> None:
    for text in (f"unheard-of a {option} 'rm -r x' b", f"unheard-of {option}='rm -r x'", f"sudo a {option}='rm -r x'"):
        assert INNER in [command.text for command in read_shell(text).commands], text


@every("word", ["/rm", "./rm", "a;rm", "a|b", "a&b", "`rm`", "$(rm)", "a<b", "a>b", "(rm)", "\\rm"])
def test_a_word_behind_such_an_option_is_a_command_where_it_is_more_than_a_name(word: str) -> None:
    assert len(read_shell(f"unheard-of --hook '{word}'").commands) > 1
    assert len(read_shell("unheard-of --hook rm").commands) == 1
    assert len(read_shell("unheard-of --hook=rm").commands) == 2


@every("name", sorted(carriers._excepted()))
def test_programs_whose_options_are_no_commands(name: str) -> None:
    commands = read_shell(f"'{name}' a --post-hook 'rm -r x'").commands
    assert all(command.chain[-1] != name for command in commands if command.text == INNER)


@pytest.mark.parametrize(
    "text",
    [
        "a --no-post-hook 'rm -r x'", "a --hook-type 'rm -r x'", "a --hook --editor", "a -hook='rm -r x'",
        "a -- hook 'rm -r x'", "docker run image a --post-hook 'b c'", f"a --{'x' * 64}-hook='rm -r x'", "a --hook",
        "gdb --eval-command 'info files'", "a --hook=", "a --hook ''",
    ],
)  # fmt: skip
def test_what_is_no_such_option(text: str) -> None:
    assert INNER not in [command.text for command in read_shell(text).commands]
    assert "b c" not in [command.text for command in read_shell(text).commands if command.place == "here"]


CODE_VARIABLES = [
    "npm_config_call",
    "PROMPT_COMMAND", "EDITOR", "VISUAL", "FCEDIT", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "SUDO_EDITOR", "KUBE_EDITOR",
    "HGEDITOR", "SVN_EDITOR", "CVSEDITOR", "PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "AWS_PAGER",
    "PSQL_PAGER", "BAT_PAGER", "DELTA_PAGER", "GH_PAGER", "GH_EDITOR", "GH_BROWSER", "BROWSER", "GIT_SSH_COMMAND",
    "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "GIT_PROXY_COMMAND", "RSYNC_RSH",
    "CVS_RSH", "SVN_SSH", "HGMERGE", "LESSOPEN", "LESSCLOSE", "MANROFFOPT", "FZF_DEFAULT_COMMAND",
    "FZF_CTRL_T_COMMAND", "GZIP_PROGRAM", "RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "PSQL_EDITOR",
    "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER", "RESTIC_PASSWORD_COMMAND",
    "RCLONE_PASSWORD_COMMAND", "RCLONE_SFTP_SSH", "BORG_PASSCOMMAND", "GEM_EDITOR", "BUNDLER_EDITOR", "JJ_EDITOR",
    "BZR_EDITOR", "P4EDITOR", "P4PAGER", "DARCS_EDITOR", "ELIXIR_EDITOR", "JULIA_EDITOR", "ANSIBLE_PAGER",
    "PERF_PAGER", "KUBECTL_EXTERNAL_DIFF", "RSYNC_CONNECT_PROG", "CMAKE_C_COMPILER_LAUNCHER",
    "CMAKE_CXX_COMPILER_LAUNCHER", "OMPI_MCA_plm_rsh_agent",
]  # fmt: skip


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
    ("emacsclient -e '(b)'", Code("elisp", "(b)")),
    *((f"{name} -c x", Code("python", "x")) for name in ("pythonw", "py -3", "graalpy", "bpython", "ptpython")),
    *(
        (f"python3 -m {name} -c x", Code("python", "x"))
        for name in ("asyncio", "IPython", "idlelib", "bpython", "ptpython", "pyinstrument", "debugpy", "memray run")
    ),
    ("python3 -m code <<< x", Code("python", "x\n")),
    ("pypy3 -m code <<< x", Code("python", "x\n")),
    *((f"{name} -c x", Code("python", "x")) for name in ("pyinstrument", "debugpy --listen 1", "viztracer", "pex a")),
    ("memray run -c x", Code("python", "x")),
    ("pyp x", Code("python", "x")),
    ("jello -r x", Code("python", "x")),
    ("sqlite-utils insert a b c --convert x", Code("python", "x")),
    ("sqlite-utils query a b --functions x", Code("python", "x")),
    ("sqlite-utils convert a b c x", Code("python", "x")),
    ("pylint --init-hook='import a' src", Code("python", "import a")),
    ("blender -b --python-expr 'import a'", Code("python", "import a")),
    ("pyspark <<< 'import a'", Code("python", "import a\n")),
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
        "kitty @ ls",
        "mix do compile + test",
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
        "docker run --health-cmd 'ls a' image": "container",
        "buildah run a -- ls": "container",
        "ctr run image a ls": "container",
        "ctr task exec --exec-id 1 a ls": "container",
        "doctl compute ssh a --ssh-command 'ls a'": "remote",
        "consul exec ls a": "remote",
        "vagrant ssh -- ls": "remote",
        "zabbix_get -k 'system.run[ls a'": "remote",
        "check_by_ssh -C 'ls a'": "remote",
        "qm guest exec 1 -- ls": "container",
        "pct exec 1 -- ls": "container",
        "jexec 1 ls": "container",
        "bastille cmd a ls": "container",
        "xcrun simctl spawn booted ls": "container",
        "nsjail -- ls": "container",
        "nomad exec a ls": "remote",
        "okteto exec -- ls": "remote",
        "dsh -g a 'ls b'": "remote",
        "az container exec --exec-command 'ls a'": "remote",
        "ray exec a 'ls b'": "remote",
        "borg list --remote-path 'ls a'": "remote",
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


def test_of_more_texts_than_are_taken_one_is_not_known() -> None:
    same = "%(a)" * embedded.MAX_FOUND
    assert embedded.shell_texts("rpm", same) == ["a"]
    assert embedded.shell_texts("rpm", f"{same}%(b)") == ["a", UNKNOWN]
    assert embedded.shell_texts("rpm", "%(a (b) c") == ["a (b) c"]
    assert embedded.shell_texts("rpm", "%{lua:a} %{load:b} %{_c}") == [UNKNOWN]


@given(st.from_regex(embedded._PLAIN_SED, fullmatch=True))
def test_a_plain_script_of_sed_runs_nothing(text: str) -> None:
    assert list(embedded._Sed(text).run()) == []


DOES_MORE = [
    "rvm uninstall 2.7", "spack uninstall -y zlib", "n rm 18", "pueue remove 1", "pueue kill", "ray job delete x",
    "husky uninstall", "rke2 etcd-snapshot prune", "msbuild remove x", "multilog purge",
]  # fmt: skip


@every("command", DOES_MORE)
def test_a_carrier_may_do_other_things_than_carry(command: str) -> None:
    """What such a program itself does is asked for as it is of any program that no rule knows."""
    assert "unknown.verb" in judge("command", command, JudgeContext(kind="chat", attended=True)).rule_keys


def test_an_option_before_the_subcommand_does_not_hide_what_is_carried() -> None:
    commands = read_shell("pueue -c x add rm -r x").commands
    assert INNER in [command.text for command in commands]
