"""Programs under the names by which systems install them: a version, an edition, the ending of Windows."""

import pytest
from tests.unit.policy.test_ladder import CHAT

from signoff.policy import judge
from signoff.policy.programs import name_of
from signoff.policy.shell.names import without_version

PLAIN = {
    "pip3.11": "pip",
    "pip-3.11": "pip",
    "psql15": "psql",
    "psql-15": "psql",
    "python3.13t": "python",
    "vim.basic": "vim",
    "git.exe": "git",
    "pip3.exe": "pip",
    "clang-15.0.7": "clang",
    "7z": "7z",
    "s3cmd": "s3cmd",
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_added_to_a_name_is_left_out(name: str) -> None:
    assert without_version(name) == PLAIN[name]


@pytest.mark.parametrize("name", ["sqlite3", "base64", "x86_64", "md5", "reg.exe", "e2", "python3.12", "nobody2.1"])
def test_a_name_of_its_own_stays(name: str) -> None:
    assert name_of(name, None) == name


@pytest.mark.parametrize(
    "command",
    [
        "{} install https://example.com/x.whl|pip3.11 pip-3.12 pip3.exe /usr/bin/pip3.11",
        "{} uninstall -y x|pip2 pip3.11",
        "{} -c '!rm x' a|vim.basic vim.tiny vim.nox vim.gtk3",
        "{} -c 'import shutil; shutil.rmtree(\"x\")'|python3.13t pypy3.9 ipython3.11",
        "{} -m pip uninstall x|python3.13t",
        "{} -c 'drop table x'|psql15 psql-15",
        "{} -e 'drop table x'|mysql8",
        "{} -c '(system \"rm -rf x\")'|guile-3.0 guile3.0",
        "{} -e 'System.Process.system \"rm -rf x\"'|ghc-9.4",
        "{} -c 'rm -rf x'|zsh-5.9 bash-5.2 ksh93",
        "{} x|dropdb15 dropdb-15",
        "{} -e 'os.execute(\"rm -rf x\")'|lua5.4 luajit-2.1",
        "{} run example.com/x@latest|go1.21",
        "{} push --force|git.exe",
    ],
)
def test_rules_know_a_program_by_such_a_name(command: str) -> None:
    form, names = command.split("|")
    plain = name_of(names.split()[0], None).removesuffix("3.13t")
    expected = judge("command", form.format(plain), CHAT)
    for name in names.split():
        verdict = judge("command", form.format(name), CHAT)
        assert (verdict.verdict, name) == ("ask", name)
        assert set(expected.rule_keys) <= set(verdict.rule_keys)
