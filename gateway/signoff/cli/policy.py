"""`policy`: the rules that are in force, and what another policy would have changed."""

from __future__ import annotations

import re
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.app import LazyGroup
from signoff.cli.connect import Place, placed
from signoff.cli.judged_by import profile_of
from signoff.cli.output import put_json, put_rows
from signoff.cli.summaries import in_a_line
from signoff.visible import visible

if TYPE_CHECKING:
    from signoff.policy.rule import Rule
    from signoff.replaying import Passed, Report

WIDTH = 80
"""Columns of a terminal that nobody widened."""
MAX_ROWS = 20
"""As many requests are listed for people; --json has up to 500 of each list."""


@click.group(cls=LazyGroup, places={"try": "signoff.cli.policy:try_policy", "rules": "signoff.cli.policy:list_rules"})
def policy() -> None:
    """Try a changed policy on what was asked before; list the rules in force."""


@click.command("try")
@click.argument("file", metavar="NEW.TOML", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--allowlist", type=click.Path(path_type=Path, dir_okay=False), help="Another allowlist.toml as well.")
@placed
def try_policy(place: Place, /, *, file: Path, allowlist: Path | None) -> int:
    """Judge every stored request again by another configuration, and tell what it would have changed.

    NEW.TOML is a whole signoff.toml, or only its [approvals], [agents] and [[rules]]. The store is read beside a
    running gateway and never written; its place is that of the present configuration.

    Exit codes: 0 nothing dangerous would pass, 1 something would, 2 wrong usage or configuration, 75 no store.
    """
    from signoff.config import find_config, load_policy, load_profiles
    from signoff.model import replace
    from signoff.replaying import Replay
    from signoff.stores.history import requests

    _check_plain(file)
    present = load_policy(place.config or find_config())
    name = place.profile or "default"
    url = str(present.gateway.store)
    state_dir = present.gateway.state_dir
    profile = profile_of(load_profiles(file), name, allowlist=allowlist, state_dir=state_dir, store=url)
    own = present.profiles[name].own_paths if name in present.profiles else ()
    replay = Replay(replace(profile, own_paths=own), datetime.now(UTC))
    count = 0
    for rows in requests(url, name):
        replay.add(rows)
        count += len(rows)
        _progress(f"{count:,} requests judged again")
    _progress("")
    report = replay.report()
    if place.as_json:
        put_json(report)
    else:
        _tell(report)
    return 1 if report.dangers else 0


def _check_plain(file: Path) -> None:
    """Raise `ConfigError` for what is no file, such as a device whose end never comes."""
    from signoff.errors import ConfigError

    if file.exists() and not file.is_file():
        raise ConfigError(f"{file} is no plain file; name a whole signoff.toml.")


def _progress(what: str) -> None:
    """One line that is written over, only for people."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{what}", nl=False, err=True)


def _tell(report: Report) -> None:
    put_rows(
        ("", "REQUESTS"),
        (
            ("stored", f"{report.requests:,}"),
            ("put to a person then", f"{report.questions:,}"),
            ("… of these asked again", f"{report.kept:,}"),
            ("… saved: run unasked", f"{report.saved:,}"),
            ("… forbidden now", f"{report.forbidden:,}"),
            ("let run then, asked now", f"{report.new_questions:,}"),
            ("let run then, forbidden now", f"{report.newly_forbidden:,}"),
            ("dangers that would pass", f"{report.dangers:,}"),
        ),
        empty="",
    )
    if report.saved_by:
        click.echo(f"\nSaved by {', '.join(f'{key} ({count:,})' for key, count in report.saved_by)}.")
    _list("Would run unasked, and should be looked at", report.dangerous, report.dangers)
    _list("Let run then, no longer", report.asked_now, report.new_questions + report.newly_forbidden)


def _list(title: str, passed: tuple[Passed, ...], total: int) -> None:
    if not passed:
        return
    click.echo(click.style(f"\n{title}:", bold=True))
    heads = ("ID", "WHEN", "WHY", "NOW", "ACTION")
    put_rows(heads, [_row(each) for each in passed[:MAX_ROWS]], empty="", giving={"ACTION": 30, "WHEN": 0})
    if total > MAX_ROWS:
        click.echo(f"and {total - MAX_ROWS:,} more")


def _row(each: Passed) -> tuple[str, ...]:
    told = {
        "denied": f"denied by {each.denied_by or 'a person'}",
        "critical": "critical",
        "blocked": "forbidden then",
        "off": "asked then, approvals off",
    }
    why = ", ".join(told[danger] for danger in each.dangers)
    by = each.rule_keys[0] if each.rule_keys else each.rung
    return each.short_id, f"{each.at:%Y-%m-%d %H:%M}", why, f"{each.now} ({by})", in_a_line(each.action)


# --- the rules in force --------------------------------------------------------------------------


@click.command("rules")
@click.argument("words", nargs=-1)
@placed
def list_rules(place: Place, words: tuple[str, ...]) -> None:
    """List the rules in force, the floors first. With WORDS only those about a program of that name or with one of them
    in their key or sentence, first those that have it as a whole word."""
    from signoff.config import find_config, load_policy
    from signoff.policy import ruleset

    profiles = load_policy(place.config or find_config()).profiles
    profile = profile_of(profiles, place.profile or "default", state_dir=None)
    rules = profile.rules or ruleset.shipped()
    found = [("floor", rule) for rule in ruleset.floors().rules]
    found += [("own", rule) for rule in rules.own] + [("shipped", rule) for rule in rules.rules]
    meant = [(_fit(rule, words), origin, rule) for origin, rule in found]
    meant = sorted((item for item in meant if item[0]), key=lambda item: -item[0])
    told = {(origin, rule.key, rule.verdict, rule.sentence): _told(origin, rule) for _fit, origin, rule in meant}
    if place.as_json:
        put_json({"object": "list", "data": list(told.values()), "next": None})
        return
    head = ""
    for row in told.values():
        facts = " ".join(word for word in (row["verdict"], row["severity"], f"({row['origin']})") if word)
        before, head = head, f"{visible(row['key'])}  {facts}"
        if head != before:
            click.echo(head)
        click.echo(textwrap.fill(visible(row["sentence"]), WIDTH, initial_indent="    ", subsequent_indent="    "))
    if not told:
        click.echo("No rule is like that.")


def _fit(rule: Rule, words: tuple[str, ...]) -> int:
    """2 where a rule has one of the words whole or speaks of a program of that name, 1 where it holds one, else 0."""
    text = f"{rule.key} {rule.sentence}".casefold()
    wanted = [word.casefold() for word in words]
    if any(word in rule.programs or re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text) for word in wanted):
        return 2
    return int(not words or any(word in text for word in wanted))


def _told(origin: str, rule: Rule) -> dict[str, Any]:
    severity = "" if rule.verdict == "allow" else rule.severity
    return {
        "key": rule.key,
        "verdict": rule.verdict,
        "severity": severity,
        "origin": origin,
        "sentence": rule.sentence,
        "breadth": rule.breadth,
    }
