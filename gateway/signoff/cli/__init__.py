"""The command `signoff`."""

from signoff.cli.app import main

__all__ = ["main"]
