"""A bot's token stays out of the log lines of the libraries that speak to its platform."""

from __future__ import annotations

import logging


class TokenFilter(logging.Filter):
    """Writes `<token>` in the token's place. A kind of it for each platform names the loggers."""

    LOGGERS: tuple[str, ...] = ()

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def attach(self) -> None:
        """Begin; a logger's filter sees only lines of that very logger, hence the list."""
        for name in self.LOGGERS:
            logging.getLogger(name).addFilter(self)

    def detach(self) -> None:
        """End. Idempotent."""
        for name in self.LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the line where it holds the token; all are kept."""
        if self._token in (text := record.getMessage()):
            record.msg, record.args = text.replace(self._token, "<token>"), ()
        return True
