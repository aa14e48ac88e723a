"""Which ids are channels, threads and direct chats: asked once each, and learnt from what comes in."""

from __future__ import annotations

from signoff.errors import ChatMoved, SendRefused
from signoff.model import Destination

from ..failures import CallFailed
from ..recent import Recent
from .calls import Calls, Rejected, as_edit_error, read_answer
from .codes import UNKNOWN_CHANNEL
from .wire import DIRECT_KINDS, Channel


class Places:
    """The channels of one bot, as far as they were met."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: Recent[str, Channel] = Recent()
        self._direct: Recent[str, str] = Recent()

    def learn(self, channel: Channel) -> None:
        """Keep what Discord said about a channel."""
        self._known.put(channel.id, channel)
        if channel.type in DIRECT_KINDS and len(channel.recipients) == 1:
            self._direct.put(channel.recipients[0].id, channel.id)

    def is_direct(self, destination: Destination) -> bool:
        """Whether it is known to be a chat with one person. Its id does not tell, so it must have been met before."""
        known = self._known.get(destination.chat_id)
        return known is not None and known.type in DIRECT_KINDS

    async def channel(self, channel_id: str) -> Channel:
        """A channel by its id, from memory or from Discord. Raises `CallFailed`."""
        known = self._known.get(channel_id)
        if known is None:
            known = await self._calls.get(f"/channels/{channel_id}", Channel)
            self.learn(known)
        return known

    async def target(self, destination: Destination) -> str:
        """The id of the channel to write to.

        Raises `ChatMoved` with the direct chat's id where the destination names a person, `SendRefused` where it names
        a thread as if it were a channel (a tap there would come from another place than the card), or nothing.
        """
        wanted = channel_id(destination)
        direct = self._direct.get(destination.chat_id)
        if destination.thread_id is None and direct is not None:
            raise _moved(direct)
        try:
            channel = await self.channel(wanted)
        except Rejected as error:
            if error.code == UNKNOWN_CHANNEL and destination.thread_id is None:
                raise _moved(await self._open_direct(destination.chat_id)) from None
            raise as_edit_error(error) from error
        except CallFailed as error:
            raise as_edit_error(error) from error
        if channel.place != destination:
            raise SendRefused(
                f"{destination} is no place of its own: write {channel.place} instead.", reason="wrong_place"
            )
        return wanted

    async def _open_direct(self, user_id: str) -> str:
        """The direct chat with a person."""
        try:
            answer = await self._calls.call("POST", "/users/@me/channels", {"recipient_id": user_id})
            channel = read_answer(answer, Channel)
        except Rejected as error:
            words = "Discord knows neither a channel nor a person of that id whom the bot may write to."
            raise SendRefused(words, reason="chat_not_found") from error
        except CallFailed as error:
            raise as_edit_error(error) from error
        self.learn(channel)
        self._direct.put(user_id, channel.id)
        return channel.id


def _moved(channel_id: str) -> ChatMoved:
    return ChatMoved(f"The direct chat with this person is channel {channel_id}.", new_chat_id=channel_id)


def channel_id(destination: Destination) -> str:
    """The id of the channel or thread. It becomes part of an address, so anything but digits is refused."""
    for each in (destination.chat_id, destination.thread_id or "0"):
        if not (each.isascii() and each.isdigit() and len(each) <= 20):
            raise SendRefused(f"{destination} is no place on Discord: ids are numbers.", reason="chat_not_found")
    return destination.thread_id or destination.chat_id
