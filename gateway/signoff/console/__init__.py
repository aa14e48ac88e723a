"""The web console: pages on which people read what agents ask, decide, and look back."""

from signoff.console.door import Console

__all__ = ["Console"]
