"""What Discord accepts in a message, a modal and an autocomplete answer; everything else is a 50035 with its tree.

The numbers are from Discord's pages on the message, embed, component and interaction resources. Lengths count Unicode
characters (code points).
"""

from __future__ import annotations

from typing import Any

from .model import JsonObject
from .refusal import FormErrors, Refused, coded

CONTENT_MAX = 2000
CUSTOM_ID_MAX = 100
LABEL_MAX = 80
ROWS_MAX = 5
BUTTONS_PER_ROW = 5
OPTIONS_MAX = 25
EMBEDS_MAX = 10
EMBEDS_SUM_MAX = 6000
FILES_MAX = 10
FILE_MAX_BYTES = 10 * 1024 * 1024
"""Upload size for apps without a boosted guild, the `attachment_size_limit` of interactions."""
NONCE_MAX = 25
COMPONENTS_V2 = 1 << 15
"""With this flag a message has other components and no content. Not built here, so refused instead of passed over."""
MODAL_TITLE_MAX = 45
FIELD_LABEL_MAX = 45
FIELD_VALUE_MAX = 4000
PLACEHOLDER_MAX = 100
MODAL_ROWS_MAX = 5
CHOICES_MAX = 25
CHOICE_MAX = 100
DESCRIPTION_MAX = 1024

ROW, BUTTON, FIELD, LABEL = 1, 2, 4, 18
SELECTS = frozenset({3, 5, 6, 7, 8})
LINK, PREMIUM = 5, 6
Path = tuple[str | int, ...]


def check_message(body: JsonObject, file_sizes: list[int]) -> None:
    """Refused 50035, 40005 or 50109 for a body that no send or edit may have; emptiness is the caller's matter."""
    if any(size > FILE_MAX_BYTES for size in file_sizes):
        raise coded(40005)
    errors = FormErrors()
    errors.length(("content",), body.get("content"), 0, CONTENT_MAX)
    _check_embeds(errors, body.get("embeds") or [])
    _check_rows(errors, body.get("components") or [])
    _check_mentions(errors, body.get("allowed_mentions"))
    if int(body.get("flags") or 0) & COMPONENTS_V2:
        errors.add(("flags",), "NOT_BUILT_HERE", "This server knows no Components V2.")
    nonce = body.get("nonce")
    if nonce is not None and len(str(nonce)) > NONCE_MAX:
        errors.add(("nonce",), "NONCE_TYPE_TOO_LONG", f"Must be {NONCE_MAX} or fewer in length.")
    if len(file_sizes) > FILES_MAX:
        errors.add(("attachments",), "BASE_TYPE_MAX_LENGTH", f"Must be {FILES_MAX} or fewer in length.")
    for place, each in enumerate(body.get("attachments") or []):
        errors.length(("attachments", place, "description"), each.get("description"), 0, DESCRIPTION_MAX)
    errors.raise_any()


