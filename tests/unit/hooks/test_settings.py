"""The settings of webhooks, their signature, and the commands about them."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.ports import free_port
from tests.scenarios.gateways import soon
from tests.unit.cli.front import Front
from tests.unit.config.test_config import problem, write
from tests.unit.hooks.receiver import SECRET, Receiver

from signoff.client import Client
from signoff.config import load_config, load_hooks, load_policy
from signoff.gateway import Gateway
from signoff.hooks.payloads import HOOK_OF
from signoff.hooks.signing import signed
from signoff.serving import run_gateway
from signoff.settings import HOOK_NAMES, HookSettings

HOOK = f'[hooks.audit]\nurl = "https://audit.example.org/x?to=1"\nsecret = "{SECRET}"\n'
MAKE = """make one: echo "whsec_$(openssl rand -base64 32)\""""

MISTAKES = [
    (HOOK.replace("https", "http"), "hooks.audit.url must begin with https:// where it leads away from this machine"),
    (HOOK.replace("https://audit.example.org", "http://127.0.0.1.nip.io"), "must begin with https://"),
    (HOOK.replace("https://audit.example.org", "http://10.0.0.1"), "must begin with https://"),
    (HOOK.replace("https://", "https://ana:pw@"), "must not carry a user or a password"),
    (HOOK.replace("https://", "ftp://"), 'must be an address such as "https://audit.example.org/signoff"'),
    (HOOK.replace("to=1", "to=1#part"), "must be an address"),
    (HOOK.replace("audit.example.org/x", "[::1"), "must be an address"),
    (HOOK.replace(SECRET, "hunter2"), MAKE),
    (HOOK.replace(SECRET, "whsec_" + base64.b64encode(b"short").decode()), MAKE),
    (HOOK.replace(SECRET, "whsec_" + "!" * 40), MAKE),
    (HOOK + 'events = ["agent:end"]\n', '(item 1) must be "pre_approval_request", "post_approval_response" or'),
    (HOOK + 'topics = ["agent_end"]\n', "hooks.audit.topics is not a setting"),
    (
        '[hooks.audit]\nurl = "https://x.example"\n',
        "signoff.toml: hooks.audit.secret is missing; give secret, secret_env",
    ),
    (f'[hooks.audit]\nsecret = "{SECRET}"\n', "signoff.toml: hooks.audit.url is missing: it says where"),
    ("[hooks.audit]\n", "hooks.audit.url is missing"),
    ('hooks = "x"\n', "hooks is a section, not a value; write [hooks.NAME]"),
    ('[hooks."a b"]\nurl = "https://x.example"\n', "a name has 1 to 64 letters"),
    ('[profiles.team.hooks.audit]\nurl = "https://x.example"\n', "hooks.audit.secret is missing"),
]


@pytest.mark.parametrize(("content", "told"), MISTAKES)
def test_each_mistake_is_one_line_with_the_mend(tmp_path: Path, content: str, told: str) -> None:
    line = problem(tmp_path, content)
    assert told in line
    assert "\n" not in line
    assert "hunter2" not in line


def test_hooks_become_settings(tmp_path: Path) -> None:
    content = (
        f"{HOOK}[profiles.team.hooks.desk]\nurl = 'http://localhost:9/x'\nsecret_env = 'DESK'\nevents = ['agent_end']\n"
    )
    config = load_config(write(tmp_path, content), {"DESK": SECRET, "SIGNOFF_HOOKS__AUDIT__URL": "http://[::1]:9/"})
    assert config.profiles["default"].hooks == {"audit": HookSettings(url="http://[::1]:9/", secret=SECRET)}
    assert config.profiles["team"].hooks["desk"].events == ("agent_end",)
    assert SECRET not in repr(config)


def test_judging_needs_no_secret_of_a_hook(tmp_path: Path) -> None:
    file = write(tmp_path, HOOK.replace(f'secret = "{SECRET}"', 'secret_env = "NOT_SET"'))
    assert load_policy(file, {}).profiles["default"].hooks == {}


def test_the_commands_need_no_other_secret(tmp_path: Path) -> None:
    file = write(tmp_path, HOOK + '[platforms.telegram]\ntoken_env = "NOT_SET"\n')
    assert set(load_hooks(file, {})["default"].hooks) == {"audit"}


def test_every_hook_has_its_events() -> None:
    assert set(HOOK_OF.values()) == set(HOOK_NAMES)


