"""Two tenants in one gateway who have everything alike but their words: the same chat, the same person's account, the
same session, request id and command. Every other text of a tenant holds its word, so that a leak can be searched for.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from tests.unit.console.world import Person
from tests.unit.server.world import Client, until

from signoff.config import Config, load_config
from signoff.console import Console
from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.console_adapter import ConsoleAdapter
from signoff.executors import Call
from signoff.gateway import Gateway
from signoff.model import Destination, Scope
from signoff.server import serve
from signoff.testing.fake_adapter import FakeAdapter, FakeMessage

RED, BLUE = "redwood", "bluebell"
SESSION, ELSEWHERE, REQUEST = "shared", "elsewhere", "same-request"
COMMAND = "git push --force origin main"
PLACE = Destination("chat", "-100")
PERSON = "7"
"""The account that may decide in both."""

TENANT = """
[profiles.{word}.approvals]
deny = ["{word}-forbidden *"]
fallback_destination = "chat:-100"

[[profiles.{word}.rules]]
key = "{word}.own"
verdict = "ask"
programs = ["{word}-tool"]
sentence = "{word} deploys"

[profiles.{word}.approvals.tool_gate]
require_approval = ["send_mail"]
force_deferred = ["send_mail"]

[profiles.{word}.hooks.{word}-hook]
url = "{sink}/{word}"
secret = "whsec_{secret}"

[profiles.{word}.platforms.chat]
approvers = ["7"]

[profiles.{word}.agents.{word}-agent]
kinds = ["api", "chat", "cron"]
acts_for = "{word}-ana"

