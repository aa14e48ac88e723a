"""A kept or gated call runs in one way, whichever door it came through: claimed in the store first, then handed over.

What runs a call is reached from few functions. Whoever adds another finds this table red, and has to say what claims
the call there.
"""

from __future__ import annotations

import ast
import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.unit.core.harness import BY_ANN

import signoff
from signoff import Gateway
from signoff.changes import staging
from signoff.client import Client
from signoff.config import load_config
from signoff.errors import ActionRefused
from signoff.executors import Call
from signoff.model import ApprovalRequest, Destination, Event, replace
from signoff.rows import request_key
from signoff.server.serve import serve
from signoff.settings import ToolGateSettings
from signoff.testing.fake_adapter import FakeAdapter

PACKAGE = Path(signoff.__file__).parent
WAYS = {
    # A kept action: the claim, then the executor, whatever it is.
    "staging.start": {"executing.Executing._run"},
    "self._executors.run": {"executing.Executing._run"},
    "_run_function": {"executors.Executors.run"},
    "_run_command": {"executors.Executors.run"},
    "_post": {"executors.Executors.run"},
    "_post_once": {"executors._post"},
    # A call of the program itself, asked about first: what runs it, and the one function that calls that.
    "function_for": {"gate.Gate._runner"},
    "_runner": {"gate.Gate.call"},
    "runs": {"gate.Gate._asked", "gate.Gate.call"},
    # Both: what is handed over, the program's own function, and the functions that are registered.
    "call_of": {"executing.Executing._run", "gate.Gate._asked"},
    "called": {"executors._run_function", "gate.Gate._runner"},
    "_functions": {f"executors.Executors.{name}" for name in ("__init__", "register", "has", "function_for", "run")},
    # What begins runs.
    "_begin": {"executing.Executing.run", "executing.Executing._round"},
    "self._run": {"executing.Executing._begin"},
    "_runs.run": {"staged.Staged.replay"},
    "Executing": {"gateway.Gateway._open"},
    "Gate": {"gateway.Gateway._open"},
}
"""Which functions reach what runs a call, by the module and its qualified name."""
OWN = {"runs": "gate", "_runner": "gate", "self._run": "executing", "_begin": "executing", "_post": "executors"}
"""Words that are private to a module, and mean something else in others."""
IMPORTED = {"called": "signoff.executors", "Gate": "signoff.gate", "Executing": "signoff.executing"}
"""Words that mean this only where that module is imported."""


