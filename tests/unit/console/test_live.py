"""Open pages: what they are told, in which order, after a gap, and what an open page means for those who ask."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
import pytest
from aiohttp.web import BaseRequest, StreamResponse
from tests.unit.console.world import Person, Place, place_on
from tests.unit.server.world import until

from signoff import drills
from signoff.clock import SystemClock
from signoff.errors import StoreUnavailable
from signoff.model import Actor, ApprovalRequest, Destination, Health, Notifier
from signoff.rows import EVERY_SESSION, request_key, session_key
from signoff.stores.memory import MemoryStore
from signoff.testing.fake_adapter import FakeAdapter


class Stream:
    """Reads an open page's stream."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.last_id = ""

    async def next(self, kind: str, within_s: float = 10.0) -> Any:
        """The data of the next event of that kind."""
        name, data = "message", ""
        async with asyncio.timeout(within_s):
            while True:
                line = (await self.answer.content.readline()).decode()
                if not line:
                    raise EOFError
                word, _, value = line.rstrip("\n").partition(": ")
                if word == "event":
                    name = value
                elif word == "data":
                    data = value
                elif word == "id":
                    self.last_id = value
                elif not word:
                    if name == kind:
                        return json.loads(data)
                    name, data = "message", ""


@asynccontextmanager
async def watching(person: Person, query: str = "kind=cards", **headers: str) -> AsyncIterator[Stream]:
    async with person.http.get(f"{person.base}/console/events?{query}", headers=headers) as answer:
        assert answer.status == 200
        stream = Stream(answer)
        await stream.next("open")
        yield stream


async def test_a_new_question_and_its_answer_arrive_drawn(stored: Place) -> None:
    agent = await stored.agent()
    ann, ben = await stored.person(principal="ann"), await stored.person(principal="ben")
    async with watching(ben) as stream:
        record = await agent.ask()
        told = await stream.next("card")
        assert (told["id"], told["pending"], told["new"]) == (record["request_id"], True, True)
        assert told["said"] == f"{record['severity'].capitalize()} request {record['short_id']}"
        csrf = (await ben.get("/console")).fields("/console/logout")["csrf"]
        assert told["html"].count(csrf) == 5
        assert (await stream.next("count"))["count"] == 1
        await ann.decide(record, "once")
        told = await stream.next("card")
        assert told["pending"] is False
        assert "Approved once by ann in the console" in told["html"]
        assert "/console/undo" not in told["html"]
        assert (await stream.next("count"))["count"] == 0


async def test_who_looks_gets_no_buttons(here: Place) -> None:
    agent = await here.agent()
    looker, ann = await here.person("ops"), await here.person()
    async with watching(looker) as looking, watching(ann) as deciding:
        await agent.ask()
        assert "<button" not in (await looking.next("card"))["html"]
        assert "<button" in (await deciding.next("card"))["html"]


