"""Pages that change by themselves: one stream for each open page, fed by the store's changes.

A page is told what changed, newest state only: many changes of one question that wait for a slow page are one. An open
page of somebody who may decide also counts as a way to a person for every session of its profile.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from aiohttp import web

from signoff.changes.stopping import notifier_key
from signoff.console.places import Where
from signoff.console.reading import Reading, was_asked
from signoff.console.seats import Seat
from signoff.console.troubles import Troubles
from signoff.console.visit import HEADERS
from signoff.errors import StoreError
from signoff.model import ApprovalRequest, Change, Notifier
from signoff.ports import Tx
from signoff.rows import EVERY_SESSION
from signoff.server.core import Core
from signoff.wording import answer_word, t

log = logging.getLogger("signoff.console")

KEEPALIVE_S = 10.0
WRITE_WITHIN_S = 20.0
MOST_STREAMS, MOST_OWN = 512, 32
"""Open pages of one gateway, and of one key, or of one log-in by a link."""
MOST_LOOKING = MOST_STREAMS // 2
"""Pages after which those who only look open no more, so that there is always room for those who decide."""
JUST_ENDED = timedelta(seconds=30)
"""A question that was answered stays so long where it stood."""
GRACE_S = 30.0
CATCH_UP = 2000
"""Events that a page which comes back is told of; after more of them it is loaded anew."""
MOST_COUNTED = 20_000
"""Waiting requests that are counted when the first page of a profile is opened."""
AT_ONCE = 25
"""Questions drawn before other work gets its turn."""

Kind = Literal["cards", "touch"]


class Channel:
    """One open page. `kind`: it shows questions, which are sent drawn; or it is told what changed and asks anew."""

    def __init__(self, seat: Seat, token: str, kind: Kind, where: Where, troubles: str = "") -> None:
        """`troubles`: the platforms that do not work by what the page shows, with commas."""
        self.troubles = troubles
        self.seat = seat
        self.where = where
        self.token = token
        self.kind = kind
        self.dirty: dict[str, bool] = {}
        """Ids of questions that changed, in order; the value says whether it is new."""
        self.kinds: set[str] = set()
        self.seq = 0
        self.anew = False
        self.ended = False
        self._wake = asyncio.Event()

    def told(self, kind: str, seq: int, row: ApprovalRequest | None, *, new: bool) -> None:
        """Something of the profile changed: an event of that kind and number, about that question. One that waits on
        another's card changes that card; a page of its own may show either."""
        self.seq = max(self.seq, seq)
        self.kinds.add(kind)
        if row is not None:
            own = (row.request_id,) if row.leader_id is None or self.kind == "touch" else ()
            for about in (*own, row.leader_id):
                if about is not None:
                    self.dirty[about] = self.dirty.get(about, False) or new
        # A drill stands beside the cards, and is drawn with the page alone.
        self.anew = self.anew or (self.kind == "cards" and kind.startswith("drill."))
        self._wake.set()

    def end(self) -> None:
        """Nothing more is sent."""
        self.ended = True
        self._wake.set()

    def reload(self) -> None:
        """The page is to be loaded anew."""
        self.anew = True
        self._wake.set()

    async def woken(self, timeout_s: float) -> None:
        """Wait until there is something to tell, and at most that long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()


class Live:
    """All open pages of one gateway."""

    def __init__(
        self,
        core: Core,
        reading: Reading,
        own: Callable[[str, str], str],
        troubles: Troubles,
        *,
        keepalive_s: float = KEEPALIVE_S,
    ) -> None:
        """`own` puts a reader's form token into a shared drawing; `troubles` are asked for once in `keepalive_s`."""
        self._core = core
        self._reading = reading
        self._own = own
        self._troubles = troubles
        self.keepalive_s = keepalive_s
        self._open: dict[str, set[Channel]] = {}
        self._waiting: dict[str, set[str]] = {}
        """By profile: the requests that wait, so that every page can say how many."""
        self._ended_meanwhile: dict[str, set[str]] = {}
        self._counting = asyncio.Lock()
        self._ended: dict[str, dict[str, datetime]] = {}
        self._presence: dict[str, asyncio.Task[None]] = {}
        self._name = f"console-{secrets.token_hex(6)}"
        self._unsubscribe = core.store.subscribe(self._heard)

    def __len__(self) -> int:
        return sum(len(channels) for channels in self._open.values())

    async def waiting(self, profile: str) -> int:
        """How many requests wait in a profile, those on another's card included."""
        async with self._counting:
            if profile not in self._waiting:
                await self._count_all(profile)
        return len(self._waiting[profile])

    async def _count_all(self, profile: str) -> None:
        """Count what waits. What ends while it is read is told by the feed, and must not be counted after that."""
        over = self._ended_meanwhile[profile] = set()
        try:
            rows = await self._core.broker.pending(profile, limit=MOST_COUNTED)
            self._waiting[profile] = {row.request_id for row in rows} - over
        finally:
            del self._ended_meanwhile[profile]

    def just_ended(self, profile: str) -> list[str]:
        """The questions that ended within the last 30 s, oldest first."""
        since = self._core.clock.now() - JUST_ENDED
        kept = {name: at for name, at in self._ended.get(profile, {}).items() if at > since}
        self._ended[profile] = kept
        return list(kept)

    def touch(self, row: ApprovalRequest) -> None:
        """Tell the open pages of a change that no event tells of."""
        for channel in self._open.get(row.profile, ()):
            channel.told("touched", channel.seq, row, new=False)

    def close(self) -> None:
        """End every stream."""
        self._unsubscribe()
        for channels in self._open.values():
            for channel in channels:
                channel.end()
        for task in self._presence.values():
            task.cancel()

    def leave(self, seat: Seat) -> None:
        """Somebody logged out: their pages end."""
        for channel in self._open.get(seat.profile, ()):
            if channel.seat.name == seat.name:
                channel.end()

    # --- the feed ----------------------------------------------------------------------------

    def _heard(self, changes: Sequence[Change]) -> None:
        for change in changes:
            event, row = change.event, change.request
            if row is not None:
                self._count(row)
            channels = self._open.get(event.profile)
            if not channels:
                continue
            new = event.type == "approval.requested" and row is not None and row.leader_id is None
            for channel in channels:
                channel.told(event.type, event.seq, row, new=new)
                if event.type == "key.revoked" and event.data.get("key_id") == channel.seat.key_id:
                    channel.end()

    def _count(self, row: ApprovalRequest) -> None:
        known = self._waiting.get(row.profile)
        if row.outcome is None:
            if known is not None:
                known.add(row.request_id)
            return
        if known is not None:
            known.discard(row.request_id)
        elif row.profile in self._ended_meanwhile:
            self._ended_meanwhile[row.profile].add(row.request_id)
        if row.leader_id is None and row.decided_at is not None and was_asked(row):
            ended = self._ended.setdefault(row.profile, {})
            ended.setdefault(row.request_id, row.decided_at)
            while len(ended) > 1000:
                ended.pop(next(iter(ended)))

    # --- one stream --------------------------------------------------------------------------

    def room(self, seat: Seat) -> bool:
        """Whether one more page may be open."""
        own = sum(_owner(channel.seat) == _owner(seat) for channel in self._open.get(seat.profile, ()))
        most = MOST_STREAMS if _decides(seat) else MOST_LOOKING
        return own < MOST_OWN and len(self) < most

    async def serve(
        self, request: web.BaseRequest, channel: Channel, after: int | None, still: Callable[[], object]
    ) -> web.StreamResponse:
        """Send until the page goes, or may no longer look: `still` is awaited to tell."""
        profile = channel.seat.profile
        self._open.setdefault(profile, set()).add(channel)
        try:
            await self._catch_up(channel, after)
            if _decides(channel.seat):
                self._attend(profile)
            return await self._send(request, channel, still)
        finally:
            self._open[profile].discard(channel)

    async def _catch_up(self, channel: Channel, after: int | None) -> None:
        """What happened since the page was drawn."""
        profile = channel.seat.profile
        last = await self._core.store.last_seq(profile)
        if after is None or after == last:
            channel.seq = max(channel.seq, last)
            return
        if after > last or last - after > CATCH_UP:
            channel.seq = last
            channel.reload()
            return
        for event in await self._core.store.events(profile, after, limit=CATCH_UP):
            row = None
            if event.request_id is not None:
                row = await self._reading.get(profile, event.request_id)
            channel.told(event.type, event.seq, row, new=event.type == "approval.requested")

    async def _send(
        self, request: web.BaseRequest, channel: Channel, still: Callable[[], object]
    ) -> web.StreamResponse:
        headers = {**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        response = web.StreamResponse(headers=headers)
        loop = asyncio.get_running_loop()
        ask_at = loop.time() + self.keepalive_s
        try:
            await response.prepare(request)
            # What happened meanwhile is not sent yet: whoever goes on from here again must be told of it then.
            place = b"" if channel.dirty or channel.kinds else b"id: %d\n" % channel.seq
            await _write(response, b"retry: 1000\n%bevent: open\ndata: {}\n\n" % place)
            await self._look(channel)
            while not channel.ended:
                # By the clock, not by how long nothing came: on a busy gateway something always comes.
                if loop.time() >= ask_at:
                    if not await still():  # type: ignore[misc]  # a coroutine
                        break
                    await _write(response, b": alive\n\n")
                    await self._look(channel)
                    ask_at = loop.time() + self.keepalive_s
                if channel.anew:
                    channel.anew = False
                    await _write(response, b"event: reload\ndata: {}\n\n")
                await self._news(response, channel)
                if not channel.dirty and not channel.anew:
                    await channel.woken(ask_at - loop.time())
            await _write(response, b"event: over\ndata: {}\n\n")
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            return response
        return response

    async def _look(self, channel: Channel) -> None:
        """Have a page that names platforms drawn anew when others do not work than it shows."""
        troubles = ",".join(await self._troubles.of(channel.seat.profile))
        if channel.kind == "cards" and troubles != channel.troubles:
            channel.troubles = troubles
            channel.reload()

    async def _news(self, response: web.StreamResponse, channel: Channel) -> None:
        dirty, kinds, seq = channel.dirty, channel.kinds, channel.seq
        if not dirty and not kinds:
            return
        channel.dirty, channel.kinds = {}, set()
        if channel.kind == "touch":
            told = {"ids": list(dirty)[:100], "kinds": sorted(kinds), "count": await self.waiting(channel.seat.profile)}
            await _write(response, b"id: %d\nevent: touch\ndata: %s\n\n" % (seq, msgspec.json.encode(told)))
            return
        for number, (name, new) in enumerate(dirty.items()):
            frame = await self._card(channel, name, new=new)
            if frame:
                await _write(response, frame)
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        count = msgspec.json.encode({"count": await self.waiting(channel.seat.profile)})
        await _write(response, b"id: %d\nevent: count\ndata: %s\n\n" % (seq, count))

    async def _card(self, channel: Channel, name: str, *, new: bool) -> bytes:
        row = await self._reading.get(channel.seat.profile, name)
        if row is None or (row.leader_id is not None and row.outcome is None):
            return b""
        told = {
            "id": row.request_id,
            "short": row.short_id,
            "html": str(self._own(await self._reading.card(row, channel.seat), channel.token)),
            "pending": row.outcome is None,
            "follower": row.leader_id is not None,
            "fits": channel.where.fits(row),
            "new": new and row.outcome is None,
            "severity": row.severity,
            "said": said(row),
        }
        return b"event: card\ndata: %s\n\n" % msgspec.json.encode(told)

    # --- an open console is a way to a person -------------------------------------------------

    def _attend(self, profile: str) -> None:
        task = self._presence.get(profile)
        if task is None or task.done():
            self._presence[profile] = asyncio.create_task(self._attending(profile), name=f"console-open-{profile}")

    async def _attending(self, profile: str) -> None:
        """Keep the notifier of the profile while a page of somebody who may decide is open. It is written as one that
        has gone already and counts for 30 s more, so that it lapses by itself should this process be killed."""
        while any(_decides(channel.seat) for channel in self._open.get(profile, ())):
            try:
                await self._core.store.transact(lambda tx: self._present(tx, profile))
            except StoreError as error:
                log.error("console.presence_not_kept: %s", error)
            except Exception:  # the task's outer edge: a defect may not end what lets an open page count for good
                log.exception("console.presence_not_kept")
            await asyncio.sleep(self.keepalive_s)

    def _present(self, tx: Tx, profile: str) -> None:
        known = tx.get(Notifier, notifier_key(profile, EVERY_SESSION, self._name))
        tx.put(
            Notifier(
                profile=profile,
                session_id=EVERY_SESSION,
                name=self._name,
                attached_at=known.attached_at if known is not None else tx.now,
                gone_at=tx.now + timedelta(seconds=GRACE_S),
            )
        )


def _decides(seat: Seat) -> bool:
    return seat.scope in ("approver", "admin")


def _owner(seat: Seat) -> str:
    """Whose pages count together. A key logs in as often as it likes; a link lets in once."""
    return seat.key_id or seat.name


def said(row: ApprovalRequest) -> str:
    """What a screen reader says of a question that came or ended."""
    if row.outcome is not None:
        return t("console.said.ended", id=row.short_id, outcome=t(f"outcome_word.{answer_word(row)}"))
    severity = t(f"severity.{row.severity}")
    if row.waiters:
        return t("console.said.new_many", severity=severity, id=row.short_id, count=row.waiters + 1)
    return t("console.said.new", severity=severity, id=row.short_id)


async def _write(response: web.StreamResponse, frame: bytes) -> None:
    async with asyncio.timeout(WRITE_WITHIN_S):
        await response.write(frame)
