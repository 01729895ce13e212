"""Defines every setting of the gateway, and loads them from gateway.yaml and the environment.

A variable is named after its setting: `GATEWAY_BACKEND_SECRET_FILE` sets `backend.secret_file`. It
takes precedence over the file.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import pydantic
from pydantic import BaseModel, Field, SecretStr, ValidationError

from adapters.documents.document import Document, read_document
from adapters.documents.models import MODEL_CHECKS, check, code_of, sentence
from adapters.documents.problems import DocumentErrors, Misfit, Problem, did_you_mean, read_checks
from gateway import identity
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import APPOINTMENT_TYPE, SLOT
from gateway.events import Sayable
from gateway.settings import kinds

PREFIX = "GATEWAY_"
CHECKS = {**MODEL_CHECKS, **read_checks(__file__)}
# Variables that Kubernetes sets in pods beside a service named `gateway`. None is a setting.
_of_a_service = re.compile(
    r"GATEWAY_(SERVICE_HOST=.*|SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+|PORT=(tcp|udp|sctp)://.*"
    r"|PORT_[0-9]+_(TCP|UDP|SCTP)(=(tcp|udp|sctp)://.*|_(PROTO|PORT|ADDR)=.*))"
).fullmatch
DEFAULT_FILE = Path("gateway.yaml")
# The variables that say where the gateway keeps its state.
_PLACES = ("GATEWAY_STATE", "GATEWAY_STORE")
# The settings that may name a database by a relative path.
_DATABASES = {"store", "url"}
_HERE = Path(__file__).resolve().parent.parent
# The policy lies at the top of a checkout. Where the gateway is installed, it lies in its package.
_SHIPPED_POLICIES = (_HERE.parent / "policies.yaml", _HERE / "policies.yaml")
# Calls of the practice system at once, by default. A server of its own takes many. A database's
# connections are for the practice's desk first. SQLite works in this process, where many long reads
# at once would hold up the event loop.
IN_FLIGHT, IN_FLIGHT_SQL = 20, 8
# Seconds by default. Appointment types hardly ever change. All else changes at the practice's own
# desk, so the clinic decides for how long an answer may be out of date.
_REMEMBERED = {APPOINTMENT_TYPE.name: 60.0}
# A free time may be taken at any moment.
_AT_MOST = {SLOT.name: 5.0}


def shipped_policy() -> Path:
    """Returns the path of the policy that comes with the gateway."""
    return next((path for path in _SHIPPED_POLICIES if path.exists()), _SHIPPED_POLICIES[0])


class Group(BaseModel):
    """A group of settings. It refuses unknown ones, and none can be changed later."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    def located(self, folder: Path) -> Self:
        """Returns a copy with every path absolute, that of a SQLite file included."""
        update: dict[str, Any] = {}
        for name, value in self:
            if isinstance(value, Group):
                update[name] = value.located(folder)
            elif isinstance(value, Path):
                update[name] = (folder / value).absolute()
            elif name in _DATABASES and value is not None:
                scheme, separator, path = value.get_secret_value().partition(":///")
                is_file = separator and scheme.startswith(("sqlite", "access", "dbf"))
                if is_file and not path.startswith(("/", ":memory:")):
                    update[name] = SecretStr(f"{scheme}:///{quote(str(folder.absolute()))}/{path}")
        return self.model_copy(update=update)


