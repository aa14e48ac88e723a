"""Controls for what people do and see. Names are those of `SlackPlatform`."""

from __future__ import annotations

from .deliveries import Deliveries
from .events import Events
from .looking import seen
from .messaging import Content, Messaging
from .model import EnvelopeKind, EnvelopeState, JsonObject, PressState, SeenMessage, SeenView
from .mrkdwn import typed
from .presses import PressBook
from .viewing import Viewing
from .world import Channel, StoredMessage, World


class Acting:
    """People write, and look at what is there."""

    def __init__(
        self,
        world: World,
        events: Events,
        messaging: Messaging,
        presses: PressBook,
        viewing: Viewing,
        deliveries: Deliveries,
    ) -> None:
        self._world = world
        self._events = events
        self._messaging = messaging
        self._presses = presses
        self._viewing = viewing
        self._deliveries = deliveries

    def say(
        self,
        *,
        user_id: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        edited: bool = False,
        bot_message: bool = False,
        forward: bool = False,
        subtype: str | None = None,
        broadcast: bool = False,
    ) -> str:
        """Write a message; LookupError for an unknown thread, ValueError for a channel the person is not in."""
        place = self._present(user_id, channel)
        if thread_ts is not None:
            self._world.message(channel, thread_ts)
        message = StoredMessage(
            ts=self._world.take_ts(),
            channel=place.id,
            user=user_id,
            sent_at=self._world.clock.now(),
            text=typed(text),
            thread_ts=thread_ts,
            broadcast=broadcast,
            subtype="thread_broadcast" if broadcast else "bot_message" if bot_message else subtype,
            bot_id="BOTHER" if bot_message else None,
        )
        if edited:
            self._say_by_edit(place, message)
        elif forward:
            self._forward(message)
        else:
            self._messaging.keep(message)
        return message.ts

    def _present(self, user_id: str, channel: str) -> Channel:
        place = self._world.channel(channel)
        self._world.person(user_id)
        if user_id not in place.members:
            raise ValueError(f"{user_id} is not in {channel}")
        return place

    def _say_by_edit(self, place: Channel, message: StoredMessage) -> None:
        """Something older becomes this text, of which bots hear only as a change."""
        text, message.text = message.text, "…"
        place.keep(message)
        self._messaging.change(message, Content(text=text, blocks=None))

    def _forward(self, message: StoredMessage) -> None:
        """A shared message: its text is in an attachment, beside a comment that is empty here."""
        message.attachments = [
            {"is_share": True, "is_msg_unfurl": True, "text": message.text, "author_id": message.user}
        ]
        message.text = ""
        self._messaging.keep(message)

    def mention(
        self, *, user_id: str, channel: str, text: str, thread_ts: str | None = None, bot: str | None = None
    ) -> str:
        """Write to the bot by its name."""
        name = self._world.app(bot).bot
        return self.say(user_id=user_id, channel=channel, text=f"<@{name}> {text}", thread_ts=thread_ts)

    def start_thread(self, *, channel: str, user_id: str, text: str = "a topic") -> str:
        """A message to answer to."""
        return self.say(user_id=user_id, channel=channel, text=text)

    def edit_said(self, *, user_id: str, channel: str, ts: str, text: str) -> None:
        """Change what somebody wrote; ValueError for another's message."""
        message = self._world.message(channel, ts)
        if message.user != user_id:
            raise ValueError(f"message {ts} is not by {user_id}")
        self._messaging.change(message, Content(text=typed(text), blocks=None))

    def redeliver(self, *, what: str) -> None:
        """A press, command, submission or envelope once more."""
        self._deliveries.again(self._presses.get(what).envelope_id if self._presses.has(what) else what)

    def raw_event(self, *, event: JsonObject, bot: str | None = None, retry_num: int | None = None) -> str:
        """Any object as an event."""
        envelope = self._events.send(self._world.app(bot), event)
        envelope.retry_num = retry_num
        envelope.retry_reason = None if retry_num is None else "http_timeout"
        return envelope.id

    def raw_interaction(self, *, payload: JsonObject, bot: str | None = None) -> str:
        """Any object as an interaction."""
        return self._deliveries.send(self._world.app(bot), "interactive", payload, about="raw").id

    def messages(self, *, channel: str, thread_ts: str | None = None, as_user: str | None = None) -> list[SeenMessage]:
        """What a channel or thread shows."""
        return [
            seen(self._world, message)
            for message in self._world.channel(channel).messages.values()
            if message.ephemeral_to in (None, as_user)
            and (thread_ts is None or thread_ts in (message.ts, message.in_thread))
        ]

    def views(self, *, user_id: str) -> list[SeenView]:
        """A person's modals."""
        return self._viewing.seen(user_id)

    def press_state(self, *, press_id: str) -> PressState:
        """A press, command or submission."""
        return self._presses.get(press_id).state()

    def envelopes(self, *, kind: EnvelopeKind | None = None, bot: str | None = None) -> list[EnvelopeState]:
        """Deliveries so far."""
        return self._deliveries.states(kind, bot)

    def pending_count(self, *, bot: str | None = None, waiting: bool = False) -> int:
        """Deliveries under way."""
        return self._deliveries.pending(bot, waiting=waiting)
