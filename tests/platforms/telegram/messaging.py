"""Bot API methods that put something in front of a person: send, edit, delete, answer."""

from __future__ import annotations

from . import rules
from .access import known_chat, open_chat, own_message, thread_for
from .changes import Changes
from .model import JsonObject
from .params import Parameters, Upload
from .presses import PressBook
from .refusal import NOT_MODIFIED, bad_request
from .world import BotAccount, Chat, StoredFile, StoredMessage, World

DELETE_WITHIN_S = 48 * 3600.0
"""A message can be deleted for two days (deleteMessage)."""
UPLOAD_MAX_BYTES = 50 * 1024 * 1024
"""A bot may upload files of this size (sendDocument)."""


class Messaging:
    """Carries out what is right and refuses the rest; nothing is changed by a refused request."""

    def __init__(self, world: World, presses: PressBook, changes: Changes) -> None:
        self._world = world
        self._presses = presses
        self._changes = changes

    def send_message(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """sendMessage."""
        draft = self._draft(bot, parameters, rules.check_body(parameters.values.get("text", "")), "entities")
        return self._publish(bot, "sendMessage", draft)

    def send_document(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """sendDocument, with an uploaded file or the id of an earlier one."""
        caption = rules.check_text(parameters.values.get("caption", ""), rules.CAPTION_MAX, "message caption")
        upload = parameters.upload("document")
        if upload is not None and not upload.content:
            raise bad_request("file must be non-empty")
        if upload is not None and len(upload.content) > UPLOAD_MAX_BYTES:
            raise bad_request("file is too big")
        known = self._world.files.get(str(parameters.values.get("document", "")))
        if upload is None and known is None:
            raise bad_request("there is no document in the request")
        draft = self._draft(bot, parameters, caption, "caption_entities")
        return self._publish(bot, "sendDocument", draft, upload=upload, document=known)

    def _draft(self, bot: BotAccount, parameters: Parameters, text: str, entities_name: str) -> StoredMessage:
        """The checked message, without an id and not yet in its chat."""
        _refuse_markup_language(parameters)
        entities = rules.check_entities(parameters.parsed(entities_name), text)
        keyboard, other_markup = rules.check_markup(parameters.parsed("reply_markup"))
        preview = parameters.parsed("link_preview_options")
        if preview is not None and not isinstance(preview, dict):
            raise bad_request("object expected as link preview options")
        chat = open_chat(self._world, bot, parameters)
        thread_id = thread_for(chat, parameters.integer("message_thread_id"))
        replied = _replied(chat, parameters)
        if replied is not None and thread_id is None:
            thread_id = replied.thread_id
        return StoredMessage(
            message_id=0,
            chat_id=chat.id,
            sender=bot.person.json(),
            sent_at=self._world.clock.now(),
            text=text,
            bot_id=bot.id,
            entities=entities,
            keyboard=keyboard,
            other_markup=other_markup,
            reply_to=None if replied is None else replied.message_id,
            thread_id=thread_id,
            silent=parameters.flag("disable_notification"),
        )

    def _publish(
        self,
        bot: BotAccount,
        method: str,
        draft: StoredMessage,
        *,
        upload: Upload | None = None,
        document: StoredFile | None = None,
    ) -> JsonObject:
        """Spend the budgets and put the message into its chat."""
        chat = self._world.chats[draft.chat_id]
        bot.limiter.spend(method, chat.id, group=chat.is_group, edit=False)
        if upload is not None:
            document = self._world.store_file(upload.file_name, upload.content)
        draft.document = document
        draft.message_id = chat.take_message_id()
        chat.keep(draft)
        self._changes.bump()
        return self._world.message_json(draft)

    def edit_message_text(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """editMessageText; leaving out the keyboard takes it away."""
        text = rules.check_body(parameters.values.get("text", ""))
        return self._edit(bot, "editMessageText", parameters, text, "entities")

    def edit_message_caption(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """editMessageCaption."""
        caption = rules.check_text(parameters.values.get("caption", ""), rules.CAPTION_MAX, "message caption")
        return self._edit(bot, "editMessageCaption", parameters, caption, "caption_entities")

    def edit_message_reply_markup(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """editMessageReplyMarkup; leaving out the keyboard takes it away."""
        return self._edit(bot, "editMessageReplyMarkup", parameters, None, "")

    def _edit(
        self, bot: BotAccount, method: str, parameters: Parameters, text: str | None, entities_name: str
    ) -> JsonObject:
        _refuse_markup_language(parameters)
        entities = [] if text is None else rules.check_entities(parameters.parsed(entities_name), text)
        keyboard = rules.check_keyboard(parameters.parsed("reply_markup"))
        chat = open_chat(self._world, bot, parameters)
        message_id = parameters.required_integer("message_id", "message identifier is not specified")
        message = own_message(bot, chat, message_id, "message to edit not found")
        if text is None:
            text, entities = message.text, message.entities
        elif (message.document is None) != (method == "editMessageText"):
            what = "text" if method == "editMessageText" else "caption"
            raise bad_request(f"there is no {what} in the message to edit")
        if (text, entities, keyboard) == (message.text, message.entities, message.keyboard):
            raise bad_request(NOT_MODIFIED)
        bot.limiter.spend(method, chat.id, group=chat.is_group, edit=True)
        message.text, message.entities, message.keyboard = text, entities, keyboard
        message.edits += 1
        message.edited_at = self._world.clock.now()
        self._changes.bump()
        return self._world.message_json(message)

    def delete_message(self, bot: BotAccount, parameters: Parameters) -> bool:
        """deleteMessage: its own, or as an administrator anybody's in a group; within two days."""
        chat = known_chat(self._world, bot, parameters)
        message_id = parameters.required_integer("message_id", "message identifier is not specified")
        message = chat.standing(message_id)
        if message is None or (chat.kind == "private" and message.bot_id != bot.id):
            raise bad_request("message to delete not found")
        may = chat.kind == "private" or chat.members.get(bot.id) == "administrator" or message.sender["id"] == bot.id
        if not may or self._world.clock.now() - message.sent_at > DELETE_WITHIN_S:
            raise bad_request("message can't be deleted")
        message.deleted = True
        self._changes.bump()
        return True

    def answer_callback_query(self, bot: BotAccount, parameters: Parameters) -> bool:
        """answerCallbackQuery: once, and soon."""
        text = parameters.text("text", "") or ""
        if len(rules.check_text(text, rules.TEXT_MAX, "answer")) > rules.ANSWER_MAX:
            raise bad_request("MESSAGE_TOO_LONG")
        query_id = str(parameters.values.get("callback_query_id", ""))
        self._presses.answer(bot.id, query_id, text, parameters.flag("show_alert"))
        self._changes.bump()
        return True

    def send_chat_action(self, bot: BotAccount, parameters: Parameters) -> bool:
        """sendChatAction: checked, and only seen in the log."""
        if not parameters.text("action"):
            raise bad_request("wrong parameter action in request")
        chat = open_chat(self._world, bot, parameters)
        thread_for(chat, parameters.integer("message_thread_id"))
        return True


def _replied(chat: Chat, parameters: Parameters) -> StoredMessage | None:
    """The message to reply to; Refused when it is gone, unless the caller allows that."""
    raw = parameters.parsed("reply_parameters")
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise bad_request("object expected as reply parameters")
    message_id = Parameters(raw).required_integer("message_id", "message identifier is not specified")
    message = chat.standing(message_id)
    if message is None and not Parameters(raw).flag("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    return message


def _refuse_markup_language(parameters: Parameters) -> None:
    """HTML and Markdown are not understood here: untrusted text is formatted with entities, which cannot break."""
    if parameters.values.get("parse_mode"):
        raise bad_request("unsupported parse_mode; this server takes entities only")
