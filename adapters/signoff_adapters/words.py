"""What a person reads of a press on every platform when there is no answer of the core's."""

from __future__ import annotations

RECEIVED = "Received. The card will show the result."
UNHANDLED = "This tap could not be handled. Please look at the card."
