"""What is measured: the rows of the table, the measurements that fill them, and how large these are. Data."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Row(Struct, frozen=True, kw_only=True):
    """One line of the table. `goal` is what the project holds itself to at full sizes; None where there is none.

    `title` may name sizes in braces.
    """

    key: str
    title: str
    unit: str
    goal: float | None = None
    more_is_better: bool = False

    def titled(self, sizes: Sizes) -> str:
        """The title with the sizes that were measured."""
        return self.title.format(**msgspec.structs.asdict(sizes))

    def met(self, value: float) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        return value >= self.goal if self.more_is_better else value <= self.goal


class Measure(Struct, frozen=True, kw_only=True):
    """One measurement, run in a fresh process for each round. `place` is `module:function` in `signoff.bench`."""

    name: str
    place: str
    rows: tuple[Row, ...]
    limit_s: float = 300.0
    """It is ended after that, and its rows say so."""
    most_rounds: int = 9
    """Long ones are not repeated as often as asked."""


class Sizes(Struct, frozen=True, kw_only=True):
    """How much of everything. `at_once`: how many ask at the same time where throughput is measured."""

    at_once: int = 64
    approvals: int = 3200
    http_approvals: int = 1280
    waiting: int = 1000
    place: int = 5000
    """Questions pending in one place, for approve all."""
    session: int = 100
    """Questions pending in one session, for stop."""
    threads: int = 32
    """Threads of the process that are blocked in a question of one session, for stop."""
    memory: int = 20_000
    idle: int = 10_000
    idle_s: float = 10.0
    many: int = 100_000
    many_taps: int = 500
    chats: int = 20
    """Chats of a platform on loopback, each with one card that is tapped."""
    commits: int = 500
    judged: int = 4000
    """Commands that are judged one by one."""
    appends: int = 200


QUICK = Sizes(
    approvals=640,
    http_approvals=320,
    waiting=200,
    place=1000,
    memory=5000,
    idle=2000,
    idle_s=3.0,
    many=10_000,
    many_taps=100,
    chats=8,
    commits=100,
    judged=400,
    appends=50,
)
"""For a look within a minute; the numbers are not comparable with those of the full sizes."""

MEASURES = (
    Measure(
        name="commit",
        place="storing:commits",
        rows=(
            Row(key="commit_p50_ms", title="commit of the store alone, p50", unit="ms"),
            Row(key="commit_p99_ms", title="commit of the store alone, p99", unit="ms"),
        ),
    ),
    Measure(
        name="in_process",
        place="asking:in_process",
        rows=(
            Row(
                key="in_process_per_s",
                title="full approvals in process, {at_once} at once",
                unit="/s",
                goal=2500,
                more_is_better=True,
            ),
            Row(key="in_process_cpu_us", title="processor time of one of them", unit="µs"),
        ),
    ),
    Measure(
        name="in_process_gap",
        place="asking:in_process_gap",
        rows=(Row(key="in_process_gap_ms", title="longest event-loop gap meanwhile", unit="ms", goal=50),),
    ),
    Measure(
        name="http",
        place="over_http:approvals",
        rows=(
            Row(
                key="http_per_s",
                title="full approvals over HTTP, {at_once} at once",
                unit="/s",
                goal=700,
                more_is_better=True,
            ),
        ),
    ),
    Measure(
        name="wake",
        place="deciding:wake",
        rows=(
            Row(key="wake_p50_ms", title="decide to waiter's return, {waiting:,} waiting, p50", unit="ms", goal=1),
            Row(key="wake_p99_ms", title="decide to waiter's return, {waiting:,} waiting, p99", unit="ms", goal=4),
        ),
    ),
    Measure(
        name="approve_all",
        place="deciding:approve_all",
        rows=(
            Row(
                key="approve_all_ms",
                title="approve all of {place:,}, until every waiter returned",
                unit="ms",
                goal=300,
            ),
            Row(key="approve_all_gap_ms", title="longest event-loop gap meanwhile", unit="ms", goal=50),
        ),
    ),
    Measure(
        name="stop",
        place="deciding:stop",
        rows=(Row(key="stop_ms", title="stop of a session with {session} pending", unit="ms", goal=50),),
    ),
    Measure(
        name="stop_threads",
        place="deciding:stop_threads",
        rows=(
            Row(
                key="stop_threads_ms",
                title="stop of a session with {threads} threads blocked in a question, until the last goes on",
                unit="ms",
                goal=100,
            ),
        ),
    ),
    Measure(
        name="memory",
        place="idling:memory",
        rows=(Row(key="pending_kb", title="memory of one pending request and its waiter", unit="kB", goal=4),),
        most_rounds=3,
    ),
    Measure(
        name="idle",
        place="idling:idle",
        rows=(Row(key="idle_cpu_percent", title="processor with {idle:,} idle pending", unit="%", goal=1),),
        most_rounds=3,
    ),
    Measure(
        name="many",
        place="idling:many",
        rows=(
            Row(key="many_tap_p50_ms", title="tap answered with {many:,} pending, p50", unit="ms"),
            Row(key="many_tap_p99_ms", title="tap answered with {many:,} pending, p99", unit="ms", goal=50),
            Row(key="many_rss_mb", title="resident memory with {many:,} pending", unit="MB", goal=550),
            Row(key="many_gap_ms", title="longest event-loop gap while tapping", unit="ms", goal=50),
            Row(key="many_load_gap_ms", title="longest event-loop gap while they came in", unit="ms", goal=50),
        ),
        limit_s=900.0,
        most_rounds=1,
    ),
    Measure(
        name="telegram",
        place="on_telegram:tap",
        rows=(
            Row(key="telegram_tap_p50_ms", title="tap to edited card, Telegram on loopback, p50", unit="ms", goal=15),
            Row(key="telegram_tap_p99_ms", title="tap to edited card, Telegram on loopback, p99", unit="ms"),
        ),
    ),
    Measure(
        name="serve",
        place="on_telegram:start",
        rows=(
            Row(key="serve_ready_s", title="signoff serve to ready, Telegram connected", unit="s", goal=1.2),
            Row(key="serve_rss_mib", title="its resident memory when idle", unit="MiB", goal=90),
        ),
    ),
    Measure(
        name="discord",
        place="on_discord:tap",
        rows=(
            Row(key="discord_tap_p50_ms", title="tap to edited card, Discord on loopback, p50", unit="ms", goal=5),
            Row(key="discord_tap_p99_ms", title="tap to edited card, Discord on loopback, p99", unit="ms"),
        ),
    ),
    Measure(
        name="slack",
        place="on_slack:tap",
        rows=(
            Row(key="slack_tap_p50_ms", title="tap to edited card, Slack on loopback, p50", unit="ms", goal=6),
            Row(key="slack_tap_p99_ms", title="tap to edited card, Slack on loopback, p99", unit="ms"),
            Row(key="slack_ack_p50_ms", title="tap to acknowledgement, Slack on loopback, p50", unit="ms", goal=20),
        ),
    ),
    Measure(
        name="three",
        place="on_three:start",
        rows=(
            Row(key="three_ready_s", title="signoff serve to ready, all three connected", unit="s", goal=1.5),
            Row(key="three_rss_mib", title="its resident memory when idle", unit="MiB", goal=100),
        ),
    ),
    Measure(
        name="judge",
        place="judging:judge_texts",
        rows=(
            Row(key="judge_p50_ms", title="judging one command, p50", unit="ms", goal=0.05),
            Row(key="judge_p99_ms", title="judging one command, p99", unit="ms", goal=0.25),
            Row(key="judge_newlines_ms", title="judging 1,000 newlines and a command", unit="ms", goal=30),
            Row(key="judge_lines_ms", title="judging 1,000 commands on lines", unit="ms", goal=30),
            Row(key="judge_parentheses_ms", title="judging 1,000 parentheses", unit="ms", goal=10),
            Row(key="judge_words_ms", title="judging 10,000 quoted words", unit="ms", goal=60),
            Row(key="judge_10kb_ms", title="judging a script of 10 kB", unit="ms", goal=15),
            Row(key="judge_100kb_ms", title="judging a script of 100 kB", unit="ms", goal=150),
        ),
    ),
    Measure(
        name="hostile",
        place="hostile:worst",
        rows=(
            Row(key="judge_hostile_ms", title="worst verdict on a hostile text of up to 1 MB", unit="ms", goal=100),
            Row(key="judge_hostile_gap_ms", title="longest event-loop gap meanwhile", unit="ms", goal=60),
        ),
    ),
    Measure(
        name="policy",
        place="judging:loading",
        rows=(
            Row(key="policy_import_s", title="import of the policy package", unit="s", goal=0.1),
            Row(key="policy_rules_s", title="reading all of its rules, once", unit="s"),
        ),
    ),
)


GROUPS = {"judge": ("judge", "hostile", "policy")}
"""Measurements that are looked at together, by a name for them."""


def chosen(only: str | None) -> tuple[Measure, ...]:
    """The measurements named by a row, by their own name or a group's; all for None. Raises LookupError."""
    if only is None:
        return MEASURES
    names = GROUPS.get(only, (only,))
    found = tuple(m for m in MEASURES if m.name in names or only in (row.key for row in m.rows))
    if not found:
        raise LookupError(only)
    return found
