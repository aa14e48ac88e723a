"""The floors: what is refused whoever asks, and what only looks like it."""

import pytest

from signoff.policy import JudgeContext, judge

CONTEXT = JudgeContext(
    kind="chat",
    attended=True,
    home="/home/ana",
    own_paths=("/home/ana/.local/state/signoff", "/home/ana/signoff.toml"),
    own_pid=4242,
)

DELETES = [
    "rm -rf /",
    "rm -rf //",
    "rm -rf /./",
    "rm -rf /../../.",
    "rm -rf / *",
    "rm -rf /*",
    "rm -r -f -- /",
    "rm / -rf",
    "rm --recursive --force --no-preserve-root /",
    'cat "f\\"n.txt"; rm -rf --no-preserve-root /',
    "rm -rf / && echo done",
    "rm -rf /home",
    "rm -rf /etc/*",
    "rm -rf /e*",
    "rm /etc",
    "rm -rf ~",
    "rm -rf ~/*",
    "rm -rf ~ana",
    'rm -rf "$HOME"/*',
    "rm -rf /home/ana/",
    "rm -rf /home/bob/../ana",
    "/bin/rm -rf /usr",
    "cd / && rm -rf *",
    "cd /tmp; cd ..; rm -rf .",
    "ls; (cd /; rm -rf *)",
    "find / -delete",
    "find / -type f -delete",
    "rm -rf ${HOME:?}",
    "find / -xdev -exec rm -rf {} +",
    "chmod -R 777 / ; ls",
    "chown -R x /",
    "rm -rf /\n(",
]

OTHERS = [
    "mkfs.ext4 -F /dev/sda1",
    "mkfs -t ext4 /dev/sdb",
    "mkswap /dev/sda2",
    "mke2fs /dev/vdb",
    "diskutil eraseDisk JHFS+ x /dev/disk2",
    "wipefs -a /dev/sdb",
    "sgdisk --zap-all /dev/sda",
    "blkdiscard /dev/nvme0n1",
    "shred -v /dev/sda",
    "dd if=/dev/zero of=/dev/sda",
    "dd of=/dev/disk/by-id/x if=a",
    "cat image.img > /dev/sda",
    "echo x >> /dev/nvme0n1p1",
    "exec 3> /dev/mmcblk0",
    "{ ls; } > /dev/sda",
    "cat x | sudo tee /dev/sda",
    "cp x.img /dev/sdb",
    ":(){ :|:& };:",
    "bomb() { bomb | bomb & }; bomb",
    "f() { f & f & }; f",
    "kill -9 -1",
    "kill -1",
    "kill -s KILL -1",
    "kill -KILL -- -1",
    "shutdown -h now",
    "sudo shutdown now",
    "/sbin/reboot",
    "ls && halt",
    "poweroff",
    "init 0",
    "telinit 6",
    "systemctl kexec",
    "systemctl --force reboot",
    "systemctl isolate poweroff.target",
    "sudo -S ls",
    "sudo -kS ls",
    "echo pw | sudo -u bob --stdin ls",
    "if true; then reboot; fi",
    "while :; do halt; done",
]

OWN = [
    "signoff approve K4XW9",
    "signoff --config x.toml deny K4XW9",
    "/usr/local/bin/signoff key create",
    "python3 -m signoff grants",
    "python -I -m signoff yolo",
    "uv run signoff actions",
    "cat ~/.local/state/signoff/db",
    "sqlite3 /home/ana/.local/state/signoff/signoff.sqlite 'select 1'",
    "rm -rf ~/.local",
    "mv ~/.local/state /tmp",
    "echo x > ~/signoff.toml",
    "tee --append /home/ana/signoff.toml",
    "cp --target-directory=/home/ana/.local/state/signoff x",
    "cd ~ && sed -i s/a/b/ signoff.toml",
    "cat ~/signof?.toml",
    "kill 4242",
    "kill -9 4242",
    "pkill -f signoff",
    "killall signoff",
    "kill $(pgrep signoff)",
    "systemctl --user stop signoff.service",
]

