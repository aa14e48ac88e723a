"""The files of `deploy/` name only what exists. Whether they work there cannot be tried here."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]  # it comes with schemathesis, without types

from docs import make_tables
from signoff.cli.app import cli
from signoff.config import load_config, settings_table
from signoff.console.story import WHY_REFUSED
from signoff.model import OUTCOMES
from tests.docs.pages import ROOT, plain, rows
from tests.docs.test_reference import every_error

DEPLOY = ROOT / "deploy"


def command_of(words: list[str]) -> tuple[str, dict[str, Any]]:
    """Parse a command line as `signoff` would; its command and options."""
    context = click.Context(cli)
    command = cli.get_command(context, words[0])
    assert command is not None, words
    return words[0], command.make_context(words[0], words[1:]).params


def series() -> set[str]:
    """The series that the metrics make."""
    known = set()
    for line in make_tables.metrics().splitlines()[2:]:
        _, name, kind, *_ = (plain(cell).strip() for cell in line.split("|"))
        known |= {f"{name}{end}" for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return known


def test_the_example_configuration_loads(tmp_path: Path) -> None:
    token = tmp_path / "telegram.token"
    token.write_text("123456:EXAMPLE")
    token.chmod(0o600)
    text = (DEPLOY / "signoff.toml").read_text("utf-8").replace("/etc/signoff/telegram.token", str(token))
    file = tmp_path / "signoff.toml"
    file.write_text(text)
    config = load_config(file, {}, platforms=("telegram",))
    assert config.profile("default").approvers == {"telegram": ("ana",)}
    assert config.gateway.state_dir == Path("/var/lib/signoff")


def test_the_sections_of_the_example_that_are_comments_load_too(tmp_path: Path) -> None:
    text = (DEPLOY / "signoff.toml").read_text("utf-8")
    text = re.sub(r"^# (\[|\w+ = )", r"\1", text, flags=re.MULTILINE).replace("/etc/signoff", str(tmp_path))
    for name, secret in re.findall(rf"{re.escape(str(tmp_path))}/(([a-z-]+)\.token)", text):
        (tmp_path / name).write_text({"slack-bot": "xoxb-EXAMPLE", "slack-app": "xapp-EXAMPLE"}.get(secret, "EXAMPLE"))
        (tmp_path / name).chmod(0o600)
    file = tmp_path / "signoff.toml"
    file.write_text(text)
    config = load_config(file, {}, platforms=("telegram", "discord", "slack"))
    assert sorted(config.profile("default").platforms) == ["discord", "slack", "telegram"]


def test_the_container_is_given_every_token_that_the_example_names() -> None:
    tokens = re.findall(r'= "(/etc/signoff/[a-z-]+\.token)"', (DEPLOY / "signoff.toml").read_text("utf-8"))
    mounted = re.findall(r"- \./\S+:(/etc/signoff/\S+\.token):ro", (DEPLOY / "compose.yml").read_text("utf-8"))
    assert sorted(mounted) == sorted(tokens)


def test_the_unit_starts_the_gateway_where_the_configuration_says() -> None:
    unit = (DEPLOY / "signoff.service").read_text("utf-8")
    [line] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    name, options = command_of(shlex.split(line)[1:])
    assert (name, options["config"]) == ("serve", Path("/etc/signoff/signoff.toml"))
    assert re.search(r"^StateDirectory=signoff$", unit, re.MULTILINE)
    assert re.search(r"^StateDirectoryMode=0700$", unit, re.MULTILINE)


def test_the_image_starts_the_gateway_and_says_that_it_is_untested() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert text.startswith("# Untested")
    entry, arguments = (json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", text, re.MULTILINE))
    assert (entry, command_of(arguments)[0]) == (["signoff"], "serve")
    [extras] = re.findall(r"pip install --no-cache-dir '\.\[([a-z,]+)\]'", text)
    assert extras == "all", "a store on PostgreSQL and the other extras are wanted there too"
    for found in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE):
        for name in found.split():
            assert (ROOT / name).exists(), name


def test_the_compose_file_names_settings_and_files_that_exist() -> None:
    text = (DEPLOY / "compose.yml").read_text("utf-8")
    assert text.startswith("# Untested")
    service = yaml.safe_load(text)["services"]["signoff"]
    assert set(service["environment"]) <= {row.env for row in settings_table()}
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    # Clients call by this name, and only the name in gateway.host is served.
    assert service["environment"]["SIGNOFF_GATEWAY__HOST"] == "0.0.0.0"


def test_the_steps_name_what_the_files_name() -> None:
    text = (DEPLOY / "README.md").read_text("utf-8")
    unit = (DEPLOY / "signoff.service").read_text("utf-8")
    [user] = re.findall(r"^User=(.*)$", unit, re.MULTILINE)
    assert re.search(rf"^useradd .* {user}$", text, re.MULTILINE)
    lines = re.findall(rf"sudo -u {user} (/opt/signoff/bin/signoff .*)$", text, re.MULTILINE)
    assert {command_of(shlex.split(line)[1:])[0] for line in lines} == {"doctor", "drill", "key", "console"}
    assert all("--config /etc/signoff/signoff.toml" in line for line in lines)
    assert "/opt/signoff/bin/signoff serve" in unit
    settings = (DEPLOY / "signoff.toml").read_text("utf-8")
    for path in (*re.findall(r'^token_file = "(.*)"$', settings, re.MULTILINE), "/etc/signoff/signoff.toml"):
        [mode] = re.findall(rf"^install -o root -g {user} -m (\d+) \S+ {re.escape(path)}\b", text, re.MULTILINE)
        assert int(mode, 8) & 0o027 == 0, "the gateway may read it, and others may not"
    [state] = re.findall(r'^state_dir = "(.*)"$', settings, re.MULTILINE)
    assert f"install -d -o {user} -g {user} -m 0700 {state}\n" in text
    number = re.findall(r"--uid (\d+)", (DEPLOY / "Dockerfile").read_text("utf-8"))
    assert re.findall(r"chown (\d+)", text) == number


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
    return list(group["rules"])


def test_alerts_name_metrics_that_exist() -> None:
    for rule in alerts():
        assert set(re.findall(r"\bsignoff_\w+", rule["expr"])) <= series(), rule["alert"]
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"page", "ticket"}


def test_alerts_name_labels_and_values_that_exist() -> None:
    known = {
        "outcome": OUTCOMES,
        "why": WHY_REFUSED,
        "code": {kind.code for kind in every_error()},
        "result": {"ok", "delivered", "failed", "wrong_key", "wrong_link", "too_many"},
        "job": {"signoff"},
    }
    told = ROOT / "gateway" / "signoff"
    source = "".join((told / file).read_text("utf-8") for file in ("console/seats.py", "console/entrance.py"))
    source += (told / "hooks" / "lines.py").read_text("utf-8") + (told / "dispatcher.py").read_text("utf-8")
    assert {value for value in known["result"] if f'"{value}"' not in source} == set()
    for rule in alerts():
        for name, how, value in re.findall(r'(\w+)(=~|!?=)"([^"]*)"', rule["expr"]):
            for each in value.split("|") if how == "=~" else [value]:
                assert any(re.fullmatch(each, word) for word in known[name]), (rule["alert"], each)


def test_every_alert_has_its_page_and_is_tried() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text("utf-8")
    parts = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    names = [rule["alert"] for rule in alerts()]
    assert list(parts) == names
    tried = (DEPLOY / "alerts_test.yml").read_text("utf-8")
    for rule in alerts():
        name = rule["alert"]
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"
        assert re.findall(r"^- \*\*(\w+):\*\*", parts[name], re.MULTILINE) == ["Means", "Look", "Do"]
        assert re.search(r"`(signoff |GET /|/approve)", parts[name]), f"{name}: name a command or a route"
        assert re.search(rf"\b{name}\b", tried), f"{name}: deploy/alerts_test.yml does not make it fire"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's package prometheus")
@pytest.mark.parametrize("words", ["check rules alerts.yml", "test rules alerts_test.yml"])
def test_alerts_fire_as_prometheus_reads_them(words: str) -> None:
    done = subprocess.run(["promtool", *words.split()], cwd=DEPLOY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_names_metrics_that_exist() -> None:
    board = json.loads((DEPLOY / "dashboard.json").read_text("utf-8"))
    asked = " ".join(each["expr"] for panel in board["panels"] for each in panel["targets"])
    shown = set(re.findall(r"\bsignoff_\w+", asked))
    assert shown
    assert shown <= series()


def test_every_file_says_whether_it_was_tried() -> None:
    told = {name for row in rows(DEPLOY / "README.md", "file") for name in re.findall(r"`([^`]+)`", row[0])}
    assert told | {"README.md"} == {file.name for file in DEPLOY.iterdir()}


@pytest.mark.parametrize("file", sorted(DEPLOY.iterdir()), ids=lambda file: file.name)
def test_nothing_of_ours_is_secret(file: Path) -> None:
    assert not re.search(r"\d{6,}:[A-Za-z0-9_-]{30,}|sk_[A-Za-z0-9]{12}_", file.read_text("utf-8"))


@pytest.mark.skipif(os.name != "posix", reason="the block is for a POSIX shell")
def test_the_backup_of_no_store_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    [block] = re.findall(r"^```sh\n(STATE=.*?^PY\n)", page, re.MULTILINE | re.DOTALL)

    def backed_up() -> subprocess.CompletedProcess[str]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIGNOFF_GATEWAY__STATE_DIR": "state"}
        return subprocess.run(
            ["sh", "-c", block], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    (tmp_path / "state").mkdir()
    assert backed_up().returncode != 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["state"], "no store is made, and no backup"
    store = tmp_path / "state" / "signoff.db"
    store.touch()
    assert backed_up().returncode != 0
    store.unlink()
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("CREATE TABLE events (seq)")
    assert "Nothing was saved" in backed_up().stderr
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("INSERT INTO events VALUES (1)")
    done = backed_up()
    assert (done.returncode, done.stdout) == (0, "1 events saved\n"), done
