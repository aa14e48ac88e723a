"""What a job's child processes are told, seen by real processes, and what a saved shell may remember."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.context.conftest import STALE

from signoff.context import VARIABLES, absent, bind, child, child_environment, saved_environment, within
from signoff.model import SessionKind

LOOK = """
import json, os
from signoff.context import VARIABLES, current
from signoff.presence import presence
found = current()
print(json.dumps({
    "kind": found.kind, "kinds": sorted(found.kinds), "session": found.session_id, "turn": found.turn_id,
    "call": found.tool_call_id, "place": str(found.destination or ""), "user": found.user_id,
    "parent": found.parent, "profile": found.profile,
    "anybody": presence(found.flags(notifier=True)).anybody, "cli": presence(found.flags()).cli,
    "variables": sorted(set(VARIABLES.values()) & set(os.environ)),
}))
"""
FORK = """
import os, subprocess, sys
from signoff.context import bind, child_environment
with bind("job", kind="cron", interactive=True, turn_id="t"):
    child = os.fork()
    if child == 0:
        os.environ["SIGNOFF_SESSION_KIND"] = "chat"  # what the forked process does to its own changes nothing
        os._exit(subprocess.run([sys.executable, "-c", sys.argv[1]], env=child_environment()).returncode)
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

POOL = """
import json, multiprocessing, os
from concurrent.futures import ProcessPoolExecutor
from signoff.context import bind, child, current, portable
def who():
    found = current()
    return [found.session_id, found.kind, found.parent, found.interactive]
with bind("talk", kind="chat", interactive=True), ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
    asked = [pool.submit(portable(who))]  # its only worker is forked here
    with bind("nightly", kind="cron", interactive=True):
        asked += [pool.submit(portable(who)), pool.submit(who)]
        with child("part"):
            asked.append(pool.submit(portable(who)))
    with bind():
        asked.append(pool.submit(portable(who)))
    print(json.dumps([each.result() for each in asked]))
"""


