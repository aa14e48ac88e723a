"""What is written through a link that the same text made: the name is harmless, and the file behind it is not."""

import posixpath
from collections.abc import Callable, Iterator

from signoff.policy.path_classes import MAX_PATH_CHARS
from signoff.policy.predicates.files import sort_of, written
from signoff.policy.predicates.whole import absolute, per_script, starts
from signoff.policy.programs import program_name_of
from signoff.policy.seen import Seen
from signoff.policy.shell import Script, Word
from signoff.policy.shell.options import OptionSpec, arguments

_LINK = OptionSpec(short_values="tS", long_values=("target-directory", "suffix"))


_LINKERS = frozenset({"ln", "gln"})


@per_script
def _links(script: Script) -> dict[str, str]:
    """The links that the text makes, as normal paths, each with what it leads to."""
    found: dict[str, str] = {}
    if not starts(script, _LINKERS):
        return found
    for command in script.commands:
        if program_name_of(command) not in _LINKERS:
            continue
        given = arguments(command.own_words, _LINK)
        names = [word.text for _place, word in given.operands]
        if given.has("-t", "--target-directory") or len(names) not in {1, 2}:
            continue
        target, name = names[0], names[-1]
        last = target.rstrip("/").rpartition("/")[2]
        where = absolute(name if len(names) > 1 else last, command.cwd)
        leads = absolute(target, posixpath.dirname(where))
        found[where] = leads
        if len(names) > 1:  # the name may be a folder, in which the link is made then
            inside = f"{where}/{last}"
            found[inside] = absolute(target, where)
    return found


def _behind(word: Word, seen: Seen) -> Iterator[Word]:
    """The files that may be reached where the name is a link of this text, or goes through one."""
    links = _links(seen.script)
    if not links or len(word.text) > MAX_PATH_CHARS:
        return
    path = absolute(word.text, seen.cwd)
    for place in [*(at for at, mark in enumerate(path) if mark == "/" and at), len(path)]:
        leads = links.get(path[:place])
        if leads is not None:
            yield Word(leads + path[place:])


def _decides(word: Word, seen: Seen) -> bool:
    return any(sort_of(behind, seen) not in {"", "outside"} for behind in _behind(word, seen))


def _redirects_by_link(seen: Seen) -> bool:
    if not _links(seen.script):
        return False
    return any(redirect.writes and _decides(redirect.target, seen) for redirect in seen.command.redirects)


def _lands_by_link(seen: Seen) -> bool:
    """The same for the files that a program writes."""
    return bool(_links(seen.script)) and any(_decides(word, seen) for word in written(seen))


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "redirects_by_link": _redirects_by_link,
    "lands_by_link": _lands_by_link,
}

NEEDS: dict[str, Callable[[Seen], bool]] = {"lands_by_link": lambda seen: bool(_links(seen.script))}
