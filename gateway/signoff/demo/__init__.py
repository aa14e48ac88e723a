"""The demonstration: a real gateway, a scripted agent, and a chat that needs no account."""
