"""What each REST call does, given a request that is read, known and within its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .callbacks import Callbacks
from .commands import check_commands
from .interactions import InteractionBook
from .limits import RateLimiter
from .messaging import GUILDS_INTENT, Messenger
from .model import JsonObject
from .refusal import Refused, coded, invalid, plain
from .routes import Reply, Request
from .shapes import channel_json, guild_json, member_json, message_json
from .world import PRIVATE_THREAD, PUBLIC_THREAD, BotAccount, Channel, Guild, World

OLD_EDIT_S = 3600.0
Verify = Callable[[BotAccount, str], Awaitable[bool]]


class RestApi:
    """Public methods are the calls of `routes.ROUTES`."""

    def __init__(self, world: World, messenger: Messenger, callbacks: Callbacks, book: InteractionBook) -> None:
        self._world = world
        self._messenger = messenger
        self._callbacks = callbacks
        self._book = book
        self.gateway_url = ""
        self.limiters: dict[int, RateLimiter] = {}
        self.verify: Verify | None = None

    async def run(self, request: Request) -> Reply:
        """Do one call; Refused as Discord would."""
        handler: Callable[[Request], Awaitable[Reply]] = getattr(self, request.route.call)
        return await handler(request)

    def channel_of(self, request: Request) -> int | None:
        """The channel a request is about, for faults and logs."""
        if "channel_id" in request.arguments:
            return request.number("channel_id")
        if "token" in request.arguments:
            interaction = self._book.by_token(request.arguments["token"])
            return None if interaction is None else interaction.channel_id
        return None

    def _bot(self, request: Request) -> BotAccount:
        if request.bot is None:
            raise plain(401)
        if "application_id" in request.arguments and request.number("application_id") != request.bot.id:
            raise plain(404)
        return request.bot

    def _place(self, request: Request) -> Channel:
        return self._world.api_channel(self._bot(request), request.number("channel_id"))

    # The application

    async def get_me(self, request: Request) -> Reply:
        """The bot's user."""
        bot = self._bot(request)
        extra = {"verified": True, "mfa_enabled": False, "locale": "en-US", "email": None, "flags": 0, "bio": ""}
        return Reply(body=self._world.person(bot.id).json() | extra)

    async def get_user(self, request: Request) -> Reply:
        """Any user."""
        person = self._world.people.get(request.number("user_id"))
        if person is None:
            raise coded(10013)
        return Reply(body=person.json())

    async def get_application(self, request: Request) -> Reply:
        """The application, with its interactions URL."""
        return Reply(body=self._application(self._bot(request)))

    async def get_oauth_application(self, request: Request) -> Reply:
        """The same by its older address."""
        return Reply(body=self._application(self._bot(request)))

    def _application(self, bot: BotAccount) -> JsonObject:
        person = self._world.person(bot.id)
        return {
            "id": str(bot.id),
            "name": person.name,
            "description": bot.description,
            "icon": None,
            "bot_public": False,
            "bot_require_code_grant": False,
            "owner": {"id": "1", "username": "owner", "discriminator": "0", "avatar": None, "global_name": None},
            "verify_key": bot.public_key,
            "team": None,
            "flags": (1 << 19) if bot.content_intent else 0,
            "interactions_endpoint_url": bot.interactions_url,
            "bot": person.json(),
            "rpc_origins": [],
            "tags": [],
        }

    async def edit_application(self, request: Request) -> Reply:
        """Change the description or the interactions URL, which must prove that it checks signatures."""
        bot, body = self._bot(request), request.fields()
        if "interactions_endpoint_url" in body:
            url = body["interactions_endpoint_url"] or None
            if url is not None and self.verify is not None and not await self.verify(bot, url):
                message = "The specified interactions endpoint url could not be verified."
                raise invalid(("interactions_endpoint_url",), "APPLICATION_INTERACTIONS_ENDPOINT_URL_INVALID", message)
            bot.interactions_url = url
        if body.get("description") is not None:
            bot.description = str(body["description"])
        return Reply(body=self._application(bot))

    async def get_commands(self, request: Request) -> Reply:
        """Global commands."""
        return Reply(body=self._bot(request).commands.get(None, []))

    async def put_commands(self, request: Request) -> Reply:
        """Replace the global commands."""
        return self._put(request, None)

    async def get_guild_commands(self, request: Request) -> Reply:
        """One guild's commands."""
        self._guild(request)
        return Reply(body=self._bot(request).commands.get(request.number("guild_id"), []))

    async def put_guild_commands(self, request: Request) -> Reply:
        """Replace one guild's commands."""
        self._guild(request)
        return self._put(request, request.number("guild_id"))

    def _put(self, request: Request, guild_id: int | None) -> Reply:
        bot = self._bot(request)
        check_commands(request.body)
        known = {each["name"]: each["id"] for each in bot.commands.get(guild_id, [])}
        bot.commands[guild_id] = [
            {"type": 1, "options": [], "default_member_permissions": None, "nsfw": False, "dm_permission": True}
            | {key: value for key, value in command.items() if value is not None}
            | {
                "id": known.get(command["name"]) or str(self._world.new_id()),
                "application_id": str(bot.id),
                "version": str(self._world.new_id()),
            }
            | ({"guild_id": str(guild_id)} if guild_id is not None else {})
            for command in request.body
        ]
        return Reply(body=bot.commands[guild_id])

    async def get_gateway(self, request: Request) -> Reply:
        """Where the gateway is."""
        return Reply(body={"url": self.gateway_url})

    async def get_gateway_bot(self, request: Request) -> Reply:
        """The same, with how many sessions may begin today."""
        limit = {"total": 1000, "remaining": 1000, "reset_after": 86_400_000, "max_concurrency": 1}
        return Reply(body={"url": self.gateway_url, "shards": 1, "session_start_limit": limit})

    # Places

    def _guild(self, request: Request) -> Guild:
        guild = self._world.guilds.get(request.number("guild_id"))
        if guild is None:
            raise coded(10004)
        if self._bot(request).id not in guild.bots:
            raise coded(50001)
        return guild

    async def get_guild(self, request: Request) -> Reply:
        """A guild the bot is in."""
        return Reply(body=guild_json(self._world, self._guild(request), self._bot(request)))

    async def get_member(self, request: Request) -> Reply:
        """A member of a guild the bot is in."""
        guild, user_id = self._guild(request), request.number("user_id")
        if user_id not in guild.members and user_id not in guild.bots:
            raise Refused(404, {"message": "Unknown Member", "code": 10007})
        return Reply(body=member_json(self._world, guild, user_id))

    async def create_dm(self, request: Request) -> Reply:
        """The direct chat with a user; it opens even when the user takes no messages."""
        bot = self._bot(request)
        wanted = str(request.fields().get("recipient_id") or "")
        if not wanted.isdigit() or int(wanted) not in self._world.people or int(wanted) == bot.id:
            raise invalid(("recipient_id",), "CHANNEL_RECIPIENT_INVALID", "Invalid recipient(s)")
        return Reply(body=channel_json(self._world, self._world.dm_of(int(wanted), bot.id), for_bot=bot.id))

    async def get_channel(self, request: Request) -> Reply:
        """A channel, thread or direct chat."""
        return Reply(body=channel_json(self._world, self._place(request), for_bot=self._bot(request).id))

    async def edit_channel(self, request: Request) -> Reply:
        """Rename; archive, unarchive, lock a thread."""
        channel, body = self._place(request), request.fields()
        if channel.is_thread and channel.archived and body.get("archived", True):
            raise coded(50083)
        channel.name = str(body.get("name") or channel.name)
        if channel.is_thread:
            channel.archived = bool(body.get("archived", channel.archived))
            channel.locked = bool(body.get("locked", channel.locked))
        shape = channel_json(self._world, channel)
        event = "THREAD_UPDATE" if channel.is_thread else "CHANNEL_UPDATE"
        self._messenger.tell_all(channel, event, shape, GUILDS_INTENT)
        return Reply(body=shape)

    async def delete_channel(self, request: Request) -> Reply:
        """Delete a channel or thread."""
        channel = self._place(request)
        shape = channel_json(self._world, channel)
        event = "THREAD_DELETE" if channel.is_thread else "CHANNEL_DELETE"
        self._messenger.tell_all(channel, event, shape, GUILDS_INTENT)
        del self._world.channels[channel.id]
        return Reply(body=shape)

    async def create_thread(self, request: Request) -> Reply:
        """A thread without a message; private unless type 11 is asked for."""
        kind = request.fields().get("type") or PRIVATE_THREAD
        return self._thread(request, self._world.new_id(), PUBLIC_THREAD if kind == PUBLIC_THREAD else PRIVATE_THREAD)

    async def create_message_thread(self, request: Request) -> Reply:
        """A thread on a message; it has that message's id."""
        message = self._world.api_message(self._place(request), request.number("message_id"))
        if message.id in self._world.channels:
            raise Refused(400, {"message": "A thread has already been created for this message", "code": 160004})
        return self._thread(request, message.id, PUBLIC_THREAD)

    def _thread(self, request: Request, thread_id: int, kind: int) -> Reply:
        parent, name = self._place(request), str(request.fields().get("name") or "")
        if parent.kind != 0:
            raise Refused(400, {"message": "Cannot execute action on this channel type", "code": 50024})
        if not 1 <= len(name) <= 100:
            raise invalid(("name",), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
        thread = Channel(id=thread_id, kind=kind, name=name, guild_id=parent.guild_id, parent_id=parent.id)
        self._world.channels[thread.id] = thread
        shape = channel_json(self._world, thread)
        self._messenger.tell_all(thread, "THREAD_CREATE", shape | {"newly_created": True}, GUILDS_INTENT)
        return Reply(status=201, body=shape)

    # Messages

    async def create_message(self, request: Request) -> Reply:
        """Post."""
        bot = self._bot(request)
        message = self._messenger.post(bot, self._place(request), request.fields(), request.files)
        return Reply(body=message_json(self._world, message, for_bot=bot.id))

    async def get_message(self, request: Request) -> Reply:
        """One message."""
        message = self._world.api_message(self._place(request), request.number("message_id"))
        return Reply(body=message_json(self._world, message))

    async def get_messages(self, request: Request) -> Reply:
        """The latest messages, newest first; `before`, `after` and `limit` (50, at most 100) narrow them."""
        standing = [each for each in self._place(request).messages.values() if not each.deleted and each.viewer is None]
        limit = min(100, int(request.query.get("limit", 50)))
        if "after" in request.query:
            found = [each for each in standing if each.id > int(request.query["after"])][:limit]
        else:
            before = int(request.query.get("before", 1 << 63))
            found = [each for each in standing if each.id < before][-limit:]
        return Reply(body=[message_json(self._world, each) for each in reversed(found)])

    async def edit_message(self, request: Request) -> Reply:
        """Change one's own message; in an archived thread never, and old ones seldom (30046)."""
        channel, bot = self._place(request), self._bot(request)
        message = self._world.api_message(channel, request.number("message_id"))
        if message.author_id != bot.id:
            raise coded(50005)
        if channel.archived:
            raise coded(50083)
        if self._world.clock.now() - message.sent_at > OLD_EDIT_S:
            self.limiters[bot.id].spend_old_edit(channel.id)
        self._messenger.change(message, request.fields(), request.files)
        return Reply(body=message_json(self._world, message, for_bot=bot.id))

    async def delete_message(self, request: Request) -> Reply:
        """Delete one's own message."""
        channel, bot = self._place(request), self._bot(request)
        message = self._world.api_message(channel, request.number("message_id"))
        if channel.archived:
            raise coded(50083)
        if message.author_id != bot.id:
            raise coded(50013)
        self._messenger.remove(message)
        return Reply(status=204)

    # Interactions

    async def callback(self, request: Request) -> Reply:
        """Answer an interaction."""
        answer = self._callbacks.callback(
            request.number("interaction_id"), request.arguments["token"], request.fields(), request.files
        )
        if request.query.get("with_response", "").lower() in ("1", "true"):
            return Reply(body=answer)
        return Reply(status=204)

    async def create_followup(self, request: Request) -> Reply:
        """Another message for an interaction."""
        message = self._callbacks.follow_up(request.arguments["token"], request.fields(), request.files)
        return Reply(body=message_json(self._world, message))

    async def get_followup(self, request: Request) -> Reply:
        """One message of an interaction."""
        return Reply(body=message_json(self._world, self._callbacks.look(*_which(request))))

    async def edit_followup(self, request: Request) -> Reply:
        """Change one message of an interaction."""
        message = self._callbacks.edit(*_which(request), request.fields(), request.files)
        return Reply(body=message_json(self._world, message))

    async def delete_followup(self, request: Request) -> Reply:
        """Delete one message of an interaction."""
        self._callbacks.delete(*_which(request))
        return Reply(status=204)


def _which(request: Request) -> tuple[str, str]:
    return request.arguments["token"], request.arguments["which"]
