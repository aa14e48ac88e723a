"""What people read about an action: what it does, how grave that is, and how far a standing approval would reach."""

from __future__ import annotations

from functools import lru_cache

from signoff.policy import unknown
from signoff.policy.contexts import Subject
from signoff.policy.findings import Findings
from signoff.policy.path_classes import CLASSES
from signoff.policy.protected import PROTECTED_KEY, fits_some, is_protected, plain_path
from signoff.policy.shell import UNKNOWN, Script, Word
from signoff.policy.verdict import MAX_LABEL_CHARS, Severity, graver

MAX_NAME_CHARS = 40
"""The longest name of a tool, file or server in a description."""
MAX_TOLD_CHARS = 106
"""Reasons are named one behind the other as long as they stay within this; a card's first line has no more room."""
MAX_FILES = 1000
"""So many files of one change are looked at, each for what it is: some 20 ms. A change of more is asked for."""
MAX_PROGRAMS = 3
"""As many programs of one command are named; the rest is counted."""

_LANGUAGES = {"python": "Python", "py": "Python", "javascript": "JavaScript", "js": "JavaScript"}

_FILE_CLASSES: tuple[tuple[str, str], ...] = (
    ("startup_file", "a file that is run at every start"),
    ("ssh_material", "a file that decides who may log in"),
    ("secret_file", "a file that holds secrets"),
    ("system_config", "a file of the system's configuration"),
    ("executable_folder", "a program that others start"),
)
"""Classes of files whose change is grave, and what people are told of it."""


def describe(subject: Subject) -> tuple[str, Severity]:
    """The sentence and the severity of the action."""
    text = subject.text
    if subject.action_kind == "command":
        return _command(subject)
    if subject.action_kind == "code":
        return _code(subject)
    if subject.action_kind == "tool":
        return f"calls tool {short(text, MAX_NAME_CHARS)}", "medium"
    if subject.action_kind == "file_write":
        return _file(subject)
    if subject.action_kind == "rule":
        return f"plugin rule {short(text, MAX_NAME_CHARS)} asks", "medium"
    return f"answers a question from {short(text, MAX_NAME_CHARS)}", "medium"


def rule_keys(subject: Subject) -> tuple[str, ...]:
    """The keys of the rules that ask for this action, the gravest first."""
    if subject.action_kind == "file_write":
        return tuple(f"file.{name}" for name, _told in _classes(subject))
    return subject.rule_keys


def reasons(subject: Subject) -> tuple[str, ...]:
    """A line for each thing that was seen."""
    problems = tuple(f"The text cannot be understood: {problem}." for problem in subject.script.problems)
    found = subject.found
    if subject.action_kind == "file_write":
        return tuple(f"`{short(subject.text)}` is {told}. (rule file.{name})" for name, told in _classes(subject))
    if not subject.read_as_meant:
        shell = short(subject.context.shell or "", MAX_NAME_CHARS)
        read_as = subject.context.read_as
        problems = (*problems, f"It is read as {read_as} reads it, and `{shell}` may mean something else by it.")
    return (*problems, *(found.why if found is not None else ()))


def reach(subject: Subject) -> tuple[str, str, tuple[str, ...]]:
    """Label, breadth and coverage of a session's approval; empty where only the exact action can be covered."""
    text = subject.text
    if subject.action_kind == "code":
        language = _language(subject)
        plain = _plain_name(language, MAX_LABEL_CHARS - len("any  code"))
        name = language if plain else "such"
        return f"any {name} code", f"Any {name} code", (f"code:{subject.context.language.casefold()}",)
    if subject.action_kind == "tool":
        label = f"tool {text}" if _plain_name(text, MAX_LABEL_CHARS - len("tool ")) else "this tool"
        return label, f"Any call of tool {short(text, MAX_NAME_CHARS)}", (f"tool:{text}",)
    if subject.action_kind == "rule":
        told = f"Whatever plugin rule {short(text, MAX_NAME_CHARS)} asks about"
        return "this plugin rule", told, (f"rule:{text}",)
    found = subject.found
    if found is None or subject.action_kind != "command" or not subject.understood:
        return "", "", ()
    return found.label, found.breadth, found.coverage


def _plain_name(text: str, limit: int) -> bool:
    """Whether a name can stand on a button as it is."""
    return len(text) <= limit and text.isascii() and text.isprintable() and text.strip() == text != ""


def _command(subject: Subject) -> tuple[str, Severity]:
    script, found = subject.script, subject.found
    told = _sentences(found) if found is not None else []
    unread = _unread(script)
    grave = sum(severity in {"high", "critical"} for _sentence, severity in told)
    if unread is not None and (script.problems or not grave):
        told.insert(grave, (f"cannot be understood: {unread}", "high"))
    if not told:
        return _programs(script), "low" if found is not None else "medium"
    return _joined(told, MAX_TOLD_CHARS), told[0][1]


