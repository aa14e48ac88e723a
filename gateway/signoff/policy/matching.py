"""From a rule to the few tests that tell whether it fires on a command."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from signoff.policy import predicates
from signoff.policy.path_classes import CLASSES, TEXT_CLASSES, text_classes
from signoff.policy.rule import Program, Rule
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.options import Arguments, Option, OptionSpec, arguments

Test = Callable[[Seen], bool]
WordTest = Callable[[Word, Seen], bool]

MANY_WORDS = 128
"""From so many words on, the time is looked at between two rules: 10,000 words take a rule up to 30 ms (measured)."""

MANY_CHARS = 1024
"""From so long a command on, too: a rule may search all of it."""

DECLARERS = frozenset({"export", "declare", "typeset", "readonly", "local", "setenv", "set"})
"""Programs whose operands `NAME=value` are assignments."""


class Reading(msgspec.Struct, frozen=True):
    """How the options of a program are read: those before the first operand by `leading`, where that is given."""

    spec: OptionSpec
    leading: OptionSpec | None = None

    def read(self, words: tuple[Word, ...]) -> Arguments:
        """The options and operands behind the program."""
        if self.leading is None or len(words) < 2 or words[1].text[:1] != "-":
            return arguments(words, self.spec)  # nothing stands before the first operand
        head = arguments(words, self.leading, stop=True)
        if len(head.operands) < 2:
            return head
        tail = arguments(words[head.rest :], self.spec)
        shift = head.rest
        options = [Option(option.name, option.value, option.index + shift) for option in tail.options]
        operands = [(place + shift, word) for place, word in tail.operands]
        return Arguments((*head.options, *options), (head.operands[0], *operands), shift)


def reading(rule: Rule, program: Program | None) -> Reading:
    """How a rule reads a program's options: as the program's own row says, and as the rule adds."""
    if program is None:
        spec = OptionSpec(short_values=rule.short_values, long_values=rule.long_values, long_single=rule.long_single)
        return Reading(spec)
    spec = OptionSpec(
        short_values="".join(sorted({*program.short_values, *rule.short_values})),
        long_values=tuple(dict.fromkeys((*program.long_values, *rule.long_values))),
        long_single=program.long_single or rule.long_single,
    )
    if not program.leading_short and not program.leading_long:
        return Reading(spec)
    leading = OptionSpec(
        short_values=program.leading_short, long_values=program.leading_long, long_single=program.long_single
    )
    return Reading(spec, leading)


class Compiled:
    """A rule with its tests, cheap ones first; `own` says that the operator wrote it."""

    __slots__ = ("asks", "firsts", "general", "own", "rule", "tests")

    def __init__(self, rule: Rule, *, own: bool = False) -> None:
        """Work out the tests once."""
        self.rule = rule
        self.own = own
        self.asks = rule.verdict != "allow"
        self.general = not rule.programs
        self.firsts = None if rule.unknown else first_words(rule.subcommands)
        self.tests = tuple(_tests(rule))

    def fires(self, seen: Seen) -> bool:
        """Whether everything the rule says is true of the command."""
        for test in self.tests:  # noqa: SIM110  # a generator would cost more than the tests
            if not test(seen):
                return False
        return True


def first_words(entries: tuple[str, ...]) -> frozenset[str] | None:
    """The possible first words of a subcommand, or None when any word may be the first."""
    first = frozenset(entry.split()[0] for entry in entries)
    return None if not first or any(word.endswith("*") for word in first) else first


class Group:
    """The rules of one program that read its options alike, found by the first operand."""

    __slots__ = ("_by_first", "_rest", "read")

    def __init__(self, how: Reading, rules: Sequence[Compiled]) -> None:
        """Index the rules, each list in their order."""
        self.read = how.read
        self._rest = tuple(rule for rule in rules if rule.firsts is None)
        words = {word for rule in rules for word in rule.firsts or ()}
        self._by_first = {
            word: tuple(rule for rule in rules if rule.firsts is None or word in rule.firsts) for word in words
        }

    def add_fired(self, seen: Seen, deadline: Deadline, found: list[tuple[Compiled, str]]) -> None:
        """Add the rules that fire; one whose subcommand is not there is never looked at. Raises `OutOfTimeError`."""
        candidates = self._rest
        if self._by_first:
            operands = seen.operands
            if operands:
                candidates = self._by_first.get(operands[0].text, candidates)
        many = len(seen.words) > MANY_WORDS or len(seen.command.source) > MANY_CHARS
        for compiled in candidates:
            if many:
                deadline.check()
            for test in compiled.tests:
                if not test(seen):
                    break
            else:
                found.append((compiled, seen.name))


def _tests(rule: Rule) -> Iterable[Test]:
    consumed = _Subcommand(rule.subcommands, unknown=rule.unknown) if rule.subcommands else None
    if consumed is not None:
        yield consumed.fits
    yield from _surroundings(rule)
    yield from _options(rule)
    yield from _operands(rule, consumed)
    known = predicates.table()
    for name in rule.only_if:
        yield known[name]
    for name in rule.unless:
        yield _negated(known[name])
    for fits in _class_tests(rule):
        yield _some_target(rule, consumed, fits)


def _negated(test: Test) -> Test:
    return lambda seen: not test(seen)


def _surroundings(rule: Rule) -> Iterable[Test]:
    """Tests of what stands around the command."""
    if rule.place:
        yield lambda seen: seen.command.place == rule.place
    if rule.fed is not None:
        yield lambda seen: seen.command.fed is rule.fed
    if rule.chain:
        wrappers = frozenset(rule.chain)
        yield lambda seen: not wrappers.isdisjoint(seen.command.chain)
    if rule.assigns:
        fits = any_ending(rule.assigns)
        yield lambda seen: any(map(fits, assigned_names(seen)))
    for field, writes in ((rule.writes, True), (rule.reads, False)):
        if field:
            yield _redirects(field, writes=writes, unknown=rule.unknown)


def assigned_names(seen: Seen) -> list[str]:
    """The names that are set before the program, or by a declaration."""
    names = [name for name, _value in seen.command.assignments]
    if seen.name in DECLARERS:
        names += [text.partition("=")[0] for text in (word.text for word in seen.words[1:]) if "=" in text]
    return names


def any_ending(names: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a text is one of the names, where a star at the end is any ending."""
    whole = frozenset(name for name in names if not name.endswith("*"))
    stems = tuple(name[:-1] for name in names if name.endswith("*"))
    if not stems:
        return whole.__contains__
    return lambda text: text in whole or text.startswith(stems)


