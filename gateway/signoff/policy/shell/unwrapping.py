"""What a carrier runs when it is called with certain words."""

import re
from itertools import pairwise

import msgspec

from signoff.policy.shell.carriers import Carrier
from signoff.policy.shell.model import UNKNOWN, Word
from signoff.policy.shell.options import Arguments, arguments, matches
from signoff.policy.shell.quoting import requote

MAX_INNERS = 64
"""How many commands one carrier is followed into; beyond that they are not known."""

_STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"})
_PLACEHOLDER = re.compile(r"\{(?:[#%+.,/\d]*|\+?/?\.?)\}")

Words = tuple[Word, ...]


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    """What a carrier runs: `words`, a `text` (of the carrier's language, else the shell's), or a `file` of such text.

    `own` counts the words that are the carrier's. `positional` are `$1`, `$2`, ... of a text; None keeps those there
    are. `zero` is its `$0`.
    """

    own: int
    words: Words = ()
    text: str | None = None
    file: Word | None = None
    stdin: bool = False
    assignments: tuple[tuple[str, str], ...] = ()
    positional: tuple[str, ...] | None = None
    zero: str | None = None


def unwrap(carrier: Carrier, words: Words) -> list[Inner]:
    """What `carrier` runs when called with `words`; empty when it runs nothing that the words show."""
    if carrier.inner == "clauses":
        return _clauses(carrier, words)
    if carrier.inner == "itself":
        return [Inner(own=0, words=(words[0], *words[1 + (words[1:2] == (Word("--"),)) :]))]
    if carrier.inner == "definitions":
        values = [word.text.partition("=")[2] for word in words[1:] if "=" in word.text]
        return [Inner(own=len(words), text=value) for value in values]
    if carrier.words_with and (direct := _direct(carrier, words)):
        return direct
    if carrier.code_takes == "positional":
        words = _signs_alike(words)
    # su takes its options behind the user's name as well.
    stop = carrier.inner not in {"none", "behind", "pairs", "each", "first"} or carrier.file_is_code
    given = arguments(words, carrier.spec, stop=stop)
    if carrier.query and given.has(*carrier.query):
        return []
    if carrier.code_takes == "positional":
        if given.has(*carrier.code) and given.operands:
            return [_from_switch(words, given)]
        if given.has("-s"):  # its input is the text, whatever operands there are
            return [Inner(own=len(words), stdin=True, positional=tuple(word.text for _place, word in given.operands))]
    elif carrier.code and (found := _from_options(carrier, words, given)):
        return found
    return _from_operands(carrier, words, given)


def _signs_alike(words: Words) -> Words:
    """A shell's words with its options that begin with a plus, such as `+x`, as ordinary ones, but for `--`."""
    if not any(word.text[:1] == "+" for word in words):
        return words
    changed: list[Word] = []
    for place, word in enumerate(words):
        if word.text == "--":
            return (*changed, *words[place:])
        changed.append(Word("-" + word.text[1:]) if word.text[:1] == "+" and len(word.text) > 1 else word)
    return tuple(changed)


def _direct(carrier: Carrier, words: Words) -> list[Inner]:
    """`runuser -u ana -- ls`: with this option the operands are a program and its words, even behind other operands."""
    for stop in (True, False):
        given = arguments(words, carrier.spec, stop=stop)
        if given.has(*carrier.words_with) and given.operands:
            return [Inner(own=given.operands[0][0], words=tuple(word for _place, word in given.operands))]
    return []


def _from_switch(words: Words, given: Arguments) -> Inner:
    texts = [word.text for _place, word in given.operands]
    if texts[0] == "-" and len(texts) > 1:
        texts = texts[1:]  # it ends the options as two dashes do
    text, zero = (*texts[:2], "", "")[:2]
    return Inner(own=len(words), text=text, positional=tuple(texts[2:]), zero=zero or None)


