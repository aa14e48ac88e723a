"""What an adapter hands in, for one profile and platform: taps, typed messages, moved chats, its own small values."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

from signoff.cards import text_card
from signoff.catching_up import CatchUps
from signoff.changes import moving
from signoff.commands import Commands
from signoff.dispatcher import Dispatcher
from signoff.errors import SaveUnknown, StoreError
from signoff.grammar import is_command, parse, reads
from signoff.model import Answer, Change, Destination, Event, Message, Note, Person, Reply, Suggestion, Tap
from signoff.ports import AdapterInfo, Store, Tx
from signoff.taps import Taps
from signoff.wording import safe_name, t

log = logging.getLogger(__name__)

HANDLED = 32
"""Commands of a place that are remembered; more of them are never under way at once in one chat."""
BEGUN = "?"
"""Stands behind the id of a message whose command was begun; no platform has it in its ids."""
UNDONE = 1_000
"""Commands of all places that are remembered as failed with nothing saved."""

_Key = tuple[str, str]


class ProfileInbox:
    """The `Inbox` of one adapter."""

    def __init__(
        self,
        profile: str,
        info: AdapterInfo,
        *,
        store: Store,
        taps: Taps,
        commands: Commands,
        dispatcher: Dispatcher,
        catch_ups: CatchUps | None = None,
    ) -> None:
        self._profile = profile
        self._info = info
        self._store = store
        self._taps = taps
        self._commands = commands
        self._dispatcher = dispatcher
        self._catch_ups = catch_ups
        self._under_way: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()
        """The commands that are being handled, by place and message; one that nobody holds is gone."""
        self._undone: OrderedDict[_Key, None] = OrderedDict()
        """The last ones that failed with nothing saved, whatever the store says of them: it may have been away when
        that was to be noted. They are done when they come again."""

    async def tap(self, tap: Tap) -> Answer:
        """Decide by a button."""
        answer = await self._taps.tap(self._profile, tap, self._info)
        self._alive(tap.destination, tap.person)
        return answer

    def _alive(self, place: Destination, person: Person) -> None:
        """Somebody is there: who may decide is told what happened while nobody was."""
        if self._catch_ups is not None:
            self._catch_ups.alive(self._profile, place, person)

    async def unanswered(self, tap: Tap, answer: Answer) -> None:
        """A tap delivered late: the card shows a decision by itself, a tap that lost is told in the chat, once."""
        if not answer.lost:
            return
        who = safe_name(tap.person.name or tap.person.user_id)
        card = text_card([f"{who}: {answer.text}"])
        await self._dispatcher.say(self._profile, tap.destination, card, reply_to=tap.message_id)

    async def message(self, message: Message) -> Reply | None:
        """A reply to a prompt is a reason, unless it is a command; everything else may be a command.

        Platforms deliver a message again when we stop before confirming it; a command that was handled is not run
        twice, since a repeated stop or approve could reach what was asked in between. Nor is a word that may answer:
        one that was about neither of two questions could be about the one that is left.
        """
        if not message.unattributable and is_command(parse(message.text, addressed=message.addressed)):
            return await self._once(message)
        told = await self._taps.typed_reason(self._profile, message, self._info)
        if told is None and self._commands.may_answer(self._profile, message):
            return await self._once(message)
        if told is None:
            return await self._commands.handle(self._profile, message, self._info)
        if not self._commands.strangers.may_be_answered(self._profile, message):
            return None
        card = text_card([told])
        await self._dispatcher.say(self._profile, message.destination, card, reply_to=message.message_id)
        return None

    async def _once(self, message: Message) -> Reply | None:
        """Handle it unless it was. Delivered again meanwhile, it waits for the first: what that one fails at is done
        then, and nothing is confirmed that could still be lost."""
        key = (str(message.destination), message.message_id)
        lock = self._under_way.setdefault(key, asyncio.Lock())
        async with lock:
            return await self._handled_once(key, message)

    async def _handled_once(self, key: _Key, message: Message) -> Reply | None:
        """That it is begun is noted first: where we stop in the middle, what it did is not done to what came since."""
        known = (await self.load(f"handled:{message.destination}") or "").split()
        if message.message_id in known:
            return None
        again = key in self._undone or reads(parse(message.text, addressed=message.addressed))
        if message.message_id + BEGUN in known and not again:
            reply = await self._answer(message, t("reply.in_doubt"))
            await self._note(message, begun=False)
            return reply
        await self._begin(key, message)
        reply = await self._handle(key, message)
        self._alive(message.destination, message.person)
        try:
            await self._note(message, begun=False)
        except StoreError as error:  # it is done, and delivered again it is in doubt
            log.error("a command of %s is not noted as handled: %s", message.destination, error)
        return reply

    async def _begin(self, key: _Key, message: Message) -> None:
        try:
            await self._note(message, begun=True)
        except StoreError:  # noted or not, nothing was done
            self._failed(key)
            raise
        self._undone.pop(key, None)

    async def _handle(self, key: _Key, message: Message) -> Reply | None:
        """Where nothing could be saved it is not begun: delivered again, it is done. Commits of others that fall into
        it cannot be told from its own, so they leave it in doubt."""
        saved: list[Change] = []
        unsubscribe = self._store.subscribe(
            lambda changes: saved.extend(each for each in changes if each.event.profile == self._profile)
        )
        try:
            return await self._commands.handle(self._profile, message, self._info)
        except SaveUnknown:
            raise
        except Exception as error:
            if not isinstance(error, StoreError):
                log.exception("a command of %s met a defect", message.destination)
            if not saved:
                self._failed(key)
                with suppress(StoreError):
                    await self._note(message, begun=None)
            raise
        finally:
            unsubscribe()

    def _failed(self, key: _Key) -> None:
        self._undone[key] = None
        if len(self._undone) > UNDONE:
            self._undone.popitem(last=False)

    async def _note(self, message: Message, *, begun: bool | None) -> None:
        name = self._name(f"handled:{message.destination}")
        await self._store.transact(partial(_note_handled, name=name, message_id=message.message_id, begun=begun))

    async def _answer(self, message: Message, text: str) -> Reply | None:
        card = text_card([text])
        if message.replies == "all":
            return Reply(card, private=True)
        if self._commands.strangers.may_be_answered(self._profile, message):
            await self._dispatcher.say(self._profile, message.destination, card, reply_to=message.message_id)
        return None

    async def pending(self, place: Destination, person: Person) -> Sequence[Suggestion]:
        """What waits in a place."""
        return await self._commands.pending(self._profile, place, person)

    def approvers(self) -> Sequence[str]:
        """Whose press is to be expected."""
        return self._taps.approvers(self._profile, self._info.platform)

    def groups(self) -> Sequence[str]:
        """Whose membership counts."""
        return self._taps.groups(self._profile, self._info.platform)

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Open cards are posted anew in the chat's new id."""
        change = partial(
            moving.move_chat,
            profile=self._profile,
            platform=platform,
            old_chat=old_chat_id,
            new_chat=new_chat_id,
            told=True,
        )
        await self._store.transact(change)
        self._dispatcher.wake()

    async def left(self, place: Destination, why: str) -> None:
        """What stands there is given up, as after a refusal."""
        await self._dispatcher.left(self._profile, place, why)

    async def load(self, name: str) -> str | None:
        """A small durable value of the adapter's."""
        note = await self._store.get(Note, self._name(name))
        return note.value if note else None

    async def save(self, name: str, value: str) -> None:
        """Keep such a value."""

        def change(tx: Tx) -> None:
            tx.put(Note(name=self._name(name), value=value))

        await self._store.transact(change)

    async def alarm(self, what: str, detail: str) -> None:
        """Log and record what an operator must look at."""
        log.error("%s.%s: %s", self._info.platform, what, detail)

        def change(tx: Tx) -> None:
            data = {"what": what, "detail": detail[:500], "platform": self._info.platform}
            tx.emit(Event(profile=self._profile, type="adapter.alarm", at=tx.now, data=data))

        await self._store.transact(change)

    def _name(self, name: str) -> str:
        return f"adapter:{self._profile}:{self._info.platform}:{name}"


def _note_handled(tx: Tx, name: str, message_id: str, begun: bool | None) -> None:
    """Note that it is begun, that it is done, or, with None, neither. Commands of a place may come at the same time,
    and none may take another off the list."""
    known = tx.get(Note, name)
    others = [word for word in (known.value.split() if known is not None else []) if word.rstrip(BEGUN) != message_id]
    own = [] if begun is None else [message_id + BEGUN if begun else message_id]
    tx.put(Note(name=name, value=" ".join([*others, *own][-HANDLED:])))
