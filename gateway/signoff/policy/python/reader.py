"""Reads Python code into the calls that rules speak of and the commands it would start."""

import ast
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from signoff.policy.python import flows
from signoff.policy.python.commands import started
from signoff.policy.python.folding import canonical
from signoff.policy.python.model import ANYTHING, Call, EventKind, PythonScript, Ref, Seq, Value, Values
from signoff.policy.python.names import Scope, Walker
from signoff.policy.python.results import of_call
from signoff.policy.python.rule import CodeRules, Passer, shipped
from signoff.policy.python.source import UnreadableError, parse
from signoff.policy.python.values import Evaluator
from signoff.policy.shell import read_shell
from signoff.policy.shell.deadline import BUDGET_S, Deadline, GivenUpError
from signoff.policy.shell.model import UNKNOWN, Script

MAX_SOURCE_CHARS = 120
"""How much of a line is shown."""

MAX_TEXTS = 64
"""As many texts that the code itself runs as code are read."""

MAX_DEPTH = 8
"""How often code may start Python with code of its own inside; each time its text is shorter."""

TOO_DEEP = "it nests too deeply"

MAX_COMMANDS = 1_000
"""As many commands are read; 1,000 take 20 ms (measured)."""

_TIMES = frozenset({"timeit.timeit", "timeit.repeat", "timeit.Timer"})
_RUNS_TEXT = _TIMES | {"exec", "eval", "compile", "cProfile.run", "profile.run", "pdb.run", "pdb.runeval", "execfile"}
_TEXT_NAMES = frozenset({"stmt", "setup", "source", "statement", "expression"})
_TAKES_FROM = ("environ", "getenv", "open", "read_text", "read_bytes", "getattr", "__dict__", "vars")
_NO_CALL = frozenset({"self", "?"})


def read_python(
    text: str,
    *,
    clock: Callable[[], float] = time.thread_time,
    cwd: str | None = None,
    home: str | None = None,
    env: tuple[tuple[str, str], ...] = (),
    rules: CodeRules | None = None,
    budget_s: float = BUDGET_S,
) -> PythonScript:
    """What the code would do as far as its text tells. Never raises on any text.

    `cwd` and `home` are those of the user it would run as, None where they are not known; `env` are the variables that
    the commands it starts find set. `clock` returns seconds,
    `budget_s` of which may be spent. What could not be read in time or at all is in `problems`.
    """
    around = _Around(Deadline(clock, budget_s), _continued(clock, budget_s), rules or shipped(), cwd, home, env)
    reader = _Reader(text, around)
    reader.read_all()
    return PythonScript(
        calls=tuple(reader.calls),
        shell=reader.shell(),
        problems=tuple(reader.problems),
        folders=tuple(reader.folders),
        lines=len(text.splitlines()),
    )