def functions(tree: ast.Module, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Each function of a module with its qualified name; what a function holds inside counts as its own."""
    for node in tree.body:
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            owner = f"{name}.{node.name}." if isinstance(node, ast.ClassDef) else f"{name}."
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                yield owner + each.name, each


def meant(word: str, module: str, source: str) -> bool:
    """Whether that word can stand in this module for what we mean."""
    if not all(part in source for part in word.split(".")) or OWN.get(word, module) != module:
        return False
    owner = IMPORTED.get(word, "")
    return owner in source or owner == f"signoff.{module}"


def reached_in(file: Path) -> Iterator[tuple[str, str]]:
    """Each word of the table with the function of this file that it stands in."""
    source = file.read_text()
    module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
    words = [word for word in WAYS if meant(word, module, source)]
    if not words or module.startswith(("testing.", "demo.", "bench.")):
        return  # what is apart has gateways of its own, and nothing of anybody's to run
    last = {word.rpartition(".")[2] for word in words}
    for name, function in functions(ast.parse(source), module):
        for node in ast.walk(function):
            end = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if end in last:
                dotted = ast.unparse(node)
                yield from ((word, name) for word in words if dotted == word or dotted.endswith(f".{word}"))


def test_what_runs_a_call_is_reached_from_these_functions_alone() -> None:  # 1.4.8
    found: dict[str, set[str]] = defaultdict(set)
    for file in PACKAGE.rglob("*.py"):
        for word, name in reached_in(file):
            found[word].add(name)
    assert found == WAYS


# --- through the doors -----------------------------------------------------------------------------


class House:
    """A gateway with a chat, over HTTP too, and an executor that looks at the claim of each call that it runs."""

    def __init__(self, gateway: Gateway, chat: FakeAdapter, agent: Client, approver: Client) -> None:
        self.gateway, self.chat, self.agent, self.approver = gateway, chat, agent, approver
        self.ran: list[str] = []
        self.dies = False
        """The next run is given up for lost while it goes on."""
        self.over = asyncio.Event()

    async def run(self, call: Call) -> None:
        """Run one call."""
        row = await self.gateway.store.get(ApprovalRequest, request_key(call.profile, call.id))
        assert row is not None
        assert row.execution.state == "claimed", "it was claimed before, and by whoever runs it"
        assert row.outcome == "approved"
        self.ran.append(call.id)
        if self.dies:
            self.dies = False
            await self.gateway.store.transact(lambda tx: staging.settle(tx, *_lost(row)))
            await self.over.wait()

    async def keep(self) -> str:
        """Keep one more call; its id."""
        called = await self.gateway.gate.call("send_email", {"n": len(await self.gateway.actions())}, session_id="job")
        assert called.outcome == "staged"
        return (await self.gateway.actions())[-1].id

    async def ended(self, action_id: str, state: str = "succeeded") -> None:
        """Return once it is so."""
        async with asyncio.timeout(20):
            while state not in [each.state for each in await self.gateway.actions() if each.id == action_id]:  # noqa: ASYNC110  # tells nobody
                await asyncio.sleep(0.01)

    async def press(self, button: str) -> None:
        """Press that button of the newest card, once it shows it."""
        async with asyncio.timeout(20):
            while not any(message.tokens(button) for message in self.chat.shown()):  # noqa: ASYNC110  # the same
                await asyncio.sleep(0.01)
        await self.chat.press(button)


def _lost(row: ApprovalRequest) -> tuple[str, str, str, staging.Ran]:
    claim_id = row.execution.claim_id or ""
    return row.profile, row.request_id, claim_id, staging.Ran(state="unknown", cause=staging.LOST_CLAIMANT)


@asynccontextmanager
async def house(folder: Path) -> AsyncIterator[House]:
    """All of it."""
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(folder), "SIGNOFF_GATEWAY__STORE": "memory://"}
    config = load_config(None, environ)
    profile = replace(
        config.profiles["default"],
        approvers={"fake": ("1",)},
        approvals=replace(
            config.profiles["default"].approvals,
            staged_destination=Destination("fake", "900"),
            tool_gate=ToolGateSettings(require_approval=("send_*",)),
        ),
    )
    chat = FakeAdapter()
    made = Gateway(replace(config, profiles={"default": profile}), adapters={("default", "fake"): chat})
    async with made as gateway, serve(gateway, host="127.0.0.1", port=0) as bound:
        agent_key = (await gateway.keys.create("default", "agent", agent="builder")).text
        ann_key = (await gateway.keys.create("default", "approver", principal="ann")).text
        async with Client(bound.api, agent_key, environ={}) as agent, Client(bound.api, ann_key, environ={}) as ann:
            await gateway.session("job", kind="cron")
            await gateway.session("talk", destination="fake:5")
            found = House(gateway, chat, agent, ann)
            gateway.executor("mailer", tools=("send_*",), run=found.run)
            yield found


async def test_every_door_runs_a_call_by_a_claim_and_once(tmp_path: Path) -> None:  # 1.4.8, 1.4.9
    async with house(tmp_path) as here:
        gateway = here.gateway
        wanted = [action_id := await here.keep()]
        await gateway.approve_action(action_id, BY_ANN)  # in process
        await here.ended(action_id)
        wanted.append(action_id := await here.keep())
        await here.approver.approve_action(action_id)  # over HTTP, as the command line and the console's forms do
        await here.ended(action_id)
        for replay in (here.approver.replay_action, gateway.replay_action):  # a second time, by either
            try:
                await replay(action_id)
            except ActionRefused as error:
                assert error.code == "already_run"
        wanted.append(action_id := await here.keep())
        await here.press("Approve and run")  # in a chat
        await here.ended(action_id)
        here.dies = True
        wanted.append(action_id := await here.keep())
        await gateway.approve_action(action_id, BY_ANN)
        await here.ended(action_id, "unknown")
        again = await gateway.run_action_again(action_id, BY_ANN)  # once more, as another one
        await here.ended(again.id)
        here.over.set()
        wanted.append(again.id)
        called = asyncio.create_task(gateway.gate.call("send_email", {"n": "now"}, session_id="talk"))
        await here.press("Approve once")  # asked about at once
        answer = await called
        assert answer.outcome == "ran" and answer.record is not None
        wanted.append(answer.record.request_id)
        assert here.ran == wanted
        events = await gateway.store.events("default", 0, limit=1000)
        claimed = [each.request_id for each in events if each.type == "approval.execution" and _claims(each)]
        assert claimed == wanted, "one claim for each run"


def _claims(event: Event) -> bool:
    return event.data.get("state") == "claimed"
