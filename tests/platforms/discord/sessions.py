"""Gateway sessions: what was dispatched, what a resume replays, and the troubles that tests order."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.platforms.telegram.changes import Changes

from .messaging import CONTENT_INTENT
from .model import JsonObject, SeenSession
from .world import BotAccount, World

KEPT_EVENTS = 5_000


@dataclass(kw_only=True)
class Session:
    """One session: it outlives its sockets until it is invalidated."""

    id: str
    bot_id: int
    intents: int
    sequence: int = 0
    sent: int = 0
    events: deque[tuple[int, str, JsonObject]] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    socket: web.WebSocketResponse | None = None
    request: web.Request | None = None
    order: Callable[[int, Any], Awaitable[None]] | None = None
    """Sends an operation on the socket."""
    resumes: int = 0
    heartbeats: int = 0
    alive: bool = True

    def add(self, event: str, data: JsonObject) -> None:
        """Queue a dispatch."""
        self.sequence += 1
        self.events.append((self.sequence, event, data))

    def unsent(self) -> list[tuple[int, str, JsonObject]]:
        """What the present socket has not been sent."""
        return [each for each in self.events if each[0] > self.sent]


@dataclass(kw_only=True)
class Trouble:
    """What goes wrong at the gateway until told otherwise."""

    failing_handshakes: int = 0
    refused_resumes: int = 0
    resumes_closed_with: int | None = None
    held: bool = False
    ready_held: bool = False
    frozen: bool = False
    heartbeats_muted: bool = False
    malformed: list[str] = field(default_factory=list)


class SessionBook:
    """All sessions, and the way by which events reach them."""

    def __init__(self, world: World, changes: Changes) -> None:
        self._world = world
        self.changes = changes
        self.trouble = Trouble()
        self.sessions: dict[str, Session] = {}

    def start(self, bot: BotAccount, intents: int) -> Session:
        """A new session."""
        session = Session(id=secrets.token_hex(16), bot_id=bot.id, intents=intents)
        self.sessions[session.id] = session
        self.changes.bump()
        return session

    def of(self, bot_id: int) -> list[Session]:
        """A bot's sessions that were not invalidated."""
        return [each for each in self.sessions.values() if each.bot_id == bot_id and each.alive]

    def tell(self, bot_id: int, event: str, data: JsonObject, intents: int, bare: JsonObject | None = None) -> int:
        """Dispatch to the sessions with one of these intents (0: to all); how many took it.

        `bare` goes to those without the message content intent.
        """
        told = 0
        for session in self.of(bot_id):
            if intents and not session.intents & intents:
                continue
            whole = bare is None or session.intents & CONTENT_INTENT
            session.add(event, data if whole or bare is None else bare)
            told += 1
        self.changes.bump()
        return told

    def interaction(self, bot_id: int, payload: JsonObject) -> int:
        """Dispatch an interaction, spoiled when a test has ordered that; how many sessions took it."""
        return self.tell(bot_id, "INTERACTION_CREATE", self._spoil(payload), 0)

    def _spoil(self, payload: JsonObject) -> JsonObject:
        for kind in list(self.trouble.malformed):
            if kind == "thread_null" and "message" in payload:
                self.trouble.malformed.remove(kind)
                return payload | {"message": payload["message"] | {"thread": None}}
            if kind == "channel_null":
                self.trouble.malformed.remove(kind)
                return payload | {"channel": None}
            if kind == "token_missing":
                self.trouble.malformed.remove(kind)
                return {key: value for key, value in payload.items() if key != "token"}
        return payload

    def waiting(self, bot_id: int) -> int:
        """Dispatches not sent yet; once a bot has a live socket, those of its lost sessions count no more."""
        sessions = self.of(bot_id)
        connected = [each for each in sessions if each.socket is not None]
        return sum(len(each.unsent()) for each in connected or sessions)

    def seen(self) -> list[SeenSession]:
        """All sessions as tests see them."""
        return [
            SeenSession(
                session_id=each.id,
                bot_id=each.bot_id,
                connected=each.socket is not None,
                sequence=each.sequence,
                waiting=len(each.unsent()),
                resumes=each.resumes,
                heartbeats=each.heartbeats,
                intents=each.intents,
                alive=each.alive,
            )
            for each in self.sessions.values()
        ]
