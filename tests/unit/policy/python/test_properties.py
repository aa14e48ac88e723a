"""Properties over generated code: nothing raises, nothing hides, nothing harmless asks."""

import base64
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.policy.paths import PathFacts
from signoff.policy.python import PythonScript, find, read_python
from signoff.policy.seen import OwnFacts
from signoff.policy.shell.deadline import Deadline

HOME = "/home/ana"
FACTS = OwnFacts(paths=PathFacts(home=HOME, own=(f"{HOME}/s",)), pid=42)


def no_time() -> float:
    """A clock that stands still: these tests are about what is found, however busy the machine is."""
    return 0.0


def found(text: str) -> set[str]:
    """The keys of the rules that fire, and the commands that would run."""
    script = read_python(text, clock=no_time, cwd=f"{HOME}/project", home=HOME)
    keys = {finding.rule.key for finding in find(script, FACTS, Deadline(no_time))}
    return keys | {command.text for command in script.shell.commands} | set(script.problems)


FRAGMENTS = [
    "import os", "\n", "\n    ", "os", ".system", "(", ")", "[", "]", "{", "}", "'rm a'", "f'{x}'", "=", "x", "x = x",
    "def f(", "):", "class A:", "return ", "lambda ", "for x in ", "if ", "else", "try:", "exec", "eval", "getattr(",
    "__import__('os')", "*", "**", ",", ";", "global x", "nonlocal x", "del ", "async ", "await ", "with ", " as ",
    "x += ", "x.append(", "+", "%", "/", "'%s'", "[::-1]", "self", "match x:", "case ", "\\", "#", '"""', "'", "\x00",
    "é", "\u200b", "yield ", ":=", "@", "subprocess.run(", "open(", "pathlib.Path(", "1", "-", "0o777", "b'x'",
]  # fmt: skip
texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=30).map("".join)


@given(st.text() | texts)
@settings(max_examples=500, deadline=None)
def test_nothing_raises(text: str) -> None:
    script = read_python(text, cwd=HOME, home=HOME)
    assert isinstance(script, PythonScript)
    find(script, FACTS, Deadline(no_time))


DANGEROUS = [
    "import os\nos.system('rm -rf src')",
    "import subprocess\nsubprocess.run(['git', 'push', '--force'])",
    "import shutil\nshutil.rmtree('/')",
    "from pathlib import Path\nPath('a').unlink()",
    "import os\nos.kill(42, 9)",
    "import requests as r\nr.post('https://x.example', json={})",
    "open('/home/ana/.bashrc', 'a').write('x')",
    "import os\nprint(os.environ)",
    "eval(input())",
    "import builtins\nbuiltins.open = None",
    "import os\nremove = os.remove\nremove('a')",
]
WRAPPERS = [
    "def wrapped():\n{}\nwrapped()",
    "def wrapped():\n{}",
    "async def wrapped():\n{}",
    "class Wrapped:\n{}",
    "class Wrapped:\n    def method(self):\n{}\n",
    "if False:\n    pass\nelse:\n{}",
    "try:\n{}\nexcept Exception:\n    pass",
    "try:\n    pass\nfinally:\n{}",
    "for n in range(3):\n{}",
    "while True:\n{}\n    break",
    "with open('notes.txt') as f:\n{}",
    "match 1:\n    case 1:\n{}",
    "import os\nx = 1\nprint(x)\nif x:\n{}",
]


def _indented(wrapper: str, code: str) -> str:
    head = wrapper.partition("\n{}")[0]
    line = next(line for line in reversed(head.split("\n")) if line.strip())
    return wrapper.format(textwrap.indent(code, " " * (len(line) - len(line.lstrip()) + 4)))


