"""Which rich text Slack takes."""

from __future__ import annotations

from .checking import Findings
from .model import JsonObject

PARTS = ("rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote")
STYLES = {"bold", "italic", "strike", "code", "underline", "highlight", "client_highlight", "unlink"}
IN_CODE = ("text", "link")
"""Elements of a preformatted part, by the block's reference."""
TEXT_MAX = 40_000
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "text": ({"text"}, {"style"}),
    "link": ({"url"}, {"text", "style", "unsafe"}),
    "user": ({"user_id"}, {"style"}),
    "usergroup": ({"usergroup_id"}, {"style"}),
    "channel": ({"channel_id"}, {"style"}),
    "broadcast": ({"range"}, {"style"}),
    "emoji": ({"name"}, {"unicode", "style", "skin_tone"}),
    "date": ({"timestamp", "format"}, {"url", "fallback", "style"}),
    "color": ({"value"}, {"style"}),
}
"""Fields that an element must and may have beside its type."""
RANGES = ("here", "channel", "everyone")


def check_rich_text(block: JsonObject, at: str, findings: Findings) -> None:
    """A `rich_text` block."""
    findings.known(block, at, {"type", "block_id", "elements"})
    for index, part in enumerate(findings.items(block.get("elements"), f"{at}/elements", 1000)):
        _check_part(part, f"{at}/elements/{index}", findings)


def _check_part(part: JsonObject, at: str, findings: Findings) -> None:
    kind = part.get("type")
    if kind not in PARTS:
        findings.add(f"unsupported type: {kind}", f"{at}/type")
        return
    if kind == "rich_text_list":
        _check_list(part, at, findings)
        return
    allowed = {"type", "elements"}
    if kind != "rich_text_section":
        allowed.add("border")
    if kind == "rich_text_preformatted":
        allowed.add("language")
    findings.known(part, at, allowed)
    elements = findings.items(part.get("elements"), f"{at}/elements", 5000, least=0)
    for index, element in enumerate(elements):
        _check_element(element, f"{at}/elements/{index}", findings, in_code=kind == "rich_text_preformatted")


def _check_list(part: JsonObject, at: str, findings: Findings) -> None:
    findings.known(part, at, {"type", "style", "elements", "indent", "offset", "border"})
    if part.get("style") not in ("bullet", "ordered"):
        findings.add("must be one of: bullet, ordered", f"{at}/style")
    for index, item in enumerate(findings.items(part.get("elements"), f"{at}/elements", 1000)):
        if item.get("type") != "rich_text_section":
            findings.add("must be one of: rich_text_section", f"{at}/elements/{index}/type")
        else:
            _check_part(item, f"{at}/elements/{index}", findings)


def _check_element(element: JsonObject, at: str, findings: Findings, *, in_code: bool) -> None:
    kind = str(element.get("type"))
    if kind not in FIELDS or (in_code and kind not in IN_CODE):
        findings.add(f"unsupported type: {kind}", f"{at}/type")
        return
    needed, allowed = FIELDS[kind]
    for name in sorted(needed - element.keys()):
        findings.add(f"missing required field: {name}", at)
    findings.known(element, at, {"type"} | needed | allowed)
    for name in ("text", "url", "fallback"):
        if name in element:
            findings.string(element[name], f"{at}/{name}", TEXT_MAX if name == "text" else 3000, counted=name == "text")
    _check_special(kind, element, at, findings)
    style = element.get("style", {})
    if not isinstance(style, dict) or not all(
        name in STYLES and isinstance(value, bool) for name, value in style.items()
    ):
        findings.add("invalid style", f"{at}/style")


def _check_special(kind: str, element: JsonObject, at: str, findings: Findings) -> None:
    """What is peculiar to dates and broadcasts."""
    if kind == "date":
        timestamp = element.get("timestamp")
        if not isinstance(timestamp, int) or isinstance(timestamp, bool):
            findings.add("must be an integer", f"{at}/timestamp")
        if not isinstance(element.get("format"), str) or "{" not in str(element.get("format")):
            findings.add("must be a date format", f"{at}/format")
        findings.characters += len(str(element.get("fallback", "")))
    if kind == "broadcast" and element.get("range") not in RANGES:
        findings.add(f"must be one of: {', '.join(RANGES)}", f"{at}/range")