async def test_one_more_waiting_changes_the_card_it_waits_on(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    async with watching(person) as stream:
        leader = await agent.ask()
        await stream.next("card")
        await agent.ask()
        told = await stream.next("card")
        assert (told["id"], told["new"]) == (leader["request_id"], False)
        assert "Once for all 2" in told["html"]
        assert (await stream.next("count"))["count"] == 2


async def test_a_page_is_told_what_happened_since_it_was_drawn(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    first = await agent.ask()
    seq = await here.core.store.last_seq("default")
    second = await agent.ask(action={"kind": "command", "command": "rm -rf build"})
    await person.decide(first, "deny")
    async with watching(person, f"kind=cards&after={seq}") as stream:
        told = [await stream.next("card"), await stream.next("card")]
        assert {each["id"]: each["pending"] for each in told} == {
            first["request_id"]: False,
            second["request_id"]: True,
        }
        await stream.next("count")
        assert int(stream.last_id) == await here.core.store.last_seq("default")


async def test_a_position_of_another_store_loads_the_page_anew(here: Place) -> None:
    person = await here.person()
    async with watching(person, "kind=cards&after=99999") as stream:
        assert await stream.next("reload") == {}


async def test_a_reconnect_goes_on_by_its_header(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    seq = await here.core.store.last_seq("default")
    record = await agent.ask()
    async with watching(person, "kind=cards&after=99999", **{"Last-Event-ID": str(seq)}) as stream:
        assert (await stream.next("card"))["id"] == record["request_id"]


async def test_a_break_in_the_middle_of_catching_up_loses_nothing(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    seq = await here.core.store.last_seq("default")
    record = await agent.ask()
    async with watching(person, f"kind=cards&after={seq}") as stream:
        assert stream.last_id == "", "nothing was sent yet of what happened"
    headers = {"Last-Event-ID": stream.last_id} if stream.last_id else {}
    async with watching(person, f"kind=cards&after={seq}", **headers) as stream:
        assert (await stream.next("card"))["id"] == record["request_id"]
        await stream.next("count")
        again = stream.last_id
    async with watching(person, f"kind=cards&after={seq}", **{"Last-Event-ID": again}) as stream:
        assert stream.last_id == again


async def test_other_pages_are_told_what_changed(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    async with watching(person, "kind=touch") as stream:
        record = await agent.ask()
        told = await stream.next("touch")
        assert told["ids"] == [record["request_id"]]
        assert "approval.requested" in told["kinds"]
        assert "html" not in told


async def test_nothing_of_another_profile_arrives(here: Place) -> None:
    agent, other = await here.agent(), await here.agent("second")
    person = await here.person()
    async with watching(person) as stream:
        await other.ask()
        record = await agent.ask()
        assert (await stream.next("card"))["id"] == record["request_id"]


async def test_a_burst_ends_in_the_newest_state(here: Place) -> None:
    agent = await here.agent()
    people = [await here.person(principal=f"p{number}") for number in range(10)]
    asked = [
        await agent.ask(action={"kind": "command", "command": f"git push --force origin b{number}"})
        for number in range(40)
    ]
    await asyncio.gather(*(watch_to_the_end(person, asked, here) for person in people))


async def watch_to_the_end(person: Person, asked: list[dict[str, Any]], here: Place) -> None:
    seq = await here.core.store.last_seq("default")
    async with watching(person, f"kind=cards&after={seq}") as stream:
        for record in asked:
            await here.core.broker.cancel("default", record["request_id"], "withdrawn", None)
        while (await stream.next("count"))["count"]:
            pass


async def turned_away(person: Person) -> bool:
    """Whether one more page of theirs is refused its stream."""
    async with person.http.get(f"{person.base}/console/events") as answer:
        return answer.status == 429


async def test_too_many_pages_of_one_log_in_are_refused(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.console.live.MOST_OWN", 2)
    person = await here.person()
    async with watching(person), watching(person):
        assert await turned_away(person)
    await until(lambda: len(here.console.desk.live) == 0)
    async with watching(person):
        pass


async def test_the_pages_of_a_key_count_together(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.console.live.MOST_OWN", 2)
    key = (await here.core.keys.create("default", "ops")).text
    first, second = here.stranger(), here.stranger()
    for browser in (first, second):
        assert (await browser.post("/console/login", {"key": key})).status == 303
    other = await here.person("ops")
    async with watching(first), watching(second):
        assert await turned_away(second)
        async with watching(other):
            pass


async def test_those_who_look_leave_room_for_those_who_decide(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.console.live.MOST_STREAMS", 4)
    monkeypatch.setattr("signoff.console.live.MOST_LOOKING", 2)
    lookers, ann = [await here.person("ops") for _ in range(3)], await here.person()
    async with watching(lookers[0]), watching(lookers[1]):
        assert await turned_away(lookers[2])
        async with watching(ann), watching(ann):
            assert await turned_away(ann)


async def test_a_log_in_that_ended_ends_its_page_however_much_happens(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    row = await here.core.store.get(ApprovalRequest, request_key("default", record["request_id"]))
    assert row is not None
    person = await here.person()
    (cookie,) = person.http.cookie_jar
    desk = here.console.desk
    seat = await desk.seats.find(cookie.value)
    assert seat is not None
    async with watching(person, "kind=touch") as stream:
        await desk.seats.close(seat)
        async with asyncio.timeout(15):
            with pytest.raises(EOFError):
                while True:
                    desk.live.touch(row)
                    await stream.next("touch")


async def presence(here: Place) -> list[Notifier]:
    return await here.core.store.find(Notifier, "session", session_key("default", EVERY_SESSION))


async def test_an_open_page_of_somebody_who_decides_is_a_way_to_a_person(here: Place) -> None:
    looker, ann = await here.person("ops"), await here.person()
    async with watching(looker):
        assert await presence(here) == []
        async with watching(ann), watching(ann):

            async def one() -> bool:
                return len(await presence(here)) == 1

            await until(one)
            (first,) = await presence(here)
            assert first.gone_at is not None
            assert (first.gone_at - here.core.clock.now()).total_seconds() > 25

            async def renewed() -> bool:
                (row,) = await presence(here)
                return row.gone_at is not None and first.gone_at is not None and row.gone_at > first.gone_at

            await until(renewed)


@pytest.mark.parametrize("late", [False, True])
async def test_a_drill_draws_the_page_anew_also_for_one_that_was_drawn_before_it(here: Place, late: bool) -> None:
    person = await here.person()
    seq = await here.core.store.last_seq("default")
    places, by = (Destination("console", "main"),), "ann"
    if late:
        await drills.begin(here.core.store, "default", places, by=by, wait_s=60)
    async with watching(person, f"kind=cards&after={seq}") as stream:
        if not late:
            await drills.begin(here.core.store, "default", places, by=by, wait_s=60)
        assert await stream.next("reload") == {}


class Telegram(FakeAdapter):
    """A platform that fails when it is told to."""

    def __init__(self) -> None:
        super().__init__("telegram")
        self.state: Literal["ready", "degraded"] = "ready"

    def health(self) -> Health:
        return Health(state=self.state)


async def test_a_platform_that_fails_is_told_on_an_open_page(here: Place) -> None:
    telegram = here.core.adapters["default", "telegram"] = Telegram()
    person, other = await here.person(), await here.person(profile="second")
    told = "Telegram does not work now"
    assert told not in (await person.get("/console")).text
    async with watching(person) as stream:
        telegram.state = "degraded"
        assert await stream.next("reload") == {}
        assert told in (await person.get("/console")).text
        assert told not in (await other.get("/console")).text
        telegram.state = "ready"
        assert await stream.next("reload") == {}
        assert told not in (await person.get("/console")).text
    # A page that was away meanwhile is told by what it shows.
    async with watching(person, "kind=cards&troubles=telegram") as stream:
        assert await stream.next("reload") == {}


class Failing(MemoryStore):
    """A store that does not serve when it is told so."""

    down = False

    async def find(self, *about: Any, **how: Any) -> Any:
        if self.down:
            raise StoreUnavailable
        return await super().find(*about, **how)


async def test_a_count_that_the_store_refused_keeps_nothing_of_what_ends_later() -> None:
    clock = SystemClock()
    async with place_on(store := Failing(clock), clock) as here:
        agent, person = await here.agent(), await here.person()
        record = await agent.ask()
        store.down = True
        with pytest.raises(StoreUnavailable):
            await here.console.desk.live.waiting("default")
        store.down = False
        by = Actor(type="person", principal="ann", via="api")
        await here.core.broker.decide("default", record["request_id"], "deny", by)
        assert here.console.desk.live._ended_meanwhile == {}
        await agent.ask(action={"kind": "command", "command": "npm publish"})
        assert await here.console.desk.live.waiting("default") == 1
        assert "1 waiting" in (await person.get("/console")).text


async def test_pages_without_an_event_for_it_ask_again_by_themselves(here: Place) -> None:
    person = await here.person()
    for path in ("/health", "/sessions", "/grants", "/staged", "/catch-up"):
        assert re.search(r'<h1 data-again="\d+">', (await person.get(f"/console{path}")).text), path


@pytest.mark.parametrize("late", [False, True])
async def test_the_story_of_a_question_is_told_of_those_that_wait_on_it(here: Place, late: bool) -> None:
    agent = await here.agent()
    person = await here.person()
    leader = await agent.ask()
    seq = await here.core.store.last_seq("default")
    if late:
        follower = await agent.ask()
    async with watching(person, f"kind=touch&after={seq}") as stream:
        if not late:
            follower = await agent.ask()
        assert set((await stream.next("touch"))["ids"]) == {leader["request_id"], follower["request_id"]}


async def test_a_page_that_goes_before_its_stream_begins_is_no_defect(
    here: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    person = await here.person()
    last_seq, handle = here.core.store.last_seq, here.console.handle
    made: list[asyncio.Transport] = []

    async def handled(request: BaseRequest) -> StreamResponse:
        assert request.transport is not None
        made.append(request.transport)
        return await handle(request)

    async def going(profile: str) -> int:
        made[-1].close()
        return await last_seq(profile)

    monkeypatch.setattr(here.console, "handle", handled)
    monkeypatch.setattr(here.core.store, "last_seq", going)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await person.get("/console/events?kind=cards")
    assert caplog.messages == []


async def test_streams_end_with_the_server(here: Place) -> None:
    person = await here.person()
    async with watching(person) as stream:
        here.console.close()
        with pytest.raises(EOFError):
            await stream.next("never")