class BackendSettings(Group):
    """The practice system."""

    adapter: str = "sql"
    """How to speak to it: sql, rest, or module:Class of your own adapter."""
    url: kinds.Database | None = None
    """Its database, such as sqlite:////srv/practice/clinic.db, its files, such as
    access:////srv/practice.mdb, or (rest) its address, such as https://cloud.example.org/api."""
    mapping: Path | None = None
    """The mapping file."""
    user: SecretStr | None = None
    """Who the gateway is to a practice system that asks (rest)."""
    password: SecretStr | None = None
    """The password of that user."""
    token: SecretStr | None = None
    """A key that such a system gave out instead."""
    secret: kinds.SealingSecret | None = None
    """Seals the public ids: 64 hexadecimal digits. Not with secret_file."""
    secret_file: Path | None = None
    """A file with that secret, readable by its owner alone. Where neither is given, one is made in
    the state folder."""
    timeout: kinds.Patience = 3.0
    """Seconds that one read may take."""
    booking_timeout: kinds.Patience = 10.0
    """Seconds that one booking may take."""
    in_flight: int | None = Field(None, ge=1)
    """Calls of it that may be under way at once, in each process: bookings are at most half of
    them, searches a quarter. Where it is not given: 8 over a database, else 20."""
    queue: int = Field(100, ge=0)
    """Calls that may wait for that, a second at most; more are 503."""
    refresh: Annotated[float, Field(ge=5, le=600)] = 60.0
    """Seconds between two looks at the files of an address that begins with access: or dbf:, which
    are read by a copy."""
    stale_after: Annotated[float, Field(ge=5, le=2_592_000)] = 3600.0
    """Seconds after which reads are 503 where such a copy could not be compared with its files, or
    made anew."""
    breaker_failures: int = Field(5, ge=1)
    """Calls in a row that fail before it is left alone, and calls are 503."""
    breaker_pause: kinds.Patience = 10.0
    """Seconds for which it is left alone, before one call tries it again."""

    @property
    def most_calls(self) -> int:
        """What `in_flight` says, or where it is not given what fits the kind of practice system."""
        if self.in_flight is not None:
            return self.in_flight
        return IN_FLIGHT_SQL if self.adapter == "sql" else IN_FLIGHT

    @pydantic.model_validator(mode="after")
    def _one_secret(self) -> "BackendSettings":
        if self.secret is not None and self.secret_file is not None:
            raise Misfit("bad-secret", "give secret or secret_file, not both")
        if self.stale_after < self.refresh:
            raise Misfit("unfit-refresh", "stale_after must not be less than refresh")
        return self


class BookingSettings(Group):
    """What partners may book."""

    horizon: int = Field(365, ge=1, le=36_500)
    """Days ahead, by the clinic's calendar, for which partners see free times and may book."""
    lead_time: int = Field(0, ge=0, le=525_600)
    """Minutes that must lie between a booking and its start; free times that are nearer are not
    offered."""


class AuditSettings(Group):
    """The audit: who was shown what."""

    folder: Path | None = None
    """The folder of the day files; audit in the state folder by default. Each machine needs its
    own. Where you change it, move the folder along: without it the start is refused."""
    key_file: Path | None = None
    """A file with the HMAC keys that seal the lines, 64 hexadecimal digits each, the newest first,
    readable by its owner alone. Where it is not given, one is made in the state folder."""
    keep_days: int = Field(400, ge=1)
    """Days after which what was written on a day is dropped."""


class _Memory(Group):
    url: kinds.Counting = SecretStr("memory:")
    """Where it is remembered: memory:, or for several processes and machines together
    redis://user:password@host:6379."""
    entries: int = Field(10_000, ge=1)
    """Answers that are remembered in memory: at most."""
    bytes: int = Field(16_777_216, ge=1)
    """Bytes that all answers in memory: take at most."""


def _remembered_for(read: Operation) -> Any:
    """Returns the type and the field of the cache setting for an operation that reads."""
    most = _AT_MOST.get(read.returns.name, 3600.0)
    text = f"Seconds for which an answer to {read.id} is remembered, at most {most:g}."
    default = Field(_REMEMBERED.get(read.returns.name, 0.0), description=text)
    return Annotated[float, Field(ge=0, le=most, allow_inf_nan=False)], default


CacheSettings = pydantic.create_model(
    "CacheSettings",
    __base__=_Memory,
    __doc__="What is remembered of the practice system's answers, as they are beneath the policy.",
    **{read.id: _remembered_for(read) for read in OPERATIONS if not read.creates},
)