HIDDEN = [
    "ｒｍ -rf /",
    "r\\m -rf /",
    "'rm' -rf /",
    "r''m -rf /",
    "rm${IFS}-rf${IFS}/",
    "$(echo rm) -rf /",
    "`echo rm` -rf /",
    "$(printf %s rm) -rf /",
    "r$@m -rf /",
    "$'\\x72\\x6d' -rf /",
    '$"rm" -rf /',
    "{rm,-rf,/}",
    "/bin/r{m,} -rf /",
    "rm -rf /{etc,x}",
    "x=rm; $x -rf /",
    "x=r y=m; $x$y -rf /",
    'a=(rm -rf /); "${a[@]}"',
    "d=/; rm -rf $d",
    "x=rmx; ${x%x} -rf /; ${x:0:2} -rf /",
    'echo safe\n"${VAR:-rm}" -rf /',
    "export x=rm; $x -rf /",
    'set -- rm -rf /; "$@"',
    "for f in a /; do rm -rf $f; done",
    'f() { rm -rf "$1"; }; f /',
    "alias x='rm -rf'; x /",
    "r\\\nm -rf /",
    'echo "$\\\n(rm -rf /)"',
    "echo / | while read d; do rm -rf $d; done",
    "case a in a) rm -rf /;; esac",
    "echo ${x[$(rm -rf /)]}",
    "(( a[$(rm -rf /)] ))",
]

CARRIED = [
    "bash -c 'rm -rf /'",
    "bash -lc 'rm -rf /'",
    "sh -ec 'rm -rf \"$1\"' _ /",
    "bash -c \"bash -c 'rm -rf /'\"",
    "eval rm -rf /",
    'eval "$(echo rm -rf /)"',
    "sudo -u bob env A=1 timeout -k 3 5 nice -n 5 rm -rf /",
    "env -S 'rm -rf /'",
    "find . -exec env -S 'rm -rf /' \\;",
    "find . -ok rm -rf / \\;",
    "xargs rm -rf <<< /",
    "printf '%s\\n' / | xargs -I{} rm -rf {}",
    "parallel rm -rf ::: /",
    "watch -n 1 rm -rf /",
    "ssh -p 22 host 'rm -rf /'",
    "ssh host rm -rf '~'",
    "ssh host <<EOF\nrm -rf /\nEOF",
    "su - bob -c 'rm -rf /'",
    "docker compose -f x.yml exec web rm -rf /",
    "bash -c '$0 -rf /' rm",
    "docker exec -it web sh -c 'rm -rf /'",
    "kubectl exec -n x pod -- rm -rf /",
    "bash <<'EOF'\nrm -rf /\nEOF",
    "cat <<EOF | sh\nrm -rf /\nEOF",
    "bash <<< 'rm -rf /'",
    "echo 'rm -rf /' | sudo bash -s",
    "echo cm0gLXJmIC8K | base64 -d | sh",
    "bash <(echo rm -rf /)",
    "source <(echo rm -rf /)",
    "echo 'rm -rf /' > x.sh; bash x.sh",
    "printf 'rm -rf /' > ./x.sh && chmod +x x.sh && ./x.sh",
    "trap 'rm -rf /' EXIT",
    "busybox rm -rf /",
    "flock /tmp/l rm -rf /",
    "flock /tmp/l -c 'rm -rf /'",
    "chroot /mnt rm -rf /",
    "unshare -r rm -rf /",
    "script -c 'rm -rf /' out",
    "exec -a x rm -rf /",
    "command rm -rf /",
    "! time rm -rf / &",
    "coproc rm -rf /",
    "coproc x { rm -rf /; }",
    "time (ls; rm -rf /)",
    "time { rm -rf /; }",
    "nohup setsid stdbuf -oL ionice -c 3 rm -rf / &",
    'powershell -Command "Remove-Item -Recurse -Force C:\\\\"',
]

NOT_BLOCKED = [
    "echo shutdown",
    "echo mkfs",
    "grep mkfs notes",
    'echo "rm -rf /"',
    "echo 'rm -rf /' | tee notes",
    'git commit -m "rm -rf foo"',
    'git commit -m "rm -rf /"',
    "git commit -F - <<'EOF'\nnever rm -rf /\nEOF",
    "grep 'rm -rf /' f",
    "grep -rn 'rm -rf' .",
    "cat <<'EOF'\nrm -rf /\nEOF",
    "cat <<'EOF' > notes\nsudo reboot\nEOF",
    "echo 'x; rm -rf /'",
    "echo '$(rm -rf /)'",
    "ls # rm -rf /",
    "rm -rf /home/x/project",
    "rm -rf /etc/nginx",
    "rm -rf /tmp/x",
    "rm -rf ~/foo",
    "rm -rf ./build",
    "rm -rf /...",
    "rm -rf '~'",
    'rm -rf "/*"',
    "rm -rf $UNKNOWN/",
    "d=/; d=/tmp/a; rm -rf $d",
    "(cd /); rm -rf *",
    "cd /tmp && rm -rf *",
    "x=rm; x=ls; $x -rf /",
    "sudo ls -S",
    "sudo ls",
    "sudo -uS ls",
    "kill -1 123",
    "kill -9 1234",
    "kill -l",
    "find . -delete",
    "find / -name x -delete",
    "mkfs.ext4 ./disk.img",
    "mkfs.ext4 --help",
    "dd if=a of=b",
    "dd if=/dev/sda of=backup.img",
    "cat /dev/sda > x",
    "make > /dev/null 2>&1",
    "shutdown -c",
    "./shutdown",
    "npm run shutdown",
    "man reboot",
    "systemctl status poweroff.target",
    "init 3",
    "chmod -R 777 build",
    "f() { f; }; f",
    "f() { ls | wc & }; f",
    "signoff check 'rm -rf /'",
    "signoff pending",
    "signoff serve --config /home/ana/signoff.toml",
    "git log --grep approve",
    "echo ~/.local/state/signoff",
    "pkill node",
    "systemctl restart nginx",
    "ls /*/*/*",
    "command -v reboot",
]


