"""Clients of a running gateway, for agents in other processes."""

from signoff.client.blocking import BlockingClient, BlockingTurn
from signoff.client.client import Client
from signoff.client.records import (
    ActionRecord,
    AllowlistChanged,
    AllowlistRecord,
    ApprovalRecord,
    CheckRecord,
    EventRecord,
    ExecutionRecord,
    GrantRecord,
    KeyRecord,
    SessionRecord,
    TurnRecord,
    Who,
)
from signoff.client.turns import Turn
from signoff.operands import operands_of

__all__ = [
    "ActionRecord",
    "AllowlistChanged",
    "AllowlistRecord",
    "ApprovalRecord",
    "BlockingClient",
    "BlockingTurn",
    "CheckRecord",
    "Client",
    "EventRecord",
    "ExecutionRecord",
    "GrantRecord",
    "KeyRecord",
    "SessionRecord",
    "Turn",
    "TurnRecord",
    "Who",
    "operands_of",
]
