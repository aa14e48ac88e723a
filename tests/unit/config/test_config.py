"""What the configuration becomes, and how each typical mistake is told."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.config import Secret, find_config, load_config, settings_table
from signoff.config.table import GATEWAY, PROFILE
from signoff.errors import ConfigError
from signoff.model import Destination
from signoff.policy.ruleset import shipped
from signoff.settings import (
    AgentSettings,
    ApprovalSettings,
    ExecutorSettings,
    GrantSettings,
    HookSettings,
    PrincipalSettings,
    SmartSettings,
    ToolGateSettings,
)

TOKEN = "123456:very-secret-token"
TELEGRAM = f'[platforms.telegram]\ntoken = "{TOKEN}"\n'


def write(folder: Path, content: str | bytes) -> Path:
    """A configuration file with a state folder of its own."""
    file = folder / "signoff.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def problem(folder: Path, content: str | bytes, environ: dict[str, str] | None = None) -> str:
    """The one line that this configuration is refused with."""
    with pytest.raises(ConfigError) as caught:
        load_config(write(folder, content), environ or {})
    return caught.value.message


MISTAKES = [
    # TOML and the file itself
    ('[approvals\nmode = "off"\n', "line 1"),
    ("[approvals]\nmode = manual\n", "line 2"),
    ('[approvals]\nmode = "off"\nmode = "manual"\n', "line 3"),
    ('x = "abc', "line 1"),
    (b"\n\n# caf\xe9\n", "line 3: this is not UTF-8; save the file as UTF-8"),
    ('[approvals]\nmode = "off"\n'.encode("utf-16"), "not UTF-8"),
    # unknown names
    ("[approvals]\ntimout_s = 5\n", "approvals.timout_s is not a setting; did you mean approvals.timeout_s?"),
    ("[aprovals]\ntimeout_s = 5\n", "aprovals.timeout_s is not a setting; did you mean approvals.timeout_s?"),
    ("timeout_s = 5\n", "timeout_s is not a setting; did you mean approvals.timeout_s?"),
    ('[gateway]\nadress = "x"\n', "gateway.adress is not a setting"),
    ('[agents.ci]\nkind = ["api"]\n', "agents.ci.kind is not a setting; did you mean agents.ci.kinds?"),
    ("[principals.ana]\nacounts = []\n", "did you mean principals.ana.accounts?"),
    (TELEGRAM + 'aprovers = ["1"]\n', "did you mean platforms.telegram.approvers?"),
    ('[platforms.telegramm]\ntoken = "x"\n', "did you mean platforms.telegram.token?"),
    ('[profiles.team.approvals]\nmod = "off"\n', "profiles.team.approvals.mod is not a setting; did you mean"),
    ("[zebra]\nq = 1\n", "zebra.q is not a setting, and none is like it"),
    # planned for later
    (
        '[approvals]\nmode = "smart"\n',
        '"smart", but approvals.smart.base_url is missing: it says where the reviewer is asked.',
    ),
    (
        '[approvals]\nmode = "smart"\nsmart.base_url = "http://127.0.0.1:1/v1"\n',
        '"smart", but approvals.smart.model is missing: it says which model reviews.',
    ),
    ('[approvals]\nunknown_commands = "deny"\n', 'must be "verbs", "ask" or "allow", not "deny"'),
    ('[[rules]]\nkey = "own.x"\n', "signoff.toml: rules cannot be used: rule 1: "),
    ('[[rules]]\nkey = "own.x"\nverdict = "ask"\nprogams = ["x"]\n', 'rule 1: there is no field "progams"'),
    (
        '[[rules]]\nkey = "own.x"\nverdict = "ask"\nprograms = ["x"]\n[[rules]]\nkey = "Own"\nverdict = "ask"\n',
        'rule 2: key "Own" must be',
    ),
    ('[rules]\nkey = "own.x"\n', "goes too deep: rules is one value"),
    ('rules = "x"\n', "must be [[rules]] tables"),
    ("[profiles.ops]\nrules = [1]\n", "profiles.ops.rules must be [[rules]] tables"),
    ('[platforms.discord]\nmode = "gateway"\n', "platforms.discord.token is missing; give token, token_env"),
    (
        '[platforms.discord]\ntoken = "x"\nmode = "http"\n',
        'platforms.discord.public_key is missing in mode "http"; give public_key, or remove the section.',
    ),
    ('[platforms.discord]\ntoken = "x"\npublic_key = "abc"\n', "is no public key; copy the 64 hexadecimal"),
    ('[platforms.discord]\ntoken = "x"\ngateway_url = "https://x"\n', "write a whole WebSocket address"),
    ('[platforms.discord]\ntoken = "x"\nmode = "socket"\n', "gateway"),
    (
        '[platforms.discord]\ntoken = "x"\napprovers = ["@ana"]\n',
        "is neither a numeric user id, nor role:ID, nor a principal",
    ),
    ('[platforms.slack]\nbot_token = "xoxb-1"\n', 'platforms.slack.app_token is missing in mode "socket"'),
    ('[platforms.slack]\nbot_token = "xapp-1"\n', "is no bot token: that begins with xoxb-"),
    ('[platforms.slack]\napp_token = "xoxb-1"\n', "is no app-level token: that begins with xapp-"),
    (
        '[platforms.slack]\nbot_token = "xoxb-1"\nmode = "http"\n',
        'platforms.slack.signing_secret is missing in mode "http"',
    ),
    (
        '[platforms.slack]\nbot_token = "xoxb-1"\napp_token = "xapp-1"\napprovers = ["ana"]\n',
        "is neither a member id such as U0123ABCD, nor group:ID",
    ),
    # wrong shapes
    ('approvals = "manual"\n', "approvals is a section, not a value; write [approvals]"),
    ('[[agents]]\nkinds = ["api"]\n', "agents is a section, not a value; write [agents.NAME]"),
    ('[agents]\nci = "x"\n', "agents.ci is a section"),
    ("[approvals.mode]\nx = 1\n", "goes too deep: approvals.mode is one value"),
    ("profiles = 3\n", "profiles is a section"),
    # wrong types
    ('[approvals]\ntimeout_s = "300"\n', 'must be a number of seconds without quotes or unit, not "300"'),
    ('[approvals]\ntimeout_s = "5m"\n', 'not "5m"; for example 300'),
    ("[approvals]\ntimeout_s = true\n", "not true"),
    ('[approvals]\nallow_no_deadline = "yes"\n', "must be true or false without quotes"),
    ('[approvals]\ndeny = "rm *"\n', "must be a list in brackets"),
    ('[gateway]\nport = "8787"\n', "must be a port number without quotes"),
    (TELEGRAM + "approvers = [123]\n", 'is a number; ids are text: write "123" in quotes'),
    (TELEGRAM + 'approvers = "123"\n', "must be a list in brackets"),
    ("[gateway]\nhost = 127\n", "must be text in quotes"),
    # impossible values
    ("[approvals]\ntimeout_s = 0\n", "must be 1 to 31,536,000 seconds, not 0"),
    ("[approvals]\ntimeout_s = nan\n", "seconds"),
    ("[approvals]\nmax_timeout_s = inf\n", "seconds"),
    ("[approvals]\nclaim_within_s = -5\n", "seconds, not -5"),
    ("[approvals]\ntimeout_s = 600\nmax_timeout_s = 60\n", "raise the one or lower the other"),
    ("[gateway]\nport = 70000\n", "port from 0 (any free one) to 65535, not 70000"),
    ("[gateway]\nport = 9000\nhooks_port = 9000\n", "are both 9000; give one of them another port"),
    ('[gateway]\nhost = "http://0.0.0.0"\n', "write a host name or an IP address alone"),
    ('[gateway]\nhost = "localhost:8787"\n', "write a host name or an IP address alone"),
    ('[gateway]\nhost = ""\n', "is empty; give it a value or remove the line"),
    ('[gateway]\nhooks_url = "signoff.example.org"\n', "must be an address such as"),
    ('[gateway]\nstore = "/var/lib/signoff.db"\n', "gateway.store is no URL; write for example sqlite:///"),
    ('[gateway]\nstore = "mysql://db/x"\n', "names mysql://, which no installed engine serves"),
    ('[gateway]\nstore = "sqlite://signoff.db"\n', "needs three slashes and an absolute path"),
    (f'[gateway]\nstate_dir = "/{"d" * 120}"\n', "too long for the socket in it"),
    ('[approvals]\nmode = "auto"\n', 'must be "manual", "smart" or "off", not "auto"'),
    ('[approvals]\nmode = "Off"\n', 'must be "manual", "smart" or "off"'),
    ('[approvals]\ncron_mode = "ask"\n', 'must be "deny", "approve" or "defer"'),
    ('[approvals]\ndeny = ["*"]\n', "would block everything"),
    ('[approvals]\ndeny = ["rm *", "rm *"]\n', 'names "rm *" twice'),
    ('[grants]\ncommand = ["once", "forever", "deny"]\n', '(item 2) is "forever"; write "once"'),
    ('[grants]\ncode = ["once", "session"]\n', 'must contain "deny"'),
    ('[grants]\ntool = ["deny"]\n', 'must contain "once"'),
    ('[agents.ci]\nkinds = ["apii"]\n', '(item 1) must be "chat"'),
    ('[agents."a b"]\nkinds = ["api"]\n', "a name has 1 to 64 letters"),
    ('[agents.ci]\nisolation = ""\n', "is empty"),
    # destinations
    ('[approvals]\nalso_to = ["-100123"]\n', '(item 1) is "-100123", which is no destination'),
    ('[approvals]\nfallback_destination = "telegram:"\n', "no destination; write platform:chat"),
    ('[approvals]\nfallback_destination = "telegram:1"\n', "names the platform 'telegram', which this"),
    (TELEGRAM + '[approvals]\nalso_to = ["slack:C1"]\n', "names the platform 'slack'"),
    ('[agents.ci]\ndestinations = ["telegram"]\n', "agents.ci.destinations names the platform 'telegram'"),
    # platforms, people, secrets
    ('[platforms.telegram]\nmode = "polling"\n', "platforms.telegram.token is missing; give token, token_env or"),
    ("[platforms.telegram]\n", "platforms.telegram.token is missing"),
    ('[platforms.telegram]\ntoken = ""\n', "is empty; give it the token"),
    ('[platforms.telegram]\ntoken = "a b"\n', "a token is one word"),
    ('[platforms.telegram]\ntoken = "a"\ntoken_env = "PATH"\n', "give only one of token, token_env and token_file"),
    ('[platforms.telegram]\ntoken_env = "NO_SUCH"\n', "the environment variable NO_SUCH is not set; set it"),
    ('[platforms.telegram]\ntoken_file = "nowhere"\n', "there is no file"),
    ('[platforms.telegram]\ntoken_file = "."\n', "is not a file"),
    ("[platforms.telegram]\ntoken_file = 7\n", "must be the name of a file in quotes"),
    (TELEGRAM + 'mode = "webhooks"\n', 'must be "polling" or "webhook"'),
    (TELEGRAM + 'api_base_url = "https://x.org/bot"\n', "write the origin alone"),
    (TELEGRAM + 'api_base_url = "https://me:pw@x.org"\n', "must not carry a user or a password"),
    (TELEGRAM + 'approvers = ["@ana"]\n', "'@ana' is neither a numeric user id"),
    ('[principals.ana]\naccounts = ["123"]\n', "write platform:user_id"),
    (
        '[principals.ana]\naccounts = ["telegram:1"]\n[principals.ben]\naccounts = ["telegram:1"]\n',
        "already belongs to principal 'ana'",
    ),
    # profiles
    ("[profiles.team.gateway]\nport = 1\n", "gateway settings stand at the top, not in a profile; move it there"),
    ('[approvals]\nmode = "off"\n[profiles.default.approvals]\nmode = "off"\n', "keep one of the two"),
    ('[profiles."a/b".approvals]\nmode = "off"\n', "rename it"),
]


@pytest.mark.parametrize(("content", "mend"), MISTAKES, ids=range(len(MISTAKES)))
def test_each_mistake_is_one_line_with_the_mend(tmp_path: Path, content: str | bytes, mend: str) -> None:
    said = problem(tmp_path, content)
    assert mend in said
    assert "\n" not in said
    assert TOKEN not in said
    assert "signoff.toml" in said or said.startswith("gateway.")


ENVIRONMENT_MISTAKES = [
    ({"SIGNOFF_APPROVALS__TIMOUT_S": "5"}, "did you mean SIGNOFF_APPROVALS__TIMEOUT_S?"),
    ({"SIGNOFF_APPROVALS__TIMEOUT_S": "5m"}, 'SIGNOFF_APPROVALS__TIMEOUT_S must be a number of seconds'),
    ({"SIGNOFF_APPROVALS__ALLOW_NO_DEADLINE": "maybe"}, "must be true or false"),
    ({"SIGNOFF_GATEWAY__PORT": "http"}, "must be a port number"),
    ({"SIGNOFF_PLATFORMS__TELEGRAM__TOKEN_FILE": "/no/such"}, "TELEGRAM__TOKEN_FILE: there is no file"),
    ({"SIGNOFF_PROFILES__TEAM__APPROVALS__MOD": "off"}, "did you mean SIGNOFF_PROFILES__TEAM__APPROVALS__MODE?"),
    ({"SIGNOFF__PORT": "1"}, "is not a setting"),
]  # fmt: skip


@pytest.mark.parametrize(("environ", "mend"), ENVIRONMENT_MISTAKES, ids=range(len(ENVIRONMENT_MISTAKES)))
def test_mistakes_in_the_environment_name_the_variable(environ: dict[str, str], mend: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, environ)
    assert mend in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no configuration file"):
        load_config(tmp_path / "signoff.toml", {})


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_secret_file_that_everybody_may_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN + "\n")
    secret.chmod(0o644)
    content = '[platforms.telegram]\ntoken_file = "token"\n'
    assert f"run: chmod 600 {secret}" in problem(tmp_path, content)
    secret.chmod(0o600)
    assert load_config(tmp_path / "signoff.toml", {}).profiles["default"].platforms["telegram"]["token"] == TOKEN
    secret.write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in problem(tmp_path, content)
    secret.write_text(" \n")
    assert "is empty" in problem(tmp_path, content)


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_an_open_token_key_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "token.key"
    key.write_text("k")
    key.chmod(0o644)
    assert "gateway.token_key_file" in problem(tmp_path, f'[gateway]\nstate_dir = "{tmp_path}"\n')


def test_the_defaults(tmp_path: Path) -> None:
    config = load_config(None, {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path)})
    assert (config.gateway.host, config.gateway.port) == ("127.0.0.1", 8787)
    assert (config.gateway.hooks_host, config.gateway.hooks_port) == ("127.0.0.1", 8788)
    assert config.gateway.store == f"sqlite:///{str(tmp_path).lstrip('/')}/signoff.db"
    assert config.gateway.token_key_file == tmp_path / "token.key"
    assert config.gateway.admin_socket == tmp_path / "admin.sock"
    assert list(config.profiles) == ["default"]
    assert config.profiles["default"].approvals == ApprovalSettings()
    assert config.profiles["default"].grants == GrantSettings()
    assert not config.webhooks


def test_a_whole_file_becomes_typed_settings(tmp_path: Path) -> None:
    content = f"""