def _redirects(names: tuple[str, ...], *, writes: bool, unknown: bool) -> Test:
    textual = TEXT_CLASSES.intersection(names)
    classes = [CLASSES[name] for name in names if name not in TEXT_CLASSES]

    def fits(seen: Seen) -> bool:
        command = seen.command
        for redirect in command.redirects:
            if redirect.writes is not writes:
                continue
            if unknown and UNKNOWN in redirect.target.text:
                return True
            facts = seen.facts.paths
            if textual and not textual.isdisjoint(text_classes(redirect.target, command.cwd, facts)):
                return True
            if classes and any(check(redirect.target, command.cwd, facts) for check in classes):
                return True
        return False

    return fits


class _Subcommand:
    """How many of the first operands are the subcommand."""

    def __init__(self, entries: tuple[str, ...], *, unknown: bool) -> None:
        self.single = frozenset(entry for entry in entries if " " not in entry and not entry.endswith("*"))
        longer = [entry.split() for entry in entries if entry not in self.single]
        starts = {parts[0] for parts in longer if not parts[0].endswith("*")}
        self.longer = {start: self._behind(longer, start) for start in starts}
        self.starred = self._behind(longer, "")
        self.starts = first_words(entries)
        self.unknown = unknown

    @staticmethod
    def _behind(entries: list[list[str]], first: str) -> list[list[Callable[[str], bool]]]:
        """The tests of the entries that may begin with a word, in their order."""
        fitting = (parts for parts in entries if parts[0] == first or parts[0][-1] == "*")
        return [[any_ending((part,)) for part in parts] for parts in fitting]

    def fits(self, seen: Seen) -> bool:
        """Whether the command has one of the subcommands."""
        return self.count(seen) > 0

    def count(self, seen: Seen) -> int:
        """The operands it takes; 0 when it is not there."""
        operands = seen.operands
        if not operands:
            return 0
        first = operands[0].text
        if self.unknown and UNKNOWN in first:
            return 1
        if first in self.single:
            return 1
        if self.starts is not None and first not in self.starts:
            return 0
        for parts in self.longer.get(first, self.starred):
            if len(operands) >= len(parts) and all(
                fits(operand.text) or (self.unknown and UNKNOWN in operand.text)
                for fits, operand in zip(parts, operands, strict=False)
            ):
                return len(parts)
        return 0


