"""`allowlist.toml` as an operator and several processes write it."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.allowlist_file import KEYS, AllowlistError, AllowlistFile, Entries, Mark, entry_of
from signoff.policy.deny import pattern_parts


@pytest.fixture
def file(tmp_path: Path) -> AllowlistFile:
    """A file that is not there yet, in a folder that is not either."""
    return AllowlistFile(tmp_path / "profiles" / "a" / "allowlist.toml")


def written(file: AllowlistFile, text: str) -> Entries:
    """What a file with this text admits; reading leaves it as it is."""
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_text(text)
    found = file.read()
    assert file.path.read_text() == text
    return found


def test_a_file_that_is_not_there_admits_nothing(file: AllowlistFile) -> None:
    assert file.read() == Entries()
    assert file.mark() == Mark()
    assert not file.path.exists()


def test_it_is_made_with_its_explanation_and_for_its_owner_alone(file: AllowlistFile) -> None:
    assert file.add(["git status"])
    assert file.path.read_text().startswith("# Commands that run without a question")
    assert file.read() == Entries(commands=("git status",))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_comments_and_order_stay(file: AllowlistFile) -> None:
    text = '# ours\ncommands = [\n  # B first\n  "b",\n  "a", # because\n]\nunattended_commands = ["x *"]\n'
    written(file, text)
    assert file.add(["c", "a", "c"])
    after = file.path.read_text()
    for line in ("# ours", "# B first", '"a", # because', 'unattended_commands = ["x *"]'):
        assert line in after
    assert file.read() == Entries(commands=("b", "a", "c"), unattended_commands=("x *",))
    assert not file.add(["c"])
    assert file.path.read_text() == after
    assert file.remove(["b", "unknown"])
    assert file.read().commands == ("a", "c")
    assert "# because" in file.path.read_text()


def test_what_an_operator_took_out_does_not_come_back(file: AllowlistFile) -> None:  # 7.3
    file.add(["A", "B"])
    written(file, 'commands = ["B", "C"]')
    file.add(["D"])
    assert file.read().commands == ("B", "C", "D")


@pytest.mark.parametrize(
    ("text", "commands", "warning"),
    [
        ('commands = "[\'git status\', \\"ls\\"]"', ("git status", "ls"), "a list written as one text; its 2 entries"),
        ('commands = "git status"', (), 'one text and not a list, so it admits nothing: write commands = ["…"]'),
        ('commands = "[1, 2]"', (), "one text and not a list"),
        ("commands = \"[__import__('os')]\"", (), "one text and not a list"),
        ("commands = 7", (), "is not a list of texts"),
        ("commands = { a = 1 }", (), "is not a list of texts"),
        ('commands = ["a", 1, true, ["b"], "c"]', ("a", "c"), "entry 2, 3, 4 is not a text"),
        ('commands = ["a", "", "  "]', ("a",), "entry 2, 3 is empty"),
        ('comands = ["a"]', (), "`comands` is not a list of this file (commands, unattended_commands)"),
    ],
)
def test_other_shapes_admit_nothing(file: AllowlistFile, text: str, commands: tuple[str, ...], warning: str) -> None:
    # #104779 7.2
    found = written(file, text)
    assert found.commands == commands
    assert len(found.warnings) == 1
    assert warning in found.warnings[0]
    assert str(file.path) in found.warnings[0]


@pytest.mark.parametrize("data", [b"commands = [", b"\xff\xfe", b'commands = ["a"]\ncommands = ["b"]', b"x" * 4194305])
def test_what_cannot_be_read_admits_nothing_and_is_not_overwritten(file: AllowlistFile, data: bytes) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_bytes(data)
    with pytest.raises(AllowlistError, match="nothing in it counts"):
        file.read()
    with pytest.raises(AllowlistError):
        file.add(["a"])
    assert file.path.read_bytes() == data


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('commands = [\n  "git status,\n]\n', "line 2: a text is not closed by its quote on this line."),
        ('commands = ["a"\n', "line 2: a list is not closed by ], or a comma is missing in it."),
        ('# ours\ncommands = ["a" "b"]\n', "line 2: a list is not closed by ], or a comma is missing in it."),
        ("commands\n", "line 1: there is no = behind the name."),
        ("commands = [ls]\n", "line 1: the value is neither a text in quotes nor a number, true, false or a list."),
        ('commands = ["a"]\ncommands = ["b"]\n', "line 2: this name stands there twice."),
    ],
)
def test_a_slip_is_told_in_plain_words(file: AllowlistFile, text: str, says: str) -> None:
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_text(text)
    for use in (file.read, lambda: file.add(["ls"]), lambda: file.remove(["ls"])):
        with pytest.raises(AllowlistError, match=re.escape(f"so nothing in it counts: {says} A line reads")):
            use()
    assert file.path.read_text() == text


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_admits_nothing(file: AllowlistFile, make: Callable[[Path], None]) -> None:
    file.path.parent.mkdir(parents=True)
    make(file.path)
    with pytest.raises(AllowlistError, match="othing in it counts"):
        file.read()
    with pytest.raises(AllowlistError):
        file.add(["a"])


def test_a_mark_of_the_byte_order_is_no_error(file: AllowlistFile) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_bytes(b'\xef\xbb\xbfcommands = ["a"]\r\n')
    assert file.read().commands == ("a",)
    file.add(["b"])
    assert file.read().commands == ("a", "b")


def test_a_list_of_another_shape_is_not_overwritten(file: AllowlistFile) -> None:
    text = "commands = { a = 1 }\n"
    written(file, text)
    with pytest.raises(AllowlistError, match="nothing is added"):
        file.add(["a"])
    assert not file.remove(["a"])
    assert file.path.read_text() == text


def test_a_list_written_as_one_text_becomes_a_list_when_something_is_added(file: AllowlistFile) -> None:  # #104779
    written(file, "commands = \"['a']\"")
    assert file.add(["b"])
    assert file.read() == Entries(commands=("a", "b"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_says_so(file: AllowlistFile) -> None:
    file.add(["a"])
    file.path.parent.chmod(0o500)
    with pytest.raises(AllowlistError, match="cannot be"):
        file.add(["b"])
    file.path.parent.chmod(0o700)
    assert file.read().commands == ("a",)


def test_a_full_disk_leaves_the_file_as_it_was(file: AllowlistFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.add(["a"])

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AllowlistError, match="No space left on device"):
        file.add(["b"])
    assert file.read().commands == ("a",)
    assert sorted(path.name for path in file.path.parent.iterdir()) == [".allowlist.toml.lock", "allowlist.toml"]


def test_what_an_editor_saves_meanwhile_stays(file: AllowlistFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.add(["A", "B"])
    saved = ['commands = ["B", "C"]\n', 'commands = ["C"]\n']
    sync = os.fsync

    def editor(descriptor: int) -> None:
        sync(descriptor)
        if saved:
            file.path.write_text(saved.pop(0))

    monkeypatch.setattr(os, "fsync", editor)
    assert file.add(["D"])
    assert file.read().commands == ("C", "D")


def test_a_file_that_never_rests_is_left_alone(file: AllowlistFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.add(["A"])
    turns = iter(range(100))
    monkeypatch.setattr(os, "fsync", lambda _descriptor: file.path.write_text(f"commands = {[str(next(turns))]}"))
    with pytest.raises(AllowlistError, match="changes all the time"):
        file.add(["D"])
    assert "D" not in file.read().commands


def test_a_link_stays_a_link_and_its_mode_stays(file: AllowlistFile, tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text('commands = ["a"]\n')
    real.chmod(0o640)
    file.path.parent.mkdir(parents=True)
    file.path.symlink_to(real)
    file.add(["b"])
    assert file.path.is_symlink()
    assert AllowlistFile(real).read().commands == ("a", "b")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


ADDING = """
import sys
from pathlib import Path
from signoff.allowlist_file import AllowlistFile
for number in range(20):
    AllowlistFile(Path(sys.argv[1])).add([f"{sys.argv[2]} {number}"])