def _from_options(carrier: Carrier, words: Words, given: Arguments) -> list[Inner]:
    """The texts in the values of options, every one of them."""
    found: list[Inner] = []
    for option in given.options:
        if option.value is None:
            continue
        if len(found) > MAX_INNERS:
            break
        if any(matches(option.name, name) for name in carrier.code_files):
            stdin = option.value.text in _STANDARD_INPUT
            found.append(Inner(own=len(words), file=None if stdin else option.value, stdin=stdin, positional=()))
        elif any(matches(option.name, name) for name in carrier.code):
            text = behind(option.value.text, carrier.behind) if carrier.behind else option.value.text
            if text is None:
                continue
            if carrier.code_takes == "words":
                text = text.replace("\\_", " ")  # a blank of `env -S`
                text = " ".join([text, *(requote(word.text) for _place, word in given.operands)])
            found.append(Inner(own=len(words), text=text, positional=()))
    return _followed(found)


def _followed(found: list[Inner]) -> list[Inner]:
    """The commands that are followed; where there are more, what the others run counts as not known."""
    if len(found) <= MAX_INNERS:
        return found
    return [*found[:MAX_INNERS], Inner(own=found[0].own, text=UNKNOWN, positional=())]


def behind(text: str, patterns: tuple[str, ...]) -> str | None:
    """What stands behind the first pattern that fits, upper case or lower; one `*` in it spans anything.

    Behind a bracket (`execute(`, `$(shell `) it ends with the bracket's other half.
    """
    folded = text.casefold()
    for pattern in patterns:
        head, star, tail = pattern.partition("*")
        if not folded.startswith(head):
            continue
        at = folded.find(tail, len(head)) if star else 0
        if at >= 0:
            start = at + len(tail) if star else len(head)
            if tail == "#(":
                return _jobs(text[start:])
            return _within(text[start:]) if pattern[-1] in "( " else text[start:]
    return None


_PLAIN_JOB = re.compile(r"[\w ./:%+,-]*")
"""A command that cannot reach into one that stands on the next line."""


def _jobs(text: str) -> str:
    """The commands of a text of tmux (`#(date) | #(uptime)`) from behind the first `#(`, each on a line of its own."""
    first, *others = text.split("#(")
    if not others:
        return _to_other_half(first)
    jobs = [each.partition(")") for each in (first, *others)]
    plain = all(bracket and _PLAIN_JOB.fullmatch(job) for job, bracket, _following in jobs)
    return "\n".join(job for job, _bracket, _following in jobs) if plain else f"{UNKNOWN}\n{text}"


def _to_other_half(text: str) -> str:
    """The text up to the bracket that closes one before it, as tmux counts them: whatever is quoted."""
    depth = 1
    for match in _BRACKET.finditer(text):
        depth += 1 if match.group() == "(" else -1
        if not depth:
            return text[: match.start()]
    return text


_BRACKET = re.compile(r"[()]")
_NO_MORE = re.compile(r"[\w\s%+.,-]*")
"""What may follow a bracket and is no other command."""


def _within(text: str) -> str:
    """The text up to its last closing bracket, unless more than plain words follow."""
    inside, bracket, following = text.rpartition(")")
    return inside if bracket and _NO_MORE.fullmatch(following) else text


def _from_operands(carrier: Carrier, words: Words, given: Arguments) -> list[Inner]:
    operands = list(given.operands)
    if carrier.inner in {"none", "behind", "pairs"}:
        return _from_texts(carrier, words, operands)
    if carrier.only_behind:
        operands = _behind_mark(words, carrier.only_behind)
    # docker-like options name the program; su-like ones stand between the operands that are skipped.
    texts = [word.text for _place, word in operands[carrier.skip : carrier.skip + 2]]
    if (carrier.skip or carrier.only_behind) and len(texts) > 1 and texts[0] in carrier.code:
        return [Inner(own=len(words), text=texts[1], positional=())]
    assigned: list[tuple[str, str]] = []
    while carrier.assignments and operands and is_assignment(operands[0][1].text):
        name, _equals, value = operands.pop(0)[1].text.partition("=")
        assigned.append((name, value))
    named = given.value(carrier.program_option) if carrier.program_option else None
    if named is not None and named.value is not None:
        operands = operands[carrier.skip :]
        own = operands[0][0] if operands else len(words)
        return [Inner(own=own, words=(named.value, *(word for _place, word in operands)))]
    if carrier.skip and operands and _skips(carrier, *operands[0]):
        operands = _options_after_skip(carrier, operands)
    if len(operands) < carrier.min_operands:
        return _without_command(carrier, words)
    return _operands(carrier, words, operands, tuple(assigned))


