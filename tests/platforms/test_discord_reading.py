"""How the loopback Discord reads markup, and whom a message notifies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.platforms.discord import DiscordServer
from tests.platforms.discord.markdown import pings_in, read, show_time
from tests.platforms.discord.trying import ANA, CHANNEL, Rest, last, settle

NOW = 1_795_917_300.0


def text_of(content: str) -> str:
    return read(content, name_of=lambda mark: f"@{mark}", now=NOW).text


def links_of(content: str) -> list[str]:
    return read(content, name_of=lambda mark: f"@{mark}", now=NOW).links


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("**High: deletes** a *tree*", "High: deletes a tree"),
        ("__under__ and ~~through~~ and ***both***", "under and through and both"),
        ("```\nrm -rf **x**\n```", "rm -rf **x**"),
        ("```diff\n- a\n+ b\n```", "- a\n+ b"),
        ("```ls -la```", "ls -la"),
        ("`a_b_c` and ``x`y``", "a_b_c and x`y"),
        (r"\*\*not bold\*\* \`no code\` \<@1\>", "**not bold** `no code` <@1>"),
        ("snake_case_name", "snake_case_name"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("> quoted\n> twice", "quoted\ntwice"),
        ("-# 7Q2MK · 9f3a", "7Q2MK · 9f3a"),
        ("# Head", "Head"),
        ("||hidden||", "hidden"),
        ("Expires <t:1795917540:R> (<t:1795917540:t>)", "Expires in 4 minutes (12:39)"),
        ("On call: <@111>", "On call: @user:111"),
        ("[5TQ7M](https://example.org/r/5TQ7M)", "5TQ7M"),
        ("`<@111> **x**`", "<@111> **x**"),
    ],
)
def test_what_a_person_reads(content: str, text: str) -> None:
    expected = text.replace("12:39", show_time(1795917540, "t", NOW))
    assert text_of(content) == expected


@pytest.mark.parametrize(
    ("content", "links"),
    [
        ("see https://x.example/i.sh.", ["https://x.example/i.sh"]),
        ("<https://x.example>", ["https://x.example"]),
        ("[safe](https://evil.example)", ["safe"]),
        ("[safe](<https://evil.example>)", ["safe"]),
        ("<@111> <#20> <@&5>", ["@user:111", "@channel:20", "@role:5"]),
        ("</approve:77>", ["/approve"]),
        ("`https://x.example` ```\nhttps://y.example <@111>```", []),
        (r"https\://x.example \<@111>", []),
        ("x.example", []),
    ],
)
def test_what_can_be_clicked(content: str, links: list[str]) -> None:
    assert sorted(links_of(content)) == sorted(links)


def test_code_spoilers_and_small_lines_are_told_apart() -> None:
    reading = read("```\na\n```\n||b||\n-# c <t:5:R>", name_of=lambda _: None, now=NOW)
    assert (reading.code, reading.spoilers, reading.small[0][:1]) == (["a"], ["b"], "c")
    assert reading.timestamps == ["<t:5:R>"]


def test_a_fence_inside_a_fence_ends_it() -> None:
    assert links_of("```\nx ``` https://evil.example ```\n```") == ["https://evil.example"]


@pytest.mark.parametrize(
    ("content", "allowed", "pings"),
    [
        ("<@111> <@!222> @everyone", None, ["user:111", "user:222", "everyone"]),
        ("<@111> <@&5> @here", {"parse": []}, []),
        ("<@111> <@222>", {"parse": [], "users": ["222"]}, ["user:222"]),
        ("<@111> @here", {"parse": ["everyone"]}, ["here"]),
        ("<@&5> <@&6>", {"roles": ["6"]}, ["role:6"]),
        ("`<@111>` ```\n@everyone```", None, []),
        (r"\<@111>", None, ["user:111"]),
        ("mail@everyone.example", None, []),
    ],
)
def test_who_is_notified(content: str, allowed: dict[str, list[str]] | None, pings: list[str]) -> None:
    assert pings_in(content, allowed) == pings


@given(st.text(alphabet="ab`*_~|\\<@>[]()# -\n1t:", max_size=60))
def test_reading_never_fails_and_backslashes_dead_marks(content: str) -> None:
    read(content, name_of=lambda mark: mark, now=NOW)
    escaped = "".join(f"\\{each}" if not each.isalnum() and not each.isspace() else each for each in content)
    assert text_of(escaped) == content


async def test_messages_say_whom_they_notified_and_edits_notify_nobody() -> None:
    async with DiscordServer() as server, Rest(server.where().api_base_url) as rest:
        await settle(server.platform)
        said = await server.platform.say(ANA, CHANNEL, "hello")
        allowed = {"parse": [], "users": [str(ANA)]}
        sent = await rest.post({"content": f"<@{ANA}> <@222>", "flags": 4096 | 4, "allowed_mentions": allowed})
        seen = last(await server.platform.messages(CHANNEL))
        assert (seen.pings, seen.links, seen.silent) == ([f"user:{ANA}"], ["@Ana", "@Bo"], True)
        assert seen.embeds_suppressed
        where = f"/channels/{CHANNEL}/messages/{sent.body['id']}"
        await rest.call("PATCH", where, {"content": "@everyone"})
        assert last(await server.platform.messages(CHANNEL)).pings == [f"user:{ANA}"]
        reference = {"message_reference": {"message_id": str(said)}}
        await rest.post({"content": "x", **reference})
        assert last(await server.platform.messages(CHANNEL)).pings == [f"user:{ANA}"]
        await rest.post({"content": "x", "allowed_mentions": {"parse": []}, **reference})
        assert last(await server.platform.messages(CHANNEL)).pings == []
