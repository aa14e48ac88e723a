"""The shell front end: text to the simple commands it would run."""

from signoff.policy.shell.model import UNKNOWN, UNKNOWN_HOME, Code, Command, Redirect, Script, Word
from signoff.policy.shell.reader import read_shell

__all__ = ["UNKNOWN", "UNKNOWN_HOME", "Code", "Command", "Redirect", "Script", "Word", "read_shell"]