def _sentences(found: Findings) -> list[tuple[str, Severity]]:
    """What each finding says, the gravest first, the same words once."""
    told: dict[tuple[str, str], tuple[str, Severity]] = {}
    for each in found.all:
        rule, program = each.rule, each.program if unknown.names(each.rule) else ""
        if (rule.sentence, program) not in told:
            told[rule.sentence, program] = unknown.named(rule, _base_name(program)), rule.severity
    return list(told.values())


def _joined(told: list[tuple[str, Severity]], room: int) -> str:
    """As many of the sentences as fit, and the number of the others."""
    text, shown = told[0][0], 1
    for count, (sentence, _severity) in enumerate(told[1:], 2):
        longer = f"{text}, and {sentence}"
        if len(longer) + len(_others(len(told) - count)) > room:
            break
        text, shown = longer, count
    return text + _others(len(told) - shown)


def _others(count: int) -> str:
    if not count:
        return ""
    return f", and {count} more {'reason' if count == 1 else 'reasons'}"


def _unread(script: Script) -> str | None:
    """Why it is not known what the text would do."""
    if script.problems:
        return script.problems[0]
    if not script.opaque:
        return None
    what = script.opaque[0]
    if what == "the program":
        return "the program is only known when it runs"
    return f"{short(what, MAX_NAME_CHARS)} runs text that is only known then"


def _programs(script: Script) -> str:
    names = [command.words[0].text for command in script.commands if command.words]
    if not names:
        return "runs no program"
    if len(names) == 1:
        return _one_program(names[0])
    programs = list(dict.fromkeys(name.rpartition("/")[2] or name for name in names))
    listed = ", ".join(short(name, MAX_NAME_CHARS) for name in programs[:MAX_PROGRAMS])
    more = len(programs) - MAX_PROGRAMS
    return f"runs {listed} and {more} more" if more > 0 else f"runs {listed}"


@lru_cache(maxsize=256)
def _one_program(name: str) -> str:
    return f"runs {_base_name(name)}"


def _base_name(name: str) -> str:
    return short(name.rpartition("/")[2] or name, MAX_NAME_CHARS)


def _language(subject: Subject) -> str:
    given = subject.context.language
    return _LANGUAGES.get(given.casefold()) or short(given, MAX_NAME_CHARS)


def _code(subject: Subject) -> tuple[str, Severity]:
    found = subject.found
    lines = max(1, len(subject.text.splitlines()))
    language = _language(subject)
    code = f"{language[:1].upper()}{language[1:]} code, {'1 line' if lines == 1 else f'{lines} lines'}".lstrip()
    told = _sentences(found) if found is not None else []
    if not told:
        return f"runs {code}", "medium"
    both = f"{_joined(told, MAX_TOLD_CHARS - len(f' ({code})'))} ({code})"
    fits = len(both) <= MAX_TOLD_CHARS
    return both if fits else _joined(told, MAX_TOLD_CHARS), graver("medium", told[0][1])


def _classes(subject: Subject) -> list[tuple[str, str]]:
    """The grave classes that a written file belongs to, by its own path and those its change names."""
    facts, cwd = subject.facts.paths, subject.context.cwd
    words = [Word(path) for path in (subject.text, *subject.context.files[:MAX_FILES])]
    found = [(name, told) for name, told in _FILE_CLASSES if any(CLASSES[name](word, cwd, facts) for word in words)]
    if any(protected_file(subject, word.text) for word in words):
        found.insert(0, (PROTECTED_KEY.partition(".")[2], "a protected file"))
    if len(subject.context.files) > MAX_FILES:
        found.append(("many", "one of more files than are looked at"))
    return found


def protected_file(subject: Subject, path: str) -> bool:
    """Whether a path is one of the files that tell agents how to behave, or one that the operator protects as those."""
    context = subject.context
    if fits_some(path, context.protected_files):
        return True
    if not context.protect_instructions:
        return False
    if is_protected(path):
        return True
    facts, cwd = subject.facts.paths, context.cwd
    return any(CLASSES["policy_file"](Word(each), cwd, facts) for each in {path, plain_path(path)})


def _file(subject: Subject) -> tuple[str, Severity]:
    told = f"changes {short(subject.text, MAX_NAME_CHARS)}"
    classes = _classes(subject)
    return (f"{told}, {classes[0][1]}", "high") if classes else (told, "medium")


def short(text: str, limit: int = 120) -> str:
    """A text on one line, cut behind a word within `limit` characters: nobody knows a piece of a secret for one."""
    if len(text) <= limit and text.isprintable() and "  " not in text and text == text.strip():
        return text  # nothing in it has to be replaced
    plain = " ".join(text.replace(UNKNOWN, "…").split())
    if len(plain) <= limit:
        return plain
    head, blank, _rest = plain[:limit].rpartition(" ")
    return f"{head} …" if blank else f"{plain[: limit - 1]}…"
