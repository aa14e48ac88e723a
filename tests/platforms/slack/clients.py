"""Real Slack clients against the loopback server, shared by its tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from .platform import SlackPlatform

TOKEN, APP_TOKEN, SECRET = "xoxb-1", "xapp-1", "signing-secret"
BOT, ANA, BO, EVE = "UBOT1", "U111", "U222", "U333"
OPS, QUIET = "C111", "C222"
Json = dict[str, Any]
CARD: list[Json] = [
    {"type": "header", "text": {"type": "plain_text", "text": "Low: lists files"}},
    {
        "type": "actions",
        "elements": [
            {"type": "button", "text": {"type": "plain_text", "text": "Run once"}, "value": "once", "action_id": "a"},
            {"type": "button", "text": {"type": "plain_text", "text": "Deny"}, "value": "deny", "action_id": "b"},
        ],
    },
]
MODAL: Json = {
    "type": "modal",
    "callback_id": "why",
    "private_metadata": "token",
    "title": {"type": "plain_text", "text": "Why not?"},
    "submit": {"type": "plain_text", "text": "Deny"},
    "blocks": [
        {
            "type": "input",
            "block_id": "reason",
            "label": {"type": "plain_text", "text": "The agent reads this."},
            "element": {"type": "plain_text_input", "action_id": "text", "max_length": 280},
        }
    ],
}


async def furnish(slack: SlackPlatform) -> None:
    """A bot, three people, a channel of all and one without the bot and Eve."""
    await slack.add_bot(TOKEN, APP_TOKEN, signing_secret=SECRET)
    for user, name in ((ANA, "Ana"), (BO, "Bo"), (EVE, "Eve")):
        await slack.add_user(user, name)
    await slack.add_channel(OPS, "ops", members=[ANA, BO, EVE])
    await slack.add_channel(QUIET, "quiet", members=[ANA, BO], bots=[])


async def client_of(slack: SlackPlatform, token: str = TOKEN) -> AsyncWebClient:
    """The real client, pointed at the loopback server, that repeats nothing."""
    return AsyncWebClient(token=token, base_url=await slack.base_url(), retry_handlers=[])


async def error_of(call: Any) -> str:
    """Slack's code for a call that is refused."""
    try:
        await call
    except SlackApiError as problem:
        return str(problem.response["error"])
    raise AssertionError("the call was not refused")


async def bolt_app(slack: SlackPlatform) -> AsyncApp:
    """A small gateway: acknowledge, answer in private, edit; a modal for a reason; a command."""
    app = AsyncApp(client=await client_of(slack), signing_secret=SECRET)

    @app.action("a")
    async def approve(ack: Any, body: Json, respond: Any, client: AsyncWebClient) -> None:
        await ack()
        user = body["user"]["id"]
        await respond(text=f"You chose {body['actions'][0]['value']}.", response_type="ephemeral")
        if "message" in body:
            await client.chat_update(
                channel=body["channel"]["id"], ts=body["message"]["ts"], text=f"once by {user}", blocks=[]
            )

    @app.action("b")
    async def because(ack: Any, body: Json, client: AsyncWebClient) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=MODAL)

    @app.view("why")
    async def reason(ack: Any, view: Json, client: AsyncWebClient) -> None:
        text = view["state"]["values"]["reason"]["text"]["value"]
        if text == "no":
            await ack(response_action="errors", errors={"reason": "Say more."})
            return
        await ack()
        await client.chat_postMessage(channel=OPS, text=f"Denied: {text} ({view['private_metadata']})")

    @app.command("/signoff")
    async def command(ack: Any, command: Json) -> None:
        await ack(f"You said {command['text']}")

    @app.event("app_mention")
    async def mentioned(event: Json, say: Any) -> None:
        await say(text=f"heard {event['text']}", thread_ts=event.get("thread_ts", event["ts"]))

    @app.event("message")
    async def message(event: Json) -> None:
        del event

    return app


@asynccontextmanager
async def by_socket(app: AsyncApp, *, ping_interval_s: float = 10.0) -> AsyncIterator[AsyncSocketModeHandler]:
    """The app, connected by Socket Mode."""
    handler = AsyncSocketModeHandler(app, APP_TOKEN, ping_interval=ping_interval_s)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    try:
        yield handler
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def by_http(slack: SlackPlatform, app: AsyncApp) -> AsyncIterator[str]:
    """The app behind an address of ours that is set and verified as its request URL."""

    async def handle(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    async with listening(handle) as url:
        await slack.set_request_url(url, verify=True)
        yield url
        await slack.set_request_url(None)


@asynccontextmanager
async def listening(handle: Any) -> AsyncIterator[str]:
    """One handler on loopback; its address."""
    server = web.Application()
    server.router.add_post("/slack", handle)
    runner = web.AppRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack"
    finally:
        await runner.cleanup()
