"""Options by which a program that reads or packs starts another one."""

import re
from collections.abc import Callable

from signoff.policy.seen import Seen

_PACKERS = re.compile(
    r"(?:/usr)?(?:/local)?(?:/bin/)?(?:p?bzip2|p?i?gzip|pigz|p?xz|pixz|zstd|zstdmt|pzstd|unzstd|lz4|lzop|lzma|lzip"
    r"|plzip|brotli|cat|gunzip|bunzip2|unxz|compress|uncompress|zopfli|lbzip2)(?:\s+-[\w=.-]+)*+"
)


def _packs_with_program(seen: Seen) -> bool:
    """`tar -I PROGRAM` with something else than a packer."""
    values = seen.values("-I", "--use-compress-program")
    return any(not _PACKERS.fullmatch(word.text) for word in values)


def _zip_runs(seen: Seen) -> bool:
    """`zip -T -TT COMMAND`, also joined to it, and `--unzip-command`, also shortened: what tests the archive."""
    return any(_TESTER.match(word.text) for _place, word in seen.dashed)


_TESTER = re.compile(r"--un|-\w*TT")


def _make_is_redirected(seen: Seen) -> bool:
    """`make SHELL=x`, `make -f -` fed by something."""
    texts = [word.text for word in seen.words[1:]]
    if any(
        text.startswith(("SHELL=", ".SHELLFLAGS=", "MAKEFLAGS="))
        and text not in {"SHELL=/bin/bash", "SHELL=/bin/sh", "SHELL=bash"}
        for text in texts
    ):
        return True
    joined = " ".join(texts)
    return seen.command.fed and any(
        form in joined for form in ("-f -", "-f-", "-f /dev/stdin", "--file=-", "--makefile=-")
    )


_PLAIN_PAGER = frozenset({"cat", "less", "more", "most", "bat", "", "head", "less -R", "less -FX", "less -FRX"})


def _man_pager_runs(seen: Seen) -> bool:
    values = seen.values("-P", "--pager", "-H", "--html")
    return any(word.text not in _PLAIN_PAGER for word in values)


def _pager_runs(seen: Seen) -> bool:
    return any(word.text not in _PLAIN_PAGER for word in seen.values("--pager", "--paging-program"))


def _find_prints_to_file(seen: Seen) -> bool:
    return any(word.text in {"-fprint", "-fprint0", "-fprintf", "-fls"} for word in seen.words[1:])


_OK_FILTERS = re.compile(r"(?:gzip|xz|zstd|bzip2|cat|pigz|lz4)(?: -\w+)* > \$FILE[\w.]*")


def _split_filters(seen: Seen) -> bool:
    return any(not _OK_FILTERS.fullmatch(word.text) for word in seen.values("--filter"))


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "packs_with_program": _packs_with_program,
    "zip_runs": _zip_runs,
    "make_is_redirected": _make_is_redirected,
    "man_pager_runs": _man_pager_runs,
    "pager_runs": _pager_runs,
    "find_prints_to_file": _find_prints_to_file,
    "split_filters": _split_filters,
}
