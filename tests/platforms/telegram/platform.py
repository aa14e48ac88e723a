"""The one interface by which tests build a Telegram, act in it and see what people see."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from .control import ControlChannel, RemoteControl
from .model import (
    Answer,
    FaultKind,
    JsonObject,
    LimitReport,
    LimitsMode,
    LogEntry,
    MemberStatus,
    PressState,
    SeenMessage,
    WhereAt,
)

T = TypeVar("T")
WAIT_S = 15.0


class TelegramPlatform:
    """Works alike on a server in this process (`TelegramServer.platform`) and in another (`TelegramPlatform.connect`).

    Every method raises LookupError for what does not exist and ValueError for what makes no sense. Waiting methods
    return as soon as the condition holds and raise TimeoutError, with what is there instead, after `timeout_s`.
    """

    def __init__(self, channel: ControlChannel) -> None:
        self._channel = channel

    @classmethod
    async def connect(cls, url: str) -> TelegramPlatform:
        """Control a server started with its control API; `url` is the Bot API's or the control API's own."""
        first = cls(RemoteControl(url))
        try:
            where = await first.where()
        finally:
            await first.aclose()
        return cls(RemoteControl(where.control_url or url))

    async def aclose(self) -> None:
        """Let go of a server in another process; it goes on running."""
        await self._channel.aclose()

    async def _call(self, result: type[T], name: str, /, **arguments: object) -> T:
        answer = await self._channel.call(name, msgspec.to_builtins(arguments))
        return msgspec.convert(answer, result)

    async def _do(self, name: str, /, **arguments: object) -> None:
        await self._channel.call(name, msgspec.to_builtins(arguments))

    # Addresses

    async def where(self) -> WhereAt:
        """Addresses of the Bot API and of its control API."""
        return await self._call(WhereAt, "where")

    async def base_url(self) -> str:
        """What client libraries call the base address: the token and the method follow it."""
        return f"{(await self.where()).url}/bot"

    async def base_file_url(self) -> str:
        """The same for downloads."""
        return f"{(await self.where()).url}/file/bot"

    # The place

    async def add_bot(
        self, token: str, username: str, *, first_name: str = "Signoff", privacy_mode: bool = True
    ) -> int:
        """A bot with this token; its id. Groups made later include it."""
        return await self._call(
            int, "add_bot", token=token, username=username, first_name=first_name, privacy_mode=privacy_mode
        )

    async def add_user(
        self,
        user_id: int,
        first_name: str,
        *,
        last_name: str | None = None,
        username: str | None = None,
        started: bool = True,
        is_bot: bool = False,
    ) -> int:
        """A person with a private chat of the same id; not `started`, bots may not write first."""
        return await self._call(
            int,
            "add_user",
            user_id=user_id,
            first_name=first_name,
            last_name=last_name,
            username=username,
            started=started,
            is_bot=is_bot,
        )

    async def rename_user(self, user_id: int, first_name: str, *, username: str | None = None) -> None:
        """Change somebody's names, as anybody can at any time."""
        await self._do("rename_user", user_id=user_id, first_name=first_name, username=username)

    async def block_bot(self, user_id: int, *, blocked: bool = True, bot_id: int | None = None) -> None:
        """Let somebody block the bot, or unblock it."""
        await self._do("block_bot", user_id=user_id, blocked=blocked, bot_id=bot_id)

    async def deactivate_user(self, user_id: int) -> None:
        """Delete somebody's account."""
        await self._do("deactivate_user", user_id=user_id)

    async def add_group(
        self,
        chat_id: int,
        title: str,
        *,
        members: Sequence[int] = (),
        admins: Sequence[int] = (),
        supergroup: bool = False,
        forum: bool = False,
        bots: Sequence[int] | None = None,
    ) -> int:
        """A group, supergroup or forum (a supergroup with topics); its id, which is negative."""
        return await self._call(
            int,
            "add_group",
            chat_id=chat_id,
            title=title,
            members=list(members),
            admins=list(admins),
            supergroup=supergroup,
            forum=forum,
            bots=None if bots is None else list(bots),
        )

    async def add_topic(self, chat_id: int, name: str, *, thread_id: int | None = None) -> int:
        """A topic in a forum; its id."""
        return await self._call(int, "add_topic", chat_id=chat_id, name=name, thread_id=thread_id)

    async def close_topic(self, chat_id: int, thread_id: int, *, closed: bool = True) -> None:
        """Close or reopen a topic."""
        await self._do("close_topic", chat_id=chat_id, thread_id=thread_id, closed=closed)

    async def delete_topic(self, chat_id: int, thread_id: int) -> None:
        """Delete a topic and its messages."""
        await self._do("delete_topic", chat_id=chat_id, thread_id=thread_id)

    async def set_member(self, chat_id: int, user_id: int, status: MemberStatus) -> None:
        """Change a person's or a bot's membership in a group."""
        await self._do("set_member", chat_id=chat_id, user_id=user_id, status=status)

    async def remove_chat(self, chat_id: int) -> None:
        """Make a chat vanish."""
        await self._do("remove_chat", chat_id=chat_id)

    async def migrate(self, chat_id: int) -> int:
        """Upgrade a group to a supergroup; its new id."""
        return await self._call(int, "migrate", chat_id=chat_id)

    # What people do

    async def say(
        self,
        user_id: int,
        chat_id: int,
        text: str,
        *,
        reply_to: int | None = None,
        thread_id: int | None = None,
        forward: bool = False,
        edited: bool = False,
        anonymous: bool = False,
        via_bot: int | None = None,
        is_bot: bool = False,
        bot_id: int | None = None,
    ) -> int:
        """Write a message; its id. `Acting.say` explains the odd ways of writing."""
        return await self._call(
            int,
            "say",
            user_id=user_id,
            chat_id=chat_id,
            text=text,
            reply_to=reply_to,
            thread_id=thread_id,
            forward=forward,
            edited=edited,
            anonymous=anonymous,
            via_bot=via_bot,
            is_bot=is_bot,
            bot_id=bot_id,
        )

    async def edit_said(self, user_id: int, chat_id: int, message_id: int, text: str) -> None:
        """Change what somebody wrote; the bot gets `edited_message`."""
        await self._do("edit_said", user_id=user_id, chat_id=chat_id, message_id=message_id, text=text)

    async def press(
        self, user_id: int, chat_id: int, message_id: int, button: str, *, inaccessible: bool = False
    ) -> str:
        """Press a button that is there now, named by label or callback data; the query's id."""
        return await self._call(
            str,
            "press",
            user_id=user_id,
            chat_id=chat_id,
            message_id=message_id,
            button=button,
            inaccessible=inaccessible,
        )

    async def press_forged(
        self,
        user_id: int,
        chat_id: int,
        message_id: int,
        data: str,
        *,
        bot_id: int | None = None,
        inaccessible: bool = False,
    ) -> str:
        """Send a press with any data, from anybody, on any message id; the query's id."""
        return await self._call(
            str,
            "press_forged",
            user_id=user_id,
            chat_id=chat_id,
            message_id=message_id,
            data=data,
            bot_id=bot_id,
            inaccessible=inaccessible,
        )

    async def duplicate_press(self, query_id: str) -> int:
        """The same query in another update; that update's id."""
        return await self._call(int, "duplicate_press", query_id=query_id)

    async def redeliver(self, update_id: int, *, bot_id: int | None = None) -> None:
        """The same update again."""
        await self._do("redeliver", update_id=update_id, bot_id=bot_id)

    async def raw_update(self, update: JsonObject, *, bot_id: int | None = None) -> int:
        """Any object as an update; its id."""
        return await self._call(int, "raw_update", update=update, bot_id=bot_id)

    # What people see

    async def messages(
        self, chat_id: int, thread_id: int | None = None, *, bot_id: int | None = None
    ) -> list[SeenMessage]:
        """A chat's messages in the order they were sent, of all topics or one (1 is General), deleted ones too."""
        return await self._call(list[SeenMessage], "messages", chat_id=chat_id, thread_id=thread_id, bot_id=bot_id)

    async def render_text(self, chat_id: int, thread_id: int | None = None) -> str:
        """A chat as plain text, with buttons drawn."""
        return await self._call(str, "render_text", chat_id=chat_id, thread_id=thread_id)

    async def press_state(self, query_id: str) -> PressState:
        """A press, its update and its answer so far."""
        return await self._call(PressState, "press_state", query_id=query_id)

    async def commands(self, *, bot_id: int | None = None) -> dict[str, list[JsonObject]]:
        """Command menus, by scope (`default` without one)."""
        return await self._call(dict[str, list[JsonObject]], "commands", bot_id=bot_id)

    async def updates(self, *, bot_id: int | None = None) -> list[JsonObject]:
        """A bot's latest updates, oldest first."""
        return await self._call(list[JsonObject], "updates", bot_id=bot_id)

    async def pending_count(self, *, bot_id: int | None = None) -> int:
        """Updates a bot has not confirmed."""
        return await self._call(int, "pending_count", bot_id=bot_id)

    # Waiting

    async def wait_for(
        self,
        chat_id: int,
        predicate: Callable[[list[SeenMessage]], bool],
        *,
        thread_id: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> list[SeenMessage]:
        """The chat's messages as soon as `predicate` holds for them."""
        return await self.until(lambda: self.messages(chat_id, thread_id), predicate, timeout_s=timeout_s)

    async def wait_for_message(
        self,
        chat_id: int,
        predicate: Callable[[SeenMessage], bool],
        *,
        thread_id: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> SeenMessage:
        """The first message in the chat for which `predicate` holds, as soon as there is one."""
        found = await self.wait_for(
            chat_id, lambda messages: any(map(predicate, messages)), thread_id=thread_id, timeout_s=timeout_s
        )
        return next(filter(predicate, found))

    async def wait_for_log(
        self,
        predicate: Callable[[list[LogEntry]], bool],
        *,
        method: str | None = None,
        chat_id: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> list[LogEntry]:
        """The requests (see `log`) as soon as `predicate` holds for them."""
        return await self.until(lambda: self.log(method=method, chat_id=chat_id), predicate, timeout_s=timeout_s)

    async def answer_of(self, query_id: str, timeout_s: float = WAIT_S) -> Answer:
        """What the person who pressed is shown, as soon as it is."""
        state = await self.until(
            lambda: self.press_state(query_id), lambda press: press.answer is not None, timeout_s=timeout_s
        )
        if state.answer is None:
            raise TimeoutError(f"press {query_id} was not answered")
        return state.answer

    async def until(
        self, look: Callable[[], Awaitable[T]], predicate: Callable[[T], bool], *, timeout_s: float = WAIT_S
    ) -> T:
        """What `look` gives once `predicate` holds for it; asked again after each change of the server's state."""
        deadline = time.monotonic() + timeout_s
        revision = await self._changed(-1, 0.0)
        while True:
            seen = await look()
            if predicate(seen):
                return seen
            if time.monotonic() > deadline:
                raise TimeoutError(f"not so within {timeout_s} s; there is {seen!r}")
            revision = await self._changed(revision, max(0.0, deadline - time.monotonic()))

    async def _changed(self, since: int, timeout_s: float) -> int:
        return await self._call(int, "changed", since=since, timeout_s=timeout_s)

    # Faults, limits, time, log

    async def fault(
        self,
        kind: FaultKind,
        *,
        method: str | None = None,
        chat_id: int | None = None,
        times: int = 1,
        retry_after_s: int = 1,
        after_s: float | None = None,
        migrate_to: int | None = None,
    ) -> int:
        """Spoil the next `times` requests of this method and chat (any when not given); the fault's id."""
        return await self._call(
            int,
            "fault",
            kind=kind,
            method=method,
            chat_id=chat_id,
            times=times,
            retry_after_s=retry_after_s,
            after_s=after_s,
            migrate_to=migrate_to,
        )

    async def clear_faults(self) -> None:
        """Disarm all faults."""
        await self._do("clear_faults")

    async def faults_left(self) -> int:
        """Strikes still armed, over all faults."""
        return await self._call(int, "faults_left")

    async def down(self) -> None:
        """Refuse connections and break the open ones; state and port are kept."""
        await self._do("down")

    async def blackhole(self) -> None:
        """Take connections and requests, answer nothing."""
        await self._do("blackhole")

    async def up(self) -> None:
        """End `down` or `blackhole`."""
        await self._do("up")

    async def set_limits(
        self,
        *,
        mode: LimitsMode | None = None,
        overall_per_s: int | None = None,
        chat_per_s: float | None = None,
        chat_burst: int | None = None,
        group_per_minute: int | None = None,
        group_edits_per_minute: int | None = None,
    ) -> None:
        """Change some of the rate limits, for all bots."""
        await self._do(
            "set_limits",
            mode=mode,
            overall_per_s=overall_per_s,
            chat_per_s=chat_per_s,
            chat_burst=chat_burst,
            group_per_minute=group_per_minute,
            group_edits_per_minute=group_edits_per_minute,
        )

    async def limit_report(self, *, bot_id: int | None = None) -> LimitReport:
        """Requests beyond the budgets; `total` is 0 for a bot that kept to them."""
        return await self._call(LimitReport, "limit_report", bot_id=bot_id)

    async def reset_limits(self) -> None:
        """Forget what was spent and counted."""
        await self._do("reset_limits")

    async def advance_clock(self, seconds_s: float) -> None:
        """Let time pass for limits, query ids and message dates."""
        await self._do("advance_clock", seconds_s=seconds_s)

    async def freeze_clock(self, *, frozen: bool = True) -> None:
        """Let the server's time stand still, or run on."""
        await self._do("freeze_clock", frozen=frozen)

    async def log(self, *, method: str | None = None, chat_id: int | None = None) -> list[LogEntry]:
        """Requests in the order they came; getUpdates only when asked for by name."""
        return await self._call(list[LogEntry], "log", method=method, chat_id=chat_id)

    async def clear_log(self) -> None:
        """Forget the requests so far."""
        await self._do("clear_log")
