"""Why a call to somebody else's address failed, in words for logs: an address may hold a secret, which no log may."""

from __future__ import annotations

import os

import aiohttp


def why_unreached(error: Exception) -> str:
    """What kept a call from being taken or answered, in plain words. Of its address they name host and port at most:
    aiohttp's own words hold all of it."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "it does not fit"
        return f"the certificate of {error.host}:{error.port} is not trusted: {why}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {error.host} cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        why = str(getattr(error.os_error, "reason", None) or "no handshake").replace("_", " ").lower()
        return f"{error.host}:{error.port} does not speak TLS: {why}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"nothing answers at {error.host}:{error.port}: {_why(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "the connection was closed without an answer"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered HTTP {error.status}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    said = str(error) if isinstance(error, OSError) else ""
    return f"the connection failed: {said or type(error).__name__}"


def _why(error: OSError) -> str:
    """The system's own words, but those of several addresses that were tried are not gathered."""
    return os.strerror(error.errno).lower() if error.errno else str(error.strerror or error)
