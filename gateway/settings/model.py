"""The settings of the whole gateway; every path is absolute once they are loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    Field,
    SecretStr,
)

from gateway.settings.groups import (
    AuditSettings,
    BackendSettings,
    BookingSettings,
    CacheSettings,
    Group,
    TracingSettings,
)
from gateway.settings.kinds import (
    Address,
    Counting,
    Database,
    Hosts,
    Networks,
    OptionalAddress,
    PanelUrl,
    Patience,
    PublicUrl,
    Seconds,
    Zone,
    split_networks,
)

_HERE = Path(__file__).resolve().parent.parent
# The policy lies at the top of a checkout; in an installed package it lies beside this file.
_SHIPPED_POLICIES = (_HERE.parent / "policies.yaml", _HERE / "policies.yaml")


def shipped_policy() -> Path:
    """The policy that comes with the gateway."""
    return next((path for path in _SHIPPED_POLICIES if path.exists()), _SHIPPED_POLICIES[0])


class Settings(Group):
    """The gateway's settings; every path is absolute."""

    listen: Address = Field("0.0.0.0:8080", description="Where partners call.")
    operations_listen: Address = Field(
        "127.0.0.1:8081", description="Where /healthz, /readyz and /metrics are."
    )
    operations_hosts: Hosts = Field(
        "",
        description="Host names under which these are asked, with commas between; addresses,"
        " localhost and the name in operations_listen always count.",
    )
    admin_listen: OptionalAddress = Field(
        "127.0.0.1:8082",
        description="Where the clinic's administrators reach the panel; empty for no panel. Open to"
        " a network it takes admin_url, and TLS or trusted proxies.",
    )
    admin_url: PanelUrl | None = Field(
        None,
        description="The address under which browsers reach the panel, where that is not this"
        " machine's own; without a path.",
    )
    zone: Zone | None = Field(
        None,
        description="The clock on the clinic's wall, such as Europe/Paris, by which the panel tells"
        " times; the mapping's where it is not given.",
    )
    public_url: PublicUrl | None = Field(
        None,
        description="The address under which partners know the gateway, without /api/v1; where"
        " it is not given, http://127.0.0.1 and the port of listen.",
    )
    state: Path = Field(
        Path("state"), description="The folder for the store, the logs and the sealing secret."
    )
    policy: Path = Field(
        default_factory=shipped_policy,
        description="Which field opens at which level; the shipped policies.yaml by default.",
    )
    policy_widening: Literal["apply", "approve"] = Field(
        "apply",
        description="Whether a changed policy that shows more applies once its cases pass, or then"
        " waits for `policy approve`; in the file also `policy: {file: FILE, widening: approve}`.",
    )
    store: Database | None = Field(
        None,
        description="The database of keys and bookings; state/gateway.db by default. For several"
        " machines postgresql://user:password@host/database.",
    )
    limiter: Counting = Field(
        SecretStr("memory:"),
        description="Where calls are counted: memory:, or for several machines"
        " redis://user:password@host:6379 (rediss:// for TLS; Valkey too).",
    )
    limiter_timeout: Annotated[float, Field(gt=0, le=1)] = Field(
        0.05,
        description="Seconds that a call waits for a limiter in Redis, before its process counts"
        " it; more where Redis is far away.",
    )
    nodes: int = Field(
        1,
        ge=1,
        description="Machines that serve: where the limiter is down, each process counts"
        " `limit / (nodes x workers)`.",
    )
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description="Processes that answer partners; with more than one, another one beside them"
        " is the operator's.",
    )
    connections: int = Field(
        2000,
        ge=1,
        le=100_000,
        description="Connections that one process holds; for one more, the one that has been idle"
        " for the longest is closed.",
    )
    connections_per_address: int = Field(
        100,
        ge=1,
        description="Connections that one address may hold in one process, trusted proxies"
        " excepted.",
    )
    in_flight: int = Field(
        200,
        ge=1,
        description="Calls that may be under way at once in one process; more wait up to a second,"
        " then they are 503, uncounted.",
    )
    in_flight_per_key: int = Field(
        20, ge=1, description="Calls of one key that may be under way at once, likewise."
    )
    in_flight_bytes: int = Field(
        4_194_304,
        ge=65_536,
        description="Bytes that the bodies of all bookings under way at once may have, likewise.",
    )
    trusted_proxies: Networks = Field(
        "",
        description="Proxies whose X-Forwarded-For is believed: addresses and networks, with commas"
        " between; none by default.",
    )
    proxy_hops: int = Field(
        1, ge=1, le=10, description="Trusted proxies in a row through which each call comes."
    )
    tls_certificate: Path | None = Field(
        None,
        description="The certificate and its chain in PEM, where partners reach the gateway without"
        " a proxy that speaks TLS; with tls_key.",
    )
    tls_key: Path | None = Field(None, description="The key of that certificate, in PEM.")
    shutdown_delay: Seconds = Field(
        5.0, description="Seconds between not being ready and not listening, at the end."
    )
    drain: Seconds = Field(15.0, description="Seconds that running calls have to end.")
    body_timeout: Patience = Field(5.0, description="Seconds that a body may take to arrive.")
    booking_wait: Patience = Field(
        10.0, description="Seconds that a repeated booking waits for the first to end."
    )
    backend: BackendSettings = Field(default_factory=BackendSettings)
    booking: BookingSettings = Field(default_factory=BookingSettings)
    cache: CacheSettings = Field(default_factory=CacheSettings)
    tracing: TracingSettings = Field(default_factory=TracingSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)

    @property
    def proxies(self) -> tuple[str, ...]:
        """The trusted proxies, one by one."""
        return split_networks(self.trusted_proxies)

    def public_url_at(self, port: int) -> str:
        """The public address, where partners are answered at that port."""
        scheme = "http" if self.tls_certificate is None else "https"
        return self.public_url or f"{scheme}://127.0.0.1:{port}"


GROUPS: Mapping[str, type[BaseModel]] = {
    "backend": BackendSettings,
    "booking": BookingSettings,
    "cache": CacheSettings,
    "tracing": TracingSettings,
    "audit": AuditSettings,
}
