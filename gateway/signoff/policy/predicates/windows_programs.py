"""What rules about programs of Windows that another shell starts ask that the fields of a rule cannot say."""

import re
import time
from collections.abc import Callable

from signoff.policy import ruleset, windows
from signoff.policy.inner import read_inner
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN
from signoff.policy.shell.deadline import Deadline, GivenUpError

_BUDGET_S = 0.01
"""The time for what a POSIX shell hands to a shell of Windows; texts of one line, so it is never used up in earnest."""

_ENCODED = re.compile(r"[-/](?:e|ec|en|enc\w*)", re.I)


def _hidden(seen: Seen) -> bool:
    """Encoded text, text from standard input, or text that is only known when it runs."""
    texts = [word.text for word in seen.command.words[1:]]
    if any(_ENCODED.fullmatch(text) for text in texts):
        return True
    if seen.command.fed and windows.carried_text([seen.words[0].text, *texts]) is None:
        return True
    return any(UNKNOWN in text for text in texts)


def _text_asks(seen: Seen) -> bool:
    """Whether something in the text that is handed over asks by the rules for that shell."""
    if _hidden(seen):
        return False
    carried = windows.carried_text([word.text for word in seen.command.words])
    if carried is None:
        return False
    try:
        deadline = Deadline(time.thread_time, _BUDGET_S)
        script = windows.read(*carried, deadline)
        inner = read_inner(script, budget_s=_BUDGET_S)
        found = windows.findings(inner.script, ruleset.shipped(), seen.facts, deadline, codes=inner.codes)
    except GivenUpError:
        return True
    return found.verdict != "allow"


_READS: dict[str, frozenset[str]] = {
    "reg": frozenset({"query", "compare", "export"}),
    "sc": frozenset({"query", "queryex", "qc", "qdescription"}),
    "net": frozenset({"view", "statistics", "help", "helpmsg", "config"}),
    "schtasks": frozenset({"/query"}),
    "netsh": frozenset({"show"}),
    "bcdedit": frozenset({"/enum"}),
    "wevtutil": frozenset({"qe", "gl", "el", "gli", "query-events", "enum-logs"}),
    "vssadmin": frozenset({"list"}),
    "fsutil": frozenset({"fsinfo"}),
    "certutil": frozenset({"-hashfile", "-dump", "-store", "-?"}),
    "wsl": frozenset({"--list", "-l", "--status", "--version"}),
    "dism": frozenset({"/get-features", "/online"}),
    "icacls": frozenset(),
}


def _reports(seen: Seen) -> bool:
    """The forms of these programs that only look."""
    texts = [word.text.casefold() for word in seen.command.words[1:]]
    if not texts or texts[0] in {"/?", "-?", "/help"}:
        return True
    name = seen.name.removesuffix(".exe")
    if name == "icacls":
        return len(texts) == 1
    if name == "dism" and "/get-features" not in texts:
        return False
    return bool(_READS.get(name, frozenset()) & set(texts[:2]))


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "windows_hidden": _hidden,
    "windows_text_asks": _text_asks,
    "windows_reports": _reports,
}
