"""Loopback servers that behave like the chat platforms, within their documented limits."""