class TracingSettings(Group):
    """Where traces go."""

    endpoint: kinds.Collector | None = None
    """A collector of OpenTelemetry that takes OTLP over HTTP, such as http://127.0.0.1:4318;
    without it there are no traces. It needs the extra `otel`."""
    share: float = Field(1.0, ge=0, le=1)
    """The share of the traces that is kept, from 0 to 1, whatever partners ask."""


class Settings(Group):
    """The gateway's settings; every path is absolute."""

    listen: kinds.Address = "0.0.0.0:8080"
    """Where partners call."""
    operations_listen: kinds.Address = "127.0.0.1:8081"
    """Where /healthz, /readyz and /metrics are."""
    operations_hosts: kinds.Hosts = ""
    """Host names under which these are asked, with commas between; addresses, localhost and the
    name in operations_listen always count."""
    admin_listen: kinds.OptionalAddress = "127.0.0.1:8082"
    """Where the clinic's administrators reach the panel; empty for no panel. Open to a network it
    takes admin_url, and TLS or trusted proxies."""
    admin_url: kinds.PanelUrl | None = None
    """The address under which browsers reach the panel, where that is not this machine's own;
    without a path."""
    zone: kinds.Zone | None = None
    """The clock on the clinic's wall, such as Europe/Paris, by which the panel tells times; the
    mapping's where it is not given."""
    public_url: kinds.PublicUrl | None = None
    """The address under which partners know the gateway, without /api/v1; where it is not given,
    http://127.0.0.1 and the port of listen."""
    state: Path = Path("state")
    """The folder for the store, the logs and the sealing secret."""
    policy: Path = Field(default_factory=shipped_policy)
    """Which field opens at which level; the shipped policies.yaml by default."""
    policy_widening: Literal["apply", "approve"] = "apply"
    """Whether a changed policy that shows more applies once its cases pass, or then waits for
    `policy approve`; in the file also `policy: {file: FILE, widening: approve}`."""
    store: kinds.Database | None = None
    """The database of keys and bookings; state/gateway.db by default. For several machines
    postgresql://user:password@host/database."""
    limiter: kinds.Counting = SecretStr("memory:")
    """Where calls are counted: memory:, or for several machines redis://user:password@host:6379
    (rediss:// for TLS; Valkey too)."""
    limiter_timeout: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Seconds that a call waits for a limiter in Redis, before its process counts it; more where
    Redis is far away."""
    nodes: int = Field(1, ge=1)
    """Machines that serve: where the limiter is down, each process counts `limit / (nodes x
    workers)`."""
    workers: int = Field(1, ge=1, le=64)
    """Processes that answer partners; with more than one, another one beside them is the
    operator's."""
    event_loop: Literal["auto", "uvloop", "asyncio"] = "auto"
    """What drives each process: uvloop, which takes less CPU and needs the extra `fast`; asyncio,
    which is Python's own; auto is uvloop where it is installed, else asyncio."""
    connections: int = Field(2000, ge=1, le=100_000)
    """Connections that one process holds; for one more, the one that has been idle for the longest
    is closed."""
    connections_per_address: int = Field(100, ge=1)
    """Connections that one address may hold in one process, trusted proxies excepted."""
    in_flight: int = Field(200, ge=1)
    """Calls that may be under way at once in one process; more wait up to a second, then they are
    503, uncounted."""
    in_flight_per_key: int = Field(20, ge=1)
    """Calls of one key that may be under way at once, likewise."""
    in_flight_bytes: int = Field(4_194_304, ge=65_536)
    """Bytes that the bodies of all bookings under way at once may have, likewise."""
    trusted_proxies: kinds.Networks = ""
    """Proxies whose X-Forwarded-For is believed: addresses and networks, with commas between; none
    by default."""
    proxy_hops: int = Field(1, ge=1, le=10)
    """Trusted proxies in a row through which each call comes."""
    tls_certificate: Path | None = None
    """The certificate and its chain in PEM, where partners reach the gateway without a proxy that
    speaks TLS; with tls_key."""
    tls_key: Path | None = None
    """The key of that certificate, in PEM."""
    shutdown_delay: kinds.Seconds = 5.0
    """Seconds between not being ready and not listening, at the end."""
    drain: kinds.Seconds = 15.0
    """Seconds that running calls have to end."""
    body_timeout: kinds.Patience = 5.0
    """Seconds that a body may take to arrive."""
    booking_wait: kinds.Patience = 10.0
    """Seconds that a repeated booking waits for the first to end."""
    backend: BackendSettings = Field(default_factory=BackendSettings)
    booking: BookingSettings = Field(default_factory=BookingSettings)
    cache: CacheSettings = Field(default_factory=CacheSettings)
    tracing: TracingSettings = Field(default_factory=TracingSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)

    @property
    def proxies(self) -> tuple[str, ...]:
        """The trusted proxies, one by one."""
        return kinds.split_networks(self.trusted_proxies)

    def public_url_at(self, port: int) -> str:
        """Returns the public address of a gateway that answers partners at that port."""
        scheme = "http" if self.tls_certificate is None else "https"
        return self.public_url or f"{scheme}://127.0.0.1:{port}"


