"""How a bot answers an interaction: the callback, follow-ups, and changes of both by the interaction's token."""

from __future__ import annotations

from typing import Any

from tests.platforms.telegram.clock import moment

from .forms import ROW, check_choices, check_message, check_modal, under
from .interactions import Interaction, InteractionBook
from .messaging import Messenger, NewFile, Origin
from .model import Answer, AnswerKind, JsonObject, SeenField, SeenModal
from .refusal import Refused, coded, invalid
from .shapes import is_ephemeral, message_json, seen
from .world import Channel, StoredMessage, World

MESSAGE, DEFERRED, DEFERRED_UPDATE, UPDATE, CHOICES, MODAL = 4, 5, 6, 7, 8, 9
FITTING: dict[str, frozenset[int]] = {
    "command": frozenset({MESSAGE, DEFERRED, MODAL}),
    "component": frozenset({MESSAGE, DEFERRED, DEFERRED_UPDATE, UPDATE, MODAL}),
    "autocomplete": frozenset({CHOICES}),
    "modal": frozenset({MESSAGE, DEFERRED, DEFERRED_UPDATE, UPDATE}),
}


class Callbacks:
    """Applies answers; what Discord refuses is remembered with its code beside what it took."""

    def __init__(self, world: World, book: InteractionBook, messenger: Messenger) -> None:
        self._world = world
        self._book = book
        self._messenger = messenger

    def callback(
        self, interaction_id: int, token: str, body: JsonObject, files: list[NewFile], *, over_http: bool = False
    ) -> JsonObject:
        """The first answer; the body of `with_response`. Refused 10062 (unknown, late), 40060 (a second), 50035."""
        interaction = self._book.find(interaction_id)
        if interaction is None or interaction.token != token:
            raise coded(10062)
        try:
            return self._callback(interaction, body, files, over_http)
        except Refused as refused:
            data = body.get("data")
            text = str((data if isinstance(data, dict) else {}).get("content") or "")
            self._note(interaction, _kind_of(body.get("type")), text=text, refused=refused.code, over_http=over_http)
            raise
        finally:
            self._world.changes.bump()

    def _callback(
        self, interaction: Interaction, body: JsonObject, files: list[NewFile], over_http: bool
    ) -> JsonObject:
        if interaction.acknowledged_at is not None:
            raise coded(40060)
        if self._book.late(interaction):
            raise coded(10062)
        kind = body.get("type")
        fitting = FITTING[interaction.kind]
        if kind not in fitting or (kind in (DEFERRED_UPDATE, UPDATE) and interaction.message is None):
            message = f"Value must be one of {{{', '.join(map(str, sorted(fitting)))}}}."
            raise invalid(("type",), "BASE_TYPE_CHOICES", message)
        data = body.get("data") or {}
        self._apply(interaction, int(kind), data, files, over_http)
        interaction.acknowledged_at = self._world.clock.now()
        interaction.callback_type = int(kind)
        return self._response(interaction, int(kind))

    def _apply(
        self, interaction: Interaction, kind: int, data: JsonObject, files: list[NewFile], over_http: bool
    ) -> None:
        if kind == CHOICES:
            check_choices(data)
            self._note(interaction, "choices", private=True, choices=data["choices"], over_http=over_http)
        elif kind == MODAL:
            check_modal(data)
            interaction.modal = data
            self._note(interaction, "modal", private=True, modal=seen_modal(data), over_http=over_http)
        elif kind == DEFERRED_UPDATE:
            interaction.original = interaction.message
            self._note(interaction, "deferred_update", over_http=over_http)
        elif kind == UPDATE and interaction.message is not None:
            interaction.original = interaction.message
            self._nested(lambda: self._messenger.change(_there(interaction.message), data, files))
            self._note_message(interaction, "update", interaction.message, over_http=over_http)
        else:
            self._nested(lambda: check_message(data, [len(each.content) for each in files]))
            loading = kind == DEFERRED
            message = self._new(interaction, data, files, loading=loading)
            interaction.original = message
            self._note_message(interaction, "deferred" if loading else "message", message, over_http=over_http)

    @staticmethod
    def _nested(act: Any) -> None:
        """Run, with the error tree of a refusal below `data`, as in a callback's body."""
        try:
            act()
        except Refused as refused:
            raise under("data", refused) from None

    def _channel(self, interaction: Interaction) -> Channel:
        channel = self._world.channels.get(interaction.channel_id)
        if channel is None:
            raise coded(10003)
        return channel

    def _new(
        self, interaction: Interaction, data: JsonObject, files: list[NewFile], *, loading: bool = False
    ) -> StoredMessage:
        channel = self._channel(interaction)
        viewer = interaction.user_id if is_ephemeral(int(data.get("flags") or 0)) else None
        if viewer is None:
            self._messenger.wake(channel)
        origin = Origin(
            author_id=interaction.bot_id,
            viewer=viewer,
            interaction_id=interaction.id,
            application_id=interaction.bot_id,
            files=files,
        )
        body = {"flags": data.get("flags")} if loading else data
        return self._messenger.create(channel, body, origin, loading=loading)

    def _response(self, interaction: Interaction, kind: int) -> JsonObject:
        original = interaction.original
        about: JsonObject = {"id": str(interaction.id), "type": interaction.payload["type"]}
        answer: JsonObject = {"interaction": about}
        if kind in (MESSAGE, DEFERRED, UPDATE) and original is not None:
            about["response_message_id"] = str(original.id)
            about["response_message_loading"] = original.loading
            about["response_message_ephemeral"] = original.viewer is not None
            answer["resource"] = {"type": kind, "message": message_json(self._world, original)}
        return answer

    # By token

    def _live(self, token: str) -> Interaction:
        """The interaction of a token that works: acknowledged, not older than 15 minutes."""
        interaction = self._book.by_token(token)
        if interaction is None or interaction.acknowledged_at is None:
            raise coded(10015)
        if self._book.expired(interaction):
            raise coded(50027)
        return interaction

    def follow_up(self, token: str, body: JsonObject, files: list[NewFile]) -> StoredMessage:
        """Another message; the first one after a deferred answer takes that one's place and visibility."""
        interaction = self._live(token)
        check_message(body, [len(each.content) for each in files])
        original = interaction.original
        if interaction.callback_type == DEFERRED and original is not None and original.loading:
            message = self._messenger.change(original, body, files)
        else:
            message = self._new(interaction, body, files)
        self._note_message(interaction, "message", message)
        return message

    def _found(self, token: str, which: str) -> tuple[Interaction, StoredMessage]:
        interaction = self._live(token)
        if which == "@original":
            message = interaction.original
        else:
            stored = self._channel(interaction).messages.get(int(which) if which.isdigit() else 0)
            mine = stored is not None and (stored.interaction_id == interaction.id or stored is interaction.original)
            message = stored if mine else None
        if message is None or message.deleted:
            raise coded(10008)
        return interaction, message

    def look(self, token: str, which: str) -> StoredMessage:
        """`@original` or a follow-up; Refused 10008 when there is none."""
        return self._found(token, which)[1]

    def edit(self, token: str, which: str, body: JsonObject, files: list[NewFile]) -> StoredMessage:
        """Change `@original` (the pressed message after types 6 and 7) or a follow-up."""
        interaction, message = self._found(token, which)
        was_waiting = message.loading or interaction.callback_type == DEFERRED_UPDATE
        self._messenger.change(message, body, files)
        mine = message.interaction_id == interaction.id
        if was_waiting or mine:
            self._note_message(interaction, "message" if mine else "update", message)
        return message

    def delete(self, token: str, which: str) -> None:
        """Delete `@original` or a follow-up."""
        self._messenger.remove(self._found(token, which)[1])

    # Memory

    def _note_message(
        self, interaction: Interaction, kind: AnswerKind, message: StoredMessage | None, *, over_http: bool = False
    ) -> None:
        shown = _there(message)
        text = "" if shown.loading else seen(self._world, shown).text
        private = shown.viewer is not None
        self._note(interaction, kind, private=private, text=text, message_id=shown.id, over_http=over_http)

    def _note(self, interaction: Interaction, kind: AnswerKind, **facts: Any) -> None:
        interaction.answers.append(Answer(kind=kind, at=moment(self._world.clock.now()), **facts))
        self._world.changes.bump()