def _options(rule: Rule) -> Iterable[Test]:
    """Tests of the options."""
    if rule.flags:
        some = frozenset(rule.flags)
        if rule.unknown:
            yield lambda seen: seen.has_any(some) or seen.perhaps_options
        else:
            yield lambda seen: seen.has_any(some)
    for flag in rule.all_flags:
        yield _one_flag(frozenset({flag}), unknown=rule.unknown)
    if rule.without:
        none = frozenset(rule.without)
        if rule.verdict == "allow":
            yield lambda seen: not seen.has_any(none) and not seen.perhaps_options
        else:
            yield lambda seen: not seen.has_any(none)


def _one_flag(flag: frozenset[str], *, unknown: bool) -> Test:
    return lambda seen: seen.has_any(flag) or (unknown and seen.perhaps_options)


def _operands(rule: Rule, subcommand: _Subcommand | None) -> Iterable[Test]:
    """Tests of the operands behind the subcommand, or of the values of options."""
    if rule.min_operands or rule.max_operands is not None:
        least, most = rule.min_operands, rule.max_operands
        yield _counts(subcommand, least, most)
    for fits in _word_tests(rule):
        yield _some_target(rule, subcommand, fits)


def _counts(subcommand: _Subcommand | None, least: int, most: int | None) -> Test:
    def fits(seen: Seen) -> bool:
        found = len(seen.operands) - (subcommand.count(seen) if subcommand else 0)
        return found >= least and (most is None or found <= most)

    return fits


def _class_tests(rule: Rule) -> Iterable[WordTest]:
    """The dearest tests, which come last."""
    if not rule.operands:
        return
    classes = [CLASSES[name] for name in rule.operands]
    only = classes[0]
    if len(classes) == 1:
        yield lambda word, seen: only(word, seen.command.cwd, seen.facts.paths)
    else:
        yield lambda word, seen: any(check(word, seen.command.cwd, seen.facts.paths) for check in classes)


def _word_tests(rule: Rule) -> Iterable[WordTest]:
    if rule.words:
        whole = frozenset(rule.words)
        yield lambda word, _seen: word.text in whole
    if rule.prefixes:
        yield lambda word, _seen: word.text.startswith(rule.prefixes)
    if rule.contains:
        yield lambda word, _seen: any(part in word.text for part in rule.contains)


def _some_target(rule: Rule, subcommand: _Subcommand | None, fits: WordTest) -> Test:
    """Whether one of the words the rule looks at passes."""
    value_of, names, unknown = rule.value_of, rule.option_values, rule.unknown

    def test(seen: Seen) -> bool:
        if names:
            targets = seen.values(*names)
        else:
            targets = seen.operands[subcommand.count(seen) :] if subcommand else seen.operands
        for word in targets:
            if unknown and UNKNOWN in word.text:
                return True
            if not value_of:
                if fits(word, seen):
                    return True
            elif word.text.startswith(value_of) and fits(Word(word.text[len(value_of) :]), seen):
                return True
        return False

    return test
