"""The files of `deploy/` name only what exists. Whether they work there cannot be tried here."""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]  # it comes with schemathesis, without types

from docs import make_tables
from signoff.cli.app import cli
from signoff.config import load_config, settings_table
from tests.docs.pages import ROOT, plain, rows

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
    assert set(extras.split(",")) == {point.name for point in entry_points(group="signoff.adapters")}
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


def test_alerts_name_metrics_that_exist() -> None:
    text = (DEPLOY / "alerts.yml").read_text("utf-8")
    [group] = yaml.safe_load(text)["groups"]
    for rule in group["rules"]:
        assert set(re.findall(r"\bsignoff_\w+", rule["expr"])) <= series(), rule["alert"]
        assert rule["annotations"]["summary"]


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
