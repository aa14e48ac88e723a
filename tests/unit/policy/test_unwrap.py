"""The exact text that a grant is for."""

import pytest

from signoff.policy import unwrapped


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("git push", "git push"),
        ("  git push  ", "git push"),
        ("nohup git  push", "git  push"),
        ("timeout 5 git push 'a b'", "git push 'a b'"),
        ("timeout -k 3 -s KILL 5 git push", "git push"),
        ("nice -n 5 git push", "git push"),
        ("setsid git push", "git push"),
        ("env git push", "git push"),
        ("bash -c 'git push'", "git push"),
        ('sh -c "git push"', "git push"),
        ("nohup timeout 5 bash -c 'env git push'", "git push"),
        ("sudo git push", "sudo git push"),
        ("timeout 5 sudo git push", "sudo git push"),
        ("xargs rm", "xargs rm"),
        ("ssh host ls", "ssh host ls"),
        ("nohup", "nohup"),
    ],
)
def test_only_wrappers_that_change_nothing_are_left_out(command: str, inner: str) -> None:
    assert unwrapped(command) == inner


@pytest.mark.parametrize(
    "command",
    [
        "",
        "a; b",
        "a && b",
        "a | b",
        "a &",
        "a > f",
        "A=1 git push",
        "env A=1 git push",
        "env -i git push",
        "env -S 'git push'",
        "git $x",
        "git $(x)",
        "git push *",
        "ls ~",
        "ls {a,b}",
        "bash -c 'a; b'",
        "bash -c 'a' x",
        "bash -lc 'git push'",
        'bash -c "git $x"',
        "bash x.sh 'y",
        "git \u200bpush",
        "(a)",
        "nohup " * 20 + "a",
        "a " * 30_000,
        "a|" * 5000,
    ],
)
def test_anything_else_has_no_exact_text(command: str) -> None:
    assert unwrapped(command) is None
