"""From a rule to the few tests that tell whether it fires on a command."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from signoff.policy import predicates
from signoff.policy.path_classes import CLASSES, TEXT_CLASSES
from signoff.policy.rule import Program, Rule
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.options import Arguments, Marks, Option, OptionSpec, arguments

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
    """A rule with its tests, cheap ones first; `own` says that the operator wrote it. `by_class`: it only looks at
    redirections whose text is of some class. `needs` are tests that other rules share, and `options` sets of which one
    is given in each, wherever it fires."""

    __slots__ = ("asks", "by_class", "firsts", "general", "needs", "options", "own", "rule", "tests")

    def __init__(self, rule: Rule, *, own: bool = False) -> None:
        """Work out the tests once."""
        self.rule = rule
        self.own = own
        self.asks = rule.verdict != "allow"
        self.general = not rule.programs
        named = (*rule.writes, *rule.reads)
        self.by_class = bool(named) and not rule.unknown and TEXT_CLASSES.issuperset(named)
        self.firsts = None if rule.unknown else first_words(rule.subcommands)
        self.tests = tuple(_tests(rule))
        self.needs = tuple(_needs(rule))
        self.options = tuple(map(frozenset, _options_needed(rule)))

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


def _needs(rule: Rule) -> Iterable[Test]:
    """What is true wherever the rule fires, told without its options."""
    known = predicates.needs()
    yield from (need for name in rule.only_if if callable(need := known.get(name)))
    if rule.chain:
        yield _is_carried
    if rule.fed:
        yield _is_fed
    if rule.assigns:
        yield _may_assign


def _is_carried(seen: Seen) -> bool:
    return bool(seen.command.chain)


def _is_fed(seen: Seen) -> bool:
    return seen.command.fed


def _may_assign(seen: Seen) -> bool:
    return bool(seen.command.assignments) or seen.name in DECLARERS


def _options_needed(rule: Rule) -> Iterable[tuple[str, ...]]:
    """Sets of options one of which is given wherever the rule fires; one that is not known may be any option."""
    if rule.flags and not rule.unknown:
        yield rule.flags
    yield from ((flag,) for flag in rule.all_flags if not rule.unknown)
    known = predicates.needs()
    yield from (names for name in rule.only_if if isinstance(names := known.get(name), tuple))
    if rule.option_values and (rule.words or rule.prefixes or rule.contains or rule.operands):
        yield rule.option_values


class Group:
    """The rules of one program that read its options alike, found by the first two operands, by the options given that
    one of them names, and by what they need."""

    __slots__ = (
        "_by_first", "_by_words", "_kept", "_marks", "_masks", "_needs", "_only_options", "_options", "_rest",
        "_seconds", "read",
    )  # fmt: skip

    def __init__(self, how: Reading, rules: Sequence[Compiled]) -> None:
        """Index the rules, each list in their order."""
        self.read = how.read
        self._rest = tuple(rule for rule in rules if rule.firsts is None)
        words = {word for rule in rules for word in rule.firsts or ()}
        self._by_first = {
            word: tuple(rule for rule in rules if rule.firsts is None or word in rule.firsts) for word in words
        }
        self._seconds = _second_words(rules)
        self._needs = tuple(dict.fromkeys(need for rule in rules for need in rule.needs))
        bits = {need: 1 << place for place, need in enumerate(self._needs)}
        self._masks = {rule: sum(bits[need] for need in dict.fromkeys(rule.needs)) for rule in rules}
        self._by_words: dict[tuple[str, str], tuple[Compiled, ...]] = {}
        self._options = frozenset(name for rule in rules for names in rule.options for name in names)
        self._marks = Marks(self._options)
        self._only_options = all(rule.options for rule in rules)
        self._kept: dict[tuple[str, str, int, frozenset[str]], tuple[Compiled, ...]] = {}

    def add_fired(self, seen: Seen, deadline: Deadline, found: list[tuple[Compiled, Seen]]) -> None:
        """Add the rules that fire; one whose subcommand is not there is never looked at. Raises `OutOfTimeError`."""
        many = len(seen.words) > MANY_WORDS or len(seen.command.source) > MANY_CHARS
        if many or len(seen.script.commands) > 1:  # what one command sets, another may take for a long word
            deadline.check()
        for compiled in self._candidates(seen, deadline if many else None):
            if many:
                deadline.check()
            for test in compiled.tests:
                if not test(seen):
                    break
            else:
                found.append((compiled, seen))

    def _candidates(self, seen: Seen, deadline: Deadline | None) -> tuple[Compiled, ...]:
        """The rules that may fire: which these are is remembered, and what they look at is not touched for others."""
        if not (self._by_first or self._needs or self._options):
            return self._rest
        has_option = bool(self._options) and self._marks.may_be_in(seen.words)
        if self._only_options and not has_option:
            return ()
        first = second = ""
        if self._by_first and (operands := seen.operands) and operands[0].text in self._by_first:
            first = operands[0].text
            if len(operands) > 1 and operands[1].text in self._seconds[first]:
                second = operands[1].text
        met, bit = 0, 1
        for need in self._needs:
            if deadline is not None:
                deadline.check()
            if need(seen):
                met |= bit
            bit <<= 1
        options = seen.given_of(self._options) if has_option else _NO_OPTIONS
        key = (first, second, met, options)
        found = self._kept.get(key)
        if found is None:
            found = tuple([rule for rule in self._with_words(first, second) if self._may_fire(rule, met, options)])
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def _with_words(self, first: str, second: str) -> tuple[Compiled, ...]:
        found = self._by_words.get((first, second))
        if found is None:
            rules = self._by_first.get(first, self._rest)
            found = self._by_words[first, second] = tuple(rule for rule in rules if _fits(rule, first, second))
        return found

    def _may_fire(self, rule: Compiled, met: int, options: frozenset[str]) -> bool:
        if self._masks[rule] & ~met:
            return False
        return not any(options.isdisjoint(names) for names in rule.options)


def _second_words(rules: Iterable[Compiled]) -> dict[str, set[str]]:
    """The second words of subcommands by their first ones."""
    found: dict[str, set[str]] = {}
    for rule in rules:
        for entry in rule.rule.subcommands if rule.firsts is not None else ():
            first, *behind = entry.split()
            found.setdefault(first, set()).update(behind[:1])
    return found


def _fits(compiled: Compiled, first: str, second: str) -> bool:
    """Whether a rule may have a subcommand that begins with these; `second` is empty where no subcommand names it."""
    if compiled.firsts is None:
        return True
    entries = [parts for parts in map(str.split, compiled.rule.subcommands) if parts[0] == first]
    return any(len(parts) == 1 or parts[1] == second or parts[1].endswith("*") for parts in entries)


_NO_OPTIONS: frozenset[str] = frozenset()
_MAX_KEPT = 512
"""How many ways to call a program are kept at hand."""


def _tests(rule: Rule) -> Iterable[Test]:
    consumed = _Subcommand(rule.subcommands, unknown=rule.unknown) if rule.subcommands else None
    if consumed is not None:
        yield consumed.fits
    yield from _surroundings(rule)
    redirects = [
        (_redirects(names, writes=writes, unknown=rule.unknown), TEXT_CLASSES.issuperset(names))
        for names, writes in ((rule.writes, True), (rule.reads, False))
        if names
    ]
    yield from (test for test, cheap in redirects if cheap)
    yield from _options(rule)
    yield from _operands(rule, consumed)
    known = predicates.table()
    for name in rule.only_if:
        yield known[name]
    for name in rule.unless:
        yield _negated(known[name])
    yield from (test for test, cheap in redirects if not cheap)
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
        if textual and not textual.isdisjoint(seen.redirected_classes(writes=writes)):
            return True
        if not classes and not unknown:
            return False
        cwd, facts = seen.command.cwd, seen.facts.paths
        for redirect in seen.command.redirects:
            if redirect.writes is writes:
                target = redirect.target
                if (unknown and UNKNOWN in target.text) or any(check(target, cwd, facts) for check in classes):
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
