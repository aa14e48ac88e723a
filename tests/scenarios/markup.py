"""Served HTML as a tree, for a person who reads the pages and fills in their forms."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

from msgspec import Struct

VOID = frozenset({"input", "link", "meta", "br", "hr", "img"})


class Element:
    """One element with what it holds."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Element | str] = []

    def __getitem__(self, name: str) -> str:
        """An attribute; empty where it has none."""
        return self.attributes.get(name, "")

    def __iter__(self) -> Iterator[Element]:
        """Everything below, in the order of the page."""
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child

    def all(self, tag: str, name: str = "", value: str = "") -> list[Element]:
        """The elements below of this tag, and with this word in an attribute."""
        return [each for each in self if each.tag == tag and (not name or value in each[name].split())]

    def one(self, tag: str, name: str = "", value: str = "") -> Element:
        """The first of them. Raises `LookupError`."""
        found = self.all(tag, name, value)
        if not found:
            raise LookupError(f"no <{tag} {name}={value!r}> in {self.text[:500]!r}")
        return found[0]

    @property
    def text(self) -> str:
        """What is read of it: whole, with blanks as they stand."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Button(Struct, frozen=True, kw_only=True):
    """A button of a form, by its visible label, and what it adds to the form."""

    label: str
    field: tuple[tuple[str, str], ...] = ()


class Form(Struct, frozen=True, kw_only=True):
    """A form as it was drawn: where it is sent, its hidden fields, and its buttons."""

    action: str
    hidden: tuple[tuple[str, str], ...]
    buttons: tuple[Button, ...]
    typed: str = ""
    """The name of the field in which something can be written."""

    def pressed(self, label: str, typed: str = "") -> list[tuple[str, str]]:
        """What a browser would send. Raises `LookupError` where there is no such button."""
        button = next((each for each in self.buttons if each.label == label), None)
        if button is None:
            raise LookupError(f"no button {label!r} in {self}")
        return [*self.hidden, *([(self.typed, typed)] if self.typed else []), *button.field]


def form_of(element: Element) -> Form:
    """A `<form>` read."""
    inputs = element.all("input")
    written = [each["name"] for each in inputs if each["type"] != "hidden"]
    return Form(
        action=element["action"],
        hidden=tuple((each["name"], each["value"]) for each in inputs if each["type"] == "hidden"),
        buttons=tuple(
            Button(label=words(each), field=((each["name"], each["value"]),) if each["name"] else ())
            for each in element.all("button")
        ),
        typed=written[0] if written else "",
    )


def words(element: Element) -> str:
    """Its text on one line, as a browser shows prose."""
    return " ".join(element.text.split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        element = self._open.pop()
        assert element.tag == tag, f"</{tag}> ends <{element.tag}>"

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parse(text: str) -> Element:
    """A page or a part of one. `AssertionError` where its tags do not match."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader._open == [reader.root], "an element is never closed"
    return reader.root
