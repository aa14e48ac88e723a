"""Reading Python code: how names are resolved, which commands are found, and what cannot be understood."""

import json
import time

import pytest
from tests.tables import every

from signoff.policy.python import CodeRules, read_python, shipped
from signoff.policy.python.reader import MAX_DEPTH
from signoff.policy.shell.model import UNKNOWN


def commands(text: str) -> list[str]:
    """The commands that some code starts, with `…` where they are not known; the code must be readable."""
    script = read_python(text, cwd="/home/ana/project", home="/home/ana", budget_s=5.0)
    assert script.problems == ()
    return [command.text.replace(UNKNOWN, "…") for command in script.shell.commands]


SPELLINGS = [
    "import os\nos.system({})",
    "import os as o\no.system({})",
    "from os import system\nsystem({})",
    "from os import system as x\nx({})",
    "from os import *\nsystem({})",
    "import os\nf = os.system\nf({})",
    "import os\nf = g = os\nf.system({})",
    "__import__('os').system({})",
    "__import__('o' + 's').system({})",
    "import importlib\nimportlib.import_module('os').system({})",
    "from importlib import import_module as i\ni(name='os').system({})",
    "import os\ngetattr(os, 'sys' + 'tem')({})",
    "import os\ngetattr(os, ''.join(['s', 'ystem']))({})",
    "import os\ngetattr(os, 'metsys'[::-1])({})",
    "import os\nname = 'system'\ngetattr(os, f'{{name}}')({})",
    "import os\nvars(os)['system']({})",
    "import os\nos.__dict__['system']({})",
    "import sys\nsys.modules['os'].system({})",
    "import os\nglobals()['os'].system({})",
    "import posix\nposix.system({})",
    "import os\nos.system.__call__({})",
    "import os, operator\noperator.attrgetter('system')(os)({})",
    "import os\n(lambda: os.system({}))()",
    "import os\n[os.system(c) for c in [{}]]",
    "import os\nlist(map(os.system, [{}]))",
    "import os, functools\nfunctools.partial(os.system, {})()",
    "import os, threading\nthreading.Thread(target=os.system, args=({},)).start()",
    "import os, atexit\natexit.register(os.system, {})",
    "import os\nif (run := os.system):\n    run({})",
    "import os\nclass A:\n    def go(self, c):\n        os.system(c)\nA().go({})",
    "import os\nclass A:\n  def __init__(self, c):\n    self.c = c\n  def f(self):\n    os.popen(self.c)\nA({}).f()",
    "import os\ndef f(c='ls'):\n    os.system(c)\nf(c={})",
    "import os\ndef f(c={}):\n    os.system(c)\nf()",
    "import os\ndef f():\n    return {}\nos.system(f())",
    "import os\ndef f(a, *rest):\n    os.system(*rest)\nf(1, {})",
    "import os\ndef f(c):\n    def g(d):\n        os.system(d)\n    g(c)\nf({})",
    "import os\ndef f():\n    global run\n    run = os.system\nf()\nrun({})",
    "import os\nfor c in ('ls', {}):\n    os.system(c)",
    "import os\nfor name, c in [('a', {})]:\n    os.system(c)",
    "import os\na, b = os.system, {}\na(b)",
    "import os\nx = {}\nif x:\n    x = 'ls'\nos.system(x)",
    "import os\ntable = {{'a': {}}}\nos.system(table['a'])",
    "import os\nos.popen({}).read()",
    "import subprocess\nsubprocess.getoutput({})",
    "import subprocess\nsubprocess.run({}, shell=True)",
    "from subprocess import run as r\nr(args={}, shell=True)",
    "import subprocess\nsubprocess.run(['sh', '-c', {}])",
    "import subprocess\nsubprocess.run(['bash'], input={}, text=True)",
    "import asyncio\nasync def f():\n    await asyncio.create_subprocess_shell({})",
    "exec('import os; os.system({{!r}})'.format({}))",
    "code = {}\nexec('import os\\nos.system(code)')",
    "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import os; os.system(%r)' % {}])",
]


