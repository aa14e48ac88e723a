"""The command line as its users see it: processes, their output and their exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.forked import Forked, fork_module
from tests.unit.client.fake_gateway import FakeGateway
from tests.unit.server.world import world_on

from signoff.cli.app import COMMANDS, _other_key, cli
from signoff.cli.exits import code_of_record
from signoff.client import ApprovalRecord, Who
from signoff.errors import InsufficientScope, RequestNotFound, SignoffError, Unauthenticated
from signoff.ids import called

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway's socket and signals")


class Done:
    """A finished command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"Done({self.code}, {self.out!r}, {self.err!r})"


class Shell:
    """Starts `signoff` with an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "COLUMNS": "200"}
        (folder / "signoff.toml").write_text('[gateway]\nstate_dir = "."\nport = 0\nhooks_port = 0\n')

    async def start(self, *arguments: str, **streams: Any) -> Forked:
        """Start it without waiting."""
        return await fork_module("signoff", *arguments, cwd=self.folder, env=self.environ, **streams)

    async def end(self, process: Forked, given: str | None = None) -> Done:
        """Wait for it. Nothing that goes wrong may show a traceback, and no error takes a second line."""
        try:
            async with asyncio.timeout(60):
                out, err = await process.communicate((given or "").encode())
        except TimeoutError:
            process.kill()
            raise
        done = Done(process.returncode or 0, out.decode(), err.decode())
        assert "Traceback" not in done.err
        assert "Exception" not in done.err
        return done

    async def __call__(self, *arguments: str) -> Done:
        """Run it."""
        return await self.end(await self.start(*arguments))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
async def gateway(shell: Shell) -> AsyncIterator[FakeGateway]:
    """A gateway on the local socket of the configuration."""
    fake = FakeGateway()
    await fake.up(shell.folder / "admin.sock")
    yield fake
    await fake.down()


def one_line(done: Done) -> str:
    """The one line on standard error."""
    assert done.err.startswith("signoff: "), done
    assert done.err.count("\n") == 1, done
    return done.err.removeprefix("signoff: ").strip()


# --- run -------------------------------------------------------------------------------------------


@pytest.mark.quick
async def test_run_runs_what_was_approved_once_and_reports(shell: Shell, gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    argv = ("sh", "-c", 'echo $0 "$1"', "a", "b  c")
    done = await shell("run", "--to", "telegram:5/7", "--reason", "why", "--", *argv)
    assert (done.code, done.out, done.err) == (0, "a b  c\n", "")
    [row] = gateway.approvals.values()
    assert row["body"]["action"] == {
        "kind": "command", "command": "sh -c 'echo $0 \"$1\"' a 'b  c'", "cwd": str(shell.folder),
    }  # fmt: skip
    assert row["body"]["reason"] == "why"
    assert row["execution"]["state"] == "succeeded"
    assert row["execution"]["exit_code"] == 0
    assert list(gateway.turns.values()) == ["turn_ended"]
    assert gateway.count("PUT /v1/sessions/") == 1
    assert gateway.sessions == {}, "the session made for this question has ended with it"


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -TERM $$", 143)])
async def test_run_ends_as_the_command_did(shell: Shell, gateway: FakeGateway, script: str, code: int) -> None:
    gateway.outcome = "approved"
    done = await shell("run", "--shell", script)
    assert done.code == code
    [row] = gateway.approvals.values()
    assert row["body"]["action"]["shell"] == "sh"
    assert (row["execution"]["state"], row["execution"]["exit_code"]) == ("failed", code)


@pytest.mark.quick
async def test_run_prints_the_record_of_what_ran(shell: Shell, gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    done = await shell("run", "--json", "--shell", "echo ran >&2; exit 3")
    assert (done.code, done.err) == (3, "ran\n")
    assert json.loads(done.out)["execution"]["exit_code"] == 3
    (shell.folder / "odd").write_text("\0")
    (shell.folder / "odd").chmod(0o755)
    done = await shell("run", "--json", "./odd")
    assert done.code == 126
    assert json.loads(done.out)["execution"]["state"] == "not_run"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("outcome", "code"), [("denied", 77), ("timeout", 77), ("blocked", 77), ("staged", 79), ("notify_failed", 75)]
)
async def test_run_does_not_run_anything_else(shell: Shell, gateway: FakeGateway, outcome: str, code: int) -> None:
    gateway.outcome = outcome
    done = await shell("run", "touch", "made")
    assert done.code == code
    mend = " `signoff doctor` says what keeps messages from being taken there." if outcome == "notify_failed" else ""
    assert one_line(done) == f"BLOCKED: {outcome}.{mend}"
    assert not (shell.folder / "made").exists()


async def test_run_in_a_declared_session_leaves_it_alone(shell: Shell, gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    gateway.sessions["chat-1"] = {}
    shell.environ["SIGNOFF_SESSION_ID"] = "chat-1"
    assert (await shell("run", "true")).code == 0
    assert "chat-1" in gateway.sessions
    shell.environ["SIGNOFF_SESSION_ID"] = "chat-2"
    assert (await shell("run", "true")).code == 75, "an agent declares its own"
    assert (await shell("run", "--session", "mine", "true")).code == 0
    assert sorted(gateway.sessions) == ["chat-1", "mine"], "one that a person names is declared, and stays"


@pytest.mark.quick
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.heavy)]
)
async def test_interrupting_run_withdraws(shell: Shell, gateway: FakeGateway, number: signal.Signals) -> None:
    process = await shell.start("run", "touch", "made")
    request_id = await gateway.asked()
    process.send_signal(number)
    done = await shell.end(process)
    assert done.code == 130
    assert gateway.approvals[request_id]["cause"] == "withdrawn"
    assert list(gateway.turns.values()) == ["turn_interrupted"]
    assert not (shell.folder / "made").exists()


async def test_signals_reach_the_running_command(shell: Shell, gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    script = "trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    process = await shell.start("run", "--shell", script)
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert await process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    done = await shell.end(process)
    assert (done.code, done.out) == (9, "got it\n")
    [row] = gateway.approvals.values()
    assert (row["execution"]["state"], row["execution"]["exit_code"]) == ("failed", 9)


async def test_run_without_such_a_program_asks_nobody(shell: Shell, gateway: FakeGateway) -> None:
    done = await shell("run", "no-such-program", "x")
    assert done.code == 127
    assert one_line(done) == "there is no program 'no-such-program'; nobody was asked."
    done = await shell("run", "--", "true && false")
    assert done.code == 2
    assert "signoff run --shell 'true && false'" in one_line(done)
    assert gateway.approvals == {}


@pytest.mark.parametrize("text", ["echo 'a'\necho  b", "two  words", "-x y"])
async def test_the_command_to_type_instead_can_be_typed(shell: Shell, gateway: FakeGateway, text: str) -> None:
    done = await shell("run", "--", text)
    assert done.code == 2
    head, _, hint = done.err.rstrip("\n").partition(": signoff run --shell ")
    assert head.startswith("signoff: ")
    assert "\n" not in head
    assert shlex.split(hint)[-1] == text
    assert gateway.approvals == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "echo", "\udcff"),
        ("run", "\udcff x"),
        ("run", "--reason", "\udcff", "true"),
        ("run", "--operand", "\udcff", "true"),
        ("ask", "rm", "\udcff"),
        ("ask", "--to", "telegram:\udcff", "rm x"),
        ("ask", "--code", "\udcff"),
        ("ask", "--tool", "t\udcff"),
    ],
)
async def test_what_is_not_utf8_cannot_be_asked(shell: Shell, gateway: FakeGateway, arguments: tuple[str, ...]) -> None:
    done = await shell(*arguments)
    assert done.code == 2
    assert "is not UTF-8" in one_line(done)
    assert gateway.approvals == {}


@pytest.mark.parametrize(
    ("name", "value"), [("SIGNOFF_KEY", "sk_a_b\r\n"), ("SIGNOFF_URL", "http://ann:hunter2@127.0.0.1:1")]
)
@pytest.mark.parametrize("command", [("run", "true"), ("ask", "true"), ("pending",)])
async def test_a_wrong_variable_is_named(shell: Shell, command: tuple[str, ...], name: str, value: str) -> None:
    shell.environ[name] = value
    done = await shell(*command)
    assert done.code == 2
    line = one_line(done)
    assert line.startswith(f"{name} holds")
    assert "hunter2" not in line


async def test_a_result_that_cannot_be_reported_changes_no_exit_code(shell: Shell, gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    process = await shell.start("run", "--shell", "read x; exit 4", stdin=asyncio.subprocess.PIPE)
    request_id = await gateway.asked()
    await gateway.until(lambda: gateway.count(f"POST /v1/approvals/{request_id}/claim") == 1)
    gateway.approvals[request_id]["execution"]["state"] = "unknown"
    done = await shell.end(process, "go\n")
    assert done.code == 4
    assert "the result could not be reported" in one_line(done)


# --- ask -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        (["rm -rf build && ls"], {"kind": "command", "command": "rm -rf build && ls", "cwd": "."}),
        (["--", "rm", "-rf", "a b"], {"kind": "command", "command": "rm -rf 'a b'", "cwd": "."}),
        (["--code", "print(1)"], {"kind": "code", "language": "python", "code": "print(1)", "cwd": "."}),
        (
            ["--tool", "mail", "--arguments", '{"to": ["a"]}'],
            {"kind": "tool", "name": "mail", "arguments": {"to": ["a"]}},
        ),
    ],
)
async def test_ask_puts_each_kind(
    shell: Shell, gateway: FakeGateway, arguments: list[str], action: dict[str, Any]
) -> None:
    gateway.outcome = "approved"
    done = await shell("ask", "--json", *arguments)
    assert done.code == 0, done
    assert json.loads(done.out)["execution"]["state"] == "claimed"
    [row] = gateway.approvals.values()
    assert row["body"]["action"] == {k: str(shell.folder) if k == "cwd" else v for k, v in action.items()}


async def test_ask_reads_a_script_from_standard_input(shell: Shell, gateway: FakeGateway) -> None:
    gateway.outcome = "denied"
    process = await shell.start("ask", "--code", "-", "--language", "sh", stdin=asyncio.subprocess.PIPE)
    done = await shell.end(process, "echo ä\n")
    assert (done.code, done.out) == (77, "BLOCKED: denied.\n")
    [row] = gateway.approvals.values()
    assert row["body"]["action"]["code"] == "echo ä\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask"], "Give one of"),
        (["ask", "x", "--code", "y"], "Give one of"),
        (["ask", "--tool", "t", "--arguments", "[1]"], "--arguments is not a JSON object"),
        (["ask", "--timeout", "0", "x"], "--timeout: 0 is out of bounds: it must be more than 0 seconds."),
        (["run", "--timeout", "soon", "x"], "--timeout: 'soon' is no length of time. Write seconds, or such as 90s"),
        (["ask", "--operand", "missing", "x"], "missing is not a readable file"),
        (["ask", "--to", "nowhere", "x"], "is not a destination"),
        (["run"], "Missing argument 'CMD...'"),
        (["aprove", "K7M2Q"], "There is no command 'aprove'; did you mean 'approve'? See `signoff --help`."),
        (["key", "creat"], "did you mean 'create'? See `signoff key --help`."),
        (["zzz"], "There is no command 'zzz'. See `signoff --help`."),
        (["approve", "--choice", "deny", "x"], "use `signoff deny`"),
        (["key", "create"], "Missing option '--scope'"),
        (["pending", "--frob"], "No such option"),
        (["pending", "--config", "missing.toml"], "There is no configuration file"),
    ],
)
async def test_wrong_usage_is_one_line_and_exit_code_2(
    shell: Shell, gateway: FakeGateway, arguments: list[str], said: str
) -> None:
    done = await shell(*arguments)
    assert done.code == 2, done
    assert said in one_line(done)


@pytest.mark.quick
async def test_without_a_gateway(shell: Shell) -> None:
    for arguments in (["pending"], ["run", "true"], ["ask", "x"], ["approve", "x"]):
        done = await shell(*arguments)
        assert done.code == 75, done
        assert "No gateway runs here" in one_line(done)
    shell.environ["SIGNOFF_URL"] = "http://127.0.0.1:9"
    done = await shell("pending")
    assert done.code == 75
    assert "No gateway answers at http://127.0.0.1:9" in one_line(done)


# --- operators -------------------------------------------------------------------------------------


@pytest.mark.quick
async def test_pending_approve_and_deny(shell: Shell, gateway: FakeGateway) -> None:
    assert (await shell("pending")).out == "Nothing waits for an answer.\n"
    process = await shell.start("run", "--shell", "echo a\u202eb")
    asked = await gateway.asked()
    listed = (await shell("pending")).out
    session_id = str(gateway.approvals[asked]["session_id"])
    assert called(session_id).startswith(f"{shell.folder.name[:19]}@"), "its folder and host, for people"
    assert session_id in listed, "what `stop` takes"
    assert listed.splitlines()[0].split()[:2] == ["ID", "WHAT"]
    assert "echo a⟨U+202E⟩b" in listed
    assert [row["short_id"] for row in json.loads((await shell("pending", "--json")).out)["data"]] == ["K7M2Q"]
    approved = await shell("approve", "K7M2Q", "--choice", "session")
    assert (approved.code, approved.out) == (0, "K7M2Q: Approved by Ana\n")
    assert (await shell.end(process)).code == 0
    late = await shell("deny", "K7M2Q", "too", "risky")
    assert late.code == 1
    assert one_line(late) == "K7M2Q had already ended, nothing was changed: Approved by Ana"
    process = await shell.start("ask", "second")
    await gateway.until(lambda: len(gateway.approvals) == 2)
    request_id = list(gateway.approvals)[1]
    assert (await shell("deny", request_id, "too", "risky")).code == 0
    assert gateway.approvals[request_id]["reason"] == "too risky"
    assert (await shell.end(process)).code == 77


async def test_stop_grants_and_revoke(shell: Shell, gateway: FakeGateway) -> None:
    assert "1 turns ended, 1 questions withdrawn" in (await shell("stop", "s")).out
    assert json.loads((await shell("grants", "--json")).out)["data"][0]["grant_id"] == "G1"
    out = (await shell("grants")).out
    assert "G1" in out and "the operator (uid 0)" in out
    assert "No session has its questions switched off." in out
    assert (await shell("revoke", "G1")).code == 0
    done = await shell("revoke", "G2")
    gone = "No standing permission with this id is in force here. `signoff grants` lists them."
    assert (done.code, one_line(done)) == (1, gone)


async def test_the_profile_is_sent(shell: Shell, gateway: FakeGateway) -> None:
    await shell("pending", "--profile", "team")
    assert gateway.headers["X-Signoff-Profile"] == "team"


async def test_keys_before_the_first_start(shell: Shell) -> None:
    made = json.loads((await shell("key", "create", "--scope", "agent", "--agent", "ci", "--json")).out)
    assert set(made) == {"id", "key"}
    assert made["key"].startswith(f"sk_{made['id']}_")
    listed = json.loads((await shell("key", "list", "--json")).out)["data"]
    assert [(row["id"], row["agent"], row["revoked_at"]) for row in listed] == [(made["id"], "ci", None)]
    assert (await shell("key", "revoke", made["id"])).code == 0
    assert "revoked" in (await shell("key", "list")).out
    done = await shell("key", "revoke", "nothing")
    assert (done.code, one_line(done)) == (1, "No API key with this id is known here. `signoff key list` lists them.")
    done = await shell("key", "create", "--scope", "approver")
    assert done.code == 2
    assert "name the principal" in one_line(done)
    done = await shell("key", "create", "--scope", "agent", "--profile", "nobody")
    assert (done.code, one_line(done)) == (2, "There is no profile 'nobody'; there are: default.")


@pytest.mark.quick
async def test_a_key_that_is_missing_is_told_from_one_that_is_wrong(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    async with world_on("memory://") as world:
        shell.environ["SIGNOFF_URL"] = world.bound.api
        for key, says in (
            (None, "SIGNOFF_KEY is not set, and this gateway answers no call without a key."),
            ("sk_a_b", "SIGNOFF_KEY holds no valid key of this gateway."),
        ):
            if key is not None:
                shell.environ["SIGNOFF_KEY"] = key
            for arguments, code in ((("pending",), 1), (("run", "true"), 75), (("ask", "x"), 75)):
                done = await shell(*arguments)
                assert (done.code, one_line(done).startswith(says)) == (code, True), done


async def test_a_key_that_nobody_would_keep_is_refused(shell: Shell) -> None:
    shell.environ["SIGNOFF_GATEWAY__STORE"] = "memory://"
    done = await shell("key", "create", "--scope", "ops")
    assert done.code == 2
    assert "start it first" in one_line(done)


async def test_help_tells_the_exit_codes(shell: Shell) -> None:
    text = " ".join((await shell("run", "--help")).out.split())
    for said in (
        "77 not approved",
        "75 nobody could be asked (no gateway, a key that it does not take",
        "130 interrupted",
        "2 wrong usage",
    ):
        assert said in text
    shell.environ["COLUMNS"] = "80"
    everything = (await shell("--help")).out
    listed = [line.split()[0] for line in everything.splitlines() if line.startswith("  ") and line[2:3].isalpha()]
    assert sorted(name for name in listed if name in COMMANDS) == sorted(COMMANDS), "each under one heading"
    assert max(map(len, everything.splitlines())) <= 80
    assert (await shell()).out == everything
    for group in ("key", "hook", "allowlist", "policy"):
        alone = await shell(group)
        assert (alone.code, alone.err, alone.out) == (0, "", (await shell(group, "--help")).out)
        assert alone.out.startswith(f"Usage: signoff {group} ")


@pytest.mark.parametrize("error", [InsufficientScope("This needs a key of scope admin."), Unauthenticated("No key.")])
def test_an_agents_key_in_the_operators_shell_is_named(error: SignoffError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGNOFF_URL", raising=False)
    monkeypatch.setenv("SIGNOFF_KEY", "secret")
    told = "SIGNOFF_KEY is set here; unset it to speak to this machine's gateway as its operator."
    assert _other_key(error).strip() == told
    assert _other_key(RequestNotFound()) == ""
    monkeypatch.delenv("SIGNOFF_KEY")
    assert _other_key(error) == ""


async def test_the_reader_of_the_output_may_go(shell: Shell, gateway: FakeGateway) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = await shell.start("pending", "--json", stdout=writer)
    os.close(writer)
    async with asyncio.timeout(30):
        _, err = await process.communicate()
    assert err == b""


# --- parts -----------------------------------------------------------------------------------------


@pytest.mark.quick
def test_every_command_is_there() -> None:
    with cli.make_context("signoff", ["--help"], resilient_parsing=True) as context:
        for name in COMMANDS:
            command = cli.get_command(context, name)
            assert command is not None
            assert command.help


def record(**facts: Any) -> ApprovalRecord:
    base = {"request_id": "r", "session_id": "s", "status": "pending", "digest": "d"}
    base["created_at"] = "2026-01-01T00:00:00Z"
    return msgspec.convert({**base, **facts}, ApprovalRecord)


@pytest.mark.quick
def test_nobody_to_ask_is_told_from_a_refusal() -> None:
    blocked = record(status="resolved", outcome="blocked")
    assert code_of_record(blocked) == 77
    by = (Who(type="policy", setting="approvals.unattended_mode"),)
    assert code_of_record(msgspec.structs.replace(blocked, decided_by=by)) == 75
