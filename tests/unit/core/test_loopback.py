"""Which receivers a proxy of the environment is for."""

from __future__ import annotations

from signoff.loopback import leads_away

HERE = ("http://127.0.0.1:9/x", "http://localhost:9", "http://[::1]:9", "http://127.9.9.9")
AWAY = ("http://localhost.example.com", "http://127.0.0.1.example.com", "http://localhosts", "http://[::1:2]", "http:")


def test_what_only_begins_like_this_machine_is_another_one() -> None:
    assert [url for url in (*HERE, *AWAY) if leads_away(url)] == list(AWAY)