def test_a_known_signature() -> None:
    # The example of Standard Webhooks' own documentation of its libraries.
    headers = signed(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


# --- commands ----------------------------------------------------------------------------------------


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Front:
    monkeypatch.chdir(tmp_path)
    return Front(tmp_path, capsys)


@pytest.fixture
def configured(front: Front, receiver: Receiver) -> Callable[[str], None]:
    def configure(more: str = "") -> None:
        front.configure(f'[hooks.audit]\nurl = "{receiver.url}"\nsecret = "{SECRET}"\n{more}')

    return configure


async def test_a_sample_of_each_event_is_sent(
    front: Front, receiver: Receiver, configured: Callable[[str], None]
) -> None:
    configured("")
    out = await asyncio.to_thread(front, "hook", "test", "audit")
    assert len(re.findall("HTTP 200", out)) == 3
    assert [heard.hook for heard in receiver.taken] == list(HOOK_NAMES)
    assert all(heard.id.startswith("test_") for heard in receiver.taken)
    assert receiver.taken[1].body["outcome"] == "denied"


async def test_what_came_back_is_told(front: Front, receiver: Receiver, configured: Callable[[str], None]) -> None:
    configured('events = ["post_approval_response"]\n')
    receiver.always, receiver.answer = 400, b"no such\x1b[31m tenant" + b"x" * 10_000
    out = await asyncio.to_thread(front, "hook", "test", "audit", code=1)
    assert "HTTP 400" in out
    assert "no such" in out
    assert "\x1b" not in out
    assert len(out) < 1500
    [row] = (await asyncio.to_thread(lambda: front.json("hook", "test", "audit", code=1)))["data"]
    assert (row["event"], row["ok"], row["detail"]) == ("post_approval_response", False, "HTTP 400")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://127.0.0.1:{port}/x", "nothing answers at 127.0.0.1:{port}: connection refused"),
        ("http://localhost:{port}/x", "nothing answers at localhost:{port}: "),
        ("https://{taken}/x", "{taken} does not speak TLS: "),
    ],
)
async def test_a_receiver_that_cannot_be_reached_is_told_in_plain_words(
    front: Front, receiver: Receiver, address: str, told: str
) -> None:
    facts = {"port": free_port(), "taken": urlsplit(receiver.url).netloc}
    front.configure(f'[hooks.audit]\nurl = "{address.format(**facts)}"\nsecret = "{SECRET}"\n')
    out = await asyncio.to_thread(front, "hook", "test", "audit", code=1)
    assert out.count(told.format(**facts)) == 3
    assert not re.search(r"Error|Errno|\[|ssl", out)


def test_an_unknown_hook_names_the_nearest(front: Front) -> None:
    front.configure(HOOK)
    assert "did you mean 'audit'?" in front("hook", "test", "audti", code=2)
    assert "There is no profile 'other'" in front("hook", "list", "--profile", "other", code=2)


def test_a_list_shows_no_secret(front: Front) -> None:
    assert "There is no hook" in front("hook", "list")
    front.configure(HOOK)
    out = front("hook", "list")
    assert "https://audit.example.org/x?…" in out
    assert "no gateway runs here" in out
    assert SECRET not in out
    assert "to=1" not in out
    [row] = front.json("hook", "list")["data"]
    assert row == {
        "name": "audit",
        "url": "https://audit.example.org/x?…",
        "events": list(HOOK_NAMES),
        "state": None,
    }


async def test_a_list_beside_a_running_gateway_tells_how_deliveries_go(
    front: Front, receiver: Receiver, configured: Callable[[str], None]
) -> None:
    configured("")
    front.write(
        "signoff.toml", front.folder.joinpath("signoff.toml").read_text().replace("[hooks", "port = 0\n[hooks", 1)
    )
    ready, stop = asyncio.Event(), asyncio.Event()
    config = load_config(front.folder / "signoff.toml", {})
    serving = asyncio.create_task(run_gateway(config, on_ready=lambda _: ready.set(), stop=stop))
    try:
        await asyncio.wait_for(ready.wait(), 20)
        assert (await asyncio.to_thread(front, "hook", "list")).split()[-1] == "ok"
        receiver.always = 503
        async with Client(socket=config.gateway.admin_socket, environ={}) as admin:
            await admin.session("s", kind="api")
            await admin.request({"kind": "command", "command": "git status"}, session_id="s")

            async def failing() -> bool:
                facts = (await admin.health_detailed())["parts"]["hooks"]["default/audit"]
                return bool(facts["state"] == "failing")

            await soon(failing)
        assert "HTTP 503" in await asyncio.to_thread(front, "hook", "list")
    finally:
        stop.set()
        await serving


# --- in a gateway ------------------------------------------------------------------------------------


def gateway_of(front: Front) -> Gateway:
    return Gateway(load_config(front.folder / "signoff.toml", {}), adapters={})


async def ask(gateway: Gateway, number: int) -> str:
    answer = await gateway.request({"kind": "command", "command": f"git show {number}"}, session_id="s")
    assert answer.may_run
    return answer.request_id


async def test_a_gateway_delivers_and_goes_on_after_a_restart(
    front: Front, receiver: Receiver, configured: Callable[[str], None]
) -> None:
    configured('events = ["pre_approval_request", "post_approval_response"]\n')
    asked: list[str] = []
    async with gateway_of(front) as gateway:
        await gateway.session("s", kind="api")
        heard: list[str] = []
        gateway.hooks.on("post_approval_response", lambda payload: heard.append(payload.request_id))
        asked += [await ask(gateway, number) for number in range(3)]
        await receiver.took(6)
        receiver.plan.append("hang")
        asked.append(await ask(gateway, 3))
        await receiver.until(lambda: len(receiver.tried) > 6)
        assert (await gateway.health())["hooks"]["default/audit"]["state"] == "ok"
    assert heard == asked, "the end of a gateway waits for what its observers have not heard"
    value = gateway.telemetry.registry.get_sample_value
    assert value("signoff_hook_calls_total", {"hook": "post_approval_response", "result": "ok"}) == len(asked)
    assert value("signoff_hook_deliveries_total", {"result": "delivered"}) == 6
    async with gateway_of(front) as gateway:
        asked.append(await ask(gateway, 4))
        await receiver.took(10)
    receiver.each_once_in_order()
    told = [(heard.body["request_id"], heard.hook) for heard in receiver.taken]
    assert list(dict.fromkeys(told)) == [(name, hook) for name in asked for hook in HOOK_NAMES[:2]]
    assert json.dumps(told).count("pre_approval") >= 5
