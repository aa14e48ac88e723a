"""How a call over aiohttp can fail, told apart by what the platform may have done with it."""

from __future__ import annotations

import aiohttp

NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
"""Errors of aiohttp that mean `NotSent`."""


class CallFailed(Exception):
    """A call that did not succeed; the text is for people and names no address, since some hold a secret."""


class NotSent(CallFailed):
    """No connection: the request did not leave."""


class AnswerLost(CallFailed):
    """The request left, and no usable answer came back."""


class ServerTrouble(CallFailed):
    """An answer of 500 or above, or the platform's words for the same."""
