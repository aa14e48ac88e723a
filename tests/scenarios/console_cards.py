"""Questions as the pages of the web console show them, and what their forms would send."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from tests.scenarios.markup import Element, Form, form_of, words
from tests.scenarios.transport import Seen

BLOCKS = ("p", "h1", "h2", "pre", "blockquote")


class Fold(Struct, frozen=True, kw_only=True):
    """A part of a card that is shown when it is opened."""

    text: str
    buttons: tuple[str, ...]


class Card(Seen, frozen=True, kw_only=True):
    """A question on a page, with the forms that its buttons belong to."""

    short: str
    forms: tuple[Form, ...] = ()
    folds: tuple[Fold, ...] = ()
    pending: bool = False
    session: str = ""
    """Which session asks."""


def form_with(card: Card, label: str, typed: str = "") -> tuple[str, list[tuple[str, str]]]:
    """Where the form with that button goes, and its fields. Raises `LookupError`."""
    for form in card.forms:
        with suppress(LookupError):
            return form.action, form.pressed(label, typed)
    raise LookupError(f"no button {label!r} on {card}")


def form_of_choice(card: Card, choice: str) -> tuple[str, list[tuple[str, str]]]:
    """The same for the button that gives that answer."""
    label = next(
        (each.label for form in card.forms for each in form.buttons if ("choice", choice) in each.field), choice
    )
    return form_with(card, label)


class Read(Struct, frozen=True, kw_only=True):
    """A drawn question, read."""

    text: str
    buttons: tuple[str, ...]
    clickable: tuple[str, ...]
    forms: tuple[Form, ...]
    folds: tuple[Fold, ...]


def read_card(article: Element) -> Read:
    """What somebody sees of a question at first glance, what can be pressed, and what is folded up."""
    answers = article.all("div", "class", "answers")
    folds = answers[0].all("details") if answers else []
    forms = article.all("form")
    below = {id(each) for part in (*answers, *forms) for each in part}
    blocks = [each for each in article if each.tag in BLOCKS and id(each) not in below and each["class"] != "left"]
    folded = {id(each) for fold in folds for each in fold}
    visible = [form_of(form) for form in forms if id(form) not in folded]
    labels = [button.label for form in visible for button in form.buttons]
    return Read(
        text="\n".join(each.text if each.tag == "pre" else words(each) for each in blocks),
        buttons=(*labels, *(words(fold.one("summary")) for fold in folds)),
        clickable=tuple(each["href"] for each in article.all("a") if not each["href"].startswith("/console/r/")),
        forms=tuple(map(form_of, forms)),
        folds=tuple(
            Fold(text=words(fold), buttons=tuple(words(button) for button in fold.all("button"))) for fold in folds
        ),
    )


def action_text(article: Element) -> str:
    """The text of an action, all of it in the open: its parts, where it is shown in several."""
    whole = next(each for each in article if "code" in each["class"].split() and each.tag in ("div", "pre"))
    assert all("open" in rest.attributes for rest in whole.all("details")), "a part is folded away"
    return "".join(part.text for part in whole.all("pre")) or whole.text