def seen_by_a_process(environ: dict[str, str], *code: str) -> Any:
    """What a new process with this environment takes itself for."""
    done = subprocess.run(
        [sys.executable, "-c", *(code or (LOOK,))], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.usefixtures("stale")
def test_a_cron_jobs_child_is_cron() -> None:  # 2.3.3, #58673, #110932, #110942 2.3.6
    """It keeps who it is, and none of what was stale or said that somebody is there."""
    facts: dict[str, Any] = {"destination": "fake:100/7", "user_id": "42", "profile": "team"}
    with bind("job", kind="cron", turn_id="t", tool_call_id="c", interactive=True, ask=True, **facts):
        found = seen_by_a_process(child_environment())
    assert found == {
        "kind": "cron",
        "kinds": ["cron"],
        "session": "job",
        "turn": "t",
        "call": None,
        "place": "fake:100/7",
        "user": "42",
        "parent": None,
        "profile": "team",
        "anybody": False,
        "cli": False,
        "variables": [
            "SIGNOFF_DESTINATION",
            "SIGNOFF_PROFILE",
            "SIGNOFF_SESSION_ID",
            "SIGNOFF_SESSION_KIND",
            "SIGNOFF_TURN_ID",
            "SIGNOFF_USER_ID",
        ],
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_and_its_children_stay_cron() -> None:
    found = seen_by_a_process({**os.environ, "SIGNOFF_ASK": "1"}, FORK, LOOK)
    assert (found["kind"], found["session"], found["turn"], found["anybody"]) == ("cron", "job", "t", False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_pool_of_processes_works_for_whoever_hands_in() -> None:  # G2-22, 2.1.4
    """What is portable. What is not belongs to whoever was bound when its process was forked."""
    chat, cron, plain, part, nobody = seen_by_a_process({**os.environ, **STALE}, POOL)
    assert chat == ["talk", "chat", None, False], "that somebody is there does not travel"
    assert cron == ["nightly", "cron", None, False]
    assert plain == ["talk", "chat", None, True]
    assert part == ["part", "cron", "nightly", False]
    assert nobody == [None, None, None, False]


@pytest.mark.usefixtures("stale")
def test_a_child_of_nobody_is_nobodys() -> None:
    """Set empty is absent for children too: the stale variables do not come back through the process environment."""
    with absent():
        found = seen_by_a_process(child_environment())
    assert (found["kind"], found["session"], found["variables"]) == (None, None, [])


def test_what_only_the_environment_says_travels_without_the_flags() -> None:
    """A process that was started as a job, by whoever, starts jobs."""
    told = {**STALE, "SIGNOFF_SESSION_KIND": "worker"}
    first = seen_by_a_process({**os.environ, **told})
    assert (first["kind"], first["anybody"]) == ("worker", False)
    again = "import subprocess, sys\nfrom signoff.context import child_environment\n"
    again += "raise SystemExit(subprocess.run([sys.executable, '-c', sys.argv[1]], env=child_environment()).returncode)"
    found = seen_by_a_process({**os.environ, **told}, again, LOOK)
    assert (found["kind"], found["session"], found["turn"]) == ("worker", "stale-session", "stale-turn")
    assert {"SIGNOFF_ASK", "SIGNOFF_INTERACTIVE", "SIGNOFF_TOOL_CALL_ID"} & set(found["variables"]) == set()


@pytest.mark.parametrize("flags", [{"interactive": True}, {"ask": True}, {"interactive": True, "ask": True}])
def test_presence_does_not_travel(flags: dict[str, Any]) -> None:
    """The kind that was guessed from a flag is named, so that the child without the flag is still of that session."""
    with bind("s", **flags) as mine:
        found = seen_by_a_process(child_environment())
    assert (found["session"], found["kind"]) == ("s", mine.kind)
    assert found["cli"] is False


@pytest.mark.parametrize(
    ("outer", "started", "counts"),
    [
        ("cron", "worker", "cron"),
        ("single_query", "cron", "single_query"),
        ("worker", "single_query", "single_query"),
        ("chat", "worker", "worker"),
        ("cron", "cli", "cron"),
    ],
)
def test_a_job_that_starts_another(outer: SessionKind, started: SessionKind, counts: SessionKind) -> None:  # 2.3.1
    with bind("s", kind=outer):
        found = seen_by_a_process(child_environment(kind=started))
    assert found["kind"] == counts
    assert found["kinds"] == sorted({outer, started})
    assert found["session"] == (None if outer == "chat" else "s")


def test_a_delegated_child_of_a_job() -> None:  # 2.2 child
    with bind("job", kind="cron"), child("sub"):
        found = seen_by_a_process(child_environment())
    assert (found["kind"], found["session"], found["parent"]) == ("cron", "sub", "job")
    assert found["kinds"] == ["child", "cron"]


def test_the_base_is_kept_but_for_ours() -> None:
    base = {"PATH": "/bin", "SIGNOFF_URL": "http://127.0.0.1:1", "SIGNOFF_APPROVALS__MODE": "manual", **STALE}
    with bind("s", kind="chat"), within(tool_call_id="c"):
        made = child_environment(base)
    assert made == {
        "PATH": "/bin",
        "SIGNOFF_URL": "http://127.0.0.1:1",
        "SIGNOFF_APPROVALS__MODE": "manual",
        "SIGNOFF_SESSION_ID": "s",
        "SIGNOFF_SESSION_KIND": "chat",
    }
    assert base["SIGNOFF_ASK"] == "1", "the caller's own is not changed"


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_the_snapshot_of_a_shared_shell_holds_no_marker(tmp_path: Path) -> None:  # 2.1.6, #76749, #77022
    """A cron command runs in the shell, whose environment is saved after it; a chat's command begins with what was
    saved, and is no cron job."""
    snapshot = tmp_path / "environ"
    with bind("job", kind="cron", destination="fake:1", turn_id="t"):
        subprocess.run(
            ["sh", "-c", f"export MADE_HERE=1; env -0 > '{snapshot}'"], env=child_environment(), timeout=60, check=True
        )
    pairs = (each.partition("=") for each in snapshot.read_text().split("\0") if each)
    left = {name: value for name, _, value in pairs}
    assert left["SIGNOFF_SESSION_KIND"] == "cron", "the shell did know"
    saved = saved_environment(left)
    assert set(saved) & set(VARIABLES.values()) == set()
    assert saved["MADE_HERE"] == "1"
    assert seen_by_a_process(saved)["kind"] is None
    with bind("talk", kind="chat", destination="fake:2"):
        # Also where somebody saved what was not ours to keep.
        for base in (saved, left):
            found = seen_by_a_process(child_environment(base))
            assert (found["kind"], found["session"], found["turn"]) == ("chat", "talk", None)
