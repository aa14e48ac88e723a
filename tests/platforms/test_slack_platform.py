"""The loopback Slack behaves as the real one where it matters, seen through the real slack_sdk and slack-bolt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack import SlackPlatform, SlackServer, slack_process
from tests.platforms.slack.clients import (
    ANA,
    APP_TOKEN,
    BO,
    BOT,
    CARD,
    EVE,
    MODAL,
    OPS,
    QUIET,
    Json,
    bolt_app,
    by_http,
    by_socket,
    client_of,
    error_of,
    furnish,
)


@pytest.fixture
async def slack() -> AsyncIterator[SlackPlatform]:
    async with SlackServer() as server:
        await furnish(server.platform)
        yield server.platform


@pytest.fixture
async def client(slack: SlackPlatform) -> AsyncWebClient:
    return await client_of(slack)


@pytest.fixture(params=["same process", "own process"])
async def anywhere(request: pytest.FixtureRequest) -> AsyncIterator[SlackPlatform]:
    """The server in both its forms."""
    if request.param == "same process":
        async with SlackServer() as server:
            await furnish(server.platform)
            yield server.platform
    else:
        async with slack_process() as platform:
            await furnish(platform)
            yield platform


@asynccontextmanager
async def connected(slack: SlackPlatform, way: str) -> AsyncIterator[None]:
    """The small gateway, by Socket Mode or HTTP; it ends once all is acknowledged, which bolt would forget."""
    app = await bolt_app(slack)
    async with by_socket(app) if way == "socket" else by_http(slack, app):
        yield
        await slack.until(slack.pending_count, lambda count: count == 0)


async def card(slack: SlackPlatform, client: AsyncWebClient, channel: str = OPS) -> str:
    """A card in a channel; its ts."""
    sent = await client.chat_postMessage(channel=channel, text="May I?", blocks=CARD)
    await slack.wait_for_message(channel, lambda message: bool(message.buttons))
    return str(sent["ts"])


@pytest.mark.parametrize("way", ["socket", "http"])
async def test_card_press_answer_and_edit(anywhere: SlackPlatform, way: str) -> None:
    client = await client_of(anywhere)
    async with connected(anywhere, way):
        ts = await card(anywhere, client)
        press = await anywhere.press(BO, OPS, ts, "Run once")
        answer = await anywhere.answer_of(press)
        edited = await anywhere.wait_for_message(OPS, lambda message: message.edits == 1)
        state = await anywhere.until(lambda: anywhere.press_state(press), lambda it: it.acknowledged_at is not None)
    assert (answer.kind, answer.text) == ("ephemeral", "You chose once.")
    assert (edited.text, edited.buttons, edited.ts) == (f"once by {BO}", [], ts)
    assert (state.user, state.channel, state.value, state.timed_out) == (BO, OPS, "once", False)
    assert [each.text for each in await anywhere.messages(OPS)] == [f"once by {BO}"]
    (private,) = [each for each in await anywhere.messages(OPS, as_user=BO) if each.ephemeral_to]
    assert (private.text, private.ephemeral_to) == ("You chose once.", BO)
    assert [each.method for each in await anywhere.log(channel=OPS)] == [
        "chat.postMessage",
        "response_url",
        "chat.update",
    ]


@pytest.mark.parametrize("way", ["socket", "http"])
async def test_a_reason_is_typed_in_a_modal(anywhere: SlackPlatform, way: str) -> None:
    client = await client_of(anywhere)
    async with connected(anywhere, way):
        press = await anywhere.press(ANA, OPS, await card(anywhere, client), "Deny")
        opened = await anywhere.answer_of(press)
        assert opened.view_id is not None
        refused = await anywhere.answer_of(await anywhere.submit_view(ANA, opened.view_id, {"reason": "no"}))
        (view,) = await anywhere.views(ANA)
        assert (refused.kind, view.open, view.errors) == ("errors", True, {"reason": "Say more."})
        closed = await anywhere.answer_of(await anywhere.submit_view(ANA, opened.view_id, {"reason": "too risky"}))
        said = await anywhere.wait_for_message(OPS, lambda message: message.text.startswith("Denied"))
    assert (opened.kind, opened.text) == ("modal", "Why not?\nThe agent reads this.")
    assert (closed.kind, said.text) == ("closed", "Denied: too risky (token)")
    assert [view.open for view in await anywhere.views(ANA)] == [False]


@pytest.mark.parametrize("way", ["socket", "http"])
async def test_commands_and_mentions_in_threads(anywhere: SlackPlatform, way: str) -> None:
    async with connected(anywhere, way):
        answer = await anywhere.answer_of(await anywhere.slash(ANA, OPS, "deny 7Q2MK too <risky> & so on"))
        root = await anywhere.start_thread(OPS, ANA)
        await anywhere.mention(BO, OPS, "approve 7Q2MK", thread_ts=root)
        heard = await anywhere.wait_for_message(OPS, lambda message: message.by_bot, thread_ts=root)
    assert (answer.kind, answer.text) == ("ephemeral", "You said deny 7Q2MK too <risky> & so on")
    assert (heard.text, heard.thread_ts, heard.pings) == ("heard @signoff approve 7Q2MK", root, [BOT])


async def test_an_ephemeral_card_is_seen_pressed_and_replaced_by_one_person_only(
    slack: SlackPlatform, client: AsyncWebClient
) -> None:
    sent = await client.chat_postEphemeral(channel=OPS, user=ANA, text="More…", blocks=CARD)
    ts = str(sent["message_ts"])
    assert await slack.messages(OPS) == []
    assert await slack.messages(OPS, as_user=BO) == []
    with pytest.raises(LookupError, match="does not see"):
        await slack.press(BO, OPS, ts, "Run once")
    async with connected(slack, "socket"):
        press = await slack.press(ANA, OPS, ts, "Run once")
        assert (await slack.answer_of(press)).text == "You chose once."
    assert await error_of(client.chat_update(channel=OPS, ts=ts, text="x")) == "message_not_found"
    assert await error_of(client.chat_postEphemeral(channel=OPS, user="U9", text="x")) == "user_not_in_channel"
    state = await slack.press_state(press)
    assert state.response_url is not None
    async with aiohttp.ClientSession() as session:
        for body in ({"replace_original": True, "text": "Chosen."}, {"delete_original": True}):
            async with session.post(state.response_url, json=body) as response:
                assert response.status == 200
    kinds = [answer.kind for answer in (await slack.press_state(press)).answers]
    assert kinds == ["ephemeral", "replaced", "deleted"]


async def test_a_message_to_a_user_goes_to_the_direct_conversation(
    slack: SlackPlatform, client: AsyncWebClient
) -> None:
    opened = await client.conversations_open(users=ANA)
    sent = await client.chat_postMessage(channel=ANA, text="Hello")
    direct = await slack.add_dm(ANA)
    assert direct.startswith("D")
    assert opened["channel"]["id"] == sent["channel"] == direct
    assert await error_of(client.chat_update(channel=ANA, ts=sent["ts"], text="x")) == "channel_not_found"
    info = await client.conversations_info(channel=direct)
    assert (info["channel"]["is_im"], info["channel"]["user"]) == (True, ANA)


async def test_refusals_carry_slacks_codes(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.add_channel("C3", "old", members=[ANA])
    await slack.archive("C3")
    await slack.add_channel("C4", "news", members=[ANA], posting_restricted=True)
    await slack.add_channel("C5", "secret", members=[ANA], private=True, bots=[])
    said = await slack.say(ANA, OPS, "hello")
    post = client.chat_postMessage
    assert await error_of(post(channel="C9", text="x")) == "channel_not_found"
    assert await error_of(post(channel="C5", text="x")) == "channel_not_found"
    assert await error_of(post(channel="C3", text="x")) == "is_archived"
    assert await error_of(post(channel="C4", text="x")) == "restricted_action"
    assert await error_of(post(channel="U9", text="x")) == "channel_not_found"
    assert await error_of(client.api_call("chat.postMessage", json={"channel": OPS, "blocks": []})) == "no_text"
    assert await error_of(post(channel=OPS, text="x" * 40_001)) == "msg_too_long"
    assert await error_of(post(channel=OPS, text="x", thread_ts="1.000000")) == "thread_not_found"
    assert await error_of(client.chat_update(channel=OPS, ts="1.000000", text="x")) == "message_not_found"
    assert await error_of(client.chat_update(channel=OPS, ts=said, text="x")) == "cant_update_message"
    assert await error_of(client.chat_delete(channel=OPS, ts=said)) == "cant_delete_message"
    assert await error_of(client.users_info(user="U9")) == "user_not_found"
    assert await error_of(client.api_call("chat.tomorrow")) == "unknown_method"


async def test_an_oversized_card_is_refused_with_its_place(client: AsyncWebClient, slack: SlackPlatform) -> None:
    long = [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3000}}]
    assert await error_of(client.chat_postMessage(channel=OPS, text="x", blocks=long * 5)) == "msg_blocks_too_long"
    assert await error_of(client.chat_postMessage(channel=OPS, text="x", blocks=long * 51)) == "invalid_blocks"
    assert await error_of(client.chat_postMessage(channel=OPS, text="x", blocks="[")) == "invalid_blocks_format"
    assert await slack.messages(OPS) == []


async def test_tokens_and_scopes(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.add_bot("xoxb-2", "xapp-2", scopes=["chat:write"], name="small")
    small = await client_of(slack, "xoxb-2")
    assert await error_of(small.users_info(user=ANA)) == "missing_scope"
    assert await error_of(small.chat_postMessage(channel=QUIET, text="x")) == "not_in_channel"
    assert (await client.chat_postMessage(channel=QUIET, text="x"))["ok"], "chat:write.public posts without joining"
    assert await error_of((await client_of(slack, "xoxb-3")).auth_test()) == "invalid_auth"
    assert await error_of((await client_of(slack, APP_TOKEN)).auth_test()) == "not_allowed_token_type"
    assert await error_of(client.apps_connections_open(app_token="xoxb-1")) == "not_allowed_token_type"
    await slack.revoke_token("xoxb-1")
    assert await error_of(client.auth_test()) == "account_inactive"


async def test_guests_strangers_and_bots_can_be_told(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.add_user("U4", "Guest", is_ultra_restricted=True)
    await slack.add_user("U5", "Elsewhere", team_id="T9", is_stranger=True)
    guest = (await client.users_info(user="U4"))["user"]
    other = (await client.users_info(user="U5"))["user"]
    assert (guest["is_restricted"], guest["is_ultra_restricted"]) == (True, True)
    assert (other["team_id"], other["is_stranger"]) == ("T9", True)
    assert (await client.users_info(user=BOT))["user"]["is_bot"] is True
    assert (await client.auth_test())["user_id"] == BOT


async def test_who_is_in_a_user_group(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.add_usergroup("S1", "ops", users=[ANA, BO])
    assert (await client.usergroups_users_list(usergroup="S1"))["users"] == [ANA, BO]
    await slack.change_usergroup("S1", users=[BO])
    assert (await client.usergroups_users_list(usergroup="S1"))["users"] == [BO]
    await slack.change_usergroup("S1", disabled=True)
    assert await error_of(client.usergroups_users_list(usergroup="S1")) == "no_such_subteam"
    assert (await client.usergroups_users_list(usergroup="S1", include_disabled=True))["users"] == [BO]
    assert await error_of(client.usergroups_users_list(usergroup="S9")) == "no_such_subteam"
    await slack.add_bot("xoxb-2", "xapp-2", scopes=["users:read"], name="small")
    assert await error_of((await client_of(slack, "xoxb-2")).usergroups_users_list(usergroup="S1")) == "missing_scope"
    await slack.change_usergroup("S1", disabled=False)
    await slack.reset_limits()
    for _ in range(20):
        await client.usergroups_users_list(usergroup="S1")
    assert await error_of(client.usergroups_users_list(usergroup="S1")) == "ratelimited"


async def test_what_is_seen_of_a_message(slack: SlackPlatform, client: AsyncWebClient) -> None:
    blocks: list[Json] = [{"type": "section", "text": {"type": "plain_text", "text": "run <!here>"}}, *CARD[1:]]
    await client.chat_postMessage(
        channel=OPS,
        text="run &lt;!here&gt; for <@U111>",
        blocks=blocks,
        unfurl_links=False,
        unfurl_media=False,
        metadata={"event_type": "card", "event_payload": {"copy": "1"}},
    )
    (message,) = await slack.messages(OPS)
    assert (message.text, message.fallback) == ("run <!here>", "run <!here> for @Ana")
    assert (message.pings, message.links, message.unfurls) == ([ANA], [], False)
    assert message.metadata == {"event_type": "card", "event_payload": {"copy": "1"}}
    assert message.button("deny").label == "Deny"
    history = await client.conversations_history(channel=OPS, include_all_metadata=True)
    assert history["messages"][0]["metadata"] == message.metadata
    await client.chat_update(channel=OPS, ts=message.ts, text="done")
    (edited,) = await slack.messages(OPS)
    assert (edited.text, edited.blocks, edited.edits) == ("done", [], 1), "a text alone takes the blocks away"
    link = await client.chat_getPermalink(channel=OPS, message_ts=message.ts)
    assert link["permalink"].endswith(f"/archives/{OPS}/p{message.ts.replace('.', '')}")
    await client.chat_delete(channel=OPS, ts=message.ts)
    assert [each.deleted for each in await slack.messages(OPS)] == [True]


async def test_a_file_goes_into_a_thread_and_its_message_is_found_by_files_info(
    slack: SlackPlatform, client: AsyncWebClient
) -> None:
    root = await slack.start_thread(OPS, ANA)
    await slack.fault("no_shares", method="files.info")
    done = await client.files_upload_v2(
        filename="command.txt", content="rm -rf ./build", channel=OPS, thread_ts=root, initial_comment="the whole"
    )
    file_id = done["files"][0]["id"]
    assert (await client.files_info(file=file_id))["file"]["shares"] == {}
    (share,) = (await client.files_info(file=file_id))["file"]["shares"]["public"][OPS]
    message = (await slack.messages(OPS, root))[-1]
    assert (share["ts"], share["thread_ts"]) == (message.ts, root)
    assert (message.text, message.thread_ts, message.files[0].content) == ("the whole", root, b"rm -rf ./build")
    upload = await client.files_getUploadURLExternal(filename="x", length=3)
    assert await error_of(client.files_completeUploadExternal(files=[{"id": upload["file_id"], "title": "x"}])) == (
        "file_not_found"
    )
    async with aiohttp.ClientSession() as session, session.post(upload["upload_url"], data=b"four") as response:
        assert response.status == 400


async def test_a_trigger_is_used_once_and_within_three_seconds(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.freeze_clock()
    ts = await card(slack, client)
    first = await slack.press_state(await slack.press_forged(ANA, OPS, ts, "x"))
    second = await slack.press_state(await slack.press_forged(ANA, OPS, ts, "x"))
    assert (await client.views_open(trigger_id=first.trigger_id, view=MODAL))["ok"]
    assert await error_of(client.views_open(trigger_id=first.trigger_id, view=MODAL)) == "exchanged_trigger_id"
    await slack.advance_clock(3.1)
    assert await error_of(client.views_open(trigger_id=second.trigger_id, view=MODAL)) == "expired_trigger_id"
    assert await error_of(client.views_open(trigger_id="1.2", view=MODAL)) == "invalid_trigger_id"
    wide = MODAL | {"title": {"type": "plain_text", "text": "x" * 25}}
    assert await error_of(client.views_open(trigger_id="1.2", view=wide)) == "invalid_arguments"


async def test_a_response_url_is_used_five_times_within_half_an_hour(
    slack: SlackPlatform, client: AsyncWebClient
) -> None:
    ts = await card(slack, client)
    press, late = [await slack.press_forged(EVE, OPS, ts, "x") for _ in range(2)]
    url, late_url = [(await slack.press_state(each)).response_url or "" for each in (press, late)]
    statuses, body = [], ""
    async with aiohttp.ClientSession() as session:
        for number in range(6):
            async with session.post(url, json={"text": f"answer {number}"}) as response:
                statuses.append(response.status)
                body = await response.text()
        await slack.advance_clock(1801)
        async with session.post(late_url, json={"text": "late"}) as response:
            assert (response.status, (await response.json())["error"]) == (404, "expired_url")
    assert (statuses, "used_url" in body) == ([200] * 5 + [404], True)
    assert (await slack.press_state(press)).attempted == ["used_url"]
    assert len([each for each in await slack.messages(OPS, as_user=EVE) if each.ephemeral_to]) == 5


async def test_rate_limits_refuse_and_count(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.freeze_clock()
    for _ in range(3):
        await client.chat_postMessage(channel=OPS, text="x")
    assert await error_of(client.chat_postMessage(channel=OPS, text="x")) == "ratelimited"
    async with aiohttp.ClientSession() as session:
        url, headers = f"{await slack.base_url()}chat.postMessage", {"Authorization": "Bearer xoxb-1"}
        async with session.post(url, json={"channel": OPS, "text": "x"}, headers=headers) as response:
            assert (response.status, response.headers["Retry-After"]) == (429, "1")
    await client.chat_postMessage(channel=ANA, text="another place")
    await slack.advance_clock(1)
    ts = (await client.chat_postMessage(channel=OPS, text="x"))["ts"]
    for _ in range(50):
        await client.chat_update(channel=OPS, ts=ts, text="y")
    assert await error_of(client.chat_update(channel=OPS, ts=ts, text="y")) == "ratelimited"
    for _ in range(10):
        await client.apps_connections_open(app_token=APP_TOKEN)
    assert await error_of(client.apps_connections_open(app_token=APP_TOKEN)) == "ratelimited"
    report = await slack.limit_report()
    assert report.counts == {"channel": 2, "chat.update": 1, "apps.connections.open": 1}
    await slack.set_limits(mode="count")
    await client.chat_update(channel=OPS, ts=ts, text="y")
    assert (await slack.limit_report()).total == 5


async def test_controls_say_what_is_wrong(anywhere: SlackPlatform) -> None:
    with pytest.raises(LookupError, match="no channel"):
        await anywhere.messages("C9")
    with pytest.raises(ValueError, match="not in"):
        await anywhere.say(ANA, await anywhere.add_channel("C7", "empty"), "x")
    with pytest.raises(LookupError, match="no message"):
        await anywhere.press(ANA, OPS, "1.0", "x")
    with pytest.raises(TimeoutError, match="not so within"):
        await anywhere.wait_for(OPS, bool, timeout_s=0.05)
    with pytest.raises(ValueError, match="taken"):
        await anywhere.add_bot("xoxb-1")


async def test_other_ways_of_writing(slack: SlackPlatform) -> None:
    app = await bolt_app(slack)
    async with by_socket(app):
        await slack.say(ANA, OPS, "/approve 7Q2MK", edited=True)
        await slack.say(ANA, OPS, "/approve 7Q2MK", bot_message=True)
        await slack.say(ANA, OPS, "/approve 7Q2MK", forward=True)
        await slack.until(slack.pending_count, lambda count: count == 0)
    texts = [each.text for each in await slack.messages(OPS)]
    assert texts == ["/approve 7Q2MK"] * 3
    assert [each.about for each in await slack.envelopes()] == ["message"] * 3