def _there(message: StoredMessage | None) -> StoredMessage:
    if message is None or message.deleted:
        raise coded(10008)
    return message


def _kind_of(number: object) -> AnswerKind:
    names: dict[object, AnswerKind] = {
        DEFERRED: "deferred",
        DEFERRED_UPDATE: "deferred_update",
        UPDATE: "update",
        CHOICES: "choices",
        MODAL: "modal",
    }
    return names.get(number, "message")


def modal_fields(data: JsonObject) -> list[tuple[JsonObject, JsonObject]]:
    """Each text field of a modal with the row or label it stands in."""
    found: list[tuple[JsonObject, JsonObject]] = []
    for row in data.get("components") or []:
        parts = row.get("components") if row.get("type") == ROW else [row.get("component") or {}]
        found.extend((row, part) for part in parts or [] if part.get("type") == 4)
    return found


def seen_modal(data: JsonObject) -> SeenModal:
    """A modal as a person sees it."""
    return SeenModal(
        title=data["title"],
        custom_id=data["custom_id"],
        fields=[
            SeenField(
                custom_id=part["custom_id"],
                label=part.get("label") or row.get("label") or "",
                paragraph=part.get("style") == 2,
                required=part.get("required", True),
                placeholder=part.get("placeholder"),
                min_length=part.get("min_length") or 0,
                max_length=part.get("max_length") or 4000,
                value=part.get("value"),
            )
            for row, part in modal_fields(data)
        ],
    )
