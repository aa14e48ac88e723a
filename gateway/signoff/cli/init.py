"""`init`: from nothing to a checked signoff.toml and a first approver."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.output import put_json
from signoff.config import load_config

if TYPE_CHECKING:
    from signoff.cli.setting_up import Options


@click.command()
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), default=Path("signoff.toml"))
@click.option("--platform", "platforms", multiple=True, help="telegram, discord or slack; may be repeated.")
@click.option("--console", is_flag=True, help="Without a chat: people answer in the web console.")
@click.option("--token-env", multiple=True, metavar="[PLATFORM=]NAME", help="The variable with the bot's token.")
@click.option("--token-file", multiple=True, metavar="[PLATFORM=]PATH", help="The file with the bot's token.")
@click.option("--app-token-env", metavar="NAME", help="The variable with Slack's app-level token.")
@click.option("--app-token-file", metavar="PATH", help="The file with Slack's app-level token.")
@click.option("--approver", "approvers", multiple=True, metavar="PLATFORM:ID", help="Who may decide, without a code.")
@click.option("--fallback", metavar="DESTINATION", help="Where questions without a place of their own go.")
@click.option("--no-bind", is_flag=True, help="Bind nobody by a code.")
@click.option("--inline-secrets", is_flag=True, help="Write pasted tokens into the file itself.")
@click.option("--show", metavar="PLATFORM", help="Print how to make a bot there, and nothing else.")
@click.option(
    "--import",
    "imported",
    multiple=True,
    metavar="PATH",
    help="Take over what Claude Code, Codex, opencode or hermes-agent allows and denies; `auto` looks for all of them.",
)
@click.option("--profile", default="default", show_default=True, help="The profile to import into.")
@click.option("--force", is_flag=True, help="Replace a file that is there; it is kept beside, as .bak.")
@click.option("--yes", is_flag=True, help="Ask nothing: take the options, and bind whoever sends the code.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; everything for people goes to standard error.")
@click.option("--api-base-url", multiple=True, metavar="[PLATFORM=]URL", hidden=True, help="Another origin of an API.")
@click.option("--gateway-url", metavar="URL", hidden=True, help="Another address of Discord's gateway.")
def init(
    *, config: Path, platforms: tuple[str, ...], show: str | None, force: bool, yes: bool, as_json: bool, **given: Any
) -> int:
    """Set Signoff up: tokens, the first approver, and a commented signoff.toml.

    Each answer is tried at the platform at once. Tokens are named by variable or file; a pasted one goes into a file of
    its own, mode 0600. The first approver sends a one-time code to the bot, and is confirmed here.

    With --import nothing else is done: it shows what would be written to allowlist.toml and approvals.deny and what
    cannot be carried over, and writes after a yes (--yes).

    Exit codes: 0 written, 1 a platform refused, the code was void, or nothing was imported for want of a yes, 2 wrong
    usage, 130 interrupted.
    """
    if given["imported"]:
        return _import(given, config, yes=yes, as_json=as_json)
    from signoff.checkups import platforms as installed
    from signoff.cli.setting_up import SECRETS, SetUp, prepared
    from signoff.setup.writing import check_free, dropped, kept_aside, text_of, write_all

    logging.getLogger("signoff_adapters").addHandler(logging.NullHandler())
    known = tuple(name for name in installed() if name in SECRETS)
    if show is not None:
        click.echo(prepared(_known([show], known)[0]))
        return 0
    check_free(config, replace=force)
    folder = config.absolute().parent
    interactive = not yes and sys.stdin.isatty()
    if not (platforms or given["console"] or interactive):
        raise click.UsageError("name a --platform, or --console, or run it in a terminal")
    options = _options(
        _known(platforms, known), known, given, interactive=interactive, to_stderr=as_json, folder=folder, force=force
    )
    with asyncio.Runner() as runner:
        made = SetUp(options, runner)
        choices = made.run()
    aside = kept_aside(config) if force else None
    write_all({**choices.secret_files(folder), config: text_of(choices)}, replace=force)
    if aside is not None:
        lost = ", ".join(dropped(aside, config))
        made.say(f"Kept: {aside}, the file that was here." + (f" Not taken over from it: {lost}." if lost else ""))
    load_config(config)
    made.say(f"Written: {config}. Next: `signoff serve`, then {made.afterwards}.")
    if as_json:
        put_json({"file": str(config), "fallback_destination": choices.fallback, "platforms": made.report()})
    return 0


def _import(given: Mapping[str, Any], config: Path, *, yes: bool, as_json: bool) -> int:
    from signoff.cli.importing import import_settings

    return import_settings(given["imported"], config, given["profile"], yes=yes, as_json=as_json)


def _options(
    platforms: tuple[str, ...],
    known: tuple[str, ...],
    given: Mapping[str, Any],
    *,
    interactive: bool,
    to_stderr: bool,
    folder: Path,
    force: bool,
) -> Options:
    """The options as the dialogue takes them."""
    from signoff.cli.setting_up import Options

    return Options(
        interactive=interactive,
        known=known,
        platforms=platforms,
        console=given["console"],
        token_env=_by_platform(given["token_env"], platforms, "--token-env"),
        token_file=_by_platform(given["token_file"], platforms, "--token-file"),
        app_token_env=given["app_token_env"],
        app_token_file=given["app_token_file"],
        approvers=_accounts(given["approvers"]),
        fallback=given["fallback"],
        bind=not given["no_bind"],
        inline_secrets=given["inline_secrets"],
        api_base_url=_by_platform(given["api_base_url"], platforms, "--api-base-url"),
        gateway_url=given["gateway_url"],
        to_stderr=to_stderr,
        folder=folder,
        force=force,
    )


def _known(names: Iterable[str], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no platform {name!r}; there are: {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def _by_platform(values: Iterable[str], platforms: tuple[str, ...], option: str) -> dict[str, str]:
    """`PLATFORM=VALUE`, or a value alone where there is one platform."""
    found = {}
    for value in values:
        head, equals, rest = value.partition("=")
        if equals and head in platforms:
            found[head] = rest
        elif len(platforms) == 1:
            found[platforms[0]] = value
        else:
            raise click.UsageError(f"{option} {value!r}: write it as PLATFORM=VALUE")
    return found


def _accounts(values: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in values:
        platform, colon, user_id = value.partition(":")
        if not (platform and colon and user_id):
            raise click.UsageError(f"--approver {value!r}: write it as PLATFORM:ID")
        found.setdefault(platform, []).append(user_id)
    return found
