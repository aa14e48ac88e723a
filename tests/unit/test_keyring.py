"""The file of the keys that sign buttons."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from signoff.errors import ConfigError
from signoff.ids import random_text
from signoff.keyring import load_signer, rotate
from signoff.tokens import TokenParts

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
PLACE = ("telegram", "-100")


def test_a_new_file_is_private_and_stays_the_same(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "tokens.json"
    token = load_signer(path, NOW).token(random_text(12), 1, "once", *PLACE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_signer(path, NOW).verify(token, *PLACE) is not None


def test_an_old_key_is_accepted_for_thirty_days(tmp_path: Path) -> None:
    path, copy = tmp_path / "tokens.json", random_text(12)
    token = load_signer(path, NOW).token(copy, 1, "once", *PLACE)
    rotate(path, NOW)
    assert load_signer(path, NOW).token(copy, 1, "once", *PLACE) != token
    almost, over = NOW + timedelta(days=29, hours=23), NOW + timedelta(days=30)
    assert load_signer(path, almost).verify(token, *PLACE) == TokenParts(copy, 1, "once")
    assert load_signer(path, over).verify(token, *PLACE) is None


def test_key_numbers_come_round_without_two_alike(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    numbers = [rotate(path, NOW + timedelta(days=31 * n)) for n in range(300)]
    assert set(numbers) == set(range(256))


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    load_signer(path, NOW)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"chmod 600"):
        load_signer(path, NOW)


@pytest.mark.parametrize("content", ["", "{}", '{"keys": []}', '{"keys": [{"id": 1, "secret": "%%"}]}', "\x00"])
def test_a_damaged_file_is_one_clear_line_and_is_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="token_key_file"):
        load_signer(path, NOW)
    assert path.read_text() == content


def test_gateways_that_start_together_share_one_key(tmp_path: Path) -> None:
    path, copy = tmp_path / "tokens.json", random_text(12)
    tokens: list[str] = []
    threads = [
        threading.Thread(target=lambda: tokens.append(load_signer(path, NOW).token(copy, 1, "deny", *PLACE)))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tokens)) == 1
