"""Signoff: people's sign-off for what agents do, in the chat they already use.

Four doors with the same verbs: `Gateway` and `BlockingGateway` in the gateway's own process, `Client` and
`BlockingClient` over HTTP. Names are loaded when first used, so that a client never imports a server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from signoff.blocking import BlockingGateway
    from signoff.client import ApprovalRecord, BlockingClient, Client
    from signoff.config import Config, load_config
    from signoff.errors import SignoffError
    from signoff.gateway import Gateway
    from signoff.model import Action, Code, Command, Destination, Elicitation, FileWrite, Operand, Rule, Tool
    from signoff.operands import operands_of
    from signoff.serving import serve

_HOMES = {
    "Action": "model",
    "ApprovalRecord": "client",
    "BlockingClient": "client",
    "BlockingGateway": "blocking",
    "Client": "client",
    "Code": "model",
    "Command": "model",
    "Config": "config",
    "Destination": "model",
    "Elicitation": "model",
    "FileWrite": "model",
    "Gateway": "gateway",
    "Operand": "model",
    "Rule": "model",
    "SignoffError": "errors",
    "Tool": "model",
    "load_config": "config",
    "operands_of": "operands",
    "serve": "serving",
}

__all__ = [
    "Action",
    "ApprovalRecord",
    "BlockingClient",
    "BlockingGateway",
    "Client",
    "Code",
    "Command",
    "Config",
    "Destination",
    "Elicitation",
    "FileWrite",
    "Gateway",
    "Operand",
    "Rule",
    "SignoffError",
    "Tool",
    "load_config",
    "operands_of",
    "serve",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'signoff' has no attribute {name!r}")
    return getattr(import_module(f"signoff.{home}"), name)
