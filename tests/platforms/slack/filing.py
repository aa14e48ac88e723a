"""The methods `files.*`: the external upload in three steps, and what a file's shares show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .messaging import Content, Messaging
from .model import JsonObject
from .params import Parameters
from .places import Places
from .refusal import Refused
from .world import App, Channel, StoredFile, World

FILE_MAX_BYTES = 1024 * 1024 * 1024
"""Slack takes files up to 1 GB."""


class Filing:
    """Takes files and shares them."""

    def __init__(self, world: World, places: Places, messaging: Messaging) -> None:
        self.base: Callable[[], str] = str
        """The address uploads go to, known once the server listens."""
        self._world = world
        self._places = places
        self._messaging = messaging

    def get_upload_url(self, app: App, parameters: Parameters) -> JsonObject:
        """files.getUploadURLExternal."""
        name = parameters.needed("filename")
        length = parameters.number("length", 0)
        if not 0 < length <= FILE_MAX_BYTES:
            raise Refused("invalid_arguments", messages=["[ERROR] length must be positive"])
        file = StoredFile(
            id=self._world.take_id("F"),
            name=name,
            title=name,
            size_bytes=length,
            ticket=self._world.take_id("up"),
            owner=app.bot,
            made_at=self._world.clock.now(),
        )
        self._world.files[file.id] = file
        return {"upload_url": f"{self.base()}/upload/v1/{file.ticket}", "file_id": file.id}

    def upload(self, ticket: str, content: bytes) -> bool:
        """The bytes of a file; whether they are taken: once, and as many as were announced."""
        for file in self._world.files.values():
            if file.ticket == ticket and file.content is None and len(content) == file.size_bytes:
                self._world.keep_content(file, content)
                return True
        return False

    def complete(self, app: App, parameters: Parameters) -> JsonObject:
        """files.completeUploadExternal: shares all files in one message for each channel, and does not say in which."""
        files = self._named(app, parameters.json("files"))
        given = parameters.text("channel_id") or parameters.text("channels")
        channels = [self._places.to_write(app, each, open_direct=False) for each in given.split(",") if each]
        thread_ts = parameters.text("thread_ts") or None
        if thread_ts is not None and len(channels) != 1:
            raise Refused("invalid_channel")
        blocks = parameters.json("blocks", "invalid_blocks_format")
        text = parameters.text("initial_comment")
        content = Content.read(Parameters({"text": text} | ({} if blocks is None else {"blocks": blocks})))
        for channel in channels:
            self._share(app, channel, files, content, thread_ts)
        for file in files:
            file.completed = True
        return {"files": [{"id": file.id, "title": file.title} for file in files]}

    def _named(self, app: App, listed: Any) -> list[StoredFile]:
        if not isinstance(listed, list) or not listed:
            raise Refused("invalid_arguments", messages=["[ERROR] missing required field: files"])
        found: list[StoredFile] = []
        for each in listed:
            file = self._world.files.get(str(each.get("id"))) if isinstance(each, dict) else None
            if file is None or file.owner != app.bot or file.content is None or file.completed:
                raise Refused("file_not_found")
            file.title = str(each.get("title") or file.name)
            found.append(file)
        return found

    def _share(
        self, app: App, channel: Channel, files: list[StoredFile], content: Content, thread_ts: str | None
    ) -> None:
        if thread_ts is not None and thread_ts not in channel.messages:
            raise Refused("thread_not_found")
        message = self._messaging.written(app, channel, content, thread_ts=thread_ts)
        message.files, message.subtype = list(files), "file_share"
        for file in files:
            file.shares.append((channel.id, message.ts))
        self._messaging.keep(message)

    def info(self, _app: App, parameters: Parameters) -> JsonObject:
        """files.info."""
        return {"file": self.json(self._file(parameters)), "comments": [], "response_metadata": {"next_cursor": ""}}

    def delete(self, app: App, parameters: Parameters) -> JsonObject:
        """files.delete."""
        file = self._file(parameters)
        if file.owner != app.bot:
            raise Refused("cant_delete_file")
        del self._world.files[file.id]
        return {}

    def _file(self, parameters: Parameters) -> StoredFile:
        file = self._world.files.get(parameters.needed("file", "file_not_found"))
        if file is None:
            raise Refused("file_not_found")
        return file

    def json(self, file: StoredFile) -> JsonObject:
        """The `file` object."""
        shares: dict[str, dict[str, list[JsonObject]]] = {}
        for channel_id, ts in file.shares:
            channel = self._world.channels.get(channel_id)
            if channel is None:
                continue
            message = channel.messages.get(ts)
            share: JsonObject = {"ts": ts, "channel_name": channel.name, "team_id": "", "reply_users": []}
            if message is not None and message.in_thread is not None:
                share["thread_ts"] = message.in_thread
            kind = "public" if channel.kind == "channel" else "private"
            shares.setdefault(kind, {}).setdefault(channel_id, []).append(share)
        ids = [channel for channel, _ in file.shares]
        return {
            "id": file.id,
            "name": file.name,
            "title": file.title,
            "size": file.size_bytes,
            "user": file.owner,
            "created": int(file.made_at),
            "timestamp": int(file.made_at),
            "url_private": f"{self.base()}/files-pri/{file.id}/{file.name}",
            "channels": [each for each in ids if each.startswith("C")],
            "groups": [each for each in ids if each.startswith("G")],
            "ims": [each for each in ids if each.startswith("D")],
            "shares": shares,
        }
