"""Hooks: others are told of questions, answers and ends, in this process and by signed webhooks. They only observe."""

from signoff.hooks.deliveries import Deliveries
from signoff.hooks.observers import Hooks
from signoff.hooks.payloads import SCHEMA_VERSION, AgentEnd, Payload, PostApprovalResponse, PreApprovalRequest

__all__ = [
    "SCHEMA_VERSION",
    "AgentEnd",
    "Deliveries",
    "Hooks",
    "Payload",
    "PostApprovalResponse",
    "PreApprovalRequest",
]