[gateway]
port = 0
state_dir = "state"
hooks_url = "https://hooks.example.org/"

[approvals]
timeout_s = 60
deny = ["git push --force *"]
also_to = ["telegram:-1001/7"]
fallback_destination = "telegram:user:42"

[grants]
command = ["once", "30m", "deny"]

[agents.ci-bot]
kinds = ["api", "cron"]
destinations = ["telegram", "telegram:5"]
acts_for = "ana"
isolation = "container"

[agents.bare]

[principals.ana]
accounts = ["telegram:42"]

{TELEGRAM}
approvers = ["42", "ana"]
mode = "webhook"

[profiles.team.approvals]
mode = "off"
"""
    config = load_config(write(tmp_path, content), {})
    default = config.profiles["default"]
    assert config.gateway.state_dir == tmp_path / "state"
    assert config.gateway.hooks_url == "https://hooks.example.org"
    assert default.approvals.also_to == (Destination("telegram", "-1001", "7"),)
    assert default.approvals.fallback_destination == Destination("telegram", "42")
    assert default.grants.command == ("once", "30m", "deny")
    assert default.agents == {
        "ci-bot": AgentSettings(
            kinds=("api", "cron"), destinations=("telegram", "telegram:5"), acts_for="ana", isolation="container"
        ),
        "bare": AgentSettings(),
    }
    assert default.principals == {"ana": PrincipalSettings(accounts=("telegram:42",))}
    assert default.platforms == {"telegram": {"token": TOKEN, "mode": "webhook"}}
    assert default.approvers == {"telegram": ("42", "ana")}
    assert config.webhooks
    team = config.profile("team")
    assert (team.name, team.approvals.mode, team.platforms, team.agents) == ("team", "off", {}, {})
    assert {str(tmp_path / "state"), str(tmp_path / "signoff.toml")} <= set(default.own_paths)
    with pytest.raises(ConfigError, match="did you mean 'team'"):
        config.profile("teem")


def test_secrets_never_stand_in_a_repr(tmp_path: Path) -> None:
    content = TELEGRAM + '[gateway]\nstore = "memory://?replay=2"\n'
    config = load_config(write(tmp_path, content), {})
    assert TOKEN not in repr(config)
    assert "replay" not in repr(config)
    with pytest.raises(TypeError):
        msgspec.json.encode(config)
    assert str(config.profiles["default"].platforms["telegram"]["token"]) == TOKEN


def test_the_environment_wins_over_the_file_and_keeps_given_names(tmp_path: Path) -> None:
    content = (
        '[approvals]\ntimeout_s = 60\ndeny = ["a b"]\n[agents.ci-bot]\nkinds = ["api"]\n[profiles.Team.approvals]\n'
        'mode = "manual"\n[platforms.telegram]\ntoken_file = "nowhere"\n'
    )
    environ = {
        "SIGNOFF_APPROVALS__TIMEOUT_S": "90",
        "SIGNOFF_APPROVALS__DENY": "git push *, rm *",
        "SIGNOFF_APPROVALS__ALLOW_NO_DEADLINE": "Yes",
        "SIGNOFF_AGENTS__CI_BOT__KINDS": '["cron"]',
        "SIGNOFF_PROFILES__TEAM__APPROVALS__MODE": "off",
        "SIGNOFF_PLATFORMS__TELEGRAM__TOKEN_ENV": "THE_TOKEN",
        "SIGNOFF_PLATFORMS__TELEGRAM__MODE": "",
        "THE_TOKEN": TOKEN,
        "SIGNOFF_URL": "http://127.0.0.1:1",
        "SIGNOFF_KEY": "sk_x_y",
    }
    config = load_config(write(tmp_path, content), environ)
    default = config.profiles["default"]
    assert default.approvals.timeout_s == 90
    assert default.approvals.deny == ("git push *", "rm *")
    assert default.approvals.allow_no_deadline is True
    assert default.agents["ci-bot"].kinds == ("cron",)
    assert config.profiles["Team"].approvals.mode == "off"
    assert default.platforms["telegram"] == {"token": TOKEN}


def test_adapters_from_elsewhere_keep_their_own_settings(tmp_path: Path) -> None:
    content = '[platforms.pager]\napi_token_env = "T"\nroom = {a = 1}\nspeed = 3\napprovers = ["x"]\n'
    config = load_config(write(tmp_path, content), {"T": "hidden"}, platforms=["telegram", "pager"])
    profile = config.profiles["default"]
    assert profile.platforms == {"pager": {"api_token": "hidden", "room": {"a": 1}, "speed": 3}}
    assert profile.approvers == {"pager": ("x",)}
    assert "hidden" not in repr(config)


def test_each_profile_has_the_operators_own_rules(tmp_path: Path) -> None:
    content = """
