"""What a refusal of a value of a wrong form names: the words that may stand there, the bound, the nearest field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from signoff.config import load_config
from signoff.errors import InvalidInput
from signoff.expected import action_of
from signoff.gateway import Gateway
from signoff.model import Command
from signoff.policy import ruleset
from signoff.server import wire
from signoff.server.faults import invalid

ASK = {"session_id": "s", "action": {"kind": "command", "command": "ls"}}
REFUSED: dict[str, tuple[type[msgspec.Struct], Any, str]] = {
    "kind of a session": (
        wire.SessionBody,
        {"kind": "kron"},
        "kind: invalid enum value 'kron'; it is one of api, chat, child, cli, cron, single_query, webhook, worker.",
    ),
    "status of a result": (
        wire.ResultBody,
        {"status": "ok"},
        "status: invalid enum value 'ok'; it is one of failed, not_run, succeeded.",
    ),
    "kind of an action": (
        wire.AskBody,
        {**ASK, "action": {"kind": "cmd"}},
        "action.kind: invalid value 'cmd'; it is one of command, code, tool, file_write, elicitation, rule.",
    ),
    "scope of a key": (
        wire.KeyBody,
        {"scope": "root"},
        "scope: invalid enum value 'root'; it is one of admin, agent, approver, ops.",
    ),
    "a bound": (wire.WaitQuery, {"wait": 61}, "wait: must be a number of at most 60."),
    "a nearer field": (
        wire.AskBody,
        {**ASK, "action": {"kind": "command", "comand": "ls"}},
        "There is no field 'action.comand'. Did you mean command?",
    ),
    "a field inside a list": (
        wire.AskBody,
        {**ASK, "action": {"kind": "command", "command": "ls", "operands": [{"pth": "x"}]}},
        "There is no field 'action.operands[0].pth'. Did you mean path?",
    ),
    "a missing field": (wire.AskBody, {"session_id": "s"}, "action is missing."),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_refusal_names_what_may_stand_there(case: str) -> None:
    struct, given, said = REFUSED[case]
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(given, struct)
    assert invalid(caught.value, struct).message == said


def test_a_field_that_is_near_to_none_is_answered_with_those_that_an_action_has() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({**ASK, "action": {"kind": "command", "command": "ls", "foo": 1}}, wire.AskBody)
    said = invalid(caught.value, wire.AskBody).message
    assert said.startswith("There is no field 'action.foo'. Known here: arguments, code, command, cwd, ")
    assert "session_id" not in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "rm -rf y",
            'An action is one such as Command(command="make"), or {"kind": "command", "command": "make"}; str is none.',
        ),
        (
            {"kind": "cmd"},
            "The action cannot be understood: kind: invalid value 'cmd'; it is one of command, code, tool, ",
        ),
    ],
)
def test_an_action_that_is_none(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        action_of(given)
    assert caught.value.message.startswith(said)
    assert caught.value.param == "action"


def test_an_operators_rule_with_a_word_that_is_none() -> None:
    row = {"key": "own.rule", "verdict": "deny", "programs": ["x"]}
    [error] = ruleset.problems_of([row])
    assert str(error) == "rule 1: verdict: invalid enum value 'deny'; it is one of allow, ask, block"
    assert error.field == "verdict"


async def test_a_gateway_in_the_process_names_them_too(tmp_path: Path) -> None:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    wrong: Any = {"kind": "kron", "status": "ok", "cause": "bored", "choices": "maybe"}
    async with Gateway(load_config(environ=environ)) as gateway:
        await gateway.session("s")
        done = await gateway.request(Command(command="git status"), session_id="s")
        for call, said in (
            (
                gateway.session("t", kind=wrong["kind"]),
                "kind 'kron' is none; it is one of api, chat, child, cli, cron, ",
            ),
            (gateway.result(done.request_id, wrong["status"]), "status 'ok' is none; it is one of failed, not_run, "),
            (gateway.cancel(done.request_id, wrong["cause"]), "cause 'bored' is none; it is one of "),
            (
                gateway.request(Command(command="rm -rf x"), session_id="s", choices=(wrong["choices"],)),
                "choices: 'maybe' is none; it is one of once, once_all, session, always, deny or a time box",
            ),
        ):
            with pytest.raises(InvalidInput) as caught:
                await call
            assert caught.value.message.startswith(said)
        assert (await gateway.get(done.request_id)).execution.state == "claimed"
