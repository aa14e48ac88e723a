"""Runs generated scripts in a real bash whose every program is a recorder, in a throw-away root."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

RECORDER = Path(__file__).with_name("recorder.sh")
NAMES = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "rm",
    "git",
    "cp",
    "ls",
    "cat",
    "sudo",
    "env",
    "nohup",
    "nice",
    "timeout",
    "stdbuf",
    "setsid",
    "ionice",
    "busybox",
    "flock",
    "bash",
    "sh",
    "xargs",
    "find",
)
NAMESPACES = ("--user", "--map-root-user", "--mount", "--pid", "--fork", "--ipc", "--net")
DRIVER = """
ulimit -t 5 -f 20000 -n 64 2>/dev/null
for number in "$@"; do
    cd "$ROOT/$number/work" || exit 1
    /usr/bin/env -i FUNCNEST=6 PATH="$ROOT/$number/bin" HOME="$ROOT/$number/home" \\
        /usr/bin/timeout -k 1 5 /bin/bash $RESTRICTED ../script </dev/null >../log 2>&1
done
wait
"""
PRIVATE_ROOT = """
set -e
root=$FOLDER/root
mkdir "$root"
mount -t tmpfs none "$root"
cd "$root"
mkdir case dev tmp proc
mount --bind "$FOLDER" case
for name in usr bin lib lib64; do
    if [ -L /$name ]; then
        ln -s "$(readlink /$name)" $name
    elif [ -d /$name ]; then
        mkdir $name
        mount --rbind /$name $name
        mount -o remount,bind,ro $name
    fi
done
: >dev/null
mount --bind /dev/null dev/null
ln -s /proc/self/fd dev/fd
mount -t proc none proc
exec chroot "$root" /bin/sh -c "$DRIVER" sh "$@"
"""


@cache
def has_namespaces() -> bool:
    """Whether this machine lets us make a root of our own."""
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", *NAMESPACES, "/bin/true"], capture_output=True, check=False)
    return done.returncode == 0


def run(scripts: Sequence[str], folder: Path) -> list[list[tuple[str, ...]]]:
    """What each script started: one tuple of words for every program, in the order in which they began."""
    shared = folder / "bin"
    shared.mkdir()
    shutil.copy(RECORDER, shared / "recorder")
    (shared / "recorder").chmod(0o755)
    for name in NAMES:
        (shared / name).symlink_to("recorder")
    for number, text in enumerate(scripts):
        place = folder / str(number)
        for name in ("work", "home"):
            (place / name).mkdir(parents=True)
        (place / "bin").symlink_to("../bin")
        (place / "script").write_text(text)
        (place / "work" / "in").write_text("alpha input\n")
    numbers = [str(number) for number in range(len(scripts))]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "FOLDER": str(folder), "DRIVER": DRIVER}
    if has_namespaces():
        command = ["unshare", *NAMESPACES, "/bin/sh", "-c", PRIVATE_ROOT, "sh", *numbers]
        environment |= {"ROOT": "/case", "RESTRICTED": ""}
    else:
        command = ["/bin/sh", "-c", DRIVER, "sh", *numbers]
        environment |= {"ROOT": str(folder), "RESTRICTED": "-r"}
    subprocess.run(command, capture_output=True, check=True, timeout=60 + len(scripts), env=environment)
    return [_record(folder / number / "record") for number in numbers]


def _record(path: Path) -> list[tuple[str, ...]]:
    if not path.exists():
        return []
    fields = path.read_bytes().decode("utf-8", "surrogateescape").split("\0")
    found: list[tuple[str, ...]] = []
    position = 0
    while position < len(fields) - 1:
        count = int(fields[position])
        found.append(tuple(fields[position + 1 : position + 1 + count]))
        position += 1 + count
    return found


def home(folder: Path, place: int) -> str:
    """The home directory that the script at this place of a run has."""
    return f"/case/{place}/home" if has_namespaces() else str(folder / str(place) / "home")
