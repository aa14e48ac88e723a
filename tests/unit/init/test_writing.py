"""What `init` writes: all of it or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signoff.errors import ConfigError
from signoff.setup.writing import check_free, write_all


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_where_one_file_is_in_the_way_none_is_written(tmp_path: Path) -> None:
    secret, settings = tmp_path / "telegram.token", tmp_path / "signoff.toml"
    settings.write_text("mine")
    with pytest.raises(ConfigError, match=r"signoff.toml is there already"):
        write_all({secret: "secret", settings: "text"}, replace=False)
    assert (names(tmp_path), settings.read_text()) == (["signoff.toml"], "mine")
    write_all({secret: "secret", settings: "text"}, replace=True)
    assert (names(tmp_path), settings.read_text()) == (["signoff.toml", "telegram.token"], "text")


def test_where_one_cannot_be_written_none_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_all({tmp_path / "telegram.token": "secret", tmp_path / "file" / "signoff.toml": ""}, replace=True)
    assert names(tmp_path) == ["file"]


def test_what_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    check_free(tmp_path / "new" / "folder" / "signoff.toml", replace=False)
    assert names(tmp_path) == []
    (tmp_path / "file").write_text("")
    check_free(tmp_path / "file", replace=True)
    with pytest.raises(ConfigError, match="is there already"):
        check_free(tmp_path / "file", replace=False)
    with pytest.raises(ConfigError, match="cannot be written"):
        check_free(tmp_path / "file" / "signoff.toml", replace=True)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_takes_no_file_is_known_before(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="takes no file"):
        check_free(tmp_path / "signoff.toml", replace=False)
