"""Every setting once: its name, type, default and meaning; from gateway.yaml and the environment.

The environment name is derived: `backend.secret_file` is `GATEWAY_BACKEND_SECRET_FILE`. What the
environment says counts more than the file.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from adapters.document import Document, forgiving, read_document
from adapters.modelled import check, sentence
from adapters.problems import DocumentErrors, Problem, did_you_mean
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import APPOINTMENT_TYPE, SLOT

PREFIX = "GATEWAY_"
# What Kubernetes tells every pod of a service that is called `gateway`; no setting looks like it.
_of_a_service = re.compile(
    r"GATEWAY_(SERVICE_HOST=.*|SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+|PORT=(tcp|udp|sctp)://.*"
    r"|PORT_[0-9]+_(TCP|UDP|SCTP)(=(tcp|udp|sctp)://.*|_(PROTO|PORT|ADDR)=.*))"
).fullmatch
DEFAULT_FILE = Path("gateway.yaml")
# The variables that say where the gateway keeps what is its own.
_PLACES = ("GATEWAY_STATE", "GATEWAY_STORE")
_HERE = Path(__file__).resolve().parent
# The policy lies at the top of a checkout; in an installed package it lies beside this file.
_SHIPPED_POLICIES = (_HERE.parent / "policies.yaml", _HERE / "policies.yaml")


class StartRefused(Exception):
    """Why the gateway does not start: one sentence, with the remedy.

    `setting` is the one that would have to be another, where there is such a one.
    """

    def __init__(self, text: str, setting: str = "") -> None:
        super().__init__(text)
        self.setting = setting


def lacking(mapping: Path, wanted: Iterable[tuple[tuple[str, ...], str]]) -> DocumentErrors:
    """What a mapping does not offer, each at its place there or where it should stand."""
    document = read_document(mapping)

    def problem(place: tuple[str, ...], text: str) -> Problem:
        remedy = f"write {'.'.join(place)}"
        if place in document.marks:
            remedy = "it is mapped, but no list can be filtered by it (see filters and sift)"
        return document.problem(place, f"{text}: {remedy}", at_key=True)

    return DocumentErrors(problem(*each) for each in wanted)


def split_address(text: str) -> tuple[str, int]:
    """(host, port) of `host:port`, `[::1]:port` included; ValueError for anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError("must be an address such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _no_bare_port(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        port = value if 0 < value <= 65535 else 8080
        raise ValueError(f"must be an address such as 127.0.0.1:{port}")  # noqa: TRY004 - pydantic
    return value


def _address(text: str) -> str:
    split_address(text)
    return text


def split_networks(text: str) -> tuple[str, ...]:
    """The addresses and networks between commas; ValueError for what is neither."""
    found = tuple(each.strip() for each in text.split(",") if each.strip())
    for each in found:
        try:
            ip_network(each)
        except ValueError as error:
            host_bits = "has host bits set" in str(error)
            remedy = f"write {ip_network(each, strict=False)}" if host_bits else "such as 10.0.0.5"
            raise ValueError(
                f"{each} is no address or network{':' if host_bits else ''} {remedy}"
            ) from error
    return found


def _networks(text: str) -> str:
    return ", ".join(split_networks(text))


def _public_url(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme not in {"http", "https"} or not rest or set(rest) & set(" <>\"'\\?#\r\n\t"):
        raise ValueError("must be an address such as https://gateway.example.org, without /api/v1")
    if not text.isascii() or not text.isprintable():
        raise ValueError("must be written in ASCII")
    bare = text.rstrip("/")
    if bare.endswith("/api/v1"):
        raise ValueError("must not end in /api/v1: that is added")
    return bare


def _database(address: SecretStr) -> SecretStr:
    """A database address; ValueError for one of SQLite with a query, of which nothing is known."""
    text = address.get_secret_value()
    if text.startswith("sqlite") and "?" in text:
        raise ValueError("must end with the path; write %3F for a ? in it, and %25 for a %")
    return address


def shipped_policy() -> Path:
    """The policy that comes with the gateway."""
    return next((path for path in _SHIPPED_POLICIES if path.exists()), _SHIPPED_POLICIES[0])


Address = Annotated[str, BeforeValidator(_no_bare_port), AfterValidator(_address)]
Networks = Annotated[str, AfterValidator(_networks)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
Database = Annotated[SecretStr, AfterValidator(_database)]
Seconds = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]
Patience = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class BackendSettings(_Group):
    """The practice system."""

    adapter: str = Field(
        "sql", description="How to speak to it: sql, rest, or module:Class of your own adapter."
    )
    url: Database | None = Field(
        None,
        description="Its database, such as sqlite:////srv/practice/clinic.db, or (rest) its"
        " address, such as https://cloud.example.org/api.",
    )
    mapping: Path | None = Field(None, description="The mapping file.")
    user: SecretStr | None = Field(
        None, description="Who the gateway is to a practice system that asks (rest)."
    )
    password: SecretStr | None = Field(None, description="The password of that user.")
    token: SecretStr | None = Field(None, description="A key that such a system gave out instead.")
    secret: SecretStr | None = Field(
        None, description="Seals the public ids: 64 hexadecimal digits. Not with secret_file."
    )
    secret_file: Path | None = Field(
        None,
        description="A file with that secret, readable by its owner alone. Where neither is"
        " given, one is made in the state folder.",
    )
    timeout: Patience = Field(3.0, description="Seconds that one read may take.")
    booking_timeout: Patience = Field(10.0, description="Seconds that one booking may take.")
    in_flight: int = Field(
        20,
        ge=1,
        description="Calls of it that may be under way at once; bookings take at most half.",
    )
    queue: int = Field(
        100, ge=0, description="Calls that may wait for that, a second at most; more are 503."
    )
    breaker_failures: int = Field(
        5, ge=1, description="Calls in a row that fail before it is left alone, and calls are 503."
    )
    breaker_pause: Patience = Field(
        10.0, description="Seconds for which it is left alone, before one call tries it again."
    )

    @field_validator("secret")
    @classmethod
    def _hexadecimal(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            read_sealing_secret(secret.get_secret_value())
        return secret

    @model_validator(mode="after")
    def _one_secret(self) -> "BackendSettings":
        if self.secret is not None and self.secret_file is not None:
            raise ValueError("give secret or secret_file, not both")
        return self


# Types of appointment hardly ever change. What else may be remembered changes at the practice's
# own desk, so the clinic says for how long it may be told as it was.
_REMEMBERED = {APPOINTMENT_TYPE.name: 60.0}
# A free time may be taken at any moment.
_AT_MOST = {SLOT.name: 5.0}


class _Memory(_Group):
    entries: int = Field(10_000, ge=1, description="Answers that are remembered at most.")
    bytes: int = Field(
        16_777_216, ge=1, description="Bytes that all remembered answers take at most."
    )


def _remembered_for() -> dict[str, Any]:
    """A setting for each operation that reads: its type and what it says."""
    fields = {}
    for each in OPERATIONS:
        most = _AT_MOST.get(each.returns.name, 3600.0)
        seconds = Annotated[float, Field(ge=0, le=most, allow_inf_nan=False)]
        help_text = f"Seconds for which an answer to {each.id} is remembered, at most {most:g}."
        default = Field(_REMEMBERED.get(each.returns.name, 0.0), description=help_text)
        if not each.creates:
            fields[each.id] = (seconds, default)
    return fields


CacheSettings = create_model(
    "CacheSettings",
    __base__=_Memory,
    __doc__="What is remembered of the practice system's answers, as they are beneath the policy.",
    **_remembered_for(),
)


class Settings(_Group):
    """The gateway's settings; every path is absolute."""

    listen: Address = Field("0.0.0.0:8080", description="Where partners call.")
    operations_listen: Address = Field(
        "127.0.0.1:8081", description="Where /healthz, /readyz and /metrics are."
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
        description="Whether a changed policy that shows more applies at once, or waits for"
        " `policy approve`; in the file also `policy: {file: FILE, widening: approve}`.",
    )
    store: Database | None = Field(
        None, description="The database of keys and bookings; state/gateway.db by default."
    )
    limiter: str = Field("memory:", description="Where calls are counted; memory: for now.")
    workers: int = Field(1, description="Processes that serve; 1 for now.")
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
    cache: CacheSettings = Field(default_factory=CacheSettings)

    @field_validator("workers")
    @classmethod
    def _one_process(cls, workers: int) -> int:
        if workers != 1:
            raise ValueError("only 1 is possible so far: the gateway serves from one process")
        return workers

    @field_validator("limiter")
    @classmethod
    def _in_memory(cls, limiter: str) -> str:
        if limiter != "memory:":
            raise ValueError("only memory: is possible so far")
        return limiter

    @property
    def proxies(self) -> tuple[str, ...]:
        """The trusted proxies, one by one."""
        return split_networks(self.trusted_proxies)

    def public_url_at(self, port: int) -> str:
        """The public address, where partners are answered at that port."""
        scheme = "http" if self.tls_certificate is None else "https"
        return self.public_url or f"{scheme}://127.0.0.1:{port}"


GROUPS: Mapping[str, type[BaseModel]] = {"backend": BackendSettings, "cache": CacheSettings}


def read_sealing_secret(text: str) -> bytes:
    """The 32 bytes behind 64 hexadecimal digits; ValueError for any other text."""
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        secret = b""
    if len(secret) != 32:
        raise ValueError("must be 64 hexadecimal digits, such as `openssl rand -hex 32` prints")
    return secret


class ConfigurationErrors(DocumentErrors):
    """All that is wrong with a configuration; `settings` is what is left without that.

    `left_out` are the dotted names of the settings whose values are wrong.
    """

    def __init__(
        self, problems: Iterable[Problem], settings: Settings, left_out: Iterable[str] = ()
    ) -> None:
        super().__init__(problems)
        self.settings = settings
        self.left_out = frozenset(left_out)


def load_settings(config: Path | None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in that file, or in ./gateway.yaml where there is one, and the environment.

    ConfigurationErrors names everything that is wrong with either; DocumentErrors comes of a file
    that cannot be read at all.
    """
    config = _file(config)
    document, flaws = _read(config)
    if not isinstance(document.data, dict):
        text = "a configuration names its settings, such as listen: 0.0.0.0:8080"
        raise DocumentErrors([document.problem((), text)])
    problems: list[Problem] = [*flaws]
    try:
        check(document, Settings, strict=True)
    except DocumentErrors as error:
        problems += error.problems
    variables, strangers = _variables(os.environ if environ is None else environ)
    problems += strangers
    given = _nested(variables)
    problems += _environment_problems(given)
    folder = Path.cwd() if config is None else config.resolve().parent
    merged = _merged(document.data, given)
    left_out: list[str] = []
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        # what stands in one place alone has been said with that place
        problems = problems or [_said(each) for each in error.errors()]
        settings = Settings.model_validate(_without(merged, error))
        left_out = [_dotted(each) for each in error.errors()]
    if problems:
        raise ConfigurationErrors(problems, _located(settings, folder), left_out)
    return _located(settings, folder)


def sources(config: Path | None, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Where each setting's value comes from, by its dotted name: environment, file or default.

    Of a configuration that load_settings takes.
    """
    given, _ = _variables(os.environ if environ is None else environ)
    data = _read(_file(config))[0].data
    return {name: _source(name, given, data) for name, _ in names()}


def _source(name: str, given: Mapping[str, str], data: Mapping[str, Any]) -> str:
    group, _, inner = name.rpartition(".")
    if name in given:
        return "environment"
    return "file" if inner in (data.get(group, {}) if group else data) else "default"


def _file(config: Path | None) -> Path | None:
    return DEFAULT_FILE if config is None and DEFAULT_FILE.exists() else config


def _read(config: Path | None) -> tuple[Document, tuple[Problem, ...]]:
    """The file, and what is wrong with its keys; nothing where there is none."""
    nothing = Document("", b"", data={})
    document, flaws = forgiving(lambda: nothing if config is None else read_document(config))
    return _unfolded(document), flaws


def _unfolded(document: Document) -> Document:
    """With `policy: {file: ..., widening: ...}` as the settings that it stands for."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("policy"), dict):
        return document
    group, names = data.pop("policy"), {"file": "policy", "widening": "policy_widening"}
    for inner, value in group.items():
        name, place = names.get(inner, f"policy.{inner}"), ("policy", inner)
        if name in data:
            data[f"policy.{inner}"] = value  # said twice: this one is known by no name
            name = f"policy.{inner}"
        data[name] = value
        document.keys[name,] = document.keys[place]
        document.marks[name,] = document.marks[place]
    return document


def check_own_place(config: Path | None, environ: Mapping[str, str] | None = None) -> None:
    """StartRefused where nothing says where the state or the store is, but the defaults."""
    environ = os.environ if environ is None else environ
    if _file(config) is None and environ.keys().isdisjoint(_PLACES):
        raise StartRefused(
            f"nothing says where the keys are: there is no {DEFAULT_FILE} in {Path.cwd()}; name"
            f" the gateway's configuration with --config, or set {' or '.join(_PLACES)}"
        )


def _without(data: dict[str, Any], error: ValidationError) -> dict[str, Any]:
    """The data without the members that the error is about."""
    kept = {name: dict(each) if isinstance(each, dict) else each for name, each in data.items()}
    for each in error.errors():
        name, *inner = map(str, each["loc"])
        group = kept.get(name)
        if inner and isinstance(group, dict):
            group.pop(inner[0], None)
        else:
            kept.pop(name, None)
    return kept


def names() -> Iterator[tuple[str, str]]:
    """Each setting's dotted name and what it means."""
    for name, info in Settings.model_fields.items():
        if name in GROUPS:
            for inner, nested in GROUPS[name].model_fields.items():
                yield f"{name}.{inner}", nested.description or ""
        else:
            yield name, info.description or ""


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace(".", "_").upper()


def _variables(environ: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """The settings that the environment gives, by dotted name; what it gives that is none."""
    known = {variable(name): name for name, _ in names()}
    given, problems = {}, []
    for key, value in environ.items():
        if key in known and not value.strip():
            text = "is empty: unset it or give it a value"
            problems.append(Problem(f"environment variable {key}", 0, 0, text))
        elif key in known:
            given[known[key]] = value
        elif key.startswith(PREFIX) and not _of_a_service(f"{key}={value}"):
            text = f"no setting has that name{did_you_mean(key, known)}"
            problems.append(Problem(f"environment variable {key}", 0, 0, text))
    return given, problems


def _nested(given: Mapping[str, str]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in given.items():
        group, _, inner = name.rpartition(".")
        (data.setdefault(group, {}) if group else data)[inner] = value
    return data


def _environment_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        Settings.model_validate(given)
    except ValidationError as error:
        yield from map(_said, error.errors())


def _dotted(error: Any) -> str:
    return ".".join(str(part) for part in error["loc"])


def _said(error: Any) -> Problem:
    return Problem(f"environment variable {variable(_dotted(error))}", 0, 0, sentence(error))


def _merged(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(data) | dict(given)
    for group in GROUPS:
        if group in given and isinstance(data.get(group), dict):
            merged[group] = {**data[group], **given[group]}
    return merged


def _located(settings: Settings, folder: Path) -> Settings:
    """With every path absolute."""
    backend = settings.backend
    return settings.model_copy(
        update={
            "state": (folder / settings.state).absolute(),
            "store": settings.store and _absolute_url(settings.store, folder),
            "policy": (folder / settings.policy).absolute(),
            "tls_certificate": settings.tls_certificate
            and (folder / settings.tls_certificate).absolute(),
            "tls_key": settings.tls_key and (folder / settings.tls_key).absolute(),
            "backend": backend.model_copy(
                update={
                    "url": backend.url and _absolute_url(backend.url, folder),
                    "mapping": backend.mapping and (folder / backend.mapping).absolute(),
                    "secret_file": backend.secret_file
                    and (folder / backend.secret_file).absolute(),
                }
            ),
        }
    )


def _absolute_url(address: SecretStr, folder: Path) -> SecretStr:
    """A database address; where it names a file relatively, from the configuration's folder."""
    scheme, separator, path = address.get_secret_value().partition(":///")
    if not separator or not scheme.startswith("sqlite") or path.startswith(("/", ":memory:")):
        return address
    return SecretStr(f"{scheme}:///{quote(str(folder.absolute()))}/{path}")
