"""The configuration: `signoff.toml`, the environment, and the secrets they point to."""

from signoff.config.loading import (
    Location,
    find_config,
    load_config,
    load_hooks,
    load_policy,
    load_profiles,
    locate,
)
from signoff.config.secrets import Secret
from signoff.config.shapes import Config, GatewaySettings
from signoff.config.table import SettingRow, settings_table

__all__ = [
    "Config",
    "GatewaySettings",
    "Location",
    "Secret",
    "SettingRow",
    "find_config",
    "load_config",
    "load_hooks",
    "load_policy",
    "load_profiles",
    "locate",
    "settings_table",
]