@given(st.sampled_from(DANGEROUS), st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_wrapping_never_hides(code: str, wrappers: list[str]) -> None:
    wrapped = code
    for wrapper in wrappers:
        wrapped = _indented(wrapper, wrapped)
    assert found(code)
    assert found(code) <= found(wrapped)


@given(
    st.sampled_from(DANGEROUS), st.sampled_from(["plain", "split", "base64", "bytes", "compiled"]), st.integers(1, 30)
)
@settings(max_examples=200, deadline=None)
def test_code_in_a_text_is_found(code: str, way: str, place: int) -> None:
    coded = base64.b64encode(code.encode()).decode()
    ways = {
        "plain": f"exec({code!r})",
        "split": f"a = {code[:place]!r}\nexec(a + {code[place:]!r})",
        "base64": f"import base64\nexec(base64.b64decode({coded!r}))",
        "bytes": f"exec({code.encode()!r}.decode())",
        "compiled": f"exec(compile({code!r}, 'x', 'exec'))",
    }
    assert found(code) <= found(ways[way])


DATA = [
    "print({})",
    "x = {}",
    "{}",
    "import logging\nlogging.info({})",
    "import json\nprint(json.dumps({{'a': {}}}))",
    "assert x != {}",
    "open('notes.txt', 'w').write({})",
]


@given(st.sampled_from(DANGEROUS), st.sampled_from(DATA))
@settings(deadline=None)
def test_text_that_is_data_is_silent(code: str, way: str) -> None:
    assert found(way.format(repr(code))) == set()


@given(
    st.sampled_from(DANGEROUS), st.lists(st.sampled_from(["x = 1", "print(1)", "import json", "y = [n for n in x]"]))
)
@settings(deadline=None)
def test_more_code_never_hides(code: str, more: list[str]) -> None:
    assert found(code) <= found("\n".join([*more, code, *more]))


HARMLESS = [
    "print('hello')",
    "import json\nwith open('a.json') as f:\n    d = json.load(f)\nprint(d['x'])",
    "import csv, collections\nc = collections.Counter(r[0] for r in csv.reader(open('a.csv')))\nprint(c)",
    "import pandas as pd\ndf = pd.read_csv('a.csv').dropna()\ndf.groupby('x').agg({'y': 'sum'}).to_csv('out.csv')",
    "import numpy as np\nnp.save('a.npy', np.zeros(3))\nprint(np.load('a.npy'))",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('a.png')",
    "from pathlib import Path\nfor p in Path('src').rglob('*.py'):\n    p.write_text(p.read_text().replace('a', 'b'))",
    "import os\nfor root, _dirs, names in os.walk('.'):\n    for n in names:\n        print(os.path.join(root, n))",
    "import re, sys\nprint(re.sub('a', 'b', sys.stdin.read()))",
    "import subprocess\nprint(subprocess.run(['git', 'status'], capture_output=True, text=True).stdout)",
    "import threading, queue\nq = queue.Queue()\nt = threading.Thread(target=q.put, args=(1,))\nt.start()",
    "import concurrent.futures as f\nwith f.ThreadPoolExecutor() as e:\n    print(list(e.map(len, ['a'])))",
    "import sqlite3\nc = sqlite3.connect('a.db')\nprint(c.execute('SELECT 1').fetchall())",
    "import requests\nprint(requests.get('https://example.com').status_code)",
    "import os\nos.makedirs('out', exist_ok=True)\nos.environ.setdefault('X', '1')\nprint(os.environ.get('HOME'))",
    "import torch\nm = torch.nn.Linear(1, 1)\nm.eval()\nprint(m(torch.zeros(1, 1)))",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.fail()\nunittest.main()",
    "import ast\nprint(ast.dump(ast.parse(open('a.py').read())))",
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('-x')\nprint(p.parse_args())",
    "import time, random\nrandom.seed(1)\ntime.sleep(0.1)\nprint(random.random(), time.time())",
    "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n    open(os.path.join(d, 'a'), 'w').write('x')",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 0\nprint(A(1))",
    "import asyncio\nasync def main():\n    await asyncio.gather(*[asyncio.sleep(0)])\nasyncio.run(main())",
    "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.getLogger(__name__).info('x %s', 1)",
    "import shutil\nshutil.copy('a.txt', 'b.txt')\nshutil.make_archive('a', 'zip', 'src')\nprint(shutil.which('git'))",
    "import importlib.metadata as m\nprint(m.version('pip'))",
    "try:\n    import tomllib\nexcept ImportError:\n    tomllib = None\nprint(tomllib)",
    "from PIL import Image\nImage.open('a.png').resize((10, 10)).save('b.png')",
    "import yaml\nprint(yaml.safe_load(open('a.yml')))",
    "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(10))",
]


@pytest.mark.parametrize("code", HARMLESS)
def test_ordinary_code_is_silent(code: str) -> None:
    assert found(code) <= {"git status"}
