"""The signature of a webhook, in the form of Standard Webhooks, for which receivers have libraries. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac

PREFIX = "whsec_"
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
"""Headers: the message's id, the same whenever it is sent again; seconds since 1970 of this try; and the signature."""


def signed(secret: str, message_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers for this body: HMAC-SHA256 over `id.timestamp.body`. `secret` is `whsec_` and the key in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    content = f"{message_id}.{at_s}.".encode() + body
    mac = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {ID: message_id, TIMESTAMP: str(at_s), SIGNATURE: f"v1,{mac}"}
