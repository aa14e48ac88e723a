"""Questions on the terminal of the process that asks, for sessions of kind `cli`.

A person at a terminal is the operator there: an answer goes through the gateway's own process or its local socket,
never through an agent's key. What is no answer (end of input, an interrupt, no terminal at all) is never a denial.
"""

from signoff.terminal.prompt import TerminalPrompt

__all__ = ["TerminalPrompt"]
