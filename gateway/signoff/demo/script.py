"""What the scripted agent asks for, and what it says to each ending. Data."""

from __future__ import annotations

from msgspec import Struct

from signoff.model import Action, Command

AGENT = "deploy-bot"
HOST = "web-1"
"""The machine that the agent pretends to work on."""


class Again(Struct, frozen=True, kw_only=True):
    """The same asked once more, after a person denied it."""

    says: str
    hint: str
    presses: tuple[str, ...]


class Scene(Struct, frozen=True, kw_only=True):
    """One thing the agent wants, asked `times` times at once."""

    title: str
    says: str
    """What the agent says before it asks."""
    action: Action
    reason: str | None = None
    times: int = 1
    hint: str = ""
    """What the person may try."""
    console_hint: str = ""
    """The same where the console shows something else than a chat."""
    approved: str
    denied: str
    reasoned: str
    """After a denial with a reason, which `{reason}` stands for."""
    presses: tuple[str, ...]
    """The buttons, by how their labels begin, that are pressed where nobody is there to answer; none where nobody is
    asked."""
    again: Again | None = None


_HOSTS = " ".join(f"web-{number}.example" for number in range(1, 29))
_LONG = "\n".join(
    [
        f"for host in {_HOSTS}; do",
        '  echo "== $host"',
        *[
            f"  ssh \"$host\" 'systemctl stop {unit} && rm -rf /srv/{unit}/cache && systemctl start {unit}'"
            for unit in ("mail", "queue", "search", "thumbs", "reports", "billing", "export")
        ],
        "  ssh \"$host\" 'apt-get -y autoremove && journalctl --vacuum-time=2d'",
        "done",
        "curl -fsS https://status.example/hook -d 'maintenance=done'",
    ]
)

SCENES = (
    Scene(
        title="Something harmless",
        says="Before I deploy I look at what has changed.",
        action=Command(command="git status --short", cwd="/srv/app"),
        hint="Nobody is asked: rules know that this only reads.",
        approved="It may run, once. Here I would run it:",
        denied="I do not look. I go on without knowing what has changed.",
        reasoned="You said “{reason}”. I do not look, and go on without it.",
        presses=(),
    ),
    Scene(
        title="Something destructive",
        says="The old build blocks the deploy. I clear it and deploy again.",
        action=Command(command="rm -rf ./build && make deploy", cwd="/srv/app"),
        reason="the old build blocks the deploy",
        approved="It may run, once. Here I would run it:",
        denied="I leave the build as it is and report that the deploy is blocked.",
        reasoned="You said “{reason}”. I leave the build as it is and put that into my report.",
        presses=("Approve once",),
    ),
    Scene(
        title="Something longer than a card",
        says="Nightly maintenance: I restart seven services on 28 machines.",
        action=Command(command=_LONG, cwd="/srv/ops"),
        reason="nightly maintenance",
        hint="The card shows head and tail and counts what is hidden; the whole text is in the file beside it.",
        console_hint="The console shows all of it. A chat gets its head and tail, and a file with the whole text.",
        approved="It may run, once. Here I would run exactly that text, all of it:",
        denied="No machine is touched. I report that the maintenance did not happen.",
        reasoned="You said “{reason}”. No machine is touched; I report your words.",
        presses=("Approve once",),
    ),
    Scene(
        title="The same thing twice at once",
        says="Two of my tasks rebased main at the same moment; both want to push.",
        action=Command(command="git push --force origin main", cwd="/srv/app"),
        reason="main was rebased",
        times=2,
        hint="One card counts both. Approve 1 lets one run and asks again for the other; Once for all answers both.",
        approved="It may run, once. Here I would run it:",
        denied="Nothing is pushed. Both tasks keep their branch and wait for new orders.",
        reasoned="You said “{reason}”. Nothing is pushed; both tasks end with your words in their log.",
        presses=("Once for all 2",),
    ),
    Scene(
        title="Something you may want to deny",
        says="Table users_old looks unused. I drop it.",
        action=Command(command='psql production -c "DROP TABLE users_old"', cwd="/srv/app"),
        reason="no query has read it this month",
        hint="Try Deny, because… and give a reason: the agent reads it.",
        approved="It may run, once. Here I would run it:",
        denied="The table stays, and I report that you said no.",
        reasoned="You said “{reason}”. The table stays, and I hand your words to whoever sent me.",
        presses=("Deny, because", "Wrong target"),
        again=Again(
            says="I was told not to retry it. I ask for the same once more, as careless agents do.",
            hint="No new card comes: your answer holds. The button on the denied card would let it ask again.",
            presses=(),
        ),
    ),
)