def _check_embeds(errors: FormErrors, embeds: Any) -> None:
    if not isinstance(embeds, list):
        errors.add(("embeds",), "LIST_TYPE_CONVERT", "Must be an array")
        return
    if len(embeds) > EMBEDS_MAX:
        errors.add(("embeds",), "BASE_TYPE_MAX_LENGTH", f"Must be {EMBEDS_MAX} or fewer in length.")
    total = 0
    for place, embed in enumerate(embeds):
        path: Path = ("embeds", place)
        footer, author = embed.get("footer") or {}, embed.get("author") or {}
        texts: list[tuple[Path, Any, int, int]] = [
            ((*path, "title"), embed.get("title"), 0, 256),
            ((*path, "description"), embed.get("description"), 0, 4096),
            ((*path, "footer", "text"), footer.get("text"), 0, 2048),
            ((*path, "author", "name"), author.get("name"), 0, 256),
        ]
        fields = embed.get("fields") or []
        if len(fields) > 25:
            errors.add((*path, "fields"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
        for number, each in enumerate(fields):
            texts.append(((*path, "fields", number, "name"), each.get("name"), 1, 256))
            texts.append(((*path, "fields", number, "value"), each.get("value"), 1, 1024))
        for where, text, least, most in texts:
            errors.length(where, text, least, most)
            total += len(text) if isinstance(text, str) else 0
    if total > EMBEDS_SUM_MAX:
        errors.add(("embeds",), "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {EMBEDS_SUM_MAX}")


def _check_rows(errors: FormErrors, rows: Any) -> None:
    if not isinstance(rows, list):
        errors.add(("components",), "LIST_TYPE_CONVERT", "Must be an array")
        return
    if len(rows) > ROWS_MAX:
        errors.add(("components",), "BASE_TYPE_MAX_LENGTH", f"Must be {ROWS_MAX} or fewer in length.")
    taken: set[str] = set()
    for place, row in enumerate(rows):
        path: Path = ("components", place)
        parts = row.get("components") if isinstance(row, dict) else None
        if not isinstance(row, dict) or row.get("type") != ROW:
            errors.add((*path, "type"), "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (1,).')
            continue
        if not isinstance(parts, list) or not 1 <= len(parts) <= BUTTONS_PER_ROW:
            errors.add(
                (*path, "components"), "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {BUTTONS_PER_ROW} in length."
            )
            continue
        for column, part in enumerate(parts):
            _check_part(errors, (*path, "components", column), part, taken, len(parts))


def _check_part(errors: FormErrors, path: Path, part: JsonObject, taken: set[str], width: int) -> None:
    kind = part.get("type")
    if kind == BUTTON:
        _check_button(errors, path, part)
    elif kind in SELECTS:
        if width > 1:
            errors.add(path, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
        _check_select(errors, path, part)
    else:
        choices = "(2, 3, 5, 6, 7, 8)"
        errors.add((*path, "type"), "UNION_TYPE_CHOICES", f'Value of field "type" must be one of {choices}.')
    _check_unique(errors, path, part.get("custom_id"), taken)


def _check_unique(errors: FormErrors, path: Path, custom_id: object, taken: set[str]) -> None:
    if not isinstance(custom_id, str):
        return
    if custom_id in taken:
        errors.add((*path, "custom_id"), "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
    taken.add(custom_id)


def _check_button(errors: FormErrors, path: Path, button: JsonObject) -> None:
    style = button.get("style")
    if style not in range(1, 7):
        errors.add((*path, "style"), "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
    errors.length((*path, "label"), button.get("label"), 0, LABEL_MAX)
    if not button.get("label") and not button.get("emoji") and style != PREMIUM:
        errors.add(path, "BUTTON_COMPONENT_INVALID_LABEL", "A button must have a label or an emoji")
    if style == LINK:
        errors.length((*path, "url"), button.get("url"), 1, 512)
        if button.get("custom_id"):
            errors.add(
                path,
                "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                "A custom id and url cannot both be specified",
            )
    elif style != PREMIUM:
        if button.get("custom_id") in (None, ""):
            errors.add((*path, "custom_id"), "BUTTON_COMPONENT_CUSTOM_ID_REQUIRED", "A custom id is required")
        else:
            errors.length((*path, "custom_id"), button.get("custom_id"), 1, CUSTOM_ID_MAX)


def _check_select(errors: FormErrors, path: Path, select: JsonObject) -> None:
    errors.length((*path, "custom_id"), select.get("custom_id"), 1, CUSTOM_ID_MAX)
    errors.length((*path, "placeholder"), select.get("placeholder"), 0, 150)
    if select.get("type") != 3:
        return
    options = select.get("options") or []
    if not 1 <= len(options) <= OPTIONS_MAX:
        errors.add((*path, "options"), "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {OPTIONS_MAX} in length.")
    values: set[str] = set()
    for number, option in enumerate(options):
        where: Path = (*path, "options", number)
        errors.length((*where, "label"), option.get("label"), 1, 100)
        errors.length((*where, "value"), option.get("value"), 1, 100)
        errors.length((*where, "description"), option.get("description"), 0, 100)
        if option.get("value") in values:
            errors.add(
                (*where, "value"),
                "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED",
                "The specified option value is already used",
            )
        values.add(str(option.get("value")))


def _check_mentions(errors: FormErrors, allowed: Any) -> None:
    if allowed is None:
        return
    parse = allowed.get("parse") or []
    for place, each in enumerate(parse):
        if each not in ("users", "roles", "everyone"):
            message = "Value must be one of {'everyone', 'roles', 'users'}."
            errors.add(("allowed_mentions", "parse", place), "BASE_TYPE_CHOICES", message)
    for kind in ("users", "roles"):
        listed = allowed.get(kind) or []
        if listed and kind in parse:
            message = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            errors.add(("allowed_mentions",), "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message)
        if len(listed) > 100:
            errors.add(("allowed_mentions", kind), "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")


def check_modal(data: JsonObject) -> None:
    """Refused 50035 for a modal that Discord would not open."""
    errors = FormErrors()
    errors.length(("data", "title"), data.get("title"), 1, MODAL_TITLE_MAX)
    errors.length(("data", "custom_id"), data.get("custom_id"), 1, CUSTOM_ID_MAX)
    rows = data.get("components") or []
    if not 1 <= len(rows) <= MODAL_ROWS_MAX:
        errors.add(("data", "components"), "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {MODAL_ROWS_MAX} in length.")
    taken: set[str] = set()
    for place, row in enumerate(rows):
        path: Path = ("data", "components", place)
        if row.get("type") == LABEL:
            errors.length((*path, "label"), row.get("label"), 1, FIELD_LABEL_MAX)
            errors.length((*path, "description"), row.get("description"), 0, 100)
            _check_field(errors, (*path, "component"), row.get("component") or {}, taken, labelled=True)
        elif row.get("type") == ROW and len(row.get("components") or []) == 1:
            _check_field(errors, (*path, "components", 0), row["components"][0], taken, labelled=False)
        else:
            errors.add((*path, "components"), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 1 in length.")
    errors.raise_any()


def _check_field(errors: FormErrors, path: Path, part: JsonObject, taken: set[str], *, labelled: bool) -> None:
    if part.get("type") != FIELD:
        if not (labelled and part.get("type") in SELECTS):
            errors.add((*path, "type"), "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (4,).')
        return
    errors.length((*path, "custom_id"), part.get("custom_id"), 1, CUSTOM_ID_MAX)
    _check_unique(errors, path, part.get("custom_id"), taken)
    if not labelled:
        errors.length((*path, "label"), part.get("label"), 1, FIELD_LABEL_MAX)
    if part.get("style") not in (1, 2):
        errors.add((*path, "style"), "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
    errors.length((*path, "placeholder"), part.get("placeholder"), 0, PLACEHOLDER_MAX)
    errors.length((*path, "value"), part.get("value"), 0, FIELD_VALUE_MAX)
    for name, least in (("min_length", 0), ("max_length", 1)):
        size = part.get(name)
        if size is not None and not least <= size <= FIELD_VALUE_MAX:
            low = size < least
            code = "NUMBER_TYPE_MIN" if low else "NUMBER_TYPE_MAX"
            bound = f"greater than or equal to {least}" if low else f"less than or equal to {FIELD_VALUE_MAX}"
            errors.add((*path, name), code, f"int value should be {bound}.")


def check_choices(data: JsonObject) -> None:
    """Refused 50035 for an autocomplete answer that does not fit."""
    errors = FormErrors()
    choices = data.get("choices")
    if not isinstance(choices, list):
        errors.add(("data", "choices"), "BASE_TYPE_REQUIRED", "This field is required")
        errors.raise_any()
        return
    if len(choices) > CHOICES_MAX:
        errors.add(("data", "choices"), "BASE_TYPE_MAX_LENGTH", f"Must be {CHOICES_MAX} or fewer in length.")
    for place, choice in enumerate(choices):
        errors.length(("data", "choices", place, "name"), choice.get("name"), 1, CHOICE_MAX)
        if isinstance(choice.get("value"), str):
            errors.length(("data", "choices", place, "value"), choice.get("value"), 1, CHOICE_MAX)
    errors.raise_any()


def under(prefix: str, refused: Refused) -> Refused:
    """The same refusal with its tree below `prefix`, as callbacks nest the message in `data`."""
    if "errors" not in refused.body:
        return refused
    return Refused(refused.status, refused.body | {"errors": {prefix: refused.body["errors"]}}, refused.headers)
