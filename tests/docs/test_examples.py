"""Every command and code block of the documentation is run, or says why not.

The shell and Python blocks of a page run in order, as one script in one folder, beside a gateway that is configured by
the README's own `signoff.toml` with Telegram, a server on loopback in which Ana approves whatever she is asked. Those
of the README also run by its `signoff.toml` without any chat, where Ben answers at the gateway's machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from signoff.client import Client
from signoff.config import load_config
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.platforms.telegram import TelegramPlatform, TelegramServer
from tests.ports import free_port
from tests.unit.server.world import Client as Caller
from tests.unit.server.world import Reader, world_on

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the blocks are for a POSIX shell")

TOKEN, ANA, GROUP = "123456:EXAMPLE", 123456789, -1001234567890
SECRETS = {
    "TELEGRAM_TOKEN": TOKEN,
    "DISCORD_TOKEN": "MTIz.EXAMPLE.abc",
    "SLACK_BOT_TOKEN": "xoxb-EXAMPLE",
    "SLACK_APP_TOKEN": "xapp-EXAMPLE",
    "SLACK_SIGNING_SECRET": "EXAMPLE",
    "AUDIT_HOOK_SECRET": "whsec_RVhBTVBMRSBFWEFNUExFIEVYQU1QTEUgRVhBTVBMRQ==",
    "RUNNER_SECRET": "whsec_TUFJTEVSIE1BSUxFUiBNQUlMRVIgTUFJTEVSIE1BSQ==",
}
PLATFORMS = ("telegram", "discord", "slack")
ADDRESS = "http://127.0.0.1:8787"
SHOWN_ONLY = {"mermaid"}
"""Languages of blocks that are made by a script, which a test checks."""
ALONE = {"docs/contexts.md", "docs/elicitations.md", "docs/embedding.md", "docs/staged.md"}
"""Pages whose examples are a gateway themselves."""
SAYS = {
    "README.md": [
        "The store and its folder are removed.",
        "allow (low): Runs git, pytest.",
        "ask (high): Deletes folders and everything in them.",
        "block (critical): Deletes the root filesystem.",
        "building",
        "Approved once. Run exactly this action, once, now.",
        '"state":"succeeded"',
    ],
    "docs/alerts.md": ["no problems, no warnings.", '"failing":{}'],
    "docs/allowlist.md": ["Decided by the rung allowlist", "Decided by the rung person"],
    "docs/commands.md": ["one\ntwo", "exit code 3", "exit code 127", '{"id":"'],
    "docs/console.md": ["/console/link/"] * 2,
    "docs/contexts.md": [
        'blocked by setting approvals.cron_mode = "deny"',
        "Approved once. Run exactly this action, once, now.",
        "talk None",
        "SIGNOFF_SESSION_ID=nightly",
        "SIGNOFF_SESSION_KIND=cron",
        "False",
        'blocked by setting no_context = "deny": it was asked outside of any session',
    ],
    "docs/discord.md": ["https://discord.com/developers/applications", "Leave the privileged intents off"],
    "docs/doctor.md": ["no problems, no warnings."],
    "docs/hooks.md": [
        "approved policy git status",
        "whsec_",
        "heard pre_approval_request",
        "heard post_approval_response denied",
        "heard agent_end",
        "HTTP 204",
    ],
    "docs/elicitations.md": ["accept {}"],
    "docs/judgement.md": [
        "Runs git.",
        "privilege.root",
        "person     ",
        '"verdict":"ask"',
        "The allowlist has",
        "git status *",
        "Written.",
        "let run then, forbidden now  1",
    ],
    "docs/security.md": ["signs from the next start on"],
    "docs/slack.md": ["Create New App", "- im:write", "socket_mode_enabled: true"],
    "docs/operations.md": ["signoff_approvals_pending 0.0", '"default/telegram"', "live"],
    "docs/staged.md": ["ran ['one', 'two']\nstaged\nsent to ben@example.com"],
    "docs/embedding.md": ["Approved once. Run exactly this action, once, now."] * 2,
}
"""What the blocks of a page must print. A page with blocks that run stands here."""
QUICK = {"docs/embedding.md", "docs/staged.md"}
"""The pages whose blocks the quick suite runs; the heavy run has all."""
WITHIN_S = 40.0

ALL = [block for page in PAGES for block in blocks(page)]
RUN = [block for block in ALL if block.excuse is None and block.language in ("sh", "python")]
TOML = [block for block in ALL if block.excuse is None and block.language == "toml"]


def name_of(block: Block) -> str:
    return str(block.page.relative_to(ROOT))


def test_every_block_is_run_or_says_why_not() -> None:
    known = {"sh", "python", "toml"} | SHOWN_ONLY
    assert [block.where for block in ALL if block.language not in known and block.excuse is None] == []
    assert {name_of(block) for block in RUN} == set(SAYS)


@pytest.mark.parametrize("block", TOML, ids=lambda block: block.where)
def test_a_configuration_loads(block: Block, tmp_path: Path) -> None:
    (tmp_path / "telegram.token").write_text(TOKEN)
    (tmp_path / "telegram.token").chmod(0o600)
    file = tmp_path / "signoff.toml"
    file.write_text(block.text)
    config = load_config(file, SECRETS, platforms=PLATFORMS)
    assert config.profiles
    for profile in config.profiles.values():
        for platform, settings in profile.platforms.items():
            point = next(iter(entry_points(group="signoff.adapters", name=platform)))
            point.load().config_type(**settings)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in QUICK else [pytest.mark.heavy]) for page in sorted(SAYS)]
)
async def test_blocks(page: str, tmp_path: Path) -> None:
    script = "\n".join(_step(block) for block in RUN if name_of(block) == page)
    async with telegram() as (place, url):
        environ = _environ(tmp_path, url)
        (tmp_path / "signoff.toml").write_text(_readme_configuration("telegram"))
        async with ana_approves(place):
            if page in ALONE:
                out = await _run(script, tmp_path, environ)
            else:
                async with serving(tmp_path, environ) as address:
                    out = await _run(script.replace(ADDRESS, address), tmp_path, environ)
    rest = out
    for wanted in SAYS[page]:
        assert wanted in rest, out
        rest = rest.partition(wanted)[2] if SAYS[page].count(wanted) > 1 else rest


async def test_the_readme_needs_no_chat(tmp_path: Path) -> None:
    script = "\n".join(_step(block) for block in RUN if name_of(block) == "README.md")
    environ = _environ(tmp_path, None)
    (tmp_path / "signoff.toml").write_text(_readme_configuration("console"))
    async with serving(tmp_path, environ) as address, ben_approves(tmp_path / "state" / "admin.sock"):
        out = await _run(script.replace(ADDRESS, address), tmp_path, environ)
    assert [said for said in SAYS["README.md"] if said not in out] == []
    assert "/console/link/" in out


@pytest.mark.parametrize("choice", ["once", "deny"])
async def test_the_readmes_http_example_runs_nothing_after_a_no(tmp_path: Path, choice: str) -> None:
    """Its question waits at first, so that it has to look again."""
    [example] = [block.text for block in RUN if name_of(block) == "README.md" and "/claim" in block.text]
    (tmp_path / "build").mkdir()
    async with world_on("memory://") as world:
        agent, approver = await world.pair()
        await agent("PUT", "/v1/sessions/night", {"kind": "api"})
        await approver("PUT", "/v1/sessions/night/notifiers/desk")
        environ = _environ(tmp_path, None) | {"SIGNOFF_URL": world.bound.api, "SIGNOFF_KEY": str(agent.key)}
        async with approver.events() as heard, asyncio.TaskGroup() as group:
            path = group.create_task(_decided(heard, approver, choice))
            run = group.create_task(_run(example.replace("wait=60", "wait=0"), tmp_path, environ))
        state = (await agent("GET", path.result())).body["execution"]["state"]
    ran = choice == "once"
    assert ((tmp_path / "build").exists(), state) == (not ran, "succeeded" if ran else "none")
    assert ("BLOCKED: denied. A person denied this action." in run.result()) is not ran


async def _decided(heard: Reader, approver: Caller, choice: str) -> str:
    """Answer the first question; its path."""
    while (event := await heard.next(WITHIN_S))["type"] != "approval.requested":
        pass
    path = f"/v1/approvals/{event['approval']['request_id']}"
    assert (await approver("POST", f"{path}/decision", {"choice": choice})).status == 200
    return path


def _readme_configuration(platform: str) -> str:
    places = f'fallback_destination = "{platform}:'
    return next(block.text for block in TOML if name_of(block) == "README.md" and places in block.text)


def _step(block: Block) -> str:
    """The block as a part of the script. The gateway itself is started and ended by the test."""
    if block.text.strip() == "signoff serve":
        return ""
    head = f"echo '--- {block.where}' >&2\n"
    return head + (block.text if block.language == "sh" else f"python3 - <<'EXAMPLE'\n{block.text}EXAMPLE\n")


def _environ(folder: Path, telegram_url: str | None) -> dict[str, str]:
    telegram = (
        {}
        if telegram_url is None
        else {
            "TELEGRAM_TOKEN": TOKEN,
            "SIGNOFF_PLATFORMS__TELEGRAM__API_BASE_URL": telegram_url,
        }
    )
    return telegram | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "SIGNOFF_GATEWAY__PORT": str(free_port()),
        "SIGNOFF_GATEWAY__STATE_DIR": "state",
    }


async def _run(script: str, folder: Path, environ: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        script,
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 0, f"{out.decode()}\n{err.decode()}"
    return out.decode()


@asynccontextmanager
async def telegram() -> AsyncIterator[tuple[TelegramPlatform, str]]:
    """Telegram with the bot, Ana and a group."""
    async with TelegramServer() as server:
        place = server.platform
        await place.add_bot(TOKEN, "example_signoff_bot")
        await place.add_user(ANA, "Ana")
        await place.add_group(GROUP, "ops", members=[ANA])
        yield place, (await place.where()).url


@asynccontextmanager
async def ana_approves(place: TelegramPlatform) -> AsyncIterator[None]:
    """Ana approves every card once, and accepts what servers ask, as soon as it is there."""
    yes = ("Approve once", "Accept")

    async def approve(chat: int) -> None:
        done: set[int] = set()
        while True:
            card = await place.wait_for_message(
                chat,
                lambda seen: seen.message_id not in done and any(each.label in yes for each in seen.buttons),
                timeout_s=WITHIN_S * 2,
            )
            done.add(card.message_id)
            label = next(each.label for each in card.buttons if each.label in yes)
            await place.press(ANA, chat, card.message_id, label)

    tasks = [asyncio.create_task(approve(chat)) for chat in (ANA, GROUP)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def ben_approves(socket: Path) -> AsyncIterator[None]:
    """Ben at the gateway's machine approves everything that waits, as `signoff approve` does."""

    async def approve() -> None:
        async with Client(socket=socket, environ={}) as client:
            async for event in client.events():
                if event.type == "approval.delivered" and event.approval is not None:
                    await client.decide(event.approval["request_id"], "once")

    task = asyncio.create_task(approve())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()


@asynccontextmanager
async def serving(folder: Path, environ: dict[str, str]) -> AsyncIterator[str]:
    """`signoff serve`, as the README has it; its address. It ends with exit code 0."""
    process = await asyncio.create_subprocess_exec(
        "signoff", "serve", cwd=folder, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WITHIN_S):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("listening on "), (await process.communicate())[1].decode()
        yield line.removeprefix("listening on ").strip()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WITHIN_S):
            await process.communicate()
    assert process.returncode == 0