"""


def test_processes_that_write_at_once_lose_nothing(file: AllowlistFile) -> None:  # 7.3 7.8
    names = [f"w{number}" for number in range(3)]
    writers = [subprocess.Popen([sys.executable, "-c", ADDING, file.path, name]) for name in names]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert sorted(file.read().commands) == sorted(f"{name} {each}" for name in names for each in range(20))


@given(st.text(min_size=1))
def test_an_entry_means_exactly_its_command(command: str) -> None:
    assert pattern_parts(entry_of(command)) == [" ".join(command.split())]


HARD = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: bool(text.strip()))


@given(commands=st.lists(HARD, max_size=8, unique=True))
def test_whatever_is_added_is_read_again(commands: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    file = AllowlistFile(tmp_path_factory.mktemp("hard") / "allowlist.toml")
    file.add(commands)
    assert file.read().commands == tuple(commands)
    file.remove(commands[::2])
    assert file.read().commands == tuple(commands[1::2])
    assert set(KEYS) >= {"commands"}


texts = st.lists(st.sampled_from(["make", "git push *", 'say "x"', "two\nlines", "\\*"]), unique=True)


@settings(max_examples=25)
@given(before=st.tuples(texts, texts), after=st.tuples(texts, texts))
def test_a_file_becomes_what_it_is_told_and_keeps_its_comments(
    before: tuple[list[str], list[str]], after: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = AllowlistFile(tmp_path_factory.mktemp("become") / "allowlist.toml")
    file.become(Entries(commands=tuple(before[0]), unattended_commands=tuple(before[1])))
    file.path.write_text(f"# head\n{file.path.read_text()}# tail\n")
    wanted = Entries(commands=tuple(after[0]), unattended_commands=tuple(after[1]))
    file.become(wanted)
    found = file.read()
    assert (set(found.commands), set(found.unattended_commands)) == (set(after[0]), set(after[1]))
    assert (len(found.commands), len(found.unattended_commands)) == (len(after[0]), len(after[1]))
    kept = [text for text in before[0] if text in after[0]]
    assert list(found.commands[: len(kept)]) == kept, "in its order"
    text = file.path.read_text()
    assert text.startswith("# head\n")
    assert "\n# tail\n" in text
    assert not file.become(found), "again, nothing is written"
    assert file.path.read_text() == text


def test_what_is_no_list_becomes_one_and_other_lines_stay(file: AllowlistFile) -> None:
    written(file, 'commands = "make"  # wrong\nother = 1\n')
    assert file.become(Entries(commands=("make",)))
    assert file.read().commands == ("make",)
    assert "other = 1" in file.path.read_text()
    file.path.write_text("commands = [")
    with pytest.raises(AllowlistError):
        file.become(Entries(commands=("make",)))
    assert file.path.read_text() == "commands = ["