def _operands(
    carrier: Carrier, words: Words, operands: list[tuple[int, Word]], assigned: tuple[tuple[str, str], ...]
) -> list[Inner]:
    inner = tuple(word for _place, word in operands)
    if carrier.not_with and carrier.not_with in inner[0].text:
        return []
    if carrier.inner == "template":
        return _template(words, inner, operands[0][0])
    if carrier.inner == "first":
        return [Inner(own=len(words), text=inner[0].text)] if inner[0].text != "-" else []
    if carrier.inner == "each":
        return _followed([Inner(own=len(words), text=word.text) for word in inner])
    if carrier.inner == "text":
        return [Inner(own=operands[0][0], text=" ".join(word.text for word in inner))]
    return [Inner(own=operands[0][0], words=inner, assignments=assigned)]


def _without_command(carrier: Carrier, words: Words) -> list[Inner]:
    """A carrier that got no command runs its default one, or a shell that reads its input, or nothing."""
    if carrier.inner == "template":
        return [Inner(own=len(words), text="")]
    if carrier.default:
        return [Inner(own=len(words), words=(Word(carrier.default),))]
    return [Inner(own=len(words), stdin=True)] if carrier.stdin_is == "code" else []


def _skips(carrier: Carrier, place: int, word: Word) -> bool:
    """Whether the first operand is one that stands before the program, where that may be missing."""
    if carrier.skips == "first":
        return place == 1
    return carrier.skips == "any" or word.text[:1].isdecimal() or word.text.startswith(UNKNOWN)


def _options_after_skip(carrier: Carrier, operands: list[tuple[int, Word]]) -> list[tuple[int, Word]]:
    """Leave out the operands before the program (a duration, a host), and options and `--` between them and it."""
    operands = operands[carrier.skip :]
    while operands and operands[0][1].text.startswith("-") and len(operands[0][1].text) > 1:
        text = operands.pop(0)[1].text
        if text == "--":
            break
        letter = text.lstrip("-")
        takes_value = letter in carrier.long_values if text.startswith("--") else letter[-1:] in carrier.short_values
        if takes_value and "=" not in text and operands:
            operands.pop(0)
    return operands


def _from_texts(carrier: Carrier, words: Words, operands: list[tuple[int, Word]]) -> list[Inner]:
    """A program whose operands are no command: text behind a mark in one, a file of code, or its standard input."""
    if carrier.inner != "none":
        texts = [word.text for _place, word in operands]
        if carrier.inner == "pairs":
            texts = [f"{first}={second}" for first, second in pairwise(texts)]
        texts = [text for given in texts if (text := behind(given, carrier.behind)) is not None]
        return _followed([Inner(own=len(words), text=text) for text in texts])
    if carrier.file_is_code and operands and operands[0][1].text not in _STANDARD_INPUT:
        rest = tuple(word.text for _place, word in operands[1:])
        return [Inner(own=len(words), file=operands[0][1], positional=rest)]
    if carrier.stdin_is != "code":
        return []
    return [Inner(own=len(words), stdin=True, positional=tuple(word.text for _place, word in operands[1:]))]


def _behind_mark(words: Words, mark: str) -> list[tuple[int, Word]]:
    for place, word in enumerate(words):
        if word.text == mark:
            return list(enumerate(words))[place + 1 :]
    return []


