"""The HTTP door: one table of routes, served on a port and on a local socket. `serve` opens it."""

from signoff.server.core import Core
from signoff.server.serve import Bound, serve

__all__ = ["Bound", "Core", "serve"]