class _Reader:
    """One reading."""

    def __init__(self, text: str, around: "_Around", depth: int = 0) -> None:
        self.calls: list[Call] = []
        self.problems: dict[str, None] = {}
        self.folders: dict[str | None, None] = {around.cwd: None}
        self._text = text
        self._around = around
        self._depth = depth
        self._deadline = around.deadline
        self._rules = around.rules
        self._lines: list[str] = []
        self._walker = Walker(around.deadline)
        self._evaluator = self._new_evaluator()
        self._handed: set[int] = set()
        self._others: dict[tuple[int, str], bool] = {}
        self._texts_read: set[str] = set()
        self._scripts: list[Script] = []
        self._commands: dict[tuple[str, str | None], None] = {}
        self._looks_outside = any(word in text for word in _TAKES_FROM)

    def _new_evaluator(self) -> Evaluator:
        around = self._around
        return Evaluator(self._walker.found, self._deadline, of_call, cwd=around.cwd, home=around.home)

    def read_all(self) -> None:
        """Read the code; whatever stands in the way becomes a problem."""
        try:
            self.read()
        except UnreadableError as error:
            self.problems.setdefault(error.reason)
        except GivenUpError as error:
            self.problems.setdefault(error.reason)
        except (RecursionError, MemoryError):
            # Depths are counted; this is for a caller whose own stack was nearly full.
            self.problems.setdefault(TOO_DEEP)

    def read(self) -> None:
        """Walk the code, then look at everything found. Raises `UnreadableError` and `GivenUpError`."""
        self._walker.walk(parse(self._text, self._deadline))
        self._lines = self._text.split("\n")
        found = self._walker.found
        place = 0
        # A text that the code runs as code is walked into the same names, and its calls follow at the end.
        while place < len(found.calls):
            node, scope, line = found.calls[place]
            self._deadline.check()
            self._call(node, scope, line)
            place += 1
        for expression, scope, line in found.references:
            self._deadline.check()
            if id(expression) not in self._handed:
                self._reference(expression, scope, line)
        for target, scope, line in found.sets:
            self._deadline.check()
            self._named("set", target, scope, line)
        for attribute, scope, line in found.uses:
            self._deadline.check()
            self._named("use", attribute, scope, line)
        for name, line in found.imports:
            if self._rules.about("import", name):
                self.calls.append(Call(kind="import", name=name, line=line, source=self._source(line)))
        self._deadline.check()
        self._read_commands()

    def shell(self) -> Script:
        """All commands in one script."""
        scripts = self._scripts
        if len(scripts) == 1:
            return scripts[0]
        return Script(
            commands=tuple(command for script in scripts for command in script.commands),
            problems=tuple(dict.fromkeys(problem for script in scripts for problem in script.problems)),
            opaque=tuple(dict.fromkeys(what for script in scripts for what in script.opaque)),
            fork_bombs=tuple(name for script in scripts for name in script.fork_bombs),
        )

    def _source(self, line: int) -> str:
        text = " ".join(self._lines[line - 1].split()) if 0 < line <= len(self._lines) else ""
        return text if len(text) <= MAX_SOURCE_CHARS else text[: MAX_SOURCE_CHARS - 1] + "…"

    # Calls

    def _call(self, node: ast.Call, scope: Scope, line: int) -> None:
        for function in self._evaluator.values(node.func, scope):
            if not isinstance(function, Ref) or function.name in _NO_CALL or function.made is not None:
                continue
            name = function.name
            passer = self._rules.passer(name)
            if passer is not None:
                self._passed(passer, node, scope, line)
            if name in {"setattr", "delattr"}:
                self._replaced(node, scope, line)
            if name in _RUNS_TEXT:
                self._run_text(name, node, scope, line)
            self._emit(name, node, scope, line, of=(function.of,) if function.of is not None else ())

    def _emit(self, name: str, node: ast.Call, scope: Scope, line: int, *, of: Values) -> None:
        rules = self._rules.about("call", name)
        runner = self._rules.runner(name)
        if not rules and runner is None and name != "os.chdir":
            return
        carries: tuple[str, ...] = ()
        if any(rule.carries for rule in rules):
            carries = flows.carried(self._evaluator, node, scope) if self._looks_outside else ()
            if not carries and runner is None and all(rule.carries for rule in rules):
                return
        args, loose = self._arguments(node, scope)
        keywords = tuple(
            (item.arg, self._evaluator.values(item.value, scope)) for item in node.keywords if item.arg is not None
        )
        loose = loose or any(item.arg is None for item in node.keywords)
        self._keep("call", name, args, keywords, loose=loose, of=of, line=line, carries=carries)

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[tuple[Values, ...], bool]:
        rows: list[Values] = []
        for item in node.args:
            if not isinstance(item, ast.Starred):
                rows.append(self._evaluator.values(item, scope))
                continue
            spread = self._evaluator.values(item.value, scope)
            if len(spread) != 1 or not isinstance(spread[0], Seq):
                return tuple(rows), True
            rows.extend((value,) for value in spread[0].items)
            if spread[0].loose:
                return tuple(rows), True
        return tuple(rows), False

    def _keep(
        self,
        kind: EventKind,
        name: str,
        args: tuple[Values, ...] = (),
        keywords: tuple[tuple[str, Values], ...] = (),
        *,
        line: int,
        loose: bool = False,
        of: Values = (),
        carries: tuple[str, ...] = (),
    ) -> None:
        call = Call(
            kind=kind, name=name, args=args, keywords=keywords, loose=loose, of=of, line=line,
            source=self._source(line), carries=carries,
        )  # fmt: skip
        runner = self._rules.runner(name)
        if runner is not None:
            texts, unknown = started(call, runner)
            self._commands.update({(item.text, item.cwd): None for item in texts})
            call = replace(call, command="unknown" if unknown else "known")
        if name == "os.chdir" and args:
            self.folders.update({value: None for value in args[0] if isinstance(value, str) and UNKNOWN not in value})
        self.calls.append(call)

    def _passed(self, passer: Passer, node: ast.Call, scope: Scope, line: int) -> None:
        """A function that is handed to another one, which calls it."""
        handed: ast.expr | None = next((k.value for k in node.keywords if k.arg and k.arg == passer.keyword), None)
        if handed is None and passer.function < len(node.args):
            handed = node.args[passer.function]
        if handed is None or isinstance(handed, ast.Starred):
            return
        functions = [
            value
            for value in self._evaluator.values(handed, scope)
            if isinstance(value, Ref)
            and value.made is None
            and (self._rules.about("call", value.name) or self._rules.runner(value.name))
        ]
        if not functions:
            return
        self._handed.add(id(handed))
        for args, loose in self._handed_arguments(passer, node, scope):
            for function in functions:
                of = (function.of,) if function.of is not None else ()
                self._keep("call", function.name, args, loose=loose, of=of, line=line)

    def _handed_arguments(
        self, passer: Passer, node: ast.Call, scope: Scope
    ) -> Iterator[tuple[tuple[Values, ...], bool]]:
        if passer.arguments == "rest":
            rows, loose = self._arguments(node, scope)
            yield rows[passer.function + 1 :], loose
            return
        given = next((k.value for k in node.keywords if k.arg and k.arg == passer.list_keyword), None)
        if given is None and passer.at < len(node.args):
            given = node.args[passer.at]
        values = self._evaluator.values(given, scope) if given is not None else ()
        if not values:  # `Series.map(f)`: what the items are is not known
            values = (Seq((), loose=passer.arguments == "each"),)
        for value in values:
            if not isinstance(value, Seq):
                yield (), True
            elif passer.arguments == "list":
                yield tuple((item,) for item in value.items), value.loose
            else:
                for item in value.items:
                    yield ((item,),), False
                if value.loose:
                    yield (ANYTHING,), False

    def _replaced(self, node: ast.Call, scope: Scope, line: int) -> None:
        if len(node.args) < 2:
            return
        for base in self._evaluator.values(node.args[0], scope):
            for name in self._evaluator.values(node.args[1], scope):
                if isinstance(base, Ref):
                    known = name if isinstance(name, str) and UNKNOWN not in name else "?"
                    self._changed(f"{base.name}.{known}", line)

    def _changed(self, name: str, line: int) -> None:
        full = name if name.startswith("builtins.") else canonical(name)
        if self._rules.about("set", full):
            self._keep("set", full, line=line)

    def _run_text(self, name: str, node: ast.Call, scope: Scope, line: int) -> None:
        """Walk a text that is run as code, where it is known."""
        count = 2 if name in _TIMES else 1
        texts = [*node.args[:count], *(item.value for item in node.keywords if item.arg in _TEXT_NAMES)]
        for value in (value for text in texts for value in self._evaluator.values(text, scope)):
            if not isinstance(value, str) or UNKNOWN in value or value in self._texts_read:
                continue
            self._texts_read.add(value)
            self._looks_outside = self._looks_outside or any(word in value for word in _TAKES_FROM)
            if len(self._texts_read) > MAX_TEXTS:
                self.problems.setdefault("it runs too many texts as code")
                return
            parts = parse(value.strip(), self._deadline)
            self._walker.walk([part._replace(offset=line - 1) for part in parts])
            self._evaluator = self._new_evaluator()

    # Names without a call

    def _reference(self, node: ast.expr, scope: Scope, line: int) -> None:
        if isinstance(node, ast.Name):
            holder = scope.holder(node.id)
            if holder is not None and not self._may_be_other(holder, node.id):
                return
        for value in self._evaluator.values(node, scope):
            if not isinstance(value, Ref) or value.made is not None:
                continue
            rules = [rule for rule in self._rules.about("call", value.name) if not rule.carries]
            if rules or self._rules.runner(value.name) is not None:
                of = (value.of,) if value.of is not None else ()
                self._keep("reference", value.name, loose=True, of=of, line=line)

    def _may_be_other(self, holder: Scope, name: str) -> bool:
        """Whether a name may stand for another one. It is found out once: each may be bound, and read, very often."""
        key = (id(holder), name)
        if key not in self._others:
            self._others[key] = any(
                binding.kind == "name" or isinstance(binding.expression, ast.Name | ast.Attribute)
                for binding in holder.bindings[name]
            )
        return self._others[key]

    def _named(self, kind: EventKind, node: ast.expr, scope: Scope, line: int) -> None:
        """An attribute or item that is replaced, deleted or looked at."""
        args: tuple[Values, ...] = ()
        if isinstance(node, ast.Attribute):
            names = [f"{_name(value)}.{node.attr}" for value in self._evaluator.values(node.value, scope)]
        elif isinstance(node, ast.Subscript):
            names = [f"{_name(value)}[]" for value in self._evaluator.values(node.value, scope)]
            args = (self._evaluator.values(node.slice, scope),)
        else:
            return
        for name in names:
            if self._rules.about(kind, name):
                self._keep(kind, name, args, line=line)

    # Commands

    def _read_commands(self) -> None:
        for count, (text, cwd) in enumerate(self._commands):
            self._deadline.check()
            if count >= MAX_COMMANDS:
                self.problems.setdefault("it starts too many commands")
                return
            around = self._around
            folder = self._folder(cwd)
            script = read_shell(text, home=around.home, cwd=folder, env=around.env, clock=around.shell_clock())
            self._scripts.append(script)
            for code in {code: None for command in script.commands for code in command.code}:
                if code.language == "python":
                    self._inner(code.text)

    def _inner(self, text: str) -> None:
        """Python code inside of a command that the code starts."""
        if UNKNOWN in text:
            self._scripts.append(Script(opaque=("python",)))
            return
        if self._depth >= MAX_DEPTH:
            self.problems.setdefault(TOO_DEEP)
            return
        inner = _Reader(text, self._around, self._depth + 1)
        inner.read_all()
        self.calls += inner.calls
        self.problems.update(inner.problems)
        self.folders.update(inner.folders)
        self._scripts.append(inner.shell())

    def _folder(self, cwd: str | None) -> str | None:
        if cwd is None:
            # After a change of the folder nobody can tell where the command runs.
            return self._around.cwd if len(self.folders) == 1 else None
        if UNKNOWN in cwd:
            return None
        if cwd.startswith("/"):
            return cwd
        return f"{self._around.cwd}/{cwd}" if self._around.cwd is not None else None


def _name(value: Value) -> str:
    return value.name if isinstance(value, Ref) else "?"


class _Around(NamedTuple):
    """What is the same for a text and the texts inside of it."""

    deadline: Deadline
    shell_clock: Callable[[], Callable[[], float]]
    rules: CodeRules
    cwd: str | None
    home: str | None
    env: tuple[tuple[str, str], ...]


def _continued(clock: Callable[[], float], budget_s: float) -> Callable[[], Callable[[], float]]:
    """Makes clocks for the shell front end, whose countdown from its own budget then ends when ours does."""
    began = clock()

    def make() -> Callable[[], float]:
        spent = clock() - began + BUDGET_S - budget_s
        ahead = iter((0.0,))
        return lambda: clock() + next(ahead, spent)

    return make
