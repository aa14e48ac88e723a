"""Which modals Slack takes, and what their fields take."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .blocks import VIEW_BLOCKS_MAX, VIEW_CHECKS, check_blocks
from .checking import Findings
from .model import JsonObject
from .refusal import Refused

TITLE_MAX = 24
METADATA_MAX = 3000
CALLBACK_MAX = 255
VIEW_BYTES_MAX = 250_000


def checked_view(view: object) -> JsonObject:
    """A modal; Refused `invalid_arguments` with what is wrong, or `view_too_large`."""
    if not isinstance(view, dict):
        raise Refused("invalid_arguments", messages=["[ERROR] must be a valid view [json-pointer:/view]"])
    if len(msgspec.json.encode(view)) > VIEW_BYTES_MAX:
        raise Refused("view_too_large")
    findings = Findings()
    if view.get("type") != "modal":
        findings.add("must be one of: modal", "/view/type")
    allowed = {"type", "title", "blocks", "close", "submit", "private_metadata", "callback_id", "clear_on_close"}
    findings.known(view, "/view", allowed | {"notify_on_close", "external_id", "submit_disabled"})
    findings.text(view.get("title"), "/view/title", TITLE_MAX, ("plain_text",))
    for name in ("submit", "close"):
        if view.get(name) is not None:
            findings.text(view[name], f"/view/{name}", TITLE_MAX, ("plain_text",))
    for name, longest in (("private_metadata", METADATA_MAX), ("callback_id", CALLBACK_MAX), ("external_id", 255)):
        if name in view:
            findings.string(view[name], f"/view/{name}", longest, shortest=0)
    check_blocks(view.get("blocks"), findings, VIEW_BLOCKS_MAX, VIEW_CHECKS, at="/view/blocks", least=0)
    if input_blocks(view) and not view.get("submit"):
        findings.add("submit is required when an input block is within blocks", "/view/submit")
    if findings.messages:
        raise Refused("invalid_arguments", messages=findings.messages)
    return view


def input_blocks(view: JsonObject) -> list[JsonObject]:
    """The blocks with a field."""
    blocks = view.get("blocks")
    if not isinstance(blocks, list):
        return []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "input"]


def filled(view: JsonObject, values: Mapping[str, str]) -> JsonObject:
    """`state.values` with `values` by block id, action id or label.

    ValueError for a field that stays empty without being optional, a value out of its bounds or one without a field.
    """
    left = dict(values)
    state: JsonObject = {}
    for block in input_blocks(view):
        element = block["element"]
        names = (block["block_id"], element["action_id"], block["label"]["text"])
        name = next((each for each in names if each in left), None)
        value = element.get("initial_value") if name is None else left.pop(name)
        if not value and not block.get("optional"):
            raise ValueError(f"the field {block['label']['text']!r} is empty")
        least, most = element.get("min_length", 0), element.get("max_length", 3000)
        if value and not least <= len(value) <= most:
            raise ValueError(f"the field {block['label']['text']!r} takes {least} to {most} characters")
        state[block["block_id"]] = {element["action_id"]: {"type": element["type"], "value": value or None}}
    if left:
        raise ValueError(f"no fields {sorted(left)}")
    return state
