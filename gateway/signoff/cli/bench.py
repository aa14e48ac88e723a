"""`bench`: what this machine does, measured."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from signoff.cli.output import put_json, put_rows

if TYPE_CHECKING:
    from signoff.bench.machine import Machine
    from signoff.bench.rounds import Found
    from signoff.bench.rows import Sizes
    from signoff.model import Change


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object with a number for each row.")
@click.option("--rounds", type=click.IntRange(1, 9), default=3, show_default=True, help="The medians of so many.")
@click.argument("row", required=False)
@click.option("--only", metavar="ROW", help="The same.")
@click.option("--quick", is_flag=True, help="Small sizes, one round: a look, not comparable.")
@click.option("--sizes", metavar="JSON", hidden=True, help="Other sizes.")
@click.option("--as-server", type=click.Path(path_type=Path, file_okay=False), hidden=True, help="Serve for a row.")
def bench(
    *,
    row: str | None,
    as_json: bool,
    rounds: int,
    only: str | None,
    quick: bool,
    sizes: str | None,
    as_server: Path | None,
) -> None:
    """Measure throughput, latency and memory on this machine, in temporary folders.

    Everything is durable as in `signoff serve`; chats are made up and cost nothing. Nothing else should run meanwhile:
    whatever does is in the numbers. The full sizes take some ten minutes. ROW names one row or measurement by its key
    in the JSON, or a group: `signoff bench judge` prints what the judge takes.
    """
    if as_server is not None:
        asyncio.run(_serve(as_server))
        return
    from signoff.bench.machine import this_machine
    from signoff.bench.rounds import measure_all
    from signoff.bench.rows import QUICK, Sizes, chosen

    if row is not None and only is not None:
        raise click.UsageError("Name the row once")
    only = row or only
    try:
        measures = chosen(only)
        how_much = msgspec.json.decode(sizes, type=Sizes) if sizes else QUICK if quick else Sizes()
    except LookupError:
        raise click.UsageError(f"There is no row {only!r}; --json lists them all") from None
    except msgspec.ValidationError as error:
        raise click.UsageError(f"--sizes: {error}") from None
    machine = this_machine(how_much.appends)
    rounds = 1 if quick else rounds
    found = asyncio.run(measure_all(measures, how_much, rounds, _progress))
    _progress("")
    if as_json:
        put_json(_object(found, machine, how_much, rounds))
    else:
        _table(found, machine, how_much, rounds)


def _progress(what: str) -> None:
    """One line that is written over, only for people."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{what}", nl=False, err=True)


def _object(found: Sequence[Found], machine: Machine, sizes: Sizes, rounds: int) -> dict[str, Any]:
    values: dict[str, Any] = {each.row.key: None if each.value is None else round(each.value, 3) for each in found}
    why = {each.row.key: each.why for each in found if each.why is not None}
    return {**values, "why_null": why, "rounds": rounds, "sizes": sizes, "machine": machine}


def _table(found: Sequence[Found], machine: Machine, sizes: Sizes, rounds: int) -> None:
    load = "" if machine.load is None else f", load {machine.load:g}"
    click.echo(
        f"{machine.cpu}, {machine.cores} cores{load}; {machine.system}; "
        f"Python {machine.python}, SQLite {machine.sqlite}"
    )
    click.echo(
        f"The disk alone makes an append of 4 kB durable in {machine.append_p50_ms:g} ms (p50), "
        f"{machine.append_p99_ms:g} ms (p99)."
    )
    click.echo(f"{sizes.at_once} at once; {f'medians of {rounds} rounds' if rounds > 1 else 'one round'}.\n")
    full = sizes == type(sizes)()
    rows = [[each.row.titled(sizes), _value(each), _goal(each, full=full)] for each in found]
    put_rows(["measured", "value", "goal" if full else "goal at full sizes"], rows, empty="nothing was measured")


def _value(found: Found) -> str:
    return f"not measured: {found.why}" if found.value is None else f"{_number(found.value)} {found.row.unit}"


def _goal(found: Found, *, full: bool) -> str:
    row = found.row
    if row.goal is None:
        return ""
    bound = f"{'≥' if row.more_is_better else '≤'} {_number(row.goal)} {row.unit}"
    if not full or found.value is None:
        return bound
    return f"{bound}, {'met' if row.met(found.value) else 'missed'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


async def _serve(folder: Path) -> None:
    """A gateway with a made-up chat behind the API, until standard input ends; tells which cards were posted."""
    from signoff.bench.over_http import Serving
    from signoff.bench.rig import PLATFORM, BenchAdapter, bench_config
    from signoff.gateway import Gateway
    from signoff.runtime import settle_memory
    from signoff.server.serve import serve

    adapters = {("default", PLATFORM): BenchAdapter()}
    async with Gateway(bench_config(folder), adapters=adapters) as gateway, serve(gateway) as bound:
        agent = await gateway.keys.create("default", "agent", agent="bench")
        approver = await gateway.keys.create("default", "approver", principal="ann")
        serving = Serving(url=bound.api, agent_key=agent.text, approver_key=approver.text)
        settle_memory()
        click.echo(msgspec.json.encode(serving).decode())
        sys.stdout.flush()

        def tell(changes: Sequence[Change]) -> None:
            ids = [each.event.request_id or "" for each in changes if each.event.type == "approval.delivered"]
            if ids:
                sys.stdout.write("".join(f"{request_id}\n" for request_id in ids))
                sys.stdout.flush()

        unsubscribe = gateway.store.subscribe(tell)
        try:
            await asyncio.to_thread(sys.stdin.buffer.read)
        finally:
            unsubscribe()
