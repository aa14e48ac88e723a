"""Files that go before their card in a message of their own, on the platforms where a card cannot carry one."""

from __future__ import annotations

import hashlib
from collections.abc import Container

from signoff.errors import AdapterError, AdapterUnavailable, SendAmbiguous, SendRefused
from signoff.model import Attachment, Destination

FILES_REMEMBERED = 64
"""So many that were sent while their cards were not are known again."""


def file_key(destination: Destination, attachment: Attachment) -> tuple[str, ...]:
    """What tells the same file for the same place when its card is tried again."""
    return str(destination), attachment.name, hashlib.sha256(attachment.content).hexdigest()


def as_file_error(meant: AdapterError, about_the_file: Container[str]) -> AdapterError:
    """A file's failure, told of the card, which surely was not sent.

    `meant` is what the failure would mean for a card; `about_the_file` are the reasons of a refusal that concern the
    file and not the place.
    """
    if isinstance(meant, SendAmbiguous):
        return AdapterUnavailable("The file's answer was lost, so the card was not sent.")
    if isinstance(meant, SendRefused) and meant.facts["reason"] in about_the_file:
        return SendRefused(f"The file could not be attached. {meant.message}", reason="attachment")
    return meant
