"""Code for shells, and lines of IPython: deny rules and floors stand there as they do in commands."""

import pytest
from msgspec.structs import replace
from tests.tables import every
from tests.unit.policy.test_ladder import CHAT

from signoff.policy import JudgeContext, judge

HERE = replace(CHAT, home="/home/ana", cwd="/home/ana/project")
LIFTED = {
    "off": replace(HERE, mode="off"),
    "bypass": replace(HERE, bypass=True),
    "cron": replace(HERE, kind="cron", attended=False, cron_mode="approve"),
}

FLOORS = [
    ("bash", "rm -rf /"),
    ("Bash 5.2", "cd src\nx=/\nrm -rf $x"),
    ("/bin/sh", "rm -rf ~"),
    ("shell script", "sudo shutdown now"),
    ("zsh", "rm -rf /"),
    ("dash", "mkfs.ext4 /dev/sda"),
    ("ksh", ":(){ :|:& };:"),
    ("fish", "rm -rf /"),
    ("bash", "python3 -c 'import shutil; shutil.rmtree(\"/\")'"),
    ("PowerShell", "Remove-Item C:\\ -Recurse -Force"),
    ("Windows PowerShell 5.1", "Stop-Computer"),
    ("pwsh", "cmd /c 'rd /s /q C:\\'"),
    ("pwsh", "rm -rf /"),
    ("pwsh", "Write-Host x; sudo shutdown now"),
    ("cmd.exe", "echo off\nrd /s /q C:\\"),
    ("batch", "format C:"),
    ("", "rm -rf /"),
    ("", "import os\nos.system('rm -rf /')"),
    ("python", "!rm -rf /"),
    ("python", "import os\nfiles = !ls; rm -rf /\nprint(files)"),
    ("python", "if True:\n    !ls \\\n      -l; rm -rf /\n    print(2)"),
    ("python", "!!rm -rf /"),
    ("IPython", "%system rm -rf /"),
    ("python", "x = %sx rm -rf /"),
    ("python", "%rm -rf /"),
    ("python", "rm -rf /"),
    ("python", "%time !rm -rf /"),
    ("python", "import os\n%timeit -n 1 -r 1 os.system('rm -rf /')"),
    ("python", "%%bash\nls\nrm -rf /"),
    ("python", "\n%%sh -e\nrm -rf /"),
    ("python", "%%script --bg --out x bash -e\nrm -rf /"),
    ("python", "%%script sudo sh\nrm -rf /"),
    ("python", "%%!\nrm -rf /"),
    ("python", "%%system\nrm -rf /"),
    ("python", "%%time\n!rm -rf /"),
    ("python", "%%timeit import os; os.system('rm -rf /')\n1"),
    ("python", "%%python3\nimport shutil\nshutil.rmtree('/')"),
    ("python", "%%powershell\nRemove-Item C:\\ -Recurse -Force"),
    ("python", "%%cmd\ndir\nrd /s /q C:\\"),
    ("python", "?os.getcwd\nos.getcwd??\n!rm -rf /"),
    ("python", "!rm -rf /\n/print 1"),
    ("python", "get_ipython().run_cell_magic('bash', '', 'rm -rf /')"),
    ("python", "get_ipython().run_line_magic('sx', 'rm -rf /')"),
]
HARMLESS = [
    ("bash", "echo rm -rf /\n# rm -rf /\ncat <<'E'\nrm -rf /\nE"),
    ("javascript", "rm -rf /"),
    ("PowerShell", "# Stop-Computer\nWrite-Host Stop-Computer"),
    ("batch", "rem format C:\n:: format C:"),
    ("", "console.log('rm -rf /')"),
    ("python", "print('!rm -rf /')"),
    ("python", 'x = """\n!rm -rf /\n%%bash\nrm -rf /\n"""'),
    ("python", "%%writefile x.sh\nrm -rf /"),
    ("python", "%%html\n!rm -rf /"),
    ("python", "rm = 3\ncp = (rm\n % 2)\n%matplotlib inline\nprint(cp)"),
    ("python", "!pip install rich\n%pip install rich\n%%capture\nimport rich"),
]


@every("language, text", FLOORS)
def test_no_setting_lifts_a_floor_of_code(language: str, text: str) -> None:
    for context in (HERE, *LIFTED.values()):
        verdict = judge("code", text, replace(context, language=language))
        assert (verdict.verdict, verdict.rung) == ("block", "floor"), context


@every("language, text", HARMLESS)
def test_code_that_only_looks_like_a_floor_asks(language: str, text: str) -> None:
    assert judge("code", text, replace(HERE, language=language)).verdict == "ask"
    assert judge("code", text, replace(LIFTED["off"], language=language)).verdict == "allow"


@every(
    "language, text",
    [
        ("bash", "cd src\ngit push --force"),
        ("sh", "env X=1 /usr/bin/git -C . push"),
        ("powershell", "git push"),
        ("cmd", "git push"),
        ("", "git push"),
        ("python", "!git push"),
        ("python", "%%bash\ngit push"),
    ],
)
def test_no_setting_lifts_a_deny_rule_of_code(language: str, text: str) -> None:
    isolated = replace(HERE, isolated=True)
    for context in (HERE, isolated, *LIFTED.values()):
        verdict = judge("code", text, replace(context, language=language, deny=("git push *",)))
        assert (verdict.verdict, verdict.rung) == ("block", "deny"), context
    assert judge("code", text, replace(isolated, language=language)).verdict == "allow"


@pytest.mark.parametrize(("language", "text"), [("bash", "echo ("), ("zsh", "repeat 3 ls"), ("sh", "x" * 300_000)])
def test_code_for_a_shell_that_cannot_be_read_is_never_allowed_unseen(language: str, text: str) -> None:
    for name, context in LIFTED.items():
        assert judge("code", text, replace(context, language=language)).verdict == (
            "block" if name == "cron" else "ask"
        )
    kept_in = JudgeContext(kind="chat", attended=True, isolated=True, language=language)
    assert judge("code", text, kept_in).verdict == "allow"
    assert judge("code", text, replace(kept_in, deny=("git push *",))).verdict == "ask"


def test_what_code_for_a_shell_does_is_told() -> None:
    verdict = judge("code", "cd src\ngit push --force\n", replace(HERE, language="bash"))
    assert (verdict.verdict, verdict.severity, verdict.rule_keys) == ("ask", "high", ("git.force_push",))
    assert verdict.description == "rewrites or deletes branches or tags of a remote repository (Bash code, 2 lines)"
    assert verdict.coverage == ("code:bash",)
    assert judge("code", "ls\n", replace(HERE, language="bash")).verdict == "ask"
