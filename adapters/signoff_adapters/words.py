"""What a person reads of a press or a command on every platform when there is no answer of the core's.

The one module of the adapters that knows the catalogue of texts.
"""

from __future__ import annotations

from typing import Final

from signoff.texts import Catalogue

_text = Catalogue.load().text

RECEIVED: Final = _text("tap.received")
UNHANDLED: Final = _text("tap.unhandled")
TOO_SLOW: Final = _text("tap.too_slow")
COMMAND_RECEIVED: Final = _text("reply.received")
"""For a command whose answer is elsewhere."""
COMMAND_UNHANDLED: Final = _text("reply.unhandled")


def no_dialog(platform: str) -> str:
    """A field to type into did not open in time. `platform` is its name for people."""
    return _text("tap.no_dialog", place=platform)


def nobody_named(platform: str) -> str:
    """The platform did not say who pressed or typed."""
    return _text("tap.nobody_named", place=platform)