@every("spelling", [item for item in SPELLINGS if "!r" not in item and "%r" not in item])
def test_a_command_is_found_however_it_is_written(spelling: str) -> None:
    assert "rm -rf src" in commands(spelling.format(json.dumps("rm -rf src")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import subprocess\nsubprocess.run(['git', 'push', '--force'])", ["git push --force"]),
        ("import subprocess\nsubprocess.check_call(['ls', x, 'b c'], cwd='/')", ["ls … b c"]),
        ("import subprocess\nsubprocess.run(['ls', *files])", ["ls …"]),
        ("import subprocess, shlex\nsubprocess.run(shlex.split('ls -l \"a b\"'))", ["ls -l a b"]),
        ("import subprocess\nsubprocess.run('git log'.split())", ["git log"]),
        (
            "import subprocess\nc = ['git']\nc.append('push')\nc += ['-f']\nsubprocess.run(c)",
            ["git", "git push -f", "git push …", "git -f …"],
        ),
        ("import subprocess\nsubprocess.run(['git'] + ['push'])", ["git push"]),
        ("import subprocess\nsubprocess.run(f'rm {x}', shell=True)", ["rm …"]),
        ("import subprocess\nsubprocess.run('rm %s' % x, shell=True)", ["rm …"]),
        ("import subprocess\nsubprocess.run('rm {}'.format('a'), shell=True)", ["rm a"]),
        ("import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pytest'])", ["python3 -m pytest"]),
        ("import asyncio\nasyncio.create_subprocess_exec('git', 'push')", ["git push"]),
        ("import os\nos.execvp('git', ['git', 'push'])", ["git push"]),
        ("import os\nos.execlp('git', 'git', 'push')", ["git push"]),
        ("import os\nos.spawnl(os.P_WAIT, '/bin/rm', 'rm', 'a')", ["/bin/rm a"]),
        ("import os\nos.posix_spawn('/bin/rm', ['rm', 'a'], {})", ["/bin/rm a"]),
        ("import pty\npty.spawn(['ssh', 'host'])", ["ssh host"]),
        ("import subprocess\nsubprocess.run(['bash'], input='rm a')", ["bash", "rm a"]),
        ("import os\nos.system('a; b | c')", ["a", "b", "c"]),
        ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'x = 1'])", ["python3 -c x = 1"]),
        ("import subprocess\ndef git(*a):\n    subprocess.run(['git', *a])\ngit('log')\ngit('push', '-f')",
         ["git log", "git push -f"]),
        ("print('os.system(1)')", []),
        ("import sh\nsh.git.push('--force')", ["git push --force"]),
        ("from plumbum.cmd import git\ngit('push')", ["git push"]),
        ("import subprocess\nsubprocess.run(['ls', '-rf', 'src'], executable='/bin/rm')", ["/bin/rm -rf src"]),
        ("import subprocess\nsubprocess.run('ls', shell=True, executable='/bin/bash')", ["ls"]),
        ("import os\nx: os.system('rm a') = 1", ["rm a"]),
        ("import os\ndef f(x: os.system('rm a')) -> os.system('rm b'): pass", ["rm b", "rm a"]),
    ],
)  # fmt: skip
def test_commands_as_they_are(text: str, expected: list[str]) -> None:
    assert commands(text) == expected


WAYS = [
    "os.system({text})",
    "asyncio.create_subprocess_shell({text})",
    "asyncio.get_event_loop().subprocess_shell(make, {text})",
    "subprocess.run({words})",
    "pty.spawn({words})",
    "asyncio.create_subprocess_exec(*{words})",
    "asyncio.get_event_loop().subprocess_exec(make, *{words})",
    "os.execlp('rm', *{words})",
    "os.spawnlp(0, 'rm', *{words})",
    "os.execvp('rm', {words})",
    "os.spawnvp(0, 'rm', {words})",
    "functools.partial(os.system, {text})",
    "loop.run_in_executor(None, os.system, {text})",
    "threading.Thread(None, os.system, None, ({text},))",
    "threading.Timer(3, os.system, [{text}])",
    "pool.apply_async(os.system, ({text},))",
    "pool.map(os.system, [{text}])",
    "pydoc.pipepager(page, {text})",
    "sh.rm('a')",
    "plumbum.cmd.rm('a')",
    "call_command(*{words})",
    "get_ipython().run_cell_magic('bash', '', {text})",
    "get_ipython().run_line_magic('system', {text})",
]
IMPORTS = (
    "import asyncio, functools, os, plumbum, pty, pydoc, sh, subprocess, threading\n"
    "from django.core.management import call_command\n"
)


