"""Turns stored messages and modals into what a person sees of them."""

from __future__ import annotations

from tests.platforms.telegram.clock import moment

from .model import JsonObject, SeenFile, SeenMessage
from .mrkdwn import read_mrkdwn
from .visible import buttons_of, read_blocks
from .world import StoredFile, StoredMessage, World


def seen(world: World, message: StoredMessage) -> SeenMessage:
    """The message as it stands now."""
    names = world.names()
    fallback = read_mrkdwn(message.text, names)
    shown = read_blocks(message.blocks, names) if message.blocks else fallback
    pings = shown.pings if shown is fallback else shown.pings + fallback.pings
    shared = "".join(f"\n{read_mrkdwn(str(each.get('text', '')), names).text}" for each in message.attachments)
    return SeenMessage(
        ts=message.ts,
        channel=message.channel,
        user=message.user,
        by_bot=message.bot is not None,
        bot_id=message.bot_id,
        text=(shown.text + shared).strip("\n") if shared else shown.text,
        fallback=fallback.text,
        raw_text=message.text,
        sent_at=moment(message.sent_at),
        blocks=message.blocks,
        buttons=buttons_of(message.blocks),
        links=list(shown.links),
        pings=list(dict.fromkeys(pings)),
        thread_ts=message.in_thread,
        broadcast=message.broadcast,
        ephemeral_to=message.ephemeral_to,
        files=[_seen_file(each) for each in message.files],
        metadata=message.metadata,
        unfurls=message.unfurls,
        deleted=message.deleted,
        edits=message.edits,
        edited_at=None if message.edited_at is None else moment(message.edited_at),
    )


def _seen_file(file: StoredFile) -> SeenFile:
    return SeenFile(
        file_id=file.id, name=file.name, title=file.title, size_bytes=file.size_bytes, content=file.content or b""
    )


def text_of(world: World, text: str, blocks: list[JsonObject]) -> str:
    """What a person reads of a text and blocks."""
    names = world.names()
    return (read_blocks(blocks, names) if blocks else read_mrkdwn(text, names)).text
