"""Every setting once: its name, type, default and meaning; from gateway.yaml and the environment.

The environment name is derived: `backend.secret_file` is `GATEWAY_BACKEND_SECRET_FILE`. What the
environment says counts more than the file.
"""

from gateway.settings.kinds import (
    is_loopback,
    read_sealing_secret,
    read_zone,
    secret_text,
    split_address,
    split_hosts,
)
from gateway.settings.loading import (
    ConfigurationErrors,
    StartRefused,
    check_own_place,
    configuration_file,
    load_settings,
    names,
    sources,
    variable,
)
from gateway.settings.model import (
    GROUPS,
    AuditSettings,
    BackendSettings,
    BookingSettings,
    CacheSettings,
    Settings,
    shipped_policy,
)

__all__ = [
    "GROUPS",
    "AuditSettings",
    "BackendSettings",
    "BookingSettings",
    "CacheSettings",
    "ConfigurationErrors",
    "Settings",
    "StartRefused",
    "check_own_place",
    "configuration_file",
    "is_loopback",
    "load_settings",
    "names",
    "read_sealing_secret",
    "read_zone",
    "secret_text",
    "shipped_policy",
    "sources",
    "split_address",
    "split_hosts",
    "variable",
]
