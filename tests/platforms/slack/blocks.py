"""Which blocks Slack takes in messages and modals."""

from __future__ import annotations

from collections.abc import Callable

from .checking import Findings
from .model import JsonObject
from .refusal import Refused
from .richtext import check_rich_text

MESSAGE_BLOCKS_MAX = 50
VIEW_BLOCKS_MAX = 100
CHARACTERS_MAX = 13_200
"""Characters over all blocks of a message; not documented, found by experiment (slackapi/bolt-js#2509)."""
HEADER_MAX = 150
SECTION_MAX = 3000
FIELD_MAX = 2000
FIELDS_MAX = 10
CONTEXT_MAX = 10
ACTIONS_MAX = 25
LABEL_MAX = 75
VALUE_MAX = 2000
ID_MAX = 255
URL_MAX = 3000
MARKDOWN_MAX = 12_000
CONFIRM = {"title": 100, "text": 300, "confirm": 30, "deny": 30}
INPUT_LABEL_MAX = 2000
PLACEHOLDER_MAX = 150
INPUT_MAX = 3000
SELECTS = ("static_select", "users_select", "conversations_select", "channels_select", "external_select")
OTHER_ELEMENTS = (*SELECTS, *(f"multi_{name}" for name in SELECTS), "overflow", "datepicker", "timepicker",
                  "datetimepicker", "checkboxes", "radio_buttons")  # fmt: skip
"""Interactive elements taken as they are: nobody here presses them."""

Check = Callable[[JsonObject, str, Findings], None]


def checked_message_blocks(blocks: object) -> list[JsonObject]:
    """A message's blocks; Refused `invalid_blocks_format`, `invalid_blocks`, `msg_blocks_too_long`."""
    if not isinstance(blocks, list):
        raise Refused("invalid_blocks_format")
    findings = Findings()
    check_blocks(blocks, findings, MESSAGE_BLOCKS_MAX, MESSAGE_CHECKS)
    if findings.messages:
        raise Refused("invalid_blocks", messages=findings.messages)
    if findings.characters > CHARACTERS_MAX:
        raise Refused("msg_blocks_too_long")
    return blocks


def check_blocks(
    blocks: object, findings: Findings, most: int, checks: dict[str, Check], *, at: str = "/blocks", least: int = 0
) -> None:
    """Check a list of blocks and that no block id comes twice."""
    seen: set[str] = set()
    for index, block in enumerate(findings.items(blocks, at, most, least=least)):
        where = f"{at}/{index}"
        kind = block.get("type")
        check = checks.get(str(kind))
        if check is None:
            findings.add(f"unsupported type: {kind}", f"{where}/type")
            continue
        check(block, where, findings)
        if "block_id" in block and findings.string(block["block_id"], f"{where}/block_id", ID_MAX, counted=False):
            if block["block_id"] in seen:
                findings.add(f"block_id {block['block_id']} already exists", f"{where}/block_id")
            seen.add(block["block_id"])


def _header(block: JsonObject, at: str, findings: Findings) -> None:
    findings.known(block, at, {"type", "block_id", "text", "level"})
    findings.text(block.get("text"), f"{at}/text", HEADER_MAX, ("plain_text",))


def _section(block: JsonObject, at: str, findings: Findings) -> None:
    findings.known(block, at, {"type", "block_id", "text", "fields", "accessory", "expand"})
    if "text" not in block and "fields" not in block:
        findings.add("missing required field: text or fields", at)
    if "text" in block:
        findings.text(block["text"], f"{at}/text", SECTION_MAX)
    if "fields" in block:
        for index, field in enumerate(findings.items(block["fields"], f"{at}/fields", FIELDS_MAX)):
            findings.text(field, f"{at}/fields/{index}", FIELD_MAX)
    if "accessory" in block:
        accessory = block["accessory"]
        if isinstance(accessory, dict):
            _element(accessory, f"{at}/accessory", findings, set())
        else:
            findings.add("must be an object", f"{at}/accessory")


def _context(block: JsonObject, at: str, findings: Findings) -> None:
    findings.known(block, at, {"type", "block_id", "elements"})
    for index, element in enumerate(findings.items(block.get("elements"), f"{at}/elements", CONTEXT_MAX)):
        if element.get("type") == "image":
            _image(element, f"{at}/elements/{index}", findings)
        else:
            findings.text(element, f"{at}/elements/{index}", SECTION_MAX)


def _divider(block: JsonObject, at: str, findings: Findings) -> None:
    findings.known(block, at, {"type", "block_id"})


def _image(block: JsonObject, at: str, findings: Findings) -> None:
    findings.string(block.get("alt_text"), f"{at}/alt_text", 2000)
    if "image_url" not in block and "slack_file" not in block:
        findings.add("missing required field: image_url", at)


