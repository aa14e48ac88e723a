"""An action that says nothing is asked of nobody: on a card nobody could read what they agree to."""

import pytest
from tests.unit.core.harness import World

from signoff.checking import alone
from signoff.errors import InvalidInput
from signoff.model import Action, ApprovalRequest, Code, Command, Elicitation, FileWrite, Rule, Tool
from signoff.settings import Profile
from signoff.testing.rows import T0

WORDLESS: list[tuple[Action, str]] = [
    (Command(command=""), "command"),
    (Command(command=" \n\t", cwd="/srv/app"), "command"),
    (Code(language="python", code="\n"), "code"),
    (Tool(name="", arguments={"id": 7}), "name"),
    (FileWrite(path="", diff="+x"), "path"),
    (Elicitation(server="jira", message=""), "message"),
    (Elicitation(server="jira", message=" ", url="https://auth.example.com/"), "message"),
    (Rule(tool="t", rule_key="", reason="because"), "rule_key"),
]


@pytest.mark.parametrize(("action", "field"), WORDLESS)
async def test_it_is_refused_at_every_door(world: World, action: Action, field: str) -> None:
    await world.session()
    with pytest.raises(InvalidInput) as refused:
        await world.submit(action)
    assert refused.value.param == f"action.{field}"
    assert str(refused.value) == f"action.{field} is empty, so there is nothing to decide."
    for session_id in ("s", None):
        with pytest.raises(InvalidInput, match="is empty"):
            await world.broker.check("default", action, session_id=session_id)
    with pytest.raises(InvalidInput, match="is empty"):
        alone(action, Profile(), T0)
    assert await world.store.find(ApprovalRequest, "profile", "default") == [], "nothing was stored"
