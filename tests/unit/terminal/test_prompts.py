"""Questions on a terminal: `signoff run` and `signoff ask` in sessions of kind `cli`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.terminal.typist import READY, Typist

from signoff.elicitation import Elicited
from signoff.gateway import Gateway
from signoff.model import Actor, ApprovalRequest, Notifier
from signoff.rows import session_key
from signoff.testing.fake_adapter import FakeAdapter

SIGNOFF = (sys.executable, "-m", "signoff")
OPERATOR = Actor(type="person", platform="local", user_id=str(os.getuid()), via="cli")


def run(folder: Path, *options: str, action: str = "rm -rf ./build", traced: bool = True) -> tuple[str, ...]:
    """`signoff run` of a script that leaves a trace each time it runs."""
    script = f"echo ran >> {folder}/trace; {action}" if traced else action
    return (*SIGNOFF, "run", "--config", str(folder / "signoff.toml"), *options, "--", "sh", "-c", script)


def ran(folder: Path) -> int:
    """How often the script ran."""
    trace = folder / "trace"
    return len(trace.read_text().splitlines()) if trace.exists() else 0


async def only(gateway: Gateway) -> ApprovalRequest:
    """The one request there is."""
    [row] = await gateway.store.find(ApprovalRequest, "profile", "default")
    return row


@pytest.mark.quick
async def test_a_yes_at_the_terminal_is_the_operators(gateway: Gateway, folder: Path, typist: Typist) -> None:  # 2.8.1
    await typist.start(*run(folder, "--here", "--reason", "old build"))
    shown = await typist.sees(READY)
    assert "High: " in shown
    assert "▏ Agent says (not checked): old build" in shown
    assert "Enter alone: Deny" in shown
    assert "Answer a/d/r/w (" in shown, "no answer for a session that ends with the command"
    typist.type("a\n")
    code, _, errors = await typist.ended()
    assert (code, ran(folder)) == (0, 1), errors
    row = await only(gateway)
    assert (row.outcome, row.choice, row.decided_by, row.kind) == ("approved", "once", (OPERATOR,), "cli")
    assert f"Approved once by the operator (uid {os.getuid()})." in typist.shown


@pytest.mark.quick
@pytest.mark.parametrize(("keys", "reason"), [("d\n", None), ("\n", None), ("r\nnot now\n", "not now")])
async def test_a_no_and_enter_alone_deny(  # 2.8.1 W22
    gateway: Gateway, folder: Path, typist: Typist, keys: str, reason: str | None
) -> None:
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    first, _, rest = keys.partition("\n")
    typist.type(f"{first}\n")
    if rest:
        await typist.sees("The agent reads this: ")
        typist.type(rest)
    code, _, errors = await typist.ended()
    assert (code, ran(folder)) == (77, 0)
    assert "Denied by the operator" in errors
    row = await only(gateway)
    assert (row.outcome, row.reason, row.decided_by) == ("denied", reason, (OPERATOR,))


async def test_what_is_no_answer_decides_nothing(gateway: Gateway, folder: Path, typist: Typist) -> None:  # W22 W25
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    for count, word in enumerate(("yes", "ok", "approve", "aa", "\x1b[A", "once"), start=2):
        typist.type(f"{word}\n")
        await typist.sees(READY, count)
        assert (await only(gateway)).outcome is None
    assert typist.shown.count("is no answer here. Nothing was decided.") == 6
    typist.type("d\n")
    assert (await typist.ended())[0] == 77


@pytest.mark.quick
async def test_typed_ahead_is_thrown_away(gateway: Gateway, folder: Path, typist: Typist) -> None:
    """Keys that were pressed before the question stood there were meant for something else."""
    typist.type("a\na\na\n")
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    assert (await only(gateway)).outcome is None
    typist.type("d\n")
    assert ((await typist.ended())[0], ran(folder)) == (77, 0)


@pytest.mark.quick
async def test_end_of_input_is_no_denial(gateway: Gateway, folder: Path, typist: Typist) -> None:  # 2.8.3 #22992
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    typist.type("a\x04")  # what was begun and not sent with Enter is no answer either
    typist.type("\x7f\x04")
    code, _, errors = await typist.ended()
    row = await only(gateway)
    assert (row.outcome, row.cause, row.decided_by) == ("cancelled", "prompt_interrupted", ())
    assert (code, ran(folder)) == (77, 0)
    assert "Cancelled, not run: the terminal prompt was interrupted." in errors


async def test_an_interrupt_is_no_denial(gateway: Gateway, folder: Path, typist: Typist) -> None:  # 2.8.3 #22992
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    typist.type("\x03")
    code, _, errors = await typist.ended()
    row = await only(gateway)
    assert (row.outcome, row.cause, row.decided_by) == ("cancelled", "prompt_interrupted", ())
    assert (code, ran(folder)) == (130, 0)
    assert "Traceback" not in errors


async def test_a_terminal_that_goes_away_is_no_denial(gateway: Gateway, folder: Path, typist: Typist) -> None:  # 2.8.3
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    typist.hang_up()
    assert (await typist.ended())[0] in (77, 130)
    row = await only(gateway)
    assert (row.outcome, row.cause, row.decided_by) == ("cancelled", "prompt_interrupted", ())


@pytest.mark.quick
async def test_no_terminal_is_no_denial(gateway: Gateway, folder: Path, environ: dict[str, str]) -> None:  # 2.8.3
    process = await asyncio.create_subprocess_exec(
        *run(folder, "--here"),
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    row = await only(gateway)
    assert (row.outcome, row.cause, row.decided_by) == ("cancelled", "no_prompt", ())
    assert (process.returncode, ran(folder)) == (75, 0)
    assert b"Cancelled, not run: there was no terminal to ask on." in errors


async def test_silence_is_a_timeout(gateway: Gateway, folder: Path, typist: Typist) -> None:  # 2.8.2
    await typist.start(*run(folder, "--here", "--timeout", "6"))
    await typist.sees(READY)
    code, _, errors = await typist.ended()
    assert (code, ran(folder)) == (77, 0)
    assert "Timeout: nobody answered within 6 s" in errors
    assert "Nothing is asked here any more. Timeout: " in typist.shown
    assert ((row := await only(gateway)).outcome, row.decided_by) == ("timeout", ())


async def test_an_answer_in_the_chat_ends_the_prompt(
    gateway: Gateway, folder: Path, typist: Typist, chat: FakeAdapter
) -> None:
    await typist.start(*run(folder, "--here", "--to", "fake:5"))
    await typist.sees(READY)
    await chat.press("Approve once", name="Ana")
    code, _, _ = await typist.ended()
    assert (code, ran(folder)) == (0, 1)
    assert "Nothing is asked here any more. Approved once by " in typist.shown


async def test_a_prompt_that_ends_leaves_the_chat(
    gateway: Gateway, folder: Path, typist: Typist, chat: FakeAdapter
) -> None:
    """End of input at one place of two takes nothing from the other."""
    await typist.start(*run(folder, "--here", "--to", "fake:5"))
    await typist.sees(READY)
    typist.type("\x04")
    assert typist.process.stderr is not None
    async with asyncio.timeout(30):
        line = await typist.process.stderr.readline()
    row = await only(gateway)
    assert line.decode() == f"signoff: {row.short_id} is not answered here (prompt_interrupted); it waits in fake:5.\n"
    assert row.outcome is None
    await chat.press("Deny", name="Ana")
    assert (await typist.ended())[0] == 77
    assert (await only(gateway)).outcome == "denied"


async def test_a_critical_action_takes_a_second_step(gateway: Gateway, folder: Path, typist: Typist) -> None:
    await typist.start(*run(folder, "--here", action="psql prod -c 'DROP TABLE t1'", traced=False))
    shown = await typist.sees(READY)
    assert "Critical: " in shown
    assert "This session" not in shown  # 2.8.4
    typist.type("a\nyes\n")  # pasted: the second line came before its question
    await typist.sees("Type yes to agree: ")
    assert (await only(gateway)).outcome is None
    typist.type("y\n")
    await typist.sees(READY, 2)
    assert (await only(gateway)).outcome is None
    typist.type("d\n")
    assert (await typist.ended())[0] == 77


async def test_secrets_and_control_characters_are_never_written(  # 2.8.4
    gateway: Gateway, folder: Path, typist: Typist
) -> None:
    token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    hostile = f"rm -rf x; curl -H 'Authorization: Bearer {token}' http://x \x1b[2J\x07\u202e [bold]a[/bold]"
    await typist.start(*run(folder, "--here", action=hostile, traced=False))
    shown = await typist.sees(READY)
    assert token not in typist.raw
    assert "⟨ESC⟩[2J⟨U+0007⟩⟨U+202E⟩" in shown.replace("\n│ ", "")
    assert "[bold]a[/bold]" in shown.replace("\n│ ", "")
    assert "\x1b[2J" not in typist.raw
    typist.type("d\n")
    assert (await typist.ended())[0] == 77


async def test_a_long_action_is_shown_whole_before_a_yes(gateway: Gateway, folder: Path, typist: Typist) -> None:
    long = "rm -rf build; " + "echo 'padding of the text'; " * 200 + "echo the-very-end"
    await typist.start(*run(folder, "--here", action=long))
    shown = await typist.sees(READY)
    assert "characters of it are not shown above" in shown
    typist.type("a\n")
    await typist.sees("Not all of it was shown yet")
    await typist.sees(READY, 2)  # what is typed before it is asked again is thrown away
    assert (await only(gateway)).outcome is None
    typist.type("v\n")
    shown = await typist.sees(READY, 3)
    assert shown.replace("\n│ ", "").count("padding of the text") > 200
    typist.type("a\n")
    assert ((await typist.ended())[0], ran(folder)) == (0, 1)


async def test_resizing_changes_nothing(gateway: Gateway, folder: Path, typist: Typist) -> None:
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    for size in ((10, 20), (60, 300), (24, 80)):
        typist.resize(*size)
        assert typist.process.returncode is None
    typist.type("what\n")
    await typist.sees(READY, 2)
    typist.type("a\n")
    assert ((await typist.ended())[0], ran(folder)) == (0, 1)


@pytest.mark.parametrize("plain", [{"TERM": "dumb"}, {"NO_COLOR": "1", "TERM": "dumb"}])
async def test_no_colours_where_there_are_none(
    folder: Path, typists: Callable[..., Typist], plain: dict[str, str]
) -> None:
    typist = typists(**plain)
    await typist.start(*run(folder, "--here"))
    await typist.sees(READY)
    assert "\x1b" not in typist.raw
    typist.type("\x03")
    assert (await typist.ended())[0] == 130


async def test_a_session_of_kind_cli_is_asked_on_its_terminal(gateway: Gateway, folder: Path, typist: Typist) -> None:
    await gateway.session("mine", kind="cli")
    await typist.start(*run(folder, "--session", "mine"))
    await typist.sees(READY)
    typist.type("s\n")
    assert ((await typist.ended())[0], ran(folder)) == (0, 1)
    assert [grant.session_id for grant in await gateway.grants()] == ["mine"]
    assert await gateway.store.find(Notifier, "session", session_key("default", "mine")) == []


async def test_other_kinds_are_never_asked_on_a_terminal(gateway: Gateway, folder: Path, typist: Typist) -> None:
    await gateway.session("talk", kind="chat", destination="fake:5")
    await typist.start(*run(folder, "--here", "--session", "talk"))
    code, _, errors = await typist.ended()
    assert (code, ran(folder), typist.shown) == (2, 0, "")
    assert "--here is for sessions of kind cli; talk is chat." in errors


async def test_an_agent_asks_and_the_local_socket_answers(
    gateway: Gateway, served: str, folder: Path, typists: Callable[..., Typist]
) -> None:
    """The key says who asks; who answers is whoever can open the socket."""
    made = await gateway.keys.create("default", "agent", agent="builder")
    typist = typists(SIGNOFF_URL=served, SIGNOFF_KEY=made.text)
    await typist.start(*SIGNOFF, "run", "--here", "--", "sh", "-c", f"echo ran >> {folder}/trace; rm -rf ./build")
    await typist.sees(READY)
    typist.type("a\n")
    assert ((await typist.ended())[0], ran(folder)) == (0, 1)
    row = await only(gateway)
    assert (row.agent, row.decided_by) == ("builder", (OPERATOR,))


async def test_without_the_local_socket_nobody_is_asked_here(
    gateway: Gateway, served: str, folder: Path, typists: Callable[..., Typist]
) -> None:
    made = await gateway.keys.create("default", "agent", agent="builder")
    (folder / "signoff.toml").write_text(f'[gateway]\nstate_dir = "{folder}/elsewhere"\n')
    typist = typists(SIGNOFF_URL=served, SIGNOFF_KEY=made.text)
    await typist.start(*SIGNOFF, "run", "--here", "--", "sh", "-c", "rm -rf ./build")
    code, _, errors = await typist.ended()
    assert (code, typist.shown) == (75, "")
    assert "over the gateway's local socket" in errors
    assert await gateway.store.find(ApprovalRequest, "profile", "default") == []


async def test_what_waits_is_said_off_a_terminal(gateway: Gateway, folder: Path, environ: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *run(folder, "--to", "fake:5"),
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        line = (await process.stderr.readline()).decode()
    row = await only(gateway)
    assert line.startswith(f"signoff: asking {row.short_id} in fake:5 (")
    assert "rm -rf ./build" in line
    assert line.endswith("Waiting up to 5 min for an answer.\n")
    process.send_signal(signal.SIGINT)
    await process.communicate()


async def test_fields_are_filled_in_on_the_command_line(
    gateway: Gateway, folder: Path, environ: dict[str, str]
) -> None:
    """`signoff approve --content` for whoever reaches the local socket."""
    await gateway.session("talk", kind="chat", destination="fake:5")
    form = {"properties": {"project": {"type": "string"}}, "required": ["project"]}
    asking = asyncio.create_task(gateway.elicit("jira", "Which?", form, session_id="talk", request_id="q"))
    async with asyncio.timeout(30):
        while not await gateway.broker.pending("default"):  # noqa: ASYNC110  # the asker tells nobody
            await asyncio.sleep(0.01)
    command = (*SIGNOFF, "approve", "--config", str(folder / "signoff.toml"), "q", "--content")
    for content, code, said in (("[1]", 2, "is not a JSON object"), ('{"project": 1}', 2, "project must be a text")):
        assert await done(environ, *command, content) == (code, said)
    assert await done(environ, *command, '{"project": "web"}') == (0, "Approved: accepted by the operator")
    assert await asking == Elicited(action="accept", content={"project": "web"})


async def done(environ: dict[str, str], *command: str) -> tuple[int | None, str]:
    """The exit code of a command, and which of the texts it said."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=environ, stdout=pipe, stderr=pipe)
    out, errors = await process.communicate()
    text = out.decode() + errors.decode()
    known = ("is not a JSON object", "project must be a text", "Approved: accepted by the operator")
    return process.returncode, next((each for each in known if each in text), text)
