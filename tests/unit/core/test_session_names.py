"""What people call a session: its id, but of a single command the folder and the host where it was typed."""

from __future__ import annotations

import pytest
from tests.unit.core.harness import World

from signoff.ids import asker_of, called, one_question_session
from signoff.sessions import MAX_ID_CHARS
from signoff.wording import session_name


@pytest.mark.parametrize(
    ("folder", "host", "name"),
    [
        ("app", "ci-3.example.com", "app@ci-3"),
        ("", "ci-3", "ci-3"),
        ("app", "", "app"),
        ("my app (old)", "ci-3", "my-app-old@ci-3"),
        ("日本", "ci-3", "ci-3"),
        ("a" * 300, "b" * 300, f"{'a' * 19}@{'b' * 19}"),
        ("app\n.x\u202e", "ci", "app-x@ci"),
    ],
)
def test_a_command_is_known_by_its_folder_and_host(folder: str, host: str, name: str) -> None:
    session_id = one_question_session("0\nhost\n/srv", folder, host)
    assert called(session_id) == name
    assert session_name(session_id) == name
    assert len(session_id) <= MAX_ID_CHARS
    assert asker_of(session_id) == asker_of(one_question_session("0\nhost\n/srv")), "what was denied goes by who asks"
    assert asker_of(session_id) != asker_of(one_question_session("1\nhost\n/srv", folder, host))
    assert one_question_session("0\nhost\n/srv", folder, host) != session_id


@pytest.mark.parametrize("session_id", ["nightly-fix", "cli_1", "cli_0123456789.short", "a.b.c", "cli_x.y.app@ci-3"])
def test_another_session_is_called_by_its_id(session_id: str) -> None:
    assert called(session_id) == session_id


async def test_the_card_of_a_command_names_where_it_was_typed(world: World) -> None:
    own = one_question_session("ana", "app", "ci-3")
    await world.session(own)
    row = await world.ask(session_id=own)
    text = (await world.card(row)).text
    assert "session app@ci-3" in text
    assert "cli_" not in text