[profiles.{word}.principals.{word}-ana]
accounts = ["chat:7{word}"]
"""


@dataclass
class Tenant:
    """One of them, with a key of each kind."""

    word: str
    chat: FakeAdapter
    base: str
    http: aiohttp.ClientSession
    keys: dict[Scope, Client] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    """What is only its own, by the name that routes have for it."""
    person: Person | None = None
    ran: list[Call] = field(default_factory=list)
    """What its executor was handed."""
    told: list[str] = field(default_factory=list)
    """What its hook was told: the bodies."""

    @property
    def agent(self) -> Client:
        """Its agent."""
        return self.keys["agent"]

    @property
    def approver(self) -> Client:
        """Its approver."""
        return self.keys["approver"]

    async def ask(self, command: str, *, session: str = SESSION, **facts: Any) -> dict[str, Any]:
        """Ask in a session that both have; the record."""
        action = {"kind": "command", "command": command, "cwd": f"/srv/{self.word}"}
        answer = await self.agent("POST", "/v1/approvals", {"session_id": session, "action": action, **facts})
        assert answer.status == 201, answer
        return dict(answer.body)

    async def record(self, request_id: str) -> dict[str, Any]:
        """A record as its agent reads it."""
        answer = await self.agent("GET", f"/v1/approvals/{request_id}")
        assert answer.status == 200, answer
        return dict(answer.body)

    async def card(self, record: dict[str, Any]) -> FakeMessage:
        """The card of a question, once it stands in the chat."""

        def stands(messages: list[FakeMessage]) -> bool:
            return any(record["short_id"] in each.text and each.card.rows for each in messages)

        found = await self.chat.until(stands)
        return next(each for each in found if record["short_id"] in each.text and each.card.rows)

    async def typed(self, text: str, reply_to: str | None = None) -> str:
        """Write in the chat as the person who may decide; what is answered."""
        before = len(self.chat.messages)
        await self.chat.say(text, where=PLACE, by=PERSON, name=f"{self.word}-ana", reply_to=reply_to)
        found = await self.chat.until(lambda _: len(self.chat.messages) > before)
        return found[-1].text


@dataclass
class Two:
    """Both, and where their gateway keeps its things."""

    gateway: Gateway
    config: Config
    red: Tenant
    blue: Tenant
    console: Console

    def both(self) -> tuple[tuple[Tenant, Tenant], tuple[Tenant, Tenant]]:
        """Each with the other."""
        return (self.red, self.blue), (self.blue, self.red)


def settings(folder: Path, sink: str) -> Config:
    """The configuration of both, whose hooks call an address below `sink`."""
    file = folder / "signoff.toml"
    secrets = {word: base64.b64encode(f"{word:*>32}".encode()).decode() for word in (RED, BLUE)}
    words = "".join(TENANT.format(word=word, sink=sink, secret=secret) for word, secret in secrets.items())
    file.write_text(f'[gateway]\nstate_dir = "state"\nport = 0\n{words}')
    return load_config(file, {}, platforms=["chat"])


@asynccontextmanager
async def _sink(told: dict[str, list[str]]) -> AsyncIterator[str]:
    """A receiver of hooks for both; its address."""

    async def hear(request: web.BaseRequest) -> web.Response:
        told[request.path.strip("/")].append(await request.text())
        return web.Response(status=204)

    server = web.Server(hear)
    runner = web.ServerRunner(server)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def two_tenants(folder: Path) -> AsyncIterator[Two]:
    """A gateway with both, served; nothing has happened yet."""
    chats = {word: FakeAdapter("chat") for word in (RED, BLUE)}
    told: dict[str, list[str]] = {word: [] for word in chats}
    async with AsyncExitStack() as stack:
        config = settings(folder, await stack.enter_async_context(_sink(told)))
        gateway = Gateway(config, adapters={(word, "chat"): chat for word, chat in chats.items()})
        gateway.adapters.update({(word, CONSOLE): ConsoleAdapter(gateway.clock) for word in chats})
        await stack.enter_async_context(gateway)
        console = Console(gateway, keepalive_s=0.2)
        bound = await stack.enter_async_context(serve(gateway, state_dir=config.gateway.state_dir, pages=console))
        console.opened(bound.api)
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        made = []
        for word, chat in chats.items():
            tenant = Tenant(word, chat, bound.api, http, told=told[word])
            gateway.executor(f"{word}-mailer", tools=("send_mail",), run=tenant.ran.append, profile=word)
            await _with_keys(gateway, tenant)
            browser = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
            tenant.person = Person(bound.api, await stack.enter_async_context(browser))
            made.append(tenant)
        yield Two(gateway, config, made[0], made[1], console)


async def _with_keys(gateway: Gateway, tenant: Tenant) -> None:
    named: dict[Scope, str | None] = {"agent": None, "approver": f"{tenant.word}-ana", "ops": None}
    named["admin"] = f"{tenant.word}-root"
    for scope, principal in named.items():
        agent = f"{tenant.word}-agent" if scope == "agent" else None
        key = await gateway.keys.create(tenant.word, scope, agent=agent, principal=principal)
        tenant.keys[scope] = Client(tenant.http, tenant.base, key.text)
        tenant.ids[f"{scope}_key"] = key.key.key_id


async def live(tenant: Tenant, *, always: bool) -> None:
    """Everything a tenant leaves behind. `always`: the force push is approved for good; else it is left waiting."""
    word, agent = tenant.word, tenant.agent
    place = {"kind": "chat", "platform": "chat", "chat_id": PLACE.chat_id, "user_id": f"{word}-user"}
    for session in (SESSION, ELSEWHERE, f"{word}-session"):
        assert (await agent("PUT", f"/v1/sessions/{session}", place)).status == 200
    turn = await agent("POST", f"/v1/sessions/{word}-session/turns", {"turn_id": f"{word}-turn"})
    assert turn.status == 201
    record = await tenant.ask(COMMAND, request_id=REQUEST, reason=f"{word} says so")
    card = await tenant.card(record)
    if always:
        said = await tenant.typed(f"/approve {record['short_id']} always")
        assert "approved always" in said, said
    tenant.ids |= {"record": record["request_id"], "short": record["short_id"], "card": card.message_id}
    own = await tenant.ask(f"{word}-tool now", request_id=f"{word}-request", reason=f"{word} wants it")
    await tenant.card(own)
    denied = await tenant.ask(f"rm -rf {word}-folder", request_id=f"{word}-denied")
    card = await tenant.card(denied)
    await tenant.chat.press("Deny", by=PERSON, name=f"{word}-ana", message_id=card.message_id)
    given = await tenant.ask("git push --tags origin", request_id=f"{word}-session-grant")
    await _decided(tenant, given["request_id"], "session")
    blocked = await tenant.ask(f"{word}-forbidden thing", request_id=f"{word}-blocked")
    assert blocked["outcome"] == "blocked"
    await tenant.chat.press("Deny", by="666", name=f"{word}-stranger")  # refused, and recorded so
    mail = {"kind": "tool", "name": "send_mail", "arguments": {"to": f"{word}@example.org"}}
    kept = await agent("POST", "/v1/approvals", {"session_id": SESSION, "action": mail, "request_id": f"{word}-mail"})
    assert kept.body["outcome"] == "staged", kept
    drill = await tenant.approver("POST", "/v1/drills", {"destinations": [str(PLACE)]})
    assert drill.status == 201, drill
    assert (await tenant.approver("PUT", f"/v1/sessions/{word}-session/notifiers/desk")).status == 200
    bypass = await tenant.approver("POST", f"/v1/sessions/{word}-session/bypass", {"minutes": 5})
    assert bypass.status == 200, bypass
    grants = (await tenant.approver("GET", "/v1/grants")).body["data"]
    tenant.ids |= {
        "session_id": f"{word}-session",
        "request_id": f"{word}-request",
        "turn_id": f"{word}-turn",
        "grant_id": grants[0]["grant_id"],
        "key_id": tenant.ids["agent_key"],
        "drill_id": drill.body["id"],
        "name": "desk",
        "action_id": str(kept.body["kept_as"]),
    }
    assert tenant.person is not None
    entered = await tenant.person.post("/console/login", {"key": str(tenant.keys["admin"].key)})
    assert entered.status == 303
    link = await tenant.keys["admin"]("POST", "/console/links", {"principal": f"{word}-eve"})
    tenant.ids["link"] = link.body["path"]


async def _decided(tenant: Tenant, request_id: str, choice: str) -> None:
    decision = await tenant.approver(
        "POST", f"/v1/approvals/{request_id}/decision", {"choice": choice, "reason": f"{tenant.word} decided"}
    )
    assert decision.status == 200, decision


def rows_of(database: Path) -> Iterator[tuple[str, str]]:
    """Every row of every table, with its table's name."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            for row in connection.execute(f"SELECT * FROM {name}"):  # its own tables' names
                yield name, "\x1f".join(each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each)
                                        for each in row)  # fmt: skip
    connection.close()


def text_of(value: Any) -> str:
    """An answer as text, whatever it is."""
    return value if isinstance(value, str) else value.decode() if isinstance(value, bytes) else json.dumps(value)


async def allowlisted(two: Two, word: str, command: str) -> Path:
    """The tenant's own file, once the command stands in it."""
    path = two.config.gateway.state_dir / "profiles" / word / "allowlist.toml"
    await until(lambda: path.exists() and command in path.read_text())
    return path
