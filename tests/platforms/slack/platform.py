"""The one interface by which tests build a Slack workspace, act in it and see what people see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .handle import WAIT_S, ServerHandle
from .model import (
    Answer,
    EnvelopeKind,
    EnvelopeState,
    JsonObject,
    PressState,
    SeenMessage,
    SeenView,
)


class SlackPlatform(ServerHandle):
    """Works alike on a server in this process (`SlackServer.platform`) and in another (`SlackPlatform.connect`).

    Every method raises LookupError for what does not exist and ValueError for what makes no sense. Waiting methods
    return as soon as the condition holds and raise TimeoutError, with what is there instead, after `timeout_s`.
    `bot` is a bot's user id, and the only bot's (or first one's) when left out.
    """

    # The place

    async def add_bot(
        self,
        token: str,
        app_token: str = "",
        *,
        signing_secret: str = "",
        name: str = "signoff",
        user_id: str | None = None,
        scopes: Sequence[str] | None = None,
        events: Sequence[str] | None = None,
    ) -> str:
        """An app with a bot; the bot's user id. Without `scopes` it has all, without `events` it hears all.

        `events` are subscriptions such as `app_mention` and `message.channels`.
        """
        return await self._call(
            str,
            "add_bot",
            token=token,
            app_token=app_token,
            signing_secret=signing_secret,
            name=name,
            user_id=user_id,
            scopes=None if scopes is None else list(scopes),
            events=None if events is None else list(events),
        )

    async def add_user(
        self,
        user_id: str,
        name: str,
        *,
        display_name: str | None = None,
        team_id: str | None = None,
        is_restricted: bool = False,
        is_ultra_restricted: bool = False,
        is_stranger: bool = False,
        is_bot: bool = False,
    ) -> str:
        """A person; `team_id` names another workspace, as with Slack Connect. A single-channel guest is ultra."""
        return await self._call(
            str,
            "add_user",
            user_id=user_id,
            name=name,
            display_name=display_name,
            team_id=team_id,
            is_restricted=is_restricted,
            is_ultra_restricted=is_ultra_restricted,
            is_stranger=is_stranger,
            is_bot=is_bot,
        )

    async def rename_user(self, user_id: str, name: str, *, display_name: str | None = None) -> None:
        """Change somebody's names, as anybody can at any time."""
        await self._do("rename_user", user_id=user_id, name=name, display_name=display_name)

    async def deactivate_user(self, user_id: str) -> None:
        """End somebody's account."""
        await self._do("deactivate_user", user_id=user_id)

    async def add_usergroup(self, group: str, name: str, *, users: Sequence[str] = ()) -> str:
        """A user group (`S...`) with these members."""
        return await self._call(str, "add_usergroup", group=group, name=name, users=list(users))

    async def change_usergroup(
        self, group: str, *, users: Sequence[str] | None = None, disabled: bool | None = None
    ) -> None:
        """Give a user group other members, disable or enable it; what is left out stays."""
        await self._do("change_usergroup", group=group, users=None if users is None else list(users), disabled=disabled)

    async def revoke_token(self, token: str, *, revoked: bool = True) -> None:
        """Let a bot or app token fail with `account_inactive`, or work again."""
        await self._do("revoke_token", token=token, revoked=revoked)

    async def add_channel(
        self,
        channel: str,
        name: str,
        *,
        members: Sequence[str] = (),
        private: bool = False,
        bots: Sequence[str] | None = None,
        posting_restricted: bool = False,
    ) -> str:
        """A channel with all bots or those given; `posting_restricted` lets nobody post (`restricted_action`)."""
        return await self._call(
            str,
            "add_channel",
            channel=channel,
            name=name,
            members=list(members),
            private=private,
            bots=None if bots is None else list(bots),
            posting_restricted=posting_restricted,
        )

    async def add_dm(self, user_id: str, *, bot: str | None = None) -> str:
        """The direct conversation of a person and a bot, opened if there is none; its id (`D...`)."""
        return await self._call(str, "add_dm", user_id=user_id, bot=bot)

    async def join(self, channel: str, user_id: str) -> None:
        """Add a person or a bot to a channel."""
        await self._do("join", channel=channel, user_id=user_id)

    async def leave(self, channel: str, user_id: str) -> None:
        """Remove a person or a bot from a channel; a removed bot is told by an event."""
        await self._do("leave", channel=channel, user_id=user_id)

    async def archive(self, channel: str, *, archived: bool = True) -> None:
        """Archive a channel, or bring it back."""
        await self._do("archive", channel=channel, archived=archived)

    async def remove_channel(self, channel: str) -> None:
        """Delete a channel with everything in it."""
        await self._do("remove_channel", channel=channel)

    async def delete_message(self, channel: str, ts: str) -> None:
        """Delete a message by hand."""
        await self._do("delete_message", channel=channel, ts=ts)

    async def start_thread(self, channel: str, user_id: str, text: str = "a topic") -> str:
        """Write a message that others will answer in its thread; its `ts`, which is the thread's id."""
        return await self._call(str, "start_thread", channel=channel, user_id=user_id, text=text)

    async def set_request_url(self, url: str | None, *, bot: str | None = None, verify: bool = False) -> None:
        """Post events, interactions and commands to this address, with no Socket Mode; none: by Socket Mode again.

        With `verify` ValueError when the address does not answer the `url_verification` challenge.
        """
        await self._do("set_request_url", url=url, bot=bot, verify=verify)

    async def post_forged(
        self,
        payload: JsonObject,
        *,
        secret: str | None = None,
        age_s: float = 0.0,
        form: bool = False,
        headers: Mapping[str, str] | None = None,
        bot: str | None = None,
    ) -> int:
        """Post `payload` to the request URL as JSON or as `payload=` form; the HTTP status that came back.

        It is signed with `secret` (the app's own when none, not at all when empty) `age_s` seconds ago.
        """
        return await self._call(
            int,
            "post_forged",
            payload=payload,
            secret=secret,
            age_s=age_s,
            form=form,
            headers=dict(headers or {}),
            bot=bot,
        )

    # What people do

    async def say(
        self,
        user_id: str,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        edited: bool = False,
        bot_message: bool = False,
        forward: bool = False,
        subtype: str | None = None,
        broadcast: bool = False,
    ) -> str:
        """Write a message as typed by hand; its `ts`. Bots get it with `&<>` escaped, but `<@U1>` as it is.

        `edited`: bots get it only as a change of an older message. `bot_message`: an integration wrote it.
        """
        return await self._call(
            str,
            "say",
            user_id=user_id,
            channel=channel,
            text=text,
            thread_ts=thread_ts,
            edited=edited,
            bot_message=bot_message,
            forward=forward,
            subtype=subtype,
            broadcast=broadcast,
        )

    async def mention(
        self, user_id: str, channel: str, text: str, *, thread_ts: str | None = None, bot: str | None = None
    ) -> str:
        """Write to the bot by its name: `<@bot> text`; the message's `ts`."""
        return await self._call(
            str, "mention", user_id=user_id, channel=channel, text=text, thread_ts=thread_ts, bot=bot
        )

    async def edit_said(self, user_id: str, channel: str, ts: str, text: str) -> None:
        """Change what somebody wrote; bots get `message_changed`."""
        await self._do("edit_said", user_id=user_id, channel=channel, ts=ts, text=text)

    async def slash(
        self, user_id: str, channel: str, text: str, *, command: str = "/signoff", bot: str | None = None
    ) -> str:
        """Type a slash command in a channel's main part (Slack has none in threads); its id."""
        return await self._call(str, "slash", user_id=user_id, channel=channel, text=text, command=command, bot=bot)

    async def press(self, user_id: str, channel: str, ts: str, button: str) -> str:
        """Press a button that this person sees, named by label or value, and confirm; the press's id."""
        return await self._call(str, "press", user_id=user_id, channel=channel, ts=ts, button=button)

    async def press_forged(
        self,
        user_id: str,
        channel: str,
        ts: str,
        value: str,
        *,
        action_id: str | None = None,
        block_id: str = "forged",
        bot: str | None = None,
    ) -> str:
        """Send a press with any value, from anybody, on any message; without `action_id` one the message has had."""
        return await self._call(
            str,
            "press_forged",
            user_id=user_id,
            channel=channel,
            ts=ts,
            value=value,
            action_id=action_id,
            block_id=block_id,
            bot=bot,
        )

    async def submit_view(self, user_id: str, view_id: str, values: Mapping[str, str] | None = None) -> str:
        """Send a modal off with `values` by block id, action id or label of its fields; the submission's id.

        ValueError when a field that is not optional is empty or a value too long: the client would not send it.
        """
        return await self._call(str, "submit_view", user_id=user_id, view_id=view_id, values=dict(values or {}))

    async def close_view(self, user_id: str, view_id: str) -> None:
        """Close a modal without sending it."""
        await self._do("close_view", user_id=user_id, view_id=view_id)

    async def redeliver(self, what: str) -> None:
        """The same press, command or submission (by its id) or any envelope (by envelope id) once more."""
        await self._do("redeliver", what=what)

    async def raw_event(self, event: JsonObject, *, bot: str | None = None, retry_num: int | None = None) -> str:
        """Any object as an event; its envelope's id."""
        return await self._call(str, "raw_event", event=event, bot=bot, retry_num=retry_num)

    async def raw_interaction(self, payload: JsonObject, *, bot: str | None = None) -> str:
        """Any object as an interaction's payload; its envelope's id."""
        return await self._call(str, "raw_interaction", payload=payload, bot=bot)

    async def raw_frame(self, text: str, *, bot: str | None = None) -> int:
        """Any text to every open socket, or as the body of a signed request; how many got it."""
        return await self._call(int, "raw_frame", text=text, bot=bot)

    # What people see

    async def messages(
        self, channel: str, thread_ts: str | None = None, *, as_user: str | None = None
    ) -> list[SeenMessage]:
        """A channel's messages in the order they were sent, or a thread's with its first; deleted ones too.

        Ephemeral messages are among them only for `as_user`.
        """
        return await self._call(list[SeenMessage], "messages", channel=channel, thread_ts=thread_ts, as_user=as_user)

    async def views(self, user_id: str) -> list[SeenView]:
        """A person's modals so far, open and closed."""
        return await self._call(list[SeenView], "views", user_id=user_id)

    async def press_state(self, press_id: str) -> PressState:
        """A press, command or submission, its acknowledgement and its answers so far."""
        return await self._call(PressState, "press_state", press_id=press_id)

    async def envelopes(self, *, kind: EnvelopeKind | None = None, bot: str | None = None) -> list[EnvelopeState]:
        """Deliveries so far, oldest first."""
        return await self._call(list[EnvelopeState], "envelopes", kind=kind, bot=bot)

    async def pending_count(self, *, bot: str | None = None, waiting: bool = False) -> int:
        """Deliveries that wait for their acknowledgement now, with `waiting` also events to be tried again later."""
        return await self._call(int, "pending_count", bot=bot, waiting=waiting)

    # Waiting

    async def wait_for(
        self,
        channel: str,
        predicate: Callable[[list[SeenMessage]], bool],
        *,
        thread_ts: str | None = None,
        as_user: str | None = None,
        timeout_s: float = WAIT_S,
    ) -> list[SeenMessage]:
        """The channel's messages as soon as `predicate` holds for them."""
        return await self.until(
            lambda: self.messages(channel, thread_ts, as_user=as_user), predicate, timeout_s=timeout_s
        )

    async def wait_for_message(
        self,
        channel: str,
        predicate: Callable[[SeenMessage], bool],
        *,
        thread_ts: str | None = None,
        as_user: str | None = None,
        timeout_s: float = WAIT_S,
    ) -> SeenMessage:
        """The first message in the channel for which `predicate` holds, as soon as there is one."""
        found = await self.wait_for(
            channel,
            lambda messages: any(map(predicate, messages)),
            thread_ts=thread_ts,
            as_user=as_user,
            timeout_s=timeout_s,
        )
        return next(filter(predicate, found))

    async def answer_of(self, press_id: str, timeout_s: float = WAIT_S) -> Answer:
        """What whoever pressed, typed or submitted is shown first because of it, as soon as it is."""
        state = await self.until(
            lambda: self.press_state(press_id), lambda press: press.answer is not None, timeout_s=timeout_s
        )
        if state.answer is None:
            raise TimeoutError(f"{press_id} was not answered")
        return state.answer
