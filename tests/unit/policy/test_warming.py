"""The first judgement of a process has its whole time for itself."""

import subprocess
import sys

SCRIPT = """
import time
from signoff.policy.inner import read_inner
from signoff.policy.shell import read_shell
from signoff.policy.warming import warm
warm()
started = time.thread_time()
script = read_inner(read_shell("python3 -c 'import shutil; shutil.rmtree(\\"x\\")'")).script
print(time.thread_time() - started, script.problems)
"""


def test_nothing_is_loaded_while_the_first_text_is_read() -> None:
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    seconds, problems = output.split(maxsplit=1)
    assert problems.strip() == "()"
    assert float(seconds) < 0.02
