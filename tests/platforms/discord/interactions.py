"""Interactions: what a bot is told of a press, a command or a dialog, and the book of those not yet forgotten."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from tests.platforms.telegram.clock import moment

from .forms import FILE_MAX_BYTES
from .model import Answer, JsonObject, PressState
from .shapes import ALL_PERMISSIONS, channel_json, member_json, message_json
from .world import BotAccount, Channel, StoredMessage, World

ACKNOWLEDGE_WITHIN_S = 3.0
"""From the press, wherever the time was lost; from Discord's page on receiving interactions."""
TOKEN_LIVES_S = 15 * 60.0
"""How long follow-ups and edits with the interaction's token work; from the same page."""
KEPT = 5_000
Kind = Literal["command", "component", "autocomplete", "modal"]
TYPES: dict[Kind, int] = {"command": 2, "component": 3, "autocomplete": 4, "modal": 5}


@dataclass(kw_only=True)
class Interaction:
    """One interaction with everything that came of it."""

    id: int
    token: str
    bot_id: int
    kind: Kind
    user_id: int
    channel_id: int
    created_at: float
    data: JsonObject
    message: StoredMessage | None = None
    payload: JsonObject = field(default_factory=dict)
    acknowledged_at: float | None = None
    callback_type: int | None = None
    original: StoredMessage | None = None
    modal: JsonObject | None = None
    answers: list[Answer] = field(default_factory=list)
    deliveries: int = 0
    http_status: int | None = None

    @property
    def failed_post(self) -> bool:
        """Whether it was posted and the answer was neither taken nor promised (202)."""
        return self.http_status not in (None, 202)


class InteractionBook:
    """Makes interactions and finds them by id or token; the oldest are forgotten first."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_id: OrderedDict[int, Interaction] = OrderedDict()
        self._by_token: dict[str, Interaction] = {}

    def make(
        self,
        kind: Kind,
        bot: BotAccount,
        user_id: int,
        channel: Channel,
        data: JsonObject,
        message: StoredMessage | None = None,
    ) -> Interaction:
        """A new interaction, not yet sent."""
        number = self._world.new_id()
        made = Interaction(
            id=number,
            token=f"aW50ZXJhY3Rpb246{secrets.token_urlsafe(24)}",
            bot_id=bot.id,
            kind=kind,
            user_id=user_id,
            channel_id=channel.id,
            created_at=self._world.clock.now(),
            data=data,
            message=message,
        )
        made.payload = self._payload(made, channel)
        self._by_id[number] = made
        self._by_token[made.token] = made
        if len(self._by_id) > KEPT:
            _, oldest = self._by_id.popitem(last=False)
            del self._by_token[oldest.token]
        return made

    def get(self, interaction_id: int) -> Interaction:
        """By id; LookupError when unknown."""
        if interaction_id not in self._by_id:
            raise LookupError(f"no interaction {interaction_id}")
        return self._by_id[interaction_id]

    def find(self, interaction_id: int) -> Interaction | None:
        """By id, if known."""
        return self._by_id.get(interaction_id)

    def by_token(self, token: str) -> Interaction | None:
        """By token, if known."""
        return self._by_token.get(token)

    def late(self, interaction: Interaction) -> bool:
        """Whether the three seconds have passed without an answer."""
        waited_s = self._world.clock.now() - interaction.created_at
        return interaction.acknowledged_at is None and waited_s > ACKNOWLEDGE_WITHIN_S

    def expired(self, interaction: Interaction) -> bool:
        """Whether the token is dead."""
        return self._world.clock.now() - interaction.created_at > TOKEN_LIVES_S

    def unanswered(self, bot_id: int) -> list[Interaction]:
        """Those of a bot that went out, may still be acknowledged and are not; a failed post is over at once."""
        waiting = [each for each in self._by_id.values() if each.bot_id == bot_id and each.acknowledged_at is None]
        return [each for each in waiting if each.deliveries and not each.failed_post and not self.late(each)]

    def state(self, interaction: Interaction) -> PressState:
        """As tests see it."""
        acknowledged_at = interaction.acknowledged_at
        return PressState(
            interaction_id=interaction.id,
            kind=interaction.kind,
            user_id=interaction.user_id,
            channel_id=interaction.channel_id,
            created_at=moment(interaction.created_at),
            message_id=None if interaction.message is None else interaction.message.id,
            custom_id=interaction.data.get("custom_id"),
            acknowledged_at=None if acknowledged_at is None else moment(acknowledged_at),
            failed=self.late(interaction),
            deliveries=interaction.deliveries,
            http_status=interaction.http_status,
            answers=interaction.answers,
        )

    def _payload(self, interaction: Interaction, channel: Channel) -> JsonObject:
        """INTERACTION_CREATE's data, the same over HTTP."""
        world, bot_id = self._world, interaction.bot_id
        payload: JsonObject = {
            "id": str(interaction.id),
            "application_id": str(bot_id),
            "type": TYPES[interaction.kind],
            "data": interaction.data,
            "token": interaction.token,
            "version": 1,
            "channel_id": str(channel.id),
            "channel": channel_json(world, channel, for_bot=bot_id),
            "app_permissions": ALL_PERMISSIONS,
            "locale": "en-US",
            "entitlements": [],
            "entitlement_sku_ids": [],
            "attachment_size_limit": FILE_MAX_BYTES,
            "context": 0 if channel.guild_id is not None else 1,
            "authorizing_integration_owners": {"0": str(channel.guild_id or 0)},
        }
        if interaction.message is not None:
            payload["message"] = message_json(world, interaction.message, for_bot=bot_id)
        if channel.guild_id is None:
            return payload | {"user": world.person(interaction.user_id).json()}
        guild = world.guild(channel.guild_id)
        return payload | {
            "guild_id": str(guild.id),
            "guild": {"id": str(guild.id), "locale": "en-US", "features": []},
            "guild_locale": "en-US",
            "member": member_json(world, guild, interaction.user_id),
        }
