"""How far an answer reaches: a rule for a program, any code, a tool, or the exact text in any folder."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN, World, choices_of, operand

from signoff.errors import ChoiceNotOffered
from signoff.model import (
    Action,
    ApprovalRequest,
    Code,
    Command,
    Elicitation,
    FileWrite,
    Grant,
    Operand,
    Rule,
    Tool,
    replace,
)
from signoff.policy import JudgeContext, judge

PUSH = "git push --force origin topic"
REMOVE = "rm -rf build"


async def given(world: World, choice: str, action: str | Action, session_id: str = "s", **facts: Any) -> list[Grant]:
    """Answer a question with this choice; the live grants then."""
    row = await world.ask(action, session_id, **facts)
    assert await world.decide(row, choice) == "won"
    return await world.broker.grants("default")


async def covered(world: World, action: str | Action, session_id: str = "s", **facts: Any) -> tuple[str, ...]:
    """The grants that approved it; none where a person is asked."""
    row = await world.submit(action, session_id, **facts)
    if row.outcome is None:
        await world.cancel(row)
        return ()
    assert row.outcome == "approved"
    assert all(actor.type == "grant" for actor in row.decided_by)
    return tuple(actor.grant_id or "" for actor in row.decided_by)


def reviewed(command: str, sha256: str) -> Command:
    return Command(command=command, operands=(operand(sha256=sha256),))


# --- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["session", "30m"])
async def test_a_session_grant_covers_the_rule_for_its_program(world: World, choice: str) -> None:
    (grant,) = await given(world, choice, PUSH)
    assert (grant.coverage, grant.label) == (("git.force_push@git",), "git force pushes")
    assert await covered(world, "git push -f origin dev") == (grant.grant_id,)
    assert await covered(world, Command(command="cd x && git push --force origin x", cwd="/elsewhere")) == (
        grant.grant_id,
    )
    assert not await covered(world, REMOVE)
    assert not await covered(world, f"{PUSH}; {REMOVE}"), "each rule that fires must be covered"
    assert not await covered(world, "sudo git push --force origin x"), "and the wrapper's too"
    assert not await covered(world, f"{PUSH}; drop it"), "nothing covers a part without a rule"
    assert not await covered(world, f"{PUSH} 'x"), "nor what cannot be read"
    assert not await covered(world, f"{PUSH}; $X")
    await world.session("s2")
    assert not await covered(world, PUSH, "s2")


async def test_grants_cover_together_what_none_covers_alone(world: World) -> None:
    await given(world, "session", PUSH)
    grants = await given(world, "30m", REMOVE)
    both = await covered(world, f"{PUSH} && {REMOVE}")
    assert set(both) == {grant.grant_id for grant in grants}
    row = await world.submit(f"{REMOVE}; {PUSH}")
    assert row.grant_id in both
    await world.broker.revoke("default", both[0], BY_ANN)
    assert not await covered(world, f"{PUSH} && {REMOVE}")


async def test_a_time_box_is_a_session_grant_that_ends(world: World) -> None:
    await given(world, "30m", PUSH)
    await world.clock.advance(1799)
    assert await covered(world, "git push -f origin x")
    await world.clock.advance(1)
    assert not await covered(world, "git push -f origin x")


async def test_always_is_the_exact_text_anywhere_and_the_rule_here(world: World) -> None:
    await world.session("s2")
    grants = await given(world, "always", Command(command=PUSH, cwd="/a"))
    permanent, beside = sorted(grants, key=lambda grant: grant.scope)
    assert (permanent.scope, permanent.session_id, permanent.exact) == ("always", None, PUSH)
    assert permanent.label == "this exact command"
    assert (beside.scope, beside.session_id, beside.exact) == ("session", "s", None)
    for command in (
        Command(command=PUSH, cwd="/b"),
        Command(command=f"  {PUSH}\n"),
        Command(command=f"nohup {PUSH}"),
        Command(command=f"timeout 60 bash -c '{PUSH}'"),
    ):
        assert await covered(world, command, "s2") == (permanent.grant_id,)
    for other in ("git push -f origin other", f"sudo {PUSH}", f"env A=1 {PUSH}", f"{PUSH}; ls", f"{PUSH} > x"):
        assert not await covered(world, other, "s2")
    for around in (
        Command(command=PUSH, env={"A": "1"}),
        Command(command=PUSH, shell="fish"),  # noqa: S604  # nothing runs
        Command(command=PUSH, operands=(operand(),)),
    ):
        assert not await covered(world, around, "s2")
    assert await covered(world, "git push -f origin other") == (beside.grant_id,), "as wide as session would have been"


async def test_always_keeps_what_is_set_around_a_command(world: World) -> None:
    await world.session("s2")
    await given(world, "always", Command(command=PUSH, cwd="/a", env={"A": "1"}))
    assert await covered(world, Command(command=PUSH, cwd="/b", env={"A": "1"}), "s2")
    assert not await covered(world, Command(command=PUSH, env={"A": "2"}), "s2")
    assert not await covered(world, PUSH, "s2")
    assert [grant.exact for grant in await world.broker.grants("default")] == [None, None], "no file could say it"


async def test_ending_the_permanent_one_ends_what_came_with_it(world: World) -> None:
    grants = await given(world, "always", PUSH)
    (permanent,) = [grant for grant in grants if grant.scope == "always"]
    await world.broker.revoke("default", permanent.grant_id, BY_ANN)
    assert await world.broker.grants("default") == []
    assert not await covered(world, PUSH)


async def test_undoing_an_answer_ends_all_its_grants(world: World) -> None:
    row = await world.ask(PUSH)
    await world.decide(row, "always")
    assert len(await world.broker.grants("default")) == 2
    await world.broker.undo("default", row.request_id, BY_ANN)
    assert await world.broker.grants("default") == []


async def test_a_cleared_session_keeps_what_is_permanent(world: World) -> None:
    await given(world, "always", PUSH)
    await world.sessions.clear("default", "s", BY_ANN, close=False)
    assert [grant.scope for grant in await world.broker.grants("default")] == ["always"]
    assert await covered(world, PUSH)
    assert not await covered(world, "git push -f origin x")


@pytest.mark.parametrize("choice", ["session", "always", "30m"])
async def test_a_scripts_grant_is_bound_to_what_was_read(world: World, choice: str) -> None:
    await given(world, choice, reviewed("deploy run.sh && git push -f origin x", "aa"))
    assert await covered(world, reviewed("deploy run.sh && git push -f origin x", "aa"))
    assert not await covered(world, reviewed("deploy run.sh && git push -f origin x", "bb"))
    assert not await covered(world, "deploy run.sh && git push -f origin x")


async def test_a_rules_grant_is_bound_to_the_files_too(world: World) -> None:
    await given(world, "session", reviewed("git push -f origin x", "aa"))
    assert await covered(world, reviewed("git push -f origin y", "aa"))
    assert not await covered(world, reviewed("git push -f origin y", "bb"))
    assert not await covered(world, "git push -f origin y")


async def test_an_unread_script_is_approved_once(world: World) -> None:
    row = await world.ask("./deploy.sh --delete-all")
    assert (row.once_only, row.unread_file) == (True, "./deploy.sh")
    for choice in ("session", "always", "30m", "once_all"):
        with pytest.raises(ChoiceNotOffered):
            await world.decide(row, choice)
    await world.tap(row, "more")
    await world.flush()
    panel = world.chat.shown()[-1]
    assert "Only one run can be approved: what ./deploy.sh contains is not known." in panel.text
    assert not {"session", "always", "30m"} & set(choices_of(panel))
    await world.decide(row, "once")
    assert not await covered(world, "./deploy.sh --delete-all")
    action = Command(command="./deploy.sh --delete-all", operands=(Operand(path="./deploy.sh", sha256="aa", bytes=1),))
    assert not (await world.ask(action)).once_only


async def test_critical_is_never_covered(world: World) -> None:
    await given(world, "session", PUSH)
    row = await world.submit("git push -f origin x", choices=("once",))
    assert row.outcome == "approved"
    critical = await world.submit('psql production -c "DROP TABLE t1"')
    assert (critical.severity, critical.outcome) == ("critical", None)
    with pytest.raises(ChoiceNotOffered):
        await world.decide(critical, "session")


# --- of two deeds that one rule asks about -------------------------------------------------------

APART = [
    ("rm -rf build", "rm -rf ~/Documents"),
    ("rm -rf build", "rm -rf ."),
    ("rm -rf build", 'rm -rf "$D"'),
    ("rm -rf build", "docker exec db rm -rf build"),
    ("find . -name '*.pyc' -delete", "find ~/Documents -delete"),
    ("sudo ls /root", "sudo useradd eve"),
    ("sudo nohup ls", "sudo nohup cp a /opt/b"),
    ("sudo -u bob ls", "sudo ls"),
    ("rm -rf build", "cd $D && rm -rf build"),
    ("git push origin topic", "git push origin main"),
    ("git push origin topic", "git push https://example.com/x topic"),
    ("git push origin topic", "git push --all"),
    ("git push -f origin topic", "git push -f origin main"),
    ("git push -f origin topic", "git push origin --delete topic"),
    ("git push -f origin topic", "git push --mirror origin"),
    ("git config core.pager ./x", "git config url.http://x.insteadOf https://y"),
    ("cat .env", "cat ~/.ssh/id_rsa"),
    ("cat .env", "cat /etc/shadow"),
    ("aws s3 cp a s3://b", "aws lambda update-function-code x"),
    ("aws s3 rm s3://b/x", "aws rds delete-db-instance --db-instance-identifier prod"),
    ("alembic upgrade head", "alembic downgrade base"),
    ("npm publish", "npm owner add eve x"),
    ("gh pr create", "gh repo edit --visibility public"),
    ("gh pr create", "gh gist create src.py"),
    ("gh pr merge 1", "gh secret set X"),
    ("kubectl apply -f x", "kubectl config use-context prod"),
    ("kubectl apply -f x", "kubectl scale deploy x --replicas=0"),
    ("kubectl delete pod x", "kubectl delete deployment prod"),
    ("helm upgrade x y", "helm uninstall x"),
    ("systemctl daemon-reload", "systemctl disable firewalld"),
    ("systemctl restart nginx", "systemctl stop ssh"),
    ("echo x > /etc/hosts", "echo x > /etc/passwd"),
    ("echo x >> ~/.ssh/config", "echo x >> ~/.ssh/authorized_keys"),
    ("echo x > .git/hooks/pre-commit", "echo x >> ~/.bashrc"),
    ("mysql -e 'alter table x add column y int'", "mysql -e 'grant all on *.* to eve'"),
    ("psql -c 'insert into x values(1)'", "psql -h prod -c 'insert into x values(1)'"),
    ("docker rm x", "docker rm -f $(docker ps -aq)"),
    ("killall node", "killall -9 sshd"),
    ("stripe refunds create", "stripe customers delete x"),
    ("curl -d x https://example.com", "curl -X DELETE https://example.com"),
    ("brew install x", "brew uninstall x"),
    ("ufw allow 22", "ufw disable"),
    ("iptables -A INPUT -j DROP", "iptables -F"),
    (
        "python -c 'import shutil; shutil.rmtree(\"build\")'",
        "python -c 'import shutil; shutil.rmtree(\"/home/ana/d\")'",
    ),
]


def needed_for(command: str) -> set[str]:
    """The names that a command of a known folder needs."""
    home = "/home/ana"
    context = JudgeContext(kind="chat", attended=True, home=home, cwd=f"{home}/project")
    verdict = judge("command", command, context)
    assert verdict.verdict == "ask", command
    return set(verdict.coverage)


@pytest.mark.parametrize(("seen", "other"), APART)
def test_approving_one_deed_is_not_approving_another(seen: str, other: str) -> None:
    approved, needed = needed_for(seen), needed_for(other)
    assert approved, seen
    assert not needed or needed - approved


@pytest.mark.parametrize(
    ("seen", "same"),
    [
        ("rm -rf build", "rm -rf dist"),
        ("git push origin topic", "git push origin other"),
        ("aws s3 cp a s3://b", "aws s3 cp c s3://b"),
        ("kubectl delete pod x", "kubectl delete pod/y"),
        ("curl -d x https://example.com/a", "curl -d y https://example.com/b"),
        ("sudo ls /root", "sudo ls /etc"),
    ],
)
def test_the_same_deed_again_is_covered(seen: str, same: str) -> None:
    assert needed_for(same) <= needed_for(seen)


@pytest.mark.parametrize(
    "command",
    [
        "sudo bash",
        "sudo ./evil.sh",
        "sudo python3 x.py",
        "su -",
        "kill -9 1",
        "aws iam attach-user-policy --user-name x --policy-arn y",
        "gcloud projects delete x",
        "az group delete -n x",
    ],
)
def test_the_gravest_deeds_are_asked_each_time(command: str) -> None:
    assert judge("command", command, JudgeContext(kind="chat", attended=True)).severity == "critical"


# --- code, tools, files, questions ---------------------------------------------------------------


def python(code: str) -> Code:
    return Code(language="python", code=code)


async def test_once_for_code_is_one_shot(world: World) -> None:  # #39466 1.2.8
    row = await world.ask(python("print(1)"))
    await world.decide(row, "once")
    assert not await covered(world, python("print(1)"))
    assert not await covered(world, python("print(2)"))


@pytest.mark.parametrize(("choice", "elsewhere"), [("session", False), ("30m", False), ("always", True)])
async def test_an_answer_for_code_silences_later_scripts(world: World, choice: str, elsewhere: bool) -> None:
    # 1.2.5 #39187 #39204 #39212 #39275 #39391 #39413 #39466
    await world.session("s2")
    (grant,) = await given(world, choice, python("print(1)"))
    assert (grant.label, grant.coverage) == ("any Python code", ("code:python",))
    assert await covered(world, python("import shutil; shutil.rmtree('x')"))
    assert bool(await covered(world, python("print(2)"), "s2")) == elsewhere
    assert not await covered(world, Code(language="javascript", code="1")), "the card said Python"
    blocked = await world.submit(python("import os; os.system('rm -rf /')"))
    assert blocked.outcome == "blocked", "floors hold inside"
    inner = await world.submit(REMOVE)
    assert inner.outcome is None, "what the script asks for by itself is asked"


async def test_an_answer_for_a_tool_covers_that_tool(world: World) -> None:
    (grant,) = await given(world, "session", Tool(name="send_email", arguments={"to": "a"}))
    assert grant.label == "tool send_email"
    assert await covered(world, Tool(name="send_email", arguments={"to": "b"}))
    assert not await covered(world, Tool(name="send_email2"))
    assert not await covered(world, Code(language="python", code="send_email"))
    await given(world, "always", Rule(tool="x", rule_key="net.egress", reason="r"))
    assert await covered(world, Rule(tool="y", rule_key="net.egress", reason="q"))
    assert not await covered(world, Rule(tool="x", rule_key="net.ingress", reason="r"))


async def test_an_answer_for_a_file_covers_that_very_change(world: World) -> None:
    await given(world, "session", FileWrite(path="a.txt", diff="+1"))
    assert await covered(world, FileWrite(path="a.txt", diff="+1"))
    assert not await covered(world, FileWrite(path="a.txt", diff="+2"))


@pytest.mark.parametrize(
    "action",
    [
        FileWrite(path="docs/AGENTS.md", diff="+1"),
        FileWrite(path="x", diff="--- a/x\n+++ b/CLAUDE.md\n+1"),
        Elicitation(server="jira", message="Really?"),
    ],
)
async def test_what_is_always_asked_is_answered_once(world: World, action: Action) -> None:
    row = await world.ask(action)
    assert choices_of(await world.card(row)) == ["once", "deny", "because", "more"]
    for choice in ("session", "always", "30m"):
        with pytest.raises(ChoiceNotOffered):
            await world.decide(row, choice)
    await world.decide(row, "once")
    assert not await covered(world, action)
    kind = str(action.__struct_config__.tag)
    facts = {"profile": "default", "scope": "always", "action_kind": kind, "by": BY_ANN, "request_id": row.request_id}
    await world.put(Grant(grant_id="0LD5R", digest=row.digest, created_at=row.created_at, **facts))  # type: ignore[arg-type]  # as named
    assert not await covered(world, action), "not by one from before either"


# --- what waits, and what was stored before ------------------------------------------------------


async def test_a_new_grant_settles_what_it_covers(world: World) -> None:
    await world.session("s2")
    rows = [
        await world.ask(PUSH),
        await world.ask("git push -f origin other"),
        await world.submit("git push -f origin other"),
        await world.ask(REMOVE),
        await world.ask(f"{PUSH} && {REMOVE}"),
        await world.ask("git push -f origin other", "s2"),
        await world.ask("git push -f origin grave"),
    ]
    await world.put(replace(rows[-1], severity="critical"))
    await world.decide(rows[0], "session")
    assert await outcomes(world, rows) == ["approved"] * 3 + [None] * 4
    await world.decide(rows[3], "session")
    assert await outcomes(world, rows) == ["approved"] * 5 + [None] * 2, "now both cover it together"
    settled = await world.row(rows[4])
    assert len(settled.decided_by) == 2
    await world.flush()
    assert "Approved by grant" in (await world.card(rows[4])).text


async def test_a_permanent_grant_settles_the_same_text_everywhere(world: World) -> None:
    await world.session("s2")
    here, there = await world.ask(PUSH), await world.ask(Command(command=f"nohup {PUSH}", cwd="/x"), "s2")
    other = await world.ask("git push -f origin other", "s2")
    await world.decide(here, "always")
    assert await outcomes(world, [here, there, other]) == ["approved", "approved", None]


async def test_a_grant_from_before_covers_its_digest(world: World) -> None:
    """Rows of an older version name nothing but the digest."""
    for choice, session_id in (("session", "s"), ("always", "s2")):
        await world.session(session_id)
        grants = await given(world, choice, PUSH, session_id)
        for grant in grants:
            await world.put(replace(grant, coverage=(), exact=None, label="this exact command"))
        assert await covered(world, PUSH, session_id)
        assert not await covered(world, "git push -f origin x", session_id)


async def test_the_card_says_what_the_grant_covers(world: World) -> None:
    row = await world.ask("rm notes.txt")
    assert "This session: deleting files" in [b.label for line in (await world.card(row)).card.rows for b in line]
    await world.tap(row, "more")
    await world.flush()
    panel = world.chat.shown()[-1]
    assert "Deleting files, without folders, in this session, until it ends." in panel.text
    assert (
        "Exactly this text, in any folder and any session of profile default, until revoked. "
        "Also this session: deleting files."
    ) in panel.text
    told = await world.tap(row, "always")
    assert told.text.startswith("Approved always: this exact command.")
    await world.flush()
    assert "Approved by “Ann” [fake 1], always: this exact command" in (await world.card(row)).text


async def test_after_the_third_approval_the_card_offers_a_time_box(world: World) -> None:
    for number in range(3):
        row = await world.ask("rm notes.txt")
        assert not row.offer_box, number
        assert "session" in choices_of(await world.card(row))
        await world.tap(row, "once")
    row = await world.ask("rm notes.txt")
    assert row.offer_box
    labels = [button.label for line in (await world.card(row)).card.rows for button in line]
    assert labels == ["Approve once", "Deny", "30 min: deleting files", "Deny, because…", "More…"]
    assert not (await world.ask("rm other.txt")).offer_box
    await world.tap(row, "30m")
    (grant,) = await world.broker.grants("default")
    assert grant.scope == "time_box"


async def outcomes(world: World, rows: list[ApprovalRequest]) -> list[str | None]:
    """How these stand now."""
    return [(await world.row(row)).outcome for row in rows]
