"""The web console as a transport: people in front of its pages, each with a browser and a log-in of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

import msgspec

from tests.scenarios.browsers import GONE, Browser, Drawn, OpenPage, Spoiled
from tests.scenarios.console_cards import Card, Read, action_text, form_of_choice, form_with, read_card
from tests.scenarios.console_forgeries import false_forms, is_refusal, link_used_twice, odd_forms
from tests.scenarios.gateways import GatewayProcess
from tests.scenarios.markup import Element, form_of, words
from tests.scenarios.transport import (
    APPROVERS,
    PEOPLE,
    WAIT_S,
    Gone,
    Person,
    Seen,
    Slow,
    Transport,
    Trouble,
    Way,
    Whole,
)

ANYWHERE = "console"
"""What waits on whoever has the console open, and was asked in no place."""
MOST_PAGES, LIMITED_S = 32, 6.0
BECAUSE, MORE = "Deny, because…", "More…"
TYPED = "Deny with this reason"
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""For a card that is read on its own page, where nothing is in order of time."""
SPOILED: dict[Trouble, Spoiled] = {"answer_lost": "cut", "never_answered": "swallowed"}
HELD: dict[Slow, tuple[str, ...]] = {"card": ("--hold", "after post"), "reason": ("--hold", "before update")}


class Console(Transport):
    """The pages of one gateway. Ana's stay open; her browser runs their script, the others' browsers have none."""

    name = "console"
    short = "console"
    knows_repeats = True
    draws_rows = True
    serves_pages = True
    hands_cards_over = False
    counts_later_ones = False
    denies_all_with_a_reason = False
    at_once = 100
    deciding = "deciding.decide"
    answering_all = "answering.change"
    alarm = None
    replaced = "Not run. Your tap changed nothing."
    rest_is = "at the id"
    reason_panel = TYPED
    nobody_may = "You can look, not decide. Nothing changed."
    unasked = Gone(outcome="blocked", told="nobody was asked")
    silence = refusal = Gone(
        outcome="cancelled",
        cause="notifier_gone",
        told="the app that could answer went away",
        # An open page is noted every 10 s, and counts for 30 s from then.
        at_least=timedelta(seconds=19),
        at_most=timedelta(seconds=31),
    )

    def __init__(self) -> None:
        super().__init__()
        self._approvers: tuple[Person, ...] = APPROVERS
        self._gateway: GatewayProcess | None = None
        self._browsers: dict[Person, Browser] = {}
        self._more: list[Browser] = []
        self._page: OpenPage | None = None
        self._pages: dict[str, OpenPage] = {}
        """Places that somebody watches on a page of their own."""
        self._deeds: dict[str, tuple[asyncio.Task[str], Callable[[], Coroutine[Any, Any, str]]]] = {}
        self._about: dict[str, Seen] = {}
        self._read: dict[Element, Read] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._numbers = count(1)

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Self]:
        """Nobody is there yet."""
        transport = cls()
        try:
            yield transport
        finally:
            await transport._leave()

    async def _leave(self) -> None:
        for page in (self._page, *self._pages.values()):
            if page is not None:
                await page.aclose()
        tasks = [*self._tasks, *(task for task, _ in self._deeds.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for browser in (*self._browsers.values(), *self._more):
            await browser.aclose()

    def config(self, approvers: Sequence[Person] = APPROVERS, *, hooks: bool = True) -> str:
        """Nothing: who decides is said by the link by which somebody logs in."""
        self._approvers = tuple(approvers)
        return ""

    def meets(self, gateway: GatewayProcess) -> None:
        self._gateway = gateway

    @property
    def gateway(self) -> GatewayProcess:
        """The gateway whose pages these are; `AssertionError` before it is known."""
        assert self._gateway is not None, "the gateway is not known yet"
        return self._gateway

    def user_id(self, person: Person) -> str:
        return person

    def called(self, person: Person) -> str:
        return person

    def named(self, person: Person) -> str:
        return person

    def made_by(self, person: Person, *, all_at_once: bool = False) -> dict[str, str]:
        return {"principal": person, "via": "console"}

    def slowed(self, what: Slow) -> tuple[str, ...]:
        return HELD[what]

    def browser(self, person: Person) -> Browser:
        """A person's own browser."""
        if person not in self._browsers:
            decides = person in self._approvers
            self._browsers[person] = Browser(self.gateway, person, decides=decides, script=person == "ana")
        return self._browsers[person]

    def _other_browser(self, person: Person, *, decides: bool = True) -> Browser:
        browser = Browser(self.gateway, person, decides=decides, script=False)
        self._more.append(browser)
        return browser

    def _watching(self, place: str) -> OpenPage:
        if place in self._pages:
            return self._pages[place]
        if self._page is None:
            self._page = OpenPage(self.browser("ana"))
        return self._page

    # places

    async def group(self) -> str:
        return f"console:room-{next(self._numbers)}"

    async def topics(self, count: int) -> list[str]:
        room = await self.group()
        return [f"{room}/{number}" for number in range(count)]

    def direct(self, person: Person) -> str:
        return f"console:{person}"

    async def moving(self) -> str:
        return await self.group()

    async def move(self, place: str) -> str:
        """Ana goes on under another name of the machine, where her log-in does not count, and logs in anew."""
        old = self.browser("ana")
        name = self.gateway.url.replace("127.0.0.1", "localhost")
        new = Browser(self.gateway, "ana", decides=True, script=True, url=name)
        await asyncio.gather(old.enter(), new.enter())
        for jar, address in ((old, name), (new, self.gateway.url)):
            async with jar.http.get(f"{address}/console", allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, "/console/login")
        self._more.append(old)
        self._browsers["ana"] = new
        if self._page is not None:
            await self._page.aclose()
        self._page = OpenPage(new)
        return place

    async def way(self) -> Way:
        """No place at all: whoever has the console open is asked."""
        page = self._watching(ANYWHERE)
        await asyncio.wait_for(page.until(lambda: page.live), WAIT_S)
        return Way(place=None, kind="api", seen_in=ANYWHERE)

    async def block(self, way: Way, kind: Trouble = "kicked") -> None:
        await self.down()

    async def nowhere(self, kind: Trouble) -> Way:
        """No page is open at all (`refused`), or only one of somebody who may not decide (`kicked`)."""
        assert self._page is None, "somebody who may decide is there"
        if kind == "kicked":
            page = self._pages[kind] = OpenPage(self._other_browser("eve", decides=False))
            await asyncio.wait_for(page.until(lambda: page.live), WAIT_S)
        return Way(place=None, kind="api", seen_in=ANYWHERE)

    # what people see

    async def seen(self, place: str, viewer: Person | None = None) -> list[Seen]:
        drawn = self._watching(place).drawn
        here = [each for each in list(drawn.values()) if place in (each.places or (ANYWHERE,))]
        return [self._card(place, each) for each in sorted(here, key=lambda each: each.asked_at)]

    async def until(
        self,
        place: str,
        holds: Callable[[list[Seen]], bool],
        timeout_s: float = WAIT_S,
        *,
        viewer: Person | None = None,
    ) -> list[Seen]:
        page = self._watching(place)
        try:
            async with asyncio.timeout(timeout_s):
                while not holds(found := await self.seen(place)):
                    page.changed.clear()
                    await page.until(page.changed.is_set)
        except TimeoutError:
            last = "\n".join(str(each) for each in (await self.seen(place))[-8:])
            raise TimeoutError(f"not so within {timeout_s:g} s; the last cards of {place} are\n{last}") from None
        return found

    def _card(self, place: str, drawn: Drawn) -> Card:
        article = drawn.article
        read = self._read.get(article)
        if read is None:
            read = self._read[article] = read_card(article)
        return Card(
            place=place,
            message_id=article["data-id"],
            short=article["data-short"],
            text=read.text,
            buttons=read.buttons,
            edits=int(article["data-version"]),
            clickable=read.clickable,
            forms=read.forms,
            folds=read.folds,
            pending=article["data-pending"] == "1",
            session=drawn.session,
        )

    def is_open(self, message: Seen) -> bool:
        return isinstance(message, Card) and message.pending

    async def becomes(self, message: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        """An approval can be taken back until its agent has started; the page is told of that a moment later."""

        def done(each: Seen) -> bool:
            return each.message_id == message.message_id and text in each.text and not each.buttons

        found = await self.until(message.place, lambda cards: any(map(done, cards)), timeout_s)
        return next(filter(done, found))

    async def whole(self, card: Seen) -> Whole:
        """Its own page has all of it, and there alone can it be approved."""
        assert not any(label.startswith("Approve") for label in card.buttons), card
        browser = self.browser("ana")
        page = await browser.get(f"/console/r/{card.short_id}")
        assert "\u202e" not in page.text
        article = page.tree.one("article")
        drawn = Drawn(article=article, places=(), session="", asked_at=NEVER)
        return Whole(text=action_text(article), card=self._card(card.place, drawn))

    # what people do

    def _start(self, about: Seen, deed: Callable[[], Coroutine[Any, Any, str]]) -> str:
        handle = f"deed-{next(self._numbers)}"
        self._deeds[handle] = (asyncio.create_task(deed()), deed)
        self._about[handle] = about
        return handle

    async def press(self, person: Person, message: Seen, button: str) -> str:
        """By the form as it stands on the page that `message` is of, which may be old by now."""
        assert isinstance(message, Card)
        if button in (BECAUSE, MORE) and button in message.buttons:
            return self._start(message, _nothing)
        form, fields = form_with(message, button) if message.forms else await self._unseen_form(message, button)
        return self._start(message, lambda: self.browser(person).deed(form, fields))

    async def _unseen_form(self, message: Seen, button: str) -> tuple[str, list[tuple[str, str]]]:
        """What somebody would send who is offered no form."""
        fields = parse_qsl(await self.token(message, button))
        return "/console/decide", [("csrf", ""), ("id", message.message_id), *fields]

    async def answer(self, tap: str, timeout_s: float = WAIT_S) -> str:
        """What is told, without the request's id before it. Somebody whose page says nothing reads the card."""
        task, _ = self._deeds[tap]
        about = self._about[tap]
        text = await asyncio.wait_for(asyncio.shield(task), timeout_s)
        if not text and isinstance(about, Card) and about.forms:
            page = await self.browser("ana").get(f"/console/card/{about.message_id}")
            return read_card(page.tree.one("article")).text
        return text.removeprefix(f"{about.short}: ") if isinstance(about, Card) else text

    async def given_up(self, tap: str, timeout_s: float = WAIT_S) -> bool:
        task, _ = self._deeds[tap]
        await asyncio.wait({task}, timeout=timeout_s)
        return task.done() and isinstance(task.exception(), GONE)

    async def token(self, message: Seen, button: str) -> str:
        """The fields of its form, but for whose page it is and which question it names."""
        assert isinstance(message, Card)
        if message.forms:
            fields = form_with(message, button)[1]
            return urlencode([(name, value) for name, value in fields if name not in ("csrf", "id", "next")])
        await self.browser("ana").enter()
        page = await self.browser("ana").get(f"/console/r/{message.message_id}/record.json")
        digest = json.loads(page.text)["approval"]["digest"]
        return urlencode({"digest": digest, "choice": "deny" if button.startswith("Deny") else "once"})

    async def forge(self, person: Person, message: Seen, token: str) -> str:
        fields = [("csrf", ""), ("id", message.message_id), *parse_qsl(token)]
        return self._start(message, lambda: self.browser(person).deed("/console/decide", fields))

    def is_unknown(self, told: str) -> bool:
        return is_refusal(told)

    async def replay(self, tap: str) -> None:
        """The form is sent once more, as somebody does who loads the page behind it again."""
        _, deed = self._deeds[tap]
        told = await deed()
        assert "changed nothing" in told or "You already" in told, told

    async def impostors(self, card: Seen) -> list[tuple[str, bool]]:
        assert isinstance(card, Card)
        ana, bo, eve = (self.browser(person) for person in PEOPLE)
        nobody = self._other_browser("eve", decides=False)
        for each in (ana, bo, eve):
            await each.enter()
        return [await link_used_twice(nobody), *await false_forms(card, ana, bo, eve)]

    async def type(
        self, person: Person, place: str, text: str, *, reply_to: Seen | None = None, forward: bool = False
    ) -> Seen:
        """There is nothing to write to, so each command is given by the form that means it."""
        assert not forward, "a form cannot be forwarded; that of another log-in is an impostor's"
        verb, *rest = text.removeprefix("/").split(" ")
        about = Seen(place=place, message_id="", text=text)
        if verb == "stop":
            handle = self._start(about, lambda: self._stop(person, place, reply_to))
        elif rest[:1] == ["all"]:
            handle = self._start(about, lambda: self._all(person, verb))
        else:
            wanted = reply_to.short_id if reply_to else rest.pop(0)
            card = reply_to or self._stale(place, wanted)
            handle = self._start(card, lambda: self._one(person, card, wanted, verb, " ".join(rest)))
        return Seen(place=place, message_id=handle, text=text, by_bot=False, said_by=person, command=True)

    def _stale(self, place: str, short_id: str) -> Card:
        """A question as it stood while it waited."""
        shown = [self._card(place, each) for each in self._watching(place).waited.values()]
        (card,) = (each for each in shown if each.short == short_id.upper())
        return card

    async def _one(self, person: Person, card: Seen, wanted: str, verb: str, rest: str) -> str:
        """By the request's own page; one that offers nothing is answered by the form that stood there before."""
        browser = self.browser(person)
        article = (await browser.look(f"/console/r/{wanted}")).one("article")
        now = self._card(card.place, Drawn(article=article, places=(), session="", asked_at=NEVER))
        shown = now if now.forms and now.pending else card
        assert isinstance(shown, Card)
        if not shown.forms:
            action, fields = await self._unseen_form(shown, verb.capitalize())
        elif verb == "deny":
            action, fields = form_with(shown, TYPED, rest) if rest else form_of_choice(shown, "deny")
        else:
            action, fields = form_of_choice(shown, rest or "once")
        return await browser.deed(action, fields)

    async def _all(self, person: Person, verb: str) -> str:
        """By the button for all that the page lists."""
        browser = self.browser(person)
        element = (await browser.look("/console")).one("form", "action", "/console/all")
        assert "hidden" not in element.attributes
        form = form_of(element)
        label = next(each.label for each in form.buttons if each.label.lower().startswith(verb))
        return await browser.deed(form.action, form.pressed(label))

    async def _stop(self, person: Person, place: str, card: Seen | None) -> str:
        """By the page of the sessions: the one that asks on that card, or each that is answered in that place."""
        browser = self.browser(person)
        told = []
        for row in (await browser.look("/console/sessions")).one("tbody").all("tr"):
            form = form_of(row.one("form", "action", "/console/sessions/stop"))
            session = dict(form.hidden)["id"]
            answers = words(row.one("td", "data-label", "come"))
            if (session == card.session) if isinstance(card, Card) else answers == place:
                told.append(await browser.deed(form.action, form.pressed(form.buttons[0].label)))
        return "\n".join(told)

    async def reply(self, message: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        told = await self.answer(message.message_id, timeout_s)
        assert text in told, told
        return Seen(place=message.place, message_id=message.message_id, text=told)

    async def summary(self, command: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        return await self.reply(command, text, timeout_s)

    def stopped(self, session: str) -> str:
        return f"Session {session} is stopped."

    def runs_named(self, told: str) -> int:
        return len(told.partition("not run: ")[2].split(", "))

    async def panel(self, person: Person, card: Seen, text: str) -> Seen:
        """A part of the card that was folded up."""
        assert isinstance(card, Card)
        fold = next((each for each in card.folds if text in each.text), None)
        assert fold is not None, f"nothing of {card.folds} reads {text!r}"
        return msgspec.structs.replace(card, text=fold.text, buttons=fold.buttons)

    async def give_reason(self, person: Person, card: Seen, panel: Seen, reason: str) -> None:
        assert isinstance(panel, Card)
        action, fields = form_with(panel, TYPED, reason)
        tap = self._start(panel, lambda: self.browser(person).deed(action, fields))
        assert "Denied" in await self.answer(tap)

    # troubles

    async def trouble(self, kind: Trouble, place: str, *, times: int = 1) -> None:
        """What can go wrong between the gateway and an open page."""
        if kind == "limited":
            await self._crowd(place)
            return
        page = self._watching(place)
        await asyncio.wait_for(page.until(lambda: page.live), WAIT_S)
        page.spoil.extend([SPOILED[kind]] * times)

    async def _crowd(self, place: str) -> None:
        """A log-in has as many pages open as it may, so that one more is refused its news for a while."""
        browser = self._other_browser("ana")
        await browser.enter()
        url = f"{browser.url}/console/events?kind=touch"
        streams = [await browser.http.get(url) for _ in range(MOST_PAGES)]
        page = self._pages[place] = OpenPage(browser)
        await asyncio.wait_for(page.until(lambda: page.refused > 0), WAIT_S)

        async def make_room() -> None:
            await asyncio.sleep(LIMITED_S)
            for stream in streams:
                stream.close()

        self._tasks.append(asyncio.create_task(make_room()))

    async def slow(self, place: str, seconds: float) -> None:
        """The launcher holds the adapter's call for so long."""
        self.gateway.arm()

        async def let_go() -> None:
            await asyncio.sleep(seconds)
            self.gateway.disarm()

        self._tasks.append(asyncio.create_task(let_go()))

    async def down(self) -> None:
        """Whoever could decide goes away, with the page."""
        assert self._page is not None
        await self._page.aclose()

    async def up(self) -> None:
        """The page is opened again; returns once the gateway counts it as a way to a person."""
        browser = self.browser("ana")
        self._page = OpenPage(browser)
        async with asyncio.timeout(WAIT_S):
            while "the console (open)" not in (await browser.get("/console/sessions")).text:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def odd_updates(self) -> None:
        browser = self.browser("ana")
        await browser.enter()
        assert [what for what, refused in await odd_forms(browser) if not refused] == []

    async def poison(self, card: Seen, text: str) -> None:
        assert isinstance(card, Card)
        action, fields = form_with(card, TYPED, text)
        assert "Something in the gateway went wrong." in await self.browser("bo").deed(action, fields)

    async def settled(self) -> None:
        await asyncio.wait({task for task, _ in self._deeds.values()}, timeout=WAIT_S)

    async def beyond_limits(self) -> int:
        return 0


async def _nothing() -> str:
    """To unfold a part of a card asks the gateway nothing."""
    return ""
