"""What the loopback Discord refuses, with the real one's codes and trees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.platforms.discord import DiscordPlatform, DiscordServer
from tests.platforms.discord.trying import ANA, BO, BOT, CHANNEL, EVE, GUILD, THREAD, Rest, button, last, rows, settle


@pytest.fixture
async def platform() -> AsyncIterator[DiscordPlatform]:
    async with DiscordServer() as server:
        await settle(server.platform)
        await server.platform.set_limits(mode="count")
        yield server.platform


@pytest.fixture
async def rest(platform: DiscordPlatform) -> AsyncIterator[Rest]:
    async with Rest(await platform.api_base_url()) as caller:
        yield caller


def embed(**parts: Any) -> dict[str, Any]:
    return {"content": "x", "embeds": [parts]}


@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        ({"content": "x" * 2001}, ("content",), "BASE_TYPE_MAX_LENGTH"),
        ({"components": rows([button("x", "y" * 101)])}, "button:custom_id", "BASE_TYPE_BAD_LENGTH"),
        ({"components": rows([button("x", None)])}, "button:custom_id", "BUTTON_COMPONENT_CUSTOM_ID_REQUIRED"),
        ({"components": rows([button("x" * 81, "y")])}, "button:label", "BASE_TYPE_MAX_LENGTH"),
        ({"components": rows([button("x", "y", 9)])}, "button:style", "BASE_TYPE_CHOICES"),
        (
            {"components": rows([button("x", "y"), button("z", "y")])},
            ("components", 0, "components", 1, "custom_id"),
            "COMPONENT_CUSTOM_ID_DUPLICATED",
        ),
        (
            {"components": rows([button("x", "y")], [button("z", "y")])},
            ("components", 1, "components", 0, "custom_id"),
            "COMPONENT_CUSTOM_ID_DUPLICATED",
        ),
        (
            {"components": rows([button("x", str(n)) for n in range(6)])},
            ("components", 0, "components"),
            "BASE_TYPE_BAD_LENGTH",
        ),
        ({"components": rows(*[[button("x", str(n))] for n in range(6)])}, ("components",), "BASE_TYPE_MAX_LENGTH"),
        (embed(title="x" * 257), ("embeds", 0, "title"), "BASE_TYPE_MAX_LENGTH"),
        (embed(description="x" * 4097), ("embeds", 0, "description"), "BASE_TYPE_MAX_LENGTH"),
        (
            {"embeds": [{"description": "x" * 3001}, {"description": "x" * 3000}]},
            ("embeds",),
            "MAX_EMBED_SIZE_EXCEEDED",
        ),
        ({"content": "x", "nonce": "n" * 26}, ("nonce",), "NONCE_TYPE_TOO_LONG"),
        (
            {"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["1"]}},
            ("allowed_mentions",),
            "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
        ),
        (
            {"content": "x", "message_reference": {"message_id": "5"}},
            ("message_reference",),
            "MESSAGE_REFERENCE_UNKNOWN_MESSAGE",
        ),
    ],
)
async def test_a_card_that_does_not_fit_is_refused(rest: Rest, body: Any, path: Any, code: str) -> None:
    if isinstance(path, str):
        path = ("components", 0, "components", 0, path.removeprefix("button:"))
    refused = await rest.post(body)
    assert (refused.status, refused.code) == (400, 50035)
    assert refused.error(*path) == code


async def test_what_just_fits_is_taken(platform: DiscordPlatform, rest: Rest) -> None:
    full = rows(*[[button("x" * 80, f"{row}{column}".ljust(100, "y")) for column in range(5)] for row in range(5)])
    sent = await rest.post({"content": "😀" * 2000, "components": full})
    assert sent.status == 200
    assert len(last(await platform.messages(CHANNEL)).buttons) == 25


async def test_empty_and_unreadable_bodies(rest: Rest) -> None:
    assert (await rest.post({"content": "  "})).code == 50006
    assert (await rest.post({"content": ""})).code == 50006
    assert (await rest.post(b"{")).code == 50109


async def test_files_of_more_than_ten_mebibytes_are_refused(platform: DiscordPlatform, rest: Rest) -> None:
    too_big = await rest.post({"content": "x"}, files=[("a.txt", b"x" * (10 * 1024 * 1024 + 1))])
    assert (too_big.status, too_big.code) == (413, 40005)
    assert (await rest.post({}, files=[("a.txt", b"abc"), ("b.txt", b"def")])).status == 200
    assert [each.content for each in last(await platform.messages(CHANNEL)).files] == [b"abc", b"def"]


async def test_edits_keep_what_they_do_not_name(platform: DiscordPlatform, rest: Rest) -> None:
    number = await rest.card()
    where = f"/channels/{CHANNEL}/messages/{number}"
    assert (await rest.call("PATCH", where, {"content": "Approved"})).status == 200
    assert len(last(await platform.messages(CHANNEL)).buttons) == 2
    assert (await rest.call("PATCH", where, {"components": []})).status == 200
    seen = last(await platform.messages(CHANNEL))
    assert (seen.text, seen.buttons, seen.edits) == ("Approved", [], 2)
    assert (await rest.call("PATCH", where, {"content": "x" * 2001})).code == 50035
    said = await platform.say(ANA, CHANNEL, "hello")
    assert (await rest.call("PATCH", f"/channels/{CHANNEL}/messages/{said}", {"content": "x"})).code == 50005
    assert (await rest.call("DELETE", where)).status == 204
    assert (await rest.call("PATCH", where, {"content": "x"})).code == 10008


# The three seconds


async def test_a_late_acknowledgement_is_refused(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.freeze_clock()
    number = await rest.card()
    in_time = await platform.press(ANA, CHANNEL, number, "Deny")
    await platform.advance_clock(3.0)
    assert (await rest.callback(platform, in_time, {"type": 6})).status == 200
    late = await platform.press(ANA, CHANNEL, number, "Deny")
    await platform.advance_clock(3.1)
    refused = await rest.callback(platform, late, {"type": 4, "data": {"content": "Denied."}})
    assert (refused.status, refused.code) == (404, 10062)
    assert (await platform.press_state(late)).failed
    assert [(each.refused, each.text) for each in await platform.answers(late)] == [(10062, "Denied.")]
    assert (await rest.by_token(platform, late, "POST", body={"content": "x"})).code == 10015


async def test_a_second_acknowledgement_is_refused(platform: DiscordPlatform, rest: Rest) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    first = await rest.callback(platform, press, {"type": 7, "data": {"content": "Denied", "components": []}})
    assert first.body["resource"]["message"]["content"] == "Denied"
    second = await rest.callback(platform, press, {"type": 4, "data": {"content": "Denied"}})
    assert (second.status, second.code) == (400, 40060)
    assert len(await platform.messages(CHANNEL, viewer=ANA)) == 1


async def test_a_foreign_token_is_unknown(platform: DiscordPlatform, rest: Rest) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    assert (await rest.call("POST", f"/interactions/{press}/other/callback", {"type": 6})).code == 10062
    assert (await rest.call("POST", f"/webhooks/{BOT}/other", {"content": "x"})).code == 10015


@pytest.mark.parametrize("kind", [0, 1, 8, 12])
async def test_an_answer_that_does_not_fit_the_interaction(platform: DiscordPlatform, rest: Rest, kind: int) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    refused = await rest.callback(platform, press, {"type": kind})
    assert refused.error("type") == "BASE_TYPE_CHOICES"
    assert (await rest.callback(platform, press, {"type": 6})).status == 200


async def test_an_answer_that_is_too_long_can_be_given_again(platform: DiscordPlatform, rest: Rest) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    refused = await rest.callback(platform, press, {"type": 4, "data": {"content": "x" * 2001, "flags": 64}})
    assert refused.error("data", "content") == "BASE_TYPE_MAX_LENGTH"
    assert (await rest.callback(platform, press, {"type": 4, "data": {"content": "x", "flags": 64}})).status == 200


async def test_tokens_live_fifteen_minutes(platform: DiscordPlatform, rest: Rest) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    await rest.callback(platform, press, {"type": 5, "data": {"flags": 64}})
    assert last(await platform.messages(CHANNEL, viewer=ANA)).loading
    done = await rest.by_token(platform, press, "PATCH", "/messages/@original", {"content": "Denied."})
    assert done.status == 200
    assert (await platform.private_answer_of(press)).text == "Denied."
    await platform.advance_clock(15 * 60 + 1)
    for method, path in (("POST", ""), ("PATCH", "/messages/@original"), ("DELETE", "/messages/@original")):
        refused = await rest.by_token(platform, press, method, path, {"content": "x"})
        assert (refused.status, refused.code) == (401, 50027)


async def test_original_and_follow_ups_can_be_read_changed_and_deleted(platform: DiscordPlatform, rest: Rest) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    await rest.callback(platform, press, {"type": 4, "data": {"content": "one", "flags": 64}})
    more = await rest.by_token(platform, press, "POST", body={"content": "two", "flags": 64})
    assert more.body["flags"] & 64
    where = f"/messages/{more.body['id']}"
    assert (await rest.by_token(platform, press, "GET", "/messages/@original")).body["content"] == "one"
    assert (await rest.by_token(platform, press, "PATCH", where, {"content": "three"})).status == 200
    assert (await rest.by_token(platform, press, "DELETE", "/messages/@original")).status == 204
    assert (await rest.by_token(platform, press, "GET", "/messages/@original")).code == 10008
    shown = [each.text for each in await platform.messages(CHANNEL, viewer=ANA) if not each.deleted]
    assert shown == ["Low: lists files", "three"]
    hidden = await rest.call("PATCH", f"/channels/{CHANNEL}{where}", {"content": "by the bot token"})
    assert hidden.code == 10008
    assert [each.text for each in await platform.messages(CHANNEL, viewer=BO)] == ["Low: lists files"]


async def test_private_buttons_obey_only_who_sees_them(platform: DiscordPlatform, rest: Rest) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    panel = {"content": "Why?", "flags": 64, "components": rows([button("Too risky", "r1")])}
    await rest.callback(platform, press, {"type": 4, "data": panel})
    shown = last(await platform.messages(CHANNEL, viewer=ANA))
    with pytest.raises(LookupError):
        await platform.press(EVE, CHANNEL, shown.message_id, "Too risky")
    second = await platform.press_ephemeral(press, "Too risky")
    await rest.callback(platform, second, {"type": 7, "data": {"content": "Denied.", "components": []}})
    answer = await platform.private_answer_of(second)
    assert (answer.kind, answer.text, answer.private) == ("update", "Denied.", True)


def modal(**changes: Any) -> dict[str, Any]:
    field = {"type": 4, "custom_id": "why", "label": "Why not?", "style": 1, **changes.pop("field", {})}
    return {"title": "Deny", "custom_id": "m", "components": [{"type": 1, "components": [field]}], **changes}


FIELD = ("data", "components", 0, "components", 0)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (modal(title="x" * 46), ("data", "title")),
        (modal(title=""), ("data", "title")),
        (modal(custom_id="x" * 101), ("data", "custom_id")),
        (modal(components=[]), ("data", "components")),
        (modal(field={"label": "x" * 46}), (*FIELD, "label")),
        (modal(field={"placeholder": "x" * 101}), (*FIELD, "placeholder")),
        (modal(field={"max_length": 4001}), (*FIELD, "max_length")),
        (modal(field={"custom_id": "x" * 101}), (*FIELD, "custom_id")),
        (modal(field={"value": "x" * 4001}), (*FIELD, "value")),
    ],
)
async def test_a_modal_that_does_not_fit_is_refused(
    platform: DiscordPlatform, rest: Rest, data: Any, path: tuple[Any, ...]
) -> None:
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    refused = await rest.callback(platform, press, {"type": 9, "data": data})
    assert refused.code == 50035 and refused.error(*path)
    assert (await rest.callback(platform, press, {"type": 9, "data": modal()})).status == 200
    assert (await platform.modal_of(press)).title == "Deny"


def command(**changes: Any) -> dict[str, Any]:
    return {"name": "approve", "description": "Approve", "type": 1, **changes}


def option(**changes: Any) -> dict[str, Any]:
    return {"type": 3, "name": "request", "description": "Which", **changes}


@pytest.mark.parametrize(
    ("commands", "path"),
    [
        ([command(name="Approve")], (0, "name")),
        ([command(name="a b")], (0, "name")),
        ([command(name="x" * 33)], (0, "name")),
        ([command(description="")], (0, "description")),
        ([command(description="x" * 101)], (0, "description")),
        ([command(), command()], (1, "name")),
        ([command(options=[option(name="Q")])], (0, "options", 0, "name")),
        ([command(options=[option(), option(name="b", required=True)])], (0, "options", 1, "required")),
        ([command(options=[option(name=f"o{n}") for n in range(26)])], (0, "options")),
        (
            [command(options=[option(autocomplete=True, choices=[{"name": "x", "value": "x"}])])],
            (0, "options", 0, "choices"),
        ),
    ],
)
async def test_commands_that_do_not_fit_are_refused(rest: Rest, commands: Any, path: tuple[Any, ...]) -> None:
    refused = await rest.call("PUT", f"/applications/{BOT}/commands", commands)
    assert refused.code == 50035 and refused.error(*path)


async def test_completion_has_at_most_25_choices_of_100(platform: DiscordPlatform, rest: Rest) -> None:
    registered = [command(options=[option(autocomplete=True, required=True)])]
    await rest.call("PUT", f"/applications/{BOT}/guilds/{GUILD}/commands", registered)
    typed = await platform.autocomplete(ANA, CHANNEL, "approve", {"request": "7"}, "request")

    def answered(count: int, length: int) -> dict[str, Any]:
        return {"type": 8, "data": {"choices": [{"name": "x" * length, "value": str(n)} for n in range(count)]}}

    assert (await rest.callback(platform, typed, answered(26, 5))).error("data", "choices")
    assert (await rest.callback(platform, typed, answered(1, 101))).error("data", "choices", 0, "name")
    assert (await rest.callback(platform, typed, answered(25, 100))).status == 200
    assert len(await platform.choices_of(typed)) == 25
    with pytest.raises(ValueError, match="required"):
        await platform.slash(ANA, CHANNEL, "approve")
    with pytest.raises(LookupError):
        await platform.slash(ANA, CHANNEL, "deny")


# Places


Arrange = Callable[[DiscordPlatform], Any]


@pytest.mark.parametrize(
    ("arrange", "status", "code"),
    [
        (lambda platform: platform.set_access(CHANNEL, view=False), 403, 50001),
        (lambda platform: platform.set_access(CHANNEL, send=False), 403, 50013),
        (lambda platform: platform.remove_bot(GUILD), 403, 50001),
        (lambda platform: platform.delete_channel(CHANNEL), 404, 10003),
        (lambda platform: platform.fault("403", call="create_message", code=50013), 403, 50013),
        (lambda platform: platform.fault("404", call="create_message", channel_id=CHANNEL, code=10008), 404, 10008),
        (lambda platform: platform.fault("401", method="POST"), 401, 0),
        (lambda platform: platform.fault("503"), 503, 0),
    ],
)
async def test_places_out_of_reach(
    platform: DiscordPlatform, rest: Rest, arrange: Arrange, status: int, code: int
) -> None:
    await arrange(platform)
    refused = await rest.post({"content": "x"})
    assert (refused.status, refused.code) == (status, code)


async def test_direct_messages_may_be_closed(platform: DiscordPlatform, rest: Rest) -> None:
    opened = await rest.call("POST", "/users/@me/channels", {"recipient_id": str(ANA)})
    direct = int(opened.body["id"])
    assert direct == await platform.dm(ANA) and opened.body["type"] == 1
    assert (await rest.post({"content": "x"}, direct)).status == 200
    await platform.close_dms(ANA)
    assert (await rest.post({"content": "x"}, direct)).code == 50007


async def test_places_can_be_looked_at_and_made(platform: DiscordPlatform, rest: Rest) -> None:
    ids = [await rest.card(), await rest.card()]
    where = f"/channels/{CHANNEL}"
    newest = await rest.call("GET", f"{where}/messages?limit=1")
    assert [int(each["id"]) for each in newest.body] == ids[1:]
    older = await rest.call("GET", f"{where}/messages?before={ids[1]}")
    assert [int(each["id"]) for each in older.body] == ids[:1]
    thread = await rest.call("POST", f"{where}/messages/{ids[0]}/threads", {"name": "about it"})
    assert (thread.status, thread.body["id"], thread.body["type"]) == (201, str(ids[0]), 11)
    assert (await rest.call("POST", f"{where}/messages/{ids[0]}/threads", {"name": "again"})).code == 160004
    assert (await rest.call("POST", f"{where}/threads", {"name": "private"})).body["type"] == 12
    assert (await rest.call("GET", f"/guilds/{GUILD}/members/{ANA}")).body["user"]["username"] == "ana"
    await platform.remove_member(GUILD, ANA)
    assert (await rest.call("GET", f"/guilds/{GUILD}/members/{ANA}")).code == 10007
    with pytest.raises(LookupError):
        await platform.press(ANA, CHANNEL, ids[0], "Deny")
    assert (await rest.call("GET", "/gateway/bot")).body["url"] == await platform.gateway_url()
    assert (await rest.call("GET", "/applications/@me")).body["verify_key"] == await platform.public_key()
    assert (await rest.call("GET", "/no/such/place")).status == 404
    async with Rest(rest.base, "wrong") as stranger:
        assert (await stranger.call("GET", "/users/@me")).status == 401


async def test_archived_threads(platform: DiscordPlatform, rest: Rest) -> None:
    number = await rest.card(THREAD)
    await platform.set_thread(THREAD, archived=True)
    where = f"/channels/{THREAD}/messages/{number}"
    assert (await rest.call("PATCH", where, {"content": "x"})).code == 50083
    assert (await rest.post({"content": "wakes it"}, THREAD)).status == 200
    assert await platform.thread_state(THREAD) == {"archived": False, "locked": False}
    assert (await rest.call("PATCH", where, {"content": "x"})).status == 200
    await platform.set_thread(THREAD, archived=True, locked=True)
    assert (await rest.post({"content": "x"}, THREAD)).code == 160005
    assert (await rest.call("PATCH", f"/channels/{THREAD}", {"archived": False})).status == 200
    assert (await rest.call("GET", f"/channels/{THREAD}")).body["parent_id"] == str(CHANNEL)


async def test_nonce_counts_for_minutes_and_only_when_enforced(platform: DiscordPlatform, rest: Rest) -> None:
    given = {"content": "x", "nonce": "n1", "enforce_nonce": True}
    first, second = await rest.post(given), await rest.post(given)
    assert first.body["id"] == second.body["id"]
    unenforced = await rest.post(given | {"enforce_nonce": False})
    await platform.advance_clock(600)
    late = await rest.post(given)
    assert len({first.body["id"], unenforced.body["id"], late.body["id"]}) == 3


# Budgets


async def test_posts_beyond_the_bucket(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.set_limits(mode="enforce")
    await platform.freeze_clock()
    answers = [await rest.post({"content": "x"}) for _ in range(6)]
    assert [each.status for each in answers] == [200] * 5 + [429]
    assert answers[4].headers["X-RateLimit-Remaining"] == "0"
    assert answers[5].headers["Via"] and answers[5].headers["X-RateLimit-Scope"] == "user"
    assert answers[5].body["retry_after"] == pytest.approx(5.0) and answers[5].body["global"] is False
    assert (await platform.limit_report()).counts == {"bucket": 1}
    await platform.advance_clock(5.01)
    assert (await rest.post({"content": "x"})).status == 200


async def test_counting_refuses_nothing(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.freeze_clock()
    assert [(await rest.post({"content": "x"})).status for _ in range(7)] == [200] * 7
    assert (await platform.limit_report()).total == 2


async def test_the_whole_bot_may_ask_fifty_times_a_second(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.set_limits(mode="enforce", global_per_s=3, channel_posts=50)
    await platform.freeze_clock()
    refused = [await rest.post({"content": "x"}) for _ in range(4)][-1]
    assert refused.body["global"] is True and refused.headers["X-RateLimit-Global"] == "true"
    press = await platform.press_forged(ANA, CHANNEL, 1, "x")
    assert (await rest.callback(platform, press, {"type": 6})).status == 200


async def test_old_messages_are_seldom_edited(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.set_limits(mode="enforce", old_edits_per_hour=2)
    where = f"/channels/{CHANNEL}/messages/{await rest.card()}"
    await platform.freeze_clock()
    await platform.advance_clock(3601)
    answers = [await rest.call("PATCH", where, {"content": str(n)}) for n in range(3)]
    assert [each.status for each in answers] == [200, 200, 429]
    assert answers[2].code == 30046
    assert (await platform.limit_report()).counts == {"old_edits": 1}