def _found(rules: CodeRules) -> list[bool]:
    texts = [IMPORTS + way.format(text="'rm a'", words="['rm', 'a']") for way in WAYS]
    scripts = [read_python(text, rules=rules, budget_s=5.0) for text in texts]
    expected: tuple[list[str], ...] = (["rm a"], ["django-admin rm a"])
    return [[command.text for command in script.shell.commands] in expected for script in scripts]


def test_each_way_to_start_a_command_and_to_hand_a_function_on_is_known_by_its_own_row() -> None:
    rules = shipped()
    assert all(_found(rules))
    for place in range(len(rules.runners)):
        fewer = (*rules.runners[:place], *rules.runners[place + 1 :])
        assert not all(_found(CodeRules(rules.rules, fewer, rules.passers)))
    for place in range(len(rules.passers)):
        fewer_passers = (*rules.passers[:place], *rules.passers[place + 1 :])
        assert not all(_found(CodeRules(rules.rules, rules.runners, fewer_passers)))


def test_what_is_around_a_command_is_kept() -> None:
    text = "import subprocess\nsubprocess.run(['git', 'fetch'], env={'GIT_SSH_COMMAND': 'x'}, cwd='/srv')"
    command = read_python(text).shell.commands[0]
    assert (command.assignments, command.cwd) == ((("GIT_SSH_COMMAND", "x"),), "/srv")


def test_after_a_change_of_the_folder_it_is_not_known() -> None:
    (command,) = read_python("import os\nos.chdir(x)\nos.system('ls')", cwd="/srv").shell.commands
    assert command.cwd == "/srv"
    (command,) = read_python("import os\nos.chdir('/')\nos.system('ls')", cwd="/srv").shell.commands
    assert command.cwd is None


def test_code_inside_of_a_command_is_read() -> None:
    script = read_python("import subprocess\nsubprocess.run(['python3', '-c', 'import os; os.remove(\"a\")'])")
    assert [call.name for call in script.calls] == ["subprocess.run", "os.remove"]


def test_a_call_has_its_line_whatever_stands_before_it() -> None:
    text = "x = 1\n" * 3000 + "import os\nos.remove('a')\n"
    (call,) = read_python(text, budget_s=5.0).calls
    assert (call.line, call.source) == (3002, "os.remove('a')")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = (", "its syntax cannot be read"),
        ("!ls", "its syntax cannot be read"),
        ("a\x00b", "it contains a NUL character"),
        ("'\ud800'", "it holds characters that are no text"),
        ("-" * 8_000 + "1", "it nests too deeply"),
        ("a" + "()" * 2_000, "it nests too deeply"),
        ("a" * 300_000, "it is longer than 256 kB"),
        ("é" * 150_000, "it is longer than 256 kB"),
        ("x = [" + "a," * 100_000 + "]", "it takes too long to read"),
        ("".join(f"a{n} = a{n - 1}\n" for n in range(1, 900)) + "import os\nos.system(a899)", "it nests too deeply"),
        ("".join(f"exec('x = {n}')\n" for n in range(100)), "it runs too many texts as code"),
        ("exec('x = (')", "its syntax cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_says_why(text: str, problem: str) -> None:
    assert problem in read_python(text, budget_s=5.0 if "long" not in problem else 0.05).problems


def test_code_in_code_in_code_ends() -> None:
    text = "x = 1"
    for _ in range(MAX_DEPTH + 2):
        text = f"import subprocess\nsubprocess.run(['python3', '-c', {text!r}])"
    assert "it nests too deeply" in read_python(text, budget_s=20.0).problems


def test_time_is_bounded_by_the_clock_that_is_given() -> None:
    class Clock:
        """Each reading is a millisecond later."""

        now = 0.0

        def __call__(self) -> float:
            self.now += 0.001
            return self.now

    script = read_python("import os\n" + "os.remove('a')\n" * 5000, clock=Clock())
    assert "it takes too long to read" in script.problems


@pytest.mark.heavy
def test_commands_share_the_time_of_the_code() -> None:
    clock = time.thread_time
    text = "import os\n" + "".join(f"os.system('{n}' + 'x=(' * 4000)\n" for n in range(50))
    began = clock()
    assert read_python(text).problems
    assert clock() - began < 2, "each of the fifty might take the whole time otherwise"
