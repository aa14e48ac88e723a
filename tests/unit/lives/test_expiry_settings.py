"""`[sessions]`: when sessions start anew by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.config import load_config
from signoff.errors import ConfigError
from signoff.settings import SessionSettings


def test_they_are_read_for_each_profile(tmp_path: Path) -> None:
    file = tmp_path / "signoff.toml"
    file.write_text(
        '[sessions]\nidle_expires_s = 3600\n[profiles.team.sessions]\ndaily_reset_at = "04:00"\n'
        'time_zone = "Europe/Madrid"\n[profiles.bare]\n'
    )
    profiles = load_config(file, {}).profiles
    assert profiles["default"].sessions == SessionSettings(idle_expires_s=3600.0)
    assert profiles["team"].sessions == SessionSettings(daily_reset_at="04:00", time_zone="Europe/Madrid")
    assert profiles["bare"].sessions == SessionSettings()
    environ = {"SIGNOFF_SESSIONS__IDLE_EXPIRES_S": "60", "SIGNOFF_SESSIONS__DAILY_RESET_AT": "23:59"}
    assert load_config(None, environ).profiles["default"].sessions == SessionSettings(
        idle_expires_s=60.0, daily_reset_at="23:59"
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("idle_expires_s = 59", "sessions.idle_expires_s must be 60 to 31,536,000 seconds, not 59"),
        ("idle_expires_s = nan", "must be 60 to"),
        ('daily_reset_at = "4:00"', 'sessions.daily_reset_at is "4:00", which is no time of day'),
        ('daily_reset_at = "24:00"', "is no time of day; write hours and minutes"),
        ("daily_reset_at = 4", "must be text in quotes, not 4"),
        ('time_zone = "Mars/Olympus"', 'is "Mars/Olympus", which this machine knows no time zone by'),
        ('time_zone = "../../etc/passwd"', "which this machine knows no time zone by"),
        ("idle_expire_s = 60", "did you mean sessions.idle_expires_s?"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / "signoff.toml"
    file.write_text(f"[sessions]\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(file, {})
    assert told in caught.value.message
