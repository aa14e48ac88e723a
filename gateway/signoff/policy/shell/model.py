"""What is known about a shell text after it was read: words, redirections, simple commands."""

from typing import Literal

import msgspec

UNKNOWN = "\x00"
"""Stands in `Word.text` for a stretch that is only known when the text runs. No shell word can hold this character."""

PLACEHOLDER = "${_unknown_}"
"""How such a stretch is written into an inner text before that is parsed: a variable nobody has set."""

UNKNOWN_HOME = "/home/~"
"""The home directory where the real one was not told: a path no user can have."""

Place = Literal["here", "remote", "container"]

# Words and commands hold nothing that could hold them in turn, so Python's collector need not look at them
# (`gc=False`): a long text makes ten thousands of them.


class Word(msgspec.Struct, frozen=True, gc=False):
    """One word after expansion and quote removal.

    `pattern` is set when unquoted `*`, `?` or `[` stand in it: the same text with quoted ones escaped by a backslash.
    `many` means that it may turn into any number of words. `content` is what a process substitution would deliver.
    """

    text: str
    pattern: str | None = None
    many: bool = False
    content: str | None = None
    given: bool = False
    """Whether the word names a process substitution, the only case in which `content` says anything."""

    @property
    def state(self) -> Literal["literal", "partial", "dynamic"]:
        """How much of the word is known from the text alone."""
        if UNKNOWN not in self.text:
            return "literal"
        return "partial" if self.text.strip(UNKNOWN) else "dynamic"

    @property
    def literal(self) -> str | None:
        """The word, or None unless all of it is known."""
        return None if UNKNOWN in self.text else self.text


class Redirect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One redirection; `operator` without the descriptor, such as `>`, `>>`, `<`, `&>`."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether the target is opened for writing."""
        return ">" in self.operator


class Code(msgspec.Struct, frozen=True, gc=False):
    """A text in another language that a command runs (`python -c`, `awk`, a here-document into `node`).

    `language` is a lower-case name such as `python`, `perl`, `javascript`, `awk`; unknown stretches are `UNKNOWN`.
    """

    language: str
    text: str


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One simple command, resolved as far as the text allows.

    A wrapper (`sudo ls`) is a command of its own, and what it carries is another: `own` counts the words that belong to
    the wrapper itself. `chain` names the wrappers around this command, outermost first. `stdin` is the text it reads
    when that is known; `fed` says that something other than the terminal feeds it. `cwd` is the folder it runs in, if
    known. `code` holds the texts in other languages that it runs, as far as this text shows them.
    """

    words: tuple[Word, ...]
    own: int
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    chain: tuple[str, ...] = ()
    place: Place = "here"
    stdin: str | None = None
    fed: bool = False
    cwd: str | None = None
    source: str = ""
    code: tuple[Code, ...] = ()

    @property
    def program(self) -> str:
        """The program word as resolved, with unknown stretches; empty for bare assignments and redirections."""
        return self.words[0].text if self.words else ""

    @property
    def own_words(self) -> tuple[Word, ...]:
        """The words of this program without those of a command it carries."""
        return self.words if self.own == len(self.words) else self.words[: self.own]

    @property
    def text(self) -> str:
        """The words joined by single blanks."""
        return " ".join(word.text for word in self.words)


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A shell text as it was read.

    `problems` says why it was not understood (syntax, time, odd characters); the commands are then those that were
    understood all the same. `opaque` names code that only exists when the text runs, such as `eval "$x"`.
    """

    commands: tuple[Command, ...] = ()
    problems: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    fork_bombs: tuple[str, ...] = ()