@pytest.mark.parametrize("command", DELETES + OTHERS + OWN + HIDDEN + CARRIED)
def test_a_floor_blocks(command: str) -> None:
    verdict = judge("command", command, CONTEXT)
    assert (verdict.verdict, verdict.rung, verdict.severity) == ("block", "floor", "critical")
    assert verdict.rule_keys[0].startswith("floor.")


@pytest.mark.parametrize("command", NOT_BLOCKED)
def test_what_only_looks_like_a_floor_is_asked(command: str) -> None:
    assert judge("command", command, CONTEXT).verdict == "ask"


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("rm -rf /", "floor.delete_root"),
        ("rm -rf /etc", "floor.delete_system"),
        ("rm -rf ~", "floor.delete_home"),
        ("chmod -R 777 /", "floor.permissions_root"),
        (":(){ :|:& };:", "floor.fork_bomb"),
        ("sudo -S ls", "floor.sudo_stdin"),
        ("signoff approve x", "floor.own_command"),
        ("cat /home/ana/signoff.toml", "floor.own_state"),
        ("kill 4242", "floor.own_process"),
    ],
)
def test_the_key_names_the_floor(command: str, key: str) -> None:
    assert judge("command", command, CONTEXT).rule_keys == (key,)


def test_another_machine_is_not_where_our_state_is() -> None:
    assert judge("command", "ssh host cat /home/ana/signoff.toml", CONTEXT).verdict == "ask"


def test_a_home_is_known_by_its_tilde_even_when_nobody_told_which() -> None:
    context = JudgeContext(kind="chat", attended=True)
    assert judge("command", "rm -rf ~", context).verdict == "block"
    assert judge("command", "rm -rf $HOME/", context).verdict == "block"
    assert judge("command", "rm -rf ~/x", context).verdict == "ask"


WINDOWS_BLOCKED = [
    ("cmd", "rd /s /q C:\\"),
    ("cmd", "RD /S/Q c:\\*"),
    ("cmd", "dir & rd /s /q C:\\"),
    ("cmd", 'cmd /c "rd /s /q C:\\"'),
    ("cmd", "r^d /s /q %SystemDrive%\\"),
    ("cmd", "rd /s /q C:\\Windows"),
    ("cmd", "del /f /s /q C:\\*"),
    ("cmd", "format C:"),
    ("cmd", "format d: /q"),
    ("cmd", "shutdown /s /t 0"),
    ("cmd", "powershell -Command Remove-Item -Recurse C:\\"),
    ("cmd", "signoff.exe approve K4XW9"),
    ("powershell", "Remove-Item -Recurse -Force C:\\"),
    ("powershell", "rm -r -fo C:\\*"),
    ("powershell", "Remove-Item -Rec $env:USERPROFILE"),
    ("powershell", "Remove-Item 'C:\\' -Recurse"),
    ("powershell", "Stop-Computer"),
    ("powershell", "iex 'Format-Volume -DriveLetter C'"),
]
WINDOWS_ASKED = [
    ("cmd", "echo rd /s /q C:\\"),
    ("cmd", "rd /s /q C:\\temp\\x"),
    ("cmd", "del C:\\temp\\*.log"),
    ("cmd", "shutdown /a"),
    ("powershell", "Write-Host 'Remove-Item -Recurse C:\\'"),
    ("powershell", "Remove-Item -Recurse C:\\temp\\x"),
    ("powershell", "Get-ChildItem C:\\ -Recurse"),
    ("powershell", "kubectl get pods -n ri"),
]


@pytest.mark.parametrize(
    ("shell", "command", "expected"),
    [(*case, "block") for case in WINDOWS_BLOCKED] + [(*case, "ask") for case in WINDOWS_ASKED],
)
def test_windows(shell: str, command: str, expected: str) -> None:
    context = JudgeContext(shell=shell, kind="chat", attended=True)
    assert judge("command", command, context).verdict == expected
