"""Modals: the methods `views.*`, and what becomes of a submission."""

from __future__ import annotations

from dataclasses import dataclass, field

from .modals import checked_view, filled, input_blocks
from .model import JsonObject, SeenView
from .params import Parameters
from .presses import Press, PressBook
from .refusal import Refused
from .visible import read_blocks, with_ids
from .world import TEAM, App, World

STACK_MAX = 3
"""Views a modal may stack ("Modals")."""


@dataclass(kw_only=True)
class StoredView:
    """A modal that somebody has, or had, before them; `opened_by` is the press whose trigger showed it."""

    id: str
    root_id: str
    bot: str
    user: str
    content: JsonObject
    hash: str
    opened_by: str | None
    previous_id: str | None = None
    open: bool = True
    errors: dict[str, str] = field(default_factory=dict)


class Viewing:
    """All modals."""

    def __init__(self, world: World, presses: PressBook) -> None:
        self._world = world
        self._presses = presses
        self._views: dict[str, StoredView] = {}

    def open(self, app: App, parameters: Parameters) -> JsonObject:
        """views.open."""
        content = checked_view(parameters.json("view"))
        press = self._presses.by_trigger(app.bot, self._trigger(parameters))
        return self._shown(self._add(app.bot, press, content, previous=None))

    def push(self, app: App, parameters: Parameters) -> JsonObject:
        """views.push."""
        content = checked_view(parameters.json("view"))
        press = self._presses.by_trigger(app.bot, self._trigger(parameters))
        previous = self._views.get(press.view_id or "")
        if previous is None or not previous.open:
            raise Refused("not_found")
        if len(self._stack(previous)) >= STACK_MAX:
            raise Refused("push_limit_reached")
        return self._shown(self._add(app.bot, press, content, previous=previous))

    def _trigger(self, parameters: Parameters) -> str:
        return parameters.text("trigger_id") or parameters.needed("interactivity_pointer")

    def update(self, app: App, parameters: Parameters) -> JsonObject:
        """views.update, by id or external id."""
        content = checked_view(parameters.json("view"))
        wanted = parameters.text("external_id")
        view = self._views.get(parameters.text("view_id"))
        if view is None and wanted:
            view = next((each for each in self._views.values() if each.content.get("external_id") == wanted), None)
        if view is None or view.bot != app.bot or not view.open:
            raise Refused("not_found")
        if parameters.text("hash", view.hash) != view.hash:
            raise Refused("hash_conflict")
        self._replace(view, content)
        return self._shown(view)

    def _add(self, bot: str, press: Press, content: JsonObject, previous: StoredView | None) -> StoredView:
        view_id = self._world.take_id("V")
        view = StoredView(
            id=view_id,
            root_id=view_id if previous is None else previous.root_id,
            bot=bot,
            user=press.user,
            content=content | {"blocks": with_ids(content["blocks"])},
            hash=f"{self._world.take_ts()}.hash",
            opened_by=press.id,
            previous_id=None if previous is None else previous.id,
        )
        self._views[view.id] = view
        title = f"{content['title']['text']}\n{read_blocks(view.content['blocks'], self._world.names()).text}"
        self._presses.answered(press, "modal", title, view_id=view.id)
        return view

    def _replace(self, view: StoredView, content: JsonObject) -> None:
        view.content = content | {"blocks": with_ids(content["blocks"])}
        view.hash = f"{self._world.take_ts()}.hash"
        view.errors = {}
        self._world.changes.bump()

    def _stack(self, view: StoredView) -> list[StoredView]:
        return [each for each in self._views.values() if each.root_id == view.root_id and each.open]

    def get(self, user: str, view_id: str) -> StoredView:
        """A modal that this person has before them; LookupError otherwise."""
        view = self._views.get(view_id)
        if view is None or view.user != user or not view.open:
            raise LookupError(f"{user} has no view {view_id} open")
        return view

    def seen(self, user: str) -> list[SeenView]:
        """A person's modals so far."""
        return [self._seen(view) for view in self._views.values() if view.user == user]

    def _seen(self, view: StoredView) -> SeenView:
        content = view.content
        submit = content.get("submit")
        return SeenView(
            view_id=view.id,
            user=view.user,
            title=content["title"]["text"],
            text=read_blocks(content["blocks"], self._world.names()).text,
            submit=submit["text"] if isinstance(submit, dict) else None,
            fields=[block["block_id"] for block in input_blocks(content)],
            callback_id=content.get("callback_id", ""),
            private_metadata=content.get("private_metadata", ""),
            view=content,
            open=view.open,
            errors=view.errors,
            opened_by=view.opened_by,
        )

    def submission(self, view: StoredView, values: dict[str, str]) -> JsonObject:
        """The view with the state a submission carries; ValueError for values its fields do not take."""
        return self._json(view) | {"state": {"values": filled(view.content, values)}}

    def close(self, view: StoredView) -> JsonObject | None:
        """Close one; its object when the app wants to know."""
        view.open = False
        self._world.changes.bump()
        return self._json(view) if view.content.get("notify_on_close") else None

    def acknowledged(self, press: Press, payload: JsonObject) -> None:
        """What the acknowledgement of a submission does to its modal."""
        view = self._views.get(press.view_id or "")
        if view is None:
            return
        action = payload.get("response_action")
        try:
            if action == "errors":
                self._note_errors(press, view, payload.get("errors"))
            elif action == "update":
                self._replace(view, checked_view(payload.get("view")))
                self._presses.answered(press, "modal", self._seen(view).text, view_id=view.id)
            elif action == "push":
                self._add(view.bot, press, checked_view(payload.get("view")), previous=view)
            else:
                for each in self._stack(view) if action == "clear" else [view]:
                    each.open = False
                self._presses.answered(press, "closed", "", view_id=view.id)
        except Refused as refused:
            self._presses.answered(press, "error", f"{refused.error}: {'; '.join(refused.messages)}")

    def _note_errors(self, press: Press, view: StoredView, errors: object) -> None:
        """Notes under fields; one under a block that has no field makes the client show a failure."""
        named = {block["block_id"] for block in input_blocks(view.content)}
        if not isinstance(errors, dict) or not errors or not set(errors) <= named:
            self._presses.answered(press, "error", "invalid errors object")
            return
        view.errors = {str(name): str(text) for name, text in errors.items()}
        self._presses.answered(press, "errors", "; ".join(view.errors.values()), view_id=view.id)

    def _shown(self, view: StoredView) -> JsonObject:
        return {"view": self._json(view)}

    def _json(self, view: StoredView) -> JsonObject:
        app = self._world.app(view.bot)
        defaults: JsonObject = {
            "private_metadata": "",
            "callback_id": "",
            "external_id": "",
            "clear_on_close": False,
            "notify_on_close": False,
            "close": None,
            "submit": None,
        }
        return (
            defaults
            | view.content
            | {
                "id": view.id,
                "team_id": TEAM,
                "state": {"values": {}},
                "hash": view.hash,
                "root_view_id": view.root_id,
                "previous_view_id": view.previous_id,
                "app_id": app.app_id,
                "app_installed_team_id": TEAM,
                "bot_id": app.bot_id,
            }
        )