def is_assignment(text: str) -> bool:
    """Whether the text is `NAME=value`."""
    name, equals, _value = text.partition("=")
    return bool(equals) and name.replace("_", "a").isalnum() and not name[:1].isdigit()


_MORE_THAN_A_NAME = re.compile(r"[\s/;|&`$\\<>(]|\x00")
"""What no word has that a program would take for something else than a command."""


def named(words: Words, options: list[tuple[int, str, str, str]], own: int) -> list[Inner]:
    """The commands in the values of options whose names say so, of any program, among the first `own` words.

    A bare word behind such an option counts only where it is joined to it: else it may be an operand of its own.
    """
    found: list[Inner] = []
    for place, _name, equals, value in options:
        if place >= own:
            break
        following = words[place + 1].text if not equals and place + 1 < own else ""
        text = value if equals else following
        if text and (equals or (text[:1] != "-" and _MORE_THAN_A_NAME.search(text))):
            found.append(Inner(own=len(words), text=text, positional=()))
    return _followed(found)


def _clauses(carrier: Carrier, words: Words) -> list[Inner]:
    """The commands of find's `-exec` clauses and their like; `{}` stands for what is only known when they run."""
    found: list[Inner] = []
    start, given = 0, words
    if carrier.again:
        words = _separated(words)
    for place, word in enumerate(words):
        if start and word.text in carrier.clause_ends:
            found.append(_clause(carrier, given, words[start:place]))
            start = place + 1 if word.text in carrier.clause_starts else 0
        elif not start and place:
            name, equals, value = word.text.partition("=")
            if name in carrier.clause_starts:
                start = place + 1
                if equals:  # `--exec=rm`
                    found.append(_clause(carrier, given, (Word(value), *words[start:])))
                    start = 0
    if start and start < len(words):
        found.append(_clause(carrier, given, words[start:]))
    return _followed(found)


def _separated(words: Words) -> Words:
    """The words with a `;` at the end of one as a word of its own, as tmux reads it."""
    found: list[Word] = []
    for word in words:
        ends = word.text[-1:] == ";" and len(word.text) > 1
        found += (Word(word.text[:-1]), Word(";")) if ends else (word,)
    return tuple(found)


def _clause(carrier: Carrier, words: Words, inside: Words) -> Inner:
    inner = tuple(Word(_PLACEHOLDER.sub(UNKNOWN, word.text), pattern=word.pattern) for word in inside)
    if carrier.again:
        inner = (words[0], *inner)
    if carrier.appends and not any(UNKNOWN in word.text for word in inner):
        inner = (*inner, Word(UNKNOWN, many=True))
    return Inner(own=len(words), words=inner)


def _template(words: Words, inner: Words, own: int) -> list[Inner]:
    """parallel: a template of shell text, then `:::` and its arguments, or files of them, or standard input."""
    texts = [word.text for word in inner]
    at = next((place for place, text in enumerate(texts) if re.fullmatch(r":::+\+?", text)), None)
    template = " ".join(texts[:at])
    if at is None:
        return [Inner(own=own, text=template)]
    from_files = texts[at].startswith("::::")
    given = [UNKNOWN] if from_files else [text for text in texts[at + 1 :] if not re.fullmatch(r":::+\+?", text)]
    if len(given) > MAX_INNERS:
        given = [UNKNOWN]
    return [Inner(own=own, text=filled(template, text)) for text in given]


def filled(template: str, argument: str) -> str:
    """The shell text that parallel makes of its template with one argument; without a template it is the argument."""
    if not template.strip():
        return argument
    quoted = argument if UNKNOWN in argument else requote(argument)
    if _PLACEHOLDER.search(template) is None:
        return f"{template} {quoted}"
    return _PLACEHOLDER.sub(lambda match: quoted if match.group() == "{}" else UNKNOWN, template)
