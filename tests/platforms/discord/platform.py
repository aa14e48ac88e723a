"""The one interface by which tests build a Discord, act in it and see what people see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .client import WAIT_S
from .model import Answer, JsonObject, LogEntry, PressState, SeenMessage, SeenModal, SeenSession
from .troubles import TroubleClient


class DiscordPlatform(TroubleClient):
    """Works alike on a server in this process (`DiscordServer.platform`) and in another (`DiscordPlatform.connect`).

    Every method raises LookupError for what does not exist and ValueError for what makes no sense. Waiting methods
    return as soon as the condition holds and raise TimeoutError, with what is there instead, after `timeout_s`.
    """

    # Addresses

    async def api_base_url(self) -> str:
        """What discord.py calls `Route.BASE`."""
        return (await self.where()).api_base_url

    async def gateway_url(self) -> str:
        """What discord.py calls `DiscordWebSocket.DEFAULT_GATEWAY`."""
        return (await self.where()).gateway_url

    async def public_key(self, *, bot_id: int | None = None) -> str:
        """The application's public key, in hex."""
        return await self._call(str, "public_key", bot_id=bot_id)

    # The place

    async def add_bot(
        self, token: str, username: str, *, bot_id: int | None = None, content_intent: bool = False
    ) -> int:
        """A bot with this token; its id, which is the application's too. `content_intent` is the privileged intent."""
        return await self._call(
            int, "add_bot", token=token, username=username, bot_id=bot_id, content_intent=content_intent
        )

    async def add_user(
        self, user_id: int, username: str, *, display_name: str | None = None, is_bot: bool = False
    ) -> int:
        """A person, or another bot's account."""
        return await self._call(
            int, "add_user", user_id=user_id, username=username, display_name=display_name, is_bot=is_bot
        )

    async def rename_user(self, user_id: int, username: str, *, display_name: str | None = None) -> None:
        """Change somebody's names, as anybody can at any time."""
        await self._do("rename_user", user_id=user_id, username=username, display_name=display_name)

    async def close_dms(self, user_id: int, *, closed: bool = True) -> None:
        """Let somebody take no direct messages (50007), or take them again."""
        await self._do("close_dms", user_id=user_id, closed=closed)

    async def add_guild(
        self, guild_id: int, name: str, *, members: Sequence[int] = (), bots: Sequence[int] | None = None
    ) -> int:
        """A guild of these members, with all bots or those listed."""
        listed = None if bots is None else list(bots)
        return await self._call(int, "add_guild", guild_id=guild_id, name=name, members=list(members), bots=listed)

    async def add_member(self, guild_id: int, user_id: int) -> None:
        """Let somebody into a guild."""
        await self._do("add_member", guild_id=guild_id, user_id=user_id)

    async def remove_member(self, guild_id: int, user_id: int) -> None:
        """Let somebody leave a guild."""
        await self._do("remove_member", guild_id=guild_id, user_id=user_id)

    async def add_role(self, guild_id: int, role_id: int, name: str, *, members: Sequence[int] = ()) -> int:
        """A role of these members."""
        return await self._call(int, "add_role", guild_id=guild_id, role_id=role_id, name=name, members=list(members))

    async def add_channel(self, guild_id: int, channel_id: int, name: str) -> int:
        """A text channel."""
        return await self._call(int, "add_channel", guild_id=guild_id, channel_id=channel_id, name=name)

    async def add_thread(
        self,
        channel_id: int,
        thread_id: int,
        name: str,
        *,
        archived: bool = False,
        locked: bool = False,
        private: bool = False,
    ) -> int:
        """A thread of a channel; its id is used like a channel's."""
        return await self._call(
            int,
            "add_thread",
            channel_id=channel_id,
            thread_id=thread_id,
            name=name,
            archived=archived,
            locked=locked,
            private=private,
        )

    async def set_thread(self, thread_id: int, *, archived: bool | None = None, locked: bool | None = None) -> None:
        """Archive, unarchive, lock or unlock a thread by hand."""
        await self._do("set_thread", thread_id=thread_id, archived=archived, locked=locked)

    async def thread_state(self, thread_id: int) -> JsonObject:
        """Whether a thread is `archived` and `locked`."""
        return await self._call(JsonObject, "thread_state", thread_id=thread_id)

    async def delete_channel(self, channel_id: int) -> None:
        """Delete a channel with its threads, or a thread."""
        await self._do("delete_channel", channel_id=channel_id)

    async def set_access(self, channel_id: int, *, view: bool = True, send: bool = True) -> None:
        """Take from bots the right to see a channel (50001) or to write there (50013), or give it back."""
        await self._do("set_access", channel_id=channel_id, view=view, send=send)

    async def remove_bot(self, guild_id: int, *, bot_id: int | None = None) -> None:
        """Throw the bot out of a guild."""
        await self._do("remove_bot", guild_id=guild_id, bot_id=bot_id)

    async def invite_bot(self, guild_id: int, *, bot_id: int | None = None) -> None:
        """Let the bot into a guild again."""
        await self._do("invite_bot", guild_id=guild_id, bot_id=bot_id)

    async def dm(self, user_id: int, *, bot_id: int | None = None) -> int:
        """The direct chat of a person and the bot; its channel id."""
        return await self._call(int, "dm", user_id=user_id, bot_id=bot_id)

    async def delete_message(self, channel_id: int, message_id: int) -> None:
        """Delete any message by hand."""
        await self._do("delete_message", channel_id=channel_id, message_id=message_id)

    async def commands(self, guild_id: int | None = None, *, bot_id: int | None = None) -> list[JsonObject]:
        """The slash commands registered, global or of a guild."""
        return await self._call(list[JsonObject], "commands", guild_id=guild_id, bot_id=bot_id)

    # What people do

    async def say(
        self,
        user_id: int,
        channel_id: int,
        text: str,
        *,
        reply_to: int | None = None,
        mention_bot: bool = False,
        forward: bool = False,
        edited: bool = False,
        webhook: bool = False,
        bot_id: int | None = None,
    ) -> int:
        """Write a message; its id. `Acting.say` explains the odd ways of writing."""
        return await self._call(
            int,
            "say",
            user_id=user_id,
            channel_id=channel_id,
            text=text,
            reply_to=reply_to,
            mention_bot=mention_bot,
            forward=forward,
            edited=edited,
            webhook=webhook,
            bot_id=bot_id,
        )

    async def edit_said(self, user_id: int, channel_id: int, message_id: int, text: str) -> None:
        """Change what somebody wrote; the bot gets MESSAGE_UPDATE."""
        await self._do("edit_said", user_id=user_id, channel_id=channel_id, message_id=message_id, text=text)

    async def press(self, user_id: int, channel_id: int, message_id: int, button: str) -> int:
        """Press a button that is there now, named by label or custom id; the interaction's id."""
        return await self._call(
            int, "press", user_id=user_id, channel_id=channel_id, message_id=message_id, button=button
        )

    async def press_ephemeral(self, interaction_id: int, button: str) -> int:
        """Press a button of the newest private answer to an interaction, as the person who got it."""
        return await self._call(int, "press_ephemeral", interaction_id=interaction_id, button=button)

    async def press_forged(
        self, user_id: int, channel_id: int, message_id: int, custom_id: str, *, bot_id: int | None = None
    ) -> int:
        """Send a press with any custom id, from anybody, on any message id."""
        return await self._call(
            int,
            "press_forged",
            user_id=user_id,
            channel_id=channel_id,
            message_id=message_id,
            custom_id=custom_id,
            bot_id=bot_id,
        )

    async def submit_modal(self, interaction_id: int, values: Mapping[str, str]) -> int:
        """Fill in and send the modal that an interaction opened; the new interaction's id."""
        return await self._call(int, "submit_modal", interaction_id=interaction_id, values=dict(values))

    async def slash(
        self,
        user_id: int,
        channel_id: int,
        command: str,
        options: Mapping[str, Any] | None = None,
        *,
        bot_id: int | None = None,
    ) -> int:
        """Use a registered command, with subcommands after spaces; the interaction's id."""
        return await self._call(
            int,
            "slash",
            user_id=user_id,
            channel_id=channel_id,
            command=command,
            options=dict(options or {}),
            bot_id=bot_id,
        )

    async def autocomplete(
        self,
        user_id: int,
        channel_id: int,
        command: str,
        options: Mapping[str, Any],
        focused: str,
        *,
        bot_id: int | None = None,
    ) -> int:
        """Type into the option `focused` of a command; the text so far is in `options`."""
        return await self._call(
            int,
            "autocomplete",
            user_id=user_id,
            channel_id=channel_id,
            command=command,
            options=dict(options),
            focused=focused,
            bot_id=bot_id,
        )

    async def redeliver(self, interaction_id: int) -> None:
        """Deliver the same interaction once more."""
        await self._do("redeliver", interaction_id=interaction_id)

    # What people see

    async def messages(self, channel_id: int, *, viewer: int | None = None) -> list[SeenMessage]:
        """A channel's messages in order, deleted ones too; ephemeral ones only for their `viewer`."""
        return await self._call(list[SeenMessage], "messages", channel_id=channel_id, viewer=viewer)

    async def press_state(self, interaction_id: int) -> PressState:
        """An interaction and what came of it so far."""
        return await self._call(PressState, "press_state", interaction_id=interaction_id)

    async def answers(self, interaction_id: int) -> list[Answer]:
        """Everything a bot answered to an interaction, refused attempts too."""
        return await self._call(list[Answer], "answers", interaction_id=interaction_id)

    async def payload(self, interaction_id: int) -> JsonObject:
        """An interaction as the bot gets it."""
        return await self._call(JsonObject, "payload", interaction_id=interaction_id)

    async def pending_count(self, *, bot_id: int | None = None) -> int:
        """Interactions that may still be acknowledged and are not, and gateway dispatches not sent yet."""
        return await self._call(int, "pending_count", bot_id=bot_id)

    async def answer_of(self, interaction_id: int, timeout_s: float = WAIT_S) -> Answer:
        """The first thing that was shown in answer to an interaction: a message, an update, a modal or choices."""
        return await self._first(interaction_id, _shown, timeout_s)

    async def private_answer_of(self, interaction_id: int, timeout_s: float = WAIT_S) -> Answer:
        """The first thing shown in answer that only the person who acted sees."""
        return await self._first(interaction_id, lambda answer: _shown(answer) and answer.private, timeout_s)

    async def modal_of(self, interaction_id: int, timeout_s: float = WAIT_S) -> SeenModal:
        """The modal that an interaction opened."""
        found = await self._first(interaction_id, lambda answer: answer.modal is not None, timeout_s)
        if found.modal is None:
            raise TimeoutError(f"interaction {interaction_id} opened no modal")
        return found.modal

    async def choices_of(self, interaction_id: int, timeout_s: float = WAIT_S) -> list[JsonObject]:
        """What an option was completed with: objects with `name` and `value`."""
        found = await self._first(
            interaction_id, lambda answer: answer.kind == "choices" and answer.refused is None, timeout_s
        )
        return found.choices

    async def _first(self, interaction_id: int, fits: Callable[[Answer], bool], timeout_s: float) -> Answer:
        found = await self.until(
            lambda: self.answers(interaction_id), lambda answers: any(map(fits, answers)), timeout_s=timeout_s
        )
        return next(filter(fits, found))

    # Waiting

    async def wait_for(
        self,
        channel_id: int,
        predicate: Callable[[list[SeenMessage]], bool],
        *,
        viewer: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> list[SeenMessage]:
        """The channel's messages as soon as `predicate` holds for them."""
        return await self.until(lambda: self.messages(channel_id, viewer=viewer), predicate, timeout_s=timeout_s)

    async def wait_for_message(
        self,
        channel_id: int,
        predicate: Callable[[SeenMessage], bool],
        *,
        viewer: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> SeenMessage:
        """The first message in the channel for which `predicate` holds, as soon as there is one."""
        found = await self.wait_for(
            channel_id, lambda messages: any(map(predicate, messages)), viewer=viewer, timeout_s=timeout_s
        )
        return next(filter(predicate, found))

    async def wait_for_log(
        self,
        predicate: Callable[[list[LogEntry]], bool],
        *,
        call: str | None = None,
        channel_id: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> list[LogEntry]:
        """The requests (see `log`) as soon as `predicate` holds for them."""
        return await self.until(lambda: self.log(call=call, channel_id=channel_id), predicate, timeout_s=timeout_s)

    async def wait_for_session(self, count: int = 1, *, timeout_s: float = WAIT_S) -> list[SeenSession]:
        """All sessions as soon as `count` of them are connected."""
        return await self.until(
            self.sessions, lambda seen: sum(each.connected for each in seen) >= count, timeout_s=timeout_s
        )


def _shown(answer: Answer) -> bool:
    return answer.refused is None and answer.kind not in ("deferred", "deferred_update")