def _markdown(block: JsonObject, at: str, findings: Findings) -> None:
    findings.known(block, at, {"type", "block_id", "text"})
    findings.string(block.get("text"), f"{at}/text", MARKDOWN_MAX)


def _actions(block: JsonObject, at: str, findings: Findings) -> None:
    findings.known(block, at, {"type", "block_id", "elements"})
    seen: set[str] = set()
    for index, element in enumerate(findings.items(block.get("elements"), f"{at}/elements", ACTIONS_MAX)):
        _element(element, f"{at}/elements/{index}", findings, seen)


def _element(element: JsonObject, at: str, findings: Findings, seen: set[str]) -> None:
    """An interactive element; `seen` are the action ids of its block so far."""
    kind = element.get("type")
    if kind == "button":
        _button(element, at, findings)
    elif kind == "image" and at.endswith("accessory"):
        _image(element, at, findings)
    elif kind not in OTHER_ELEMENTS:
        findings.add(f"unsupported type: {kind}", f"{at}/type")
    if "action_id" in element and findings.string(element["action_id"], f"{at}/action_id", ID_MAX, counted=False):
        if element["action_id"] in seen:
            findings.add(f"action_id {element['action_id']} already exists", f"{at}/action_id")
        seen.add(element["action_id"])


def _button(element: JsonObject, at: str, findings: Findings) -> None:
    findings.known(
        element, at, {"type", "text", "action_id", "url", "value", "style", "confirm", "accessibility_label"}
    )
    findings.text(element.get("text"), f"{at}/text", LABEL_MAX, ("plain_text",))
    if "value" in element:
        findings.string(element["value"], f"{at}/value", VALUE_MAX, counted=False)
    if "url" in element:
        findings.string(element["url"], f"{at}/url", URL_MAX, counted=False)
    if "accessibility_label" in element:
        findings.string(element["accessibility_label"], f"{at}/accessibility_label", LABEL_MAX, counted=False)
    if "style" in element and element["style"] not in ("primary", "danger"):
        findings.add("must be one of: primary, danger", f"{at}/style")
    if "confirm" in element:
        _confirm(element["confirm"], f"{at}/confirm", findings)


def _confirm(confirm: object, at: str, findings: Findings) -> None:
    if not isinstance(confirm, dict):
        findings.add("must be an object", at)
        return
    findings.known(confirm, at, {*CONFIRM, "style"})
    for name, longest in CONFIRM.items():
        kinds = ("plain_text", "mrkdwn") if name == "text" else ("plain_text",)
        findings.text(confirm.get(name), f"{at}/{name}", longest, kinds)
    if "style" in confirm and confirm["style"] not in ("primary", "danger"):
        findings.add("must be one of: primary, danger", f"{at}/style")


def _input(block: JsonObject, at: str, findings: Findings) -> None:
    findings.known(block, at, {"type", "block_id", "label", "element", "hint", "optional", "dispatch_action"})
    findings.text(block.get("label"), f"{at}/label", INPUT_LABEL_MAX, ("plain_text",))
    if "hint" in block:
        findings.text(block["hint"], f"{at}/hint", INPUT_LABEL_MAX, ("plain_text",))
    element = block.get("element")
    if not isinstance(element, dict):
        findings.add("must be an object", f"{at}/element")
    elif element.get("type") == "plain_text_input":
        _text_input(element, f"{at}/element", findings)
    elif element.get("type") not in (*OTHER_ELEMENTS, "email_text_input", "url_text_input", "number_input"):
        findings.add(f"unsupported type: {element.get('type')}", f"{at}/element/type")


def _text_input(element: JsonObject, at: str, findings: Findings) -> None:
    allowed = {"type", "action_id", "initial_value", "multiline", "min_length", "max_length", "placeholder"}
    findings.known(element, at, allowed | {"dispatch_action_config", "focus_on_load"})
    if "action_id" in element:
        findings.string(element["action_id"], f"{at}/action_id", ID_MAX, counted=False)
    if "placeholder" in element:
        findings.text(element["placeholder"], f"{at}/placeholder", PLACEHOLDER_MAX, ("plain_text",))
    for name in ("min_length", "max_length"):
        value = element.get(name, 1)
        if not isinstance(value, int) or not 0 <= value <= INPUT_MAX:
            findings.add(f"must be between 0 and {INPUT_MAX}", f"{at}/{name}")


MESSAGE_CHECKS: dict[str, Check] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "divider": _divider,
    "image": _image,
    "markdown": _markdown,
    "actions": _actions,
    "rich_text": check_rich_text,
    "input": _input,
}
"""Since 2020 messages may hold input blocks too."""
VIEW_CHECKS = {name: check for name, check in MESSAGE_CHECKS.items() if name != "markdown"}
