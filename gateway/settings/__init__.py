"""Every setting once: its name, type, default and meaning; from gateway.yaml and the environment.

The environment name is derived: `backend.secret_file` is `GATEWAY_BACKEND_SECRET_FILE`. What the
environment says counts more than the file.
"""

from gateway.settings.groups import (
    AuditSettings,
    BackendSettings,
    CacheSettings,
    TracingSettings,
)
from gateway.settings.kinds import (
    is_loopback,
    read_sealing_secret,
    read_zone,
    split_address,
    split_hosts,
    split_networks,
)
from gateway.settings.loading import (
    ConfigurationErrors,
    check_own_place,
    configuration_file,
    load_settings,
    names,
    sources,
    variable,
)
from gateway.settings.model import GROUPS, Settings, shipped_policy
from gateway.settings.refusals import StartRefused, lacking

__all__ = [
    "GROUPS",
    "AuditSettings",
    "BackendSettings",
    "CacheSettings",
    "ConfigurationErrors",
    "Settings",
    "StartRefused",
    "TracingSettings",
    "check_own_place",
    "configuration_file",
    "is_loopback",
    "lacking",
    "load_settings",
    "names",
    "read_sealing_secret",
    "read_zone",
    "shipped_policy",
    "sources",
    "split_address",
    "split_hosts",
    "split_networks",
    "variable",
]