[[rules]]
key = "own.deploy"
verdict = "ask"
programs = ["tfx"]

[[profiles.ops.rules]]
key = "own.none"
verdict = "block"
programs = ["tfx"]

[profiles.dev.approvals]
unknown_commands = "ask"
"""
    profiles = load_config(write(tmp_path, content), {}).profiles
    own = {name: profile.rules.own if profile.rules is not None else () for name, profile in profiles.items()}
    found = {name: [rule.key for rule in rules] for name, rules in own.items()}
    assert found == {"default": ["own.deploy"], "ops": ["own.none"], "dev": []}
    assert profiles["default"].rules is not None
    assert len(profiles["default"].rules.rules) == len(shipped().rules), "those of the package stay"
    assert profiles["dev"].approvals.unknown_commands == "ask"


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf[approvals]\r\nmode = "off"\r\n'
    assert load_config(write(tmp_path, content), {}).profiles["default"].approvals.mode == "off"


def test_the_file_is_found_in_the_working_folder(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    assert find_config(tmp_path) == file


def test_the_table_tells_every_setting_with_the_default_that_is_used(tmp_path: Path) -> None:
    rows = {row.name: row for row in settings_table()}
    assert len(rows) == len(GATEWAY) + len(PROFILE)
    assert all(row.doc for row in rows.values())
    sections = (
        ("approvals", ApprovalSettings),
        ("approvals.smart", SmartSettings),
        ("approvals.tool_gate", ToolGateSettings),
        ("grants", GrantSettings),
    )
    for section, struct in sections:
        for field in struct.__struct_fields__:
            if f"{section}.{field}" in ("approvals.smart", "approvals.tool_gate"):
                continue  # a section of its own
            assert f"{section}.{field}" in rows
    for section, named in (
        ("agents", AgentSettings),
        ("principals", PrincipalSettings),
        ("hooks", HookSettings),
        ("executors", ExecutorSettings),
    ):
        for field in named.__struct_fields__:
            assert f"{section}.<name>.{field}" in rows
    assert rows["approvals.timeout_s"].unit == "seconds"
    assert rows["approvals.timeout_s"].env == "SIGNOFF_APPROVALS__TIMEOUT_S"
    assert rows["gateway.port"].default == "8787"
    for setting in (*GATEWAY, *PROFILE):
        if setting.default not in (None, ()):
            assert setting.check(setting.default) == setting.default
        assert setting.default is not None or setting.default_text


def test_a_secret_hides_itself_in_containers() -> None:
    assert repr({"token": Secret(TOKEN)}) == "{'token': Secret(…)}"


@given(st.text(max_size=80))
def test_any_text_as_a_file_is_refused_in_one_line_or_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        load_config(write(folder, text.encode("utf-8", "replace")), {})
    except ConfigError as error:
        assert "\n" not in error.message


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
)


@given(st.sampled_from([*GATEWAY, *PROFILE]), VALUES)
def test_a_check_answers_any_value(setting: object, value: object) -> None:
    from signoff.config.checks import Wrong
    from signoff.config.table import Setting

    assert isinstance(setting, Setting)
    try:
        setting.check(value)
    except Wrong as wrong:
        assert "\n" not in str(wrong)


def test_what_init_kept_of_the_settings_is_the_gateways_own(tmp_path: Path) -> None:
    (tmp_path / "signoff.toml").write_text("")
    (tmp_path / "signoff.toml.bak").write_text("")
    (tmp_path / "other.bak").write_text("")
    own = load_config(tmp_path / "signoff.toml", {}).profile("default").own_paths
    assert str(tmp_path / "signoff.toml.bak") in own
    assert str(tmp_path / "other.bak") not in own