GROUPS: Mapping[str, type[BaseModel]] = {
    name: type(value) for name, value in Settings() if isinstance(value, Group)
}


class StartRefused(Sayable):
    """Why the gateway does not start, with the remedy; `setting` is the one to change, if any."""

    def __init__(self, text: str, setting: str = "") -> None:
        super().__init__(text)
        self.setting = setting


def read_secret_file(path: Path, name: str) -> str:
    """Returns the content; raises StartRefused where it is unreadable, or open to others."""
    try:
        mode = path.stat().st_mode
        text = identity.content_of(path.read_text("ascii"))
    except (OSError, UnicodeDecodeError) as error:
        reason = identity.reason_of(error)
        raise StartRefused(f"{name} {path} cannot be read: {reason}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StartRefused(f"{name} {path} is open to others: chmod 600 {path}")
    return text


class ConfigurationErrors(DocumentErrors):
    """All problems, the settings that are left, and the names of those that are `left_out`."""

    def __init__(
        self, problems: Iterable[Problem], settings: Settings, left_out: Iterable[str] = ()
    ) -> None:
        super().__init__(problems)
        self.settings = settings
        self.left_out = frozenset(left_out)


def load_settings(config: Path | None, environ: Mapping[str, str] | None = None) -> Settings:
    """Returns the settings of a file, by default ./gateway.yaml if it exists, and the environment.

    Raises ConfigurationErrors with all problems of both, and any other DocumentErrors where the
    file cannot be read at all.
    """
    config = configuration_file(config)
    document = _read(config)
    if not isinstance(document.data, dict):
        text = "a configuration names its settings, such as listen: 0.0.0.0:8080"
        raise DocumentErrors([document.problem((), text, "no-settings")])
    problems = [*document.flaws]
    try:
        check(document, Settings, strict=True)
    except DocumentErrors as error:
        problems += error.problems
    given, wrong_variables = _variables(environ)
    problems += wrong_variables
    merged = _overlaid(document.data, given)
    try:
        Settings.model_validate(_overlaid({}, given))
    except ValidationError as error:
        problems += map(_problem, error.errors())
    left_out: Iterable[str] = ()
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        # a problem of one source alone has been found already, with its place
        problems = problems or [_problem(detail) for detail in error.errors()]
        for name, *inner in (detail["loc"] for detail in error.errors()):
            group = merged.get(str(name))
            if inner and isinstance(group, dict):
                group.pop(inner[0], None)
            else:
                merged.pop(str(name), None)
        settings, left_out = Settings.model_validate(merged), map(_dotted, error.errors())
    settings = settings.located(Path.cwd() if config is None else config.resolve().parent)
    if problems:
        raise ConfigurationErrors(problems, settings, left_out)
    return settings


def sources(config: Path | None, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns `environment`, `file` or `default` for each setting, by its dotted name."""
    given, _ = _variables(environ)
    data = _read(configuration_file(config)).data
    origins = {}
    for name, _ in names():
        group, _, inner = name.rpartition(".")
        in_file = inner in (data.get(group, {}) if group else data)
        origins[name] = "environment" if name in given else ("file" if in_file else "default")
    return origins


def configuration_file(config: Path | None) -> Path | None:
    """Returns the given file, or else ./gateway.yaml if it exists."""
    return DEFAULT_FILE if config is None and DEFAULT_FILE.exists() else config


def _read(config: Path | None) -> Document:
    """Returns the file, if any, with `policy: {file: ...}` as the settings that it stands for."""
    if config is None:
        return Document("", b"", data={})
    document = read_document(config, flawed=True)
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("policy"), dict):
        return document
    group, known = data.pop("policy"), {"file": "policy", "widening": "policy_widening"}
    for inner, value in group.items():
        name, place = known.get(inner, f"policy.{inner}"), ("policy", inner)
        if name in data:
            data[f"policy.{inner}"] = value  # given twice: under this name it is refused
            name = f"policy.{inner}"
        data[name] = value
        document.keys[name,] = document.keys[place]
        document.marks[name,] = document.marks[place]
    return document


def check_own_place(config: Path | None) -> None:
    """Raises StartRefused where only defaults say where the state and the store are."""
    if configuration_file(config) is None and os.environ.keys().isdisjoint(_PLACES):
        raise StartRefused(
            f"nothing says where the gateway's state is: no {DEFAULT_FILE} is in {Path.cwd()};"
            f" name the gateway's configuration with --config, or set {' or '.join(_PLACES)}"
        )


def names() -> Iterator[tuple[str, str]]:
    """Yields the dotted name and the meaning of each setting."""
    for name, info in Settings.model_fields.items():
        inner = GROUPS[name].model_fields if name in GROUPS else {}
        fields = {f"{name}.{member}": it for member, it in inner.items()} or {name: info}
        for dotted, field in fields.items():
            yield dotted, " ".join((field.description or "").split())


def variable(name: str) -> str:
    """Returns the environment variable of a setting."""
    return PREFIX + name.replace(".", "_").upper()


def _variables(environ: Mapping[str, str] | None) -> tuple[dict[str, str], list[Problem]]:
    """Returns the settings in the environment by dotted name, and the problems found there."""
    known = {variable(name): name for name, _ in names()}
    given, problems = {}, []
    for key, value in (os.environ if environ is None else environ).items():
        code, text = "empty-variable", "is empty: unset it or give it a value"
        if key in known and value.strip():
            given[known[key]] = value
            continue
        if key not in known:
            if not key.startswith(PREFIX) or _of_a_service(f"{key}={value}"):
                continue
            code, text = "unknown-variable", f"no setting has that name{did_you_mean(key, known)}"
        problems.append(Problem(f"environment variable {key}", 0, 0, text, code))
    return given, problems


def _overlaid(data: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Returns a copy of the data in which the given settings, by dotted name, replace others."""
    merged = {name: dict(it) if isinstance(it, dict) else it for name, it in data.items()}
    for name, value in given.items():
        group, _, inner = name.rpartition(".")
        if group and not isinstance(merged.get(group), dict):
            merged[group] = {}
        (merged[group] if group else merged)[inner] = value
    return merged


def _dotted(error: Any) -> str:
    return ".".join(str(part) for part in error["loc"])


def _problem(error: Any) -> Problem:
    place = f"environment variable {variable(_dotted(error))}"
    return Problem(place, 0, 0, sentence(error), code_of(error))
