"""The text that stands for a command as a whole is the one that a parse finds, also where none is made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.coverage import exact_text
from signoff.model import Command
from signoff.policy import unwrapped
from signoff.policy.unwrap import TRANSPARENT

WORDS = (*sorted(TRANSPARENT), "ls", "rm", "-c", "-rf", "5", "time", "if", "!", "/bin/bash", "'rm x'", '"ls -l"')
JOINS = (*" \t\n\r\u00a0\x1c;|='\"\\$#>(", "  ", "\\\n", "&&", "")


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(JOINS)), max_size=5), st.sampled_from(JOINS))
def test_it_is_what_a_parse_finds(parts: list[tuple[str, str]], before: str) -> None:
    command = before + "".join(word + join for word, join in parts)
    assert exact_text(Command(command=command)) == (unwrapped(command) or command.strip())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("bash -c 'rm -rf build'", "rm -rf build"),
        ("b'a'sh -c 'rm x'", "rm x"),
        (" nohup rm x ", "rm x"),
        (" rm  x ", "rm  x"),
        ("A=1 bash -c 'rm x'", "A=1 bash -c 'rm x'"),
    ],
)
def test_wrappers_are_left_out(command: str, told: str) -> None:
    assert exact_text(Command(command=command)) == told
