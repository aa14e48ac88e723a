"""Draws a chat as plain text: for documentation, and to read what went wrong in a failed test."""

from __future__ import annotations

from itertools import groupby

from .model import SeenMessage

_MARKS = {"danger": "!", "success": "+", "primary": "*"}


def draw(title: str, messages: list[SeenMessage], names: dict[int, str], topics: dict[int, str]) -> str:
    """One block a message, oldest first; `names` by account id, `topics` by thread id."""
    blocks = [f"=== {title} ==="]
    blocks += [_block(message, names, topics) for message in messages]
    return "\n\n".join(blocks) + "\n"


def _block(message: SeenMessage, names: dict[int, str], topics: dict[int, str]) -> str:
    lines = [_head(message, names, topics)]
    if message.deleted:
        return lines[0]
    if message.reply_to is not None:
        lines.append(f"> reply to #{message.reply_to}")
    if message.document is not None:
        lines.append(f"[file {message.document.file_name}, {message.document.size_bytes} bytes]")
    if message.text:
        lines.append(message.text)
    lines += [
        "  ".join(f"[{_MARKS.get(button.style or '', '')} {button.label} ]" for button in row)
        for _, row in groupby(message.buttons, key=lambda button: button.row)
    ]
    if message.force_reply:
        lines.append(f"[reply: {message.placeholder or ''}]")
    return "\n".join(lines)


def _head(message: SeenMessage, names: dict[int, str], topics: dict[int, str]) -> str:
    facts = [names.get(message.from_id, str(message.from_id)), f"#{message.message_id}", f"{message.sent_at:%H:%M:%S}"]
    if message.thread_id is not None:
        facts.append(f"in {topics.get(message.thread_id, message.thread_id)}")
    if message.silent:
        facts.append("silent")
    if message.edits:
        facts.append(f"edited x{message.edits}")
    if message.service is not None:
        facts.append(message.service)
    if message.deleted:
        facts.append("deleted")
    return "-- " + " · ".join(facts)
