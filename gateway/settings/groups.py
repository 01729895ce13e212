"""The settings of each part: the practice system, the cache, traces, the audit."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    create_model,
    field_validator,
    model_validator,
)

from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import APPOINTMENT_TYPE, SLOT
from gateway.settings.kinds import Counting, Database, Patience, read_sealing_secret


class Group(BaseModel):
    """Settings that belong together: none is unknown, none is changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class BackendSettings(Group):
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


class BookingSettings(Group):
    """What partners may book."""

    horizon: int = Field(
        365,
        ge=1,
        le=36_500,
        description="Days ahead, by the clinic's calendar, for which partners see free times and"
        " may book.",
    )
    lead_time: int = Field(
        0,
        ge=0,
        le=525_600,
        description="Minutes that must lie between a booking and its start; free times that are"
        " nearer are not offered.",
    )


class AuditSettings(Group):
    """The audit: who was shown what."""

    folder: Path | None = Field(
        None,
        description="The folder of the day files; audit in the state folder by default. Each"
        " machine needs its own. Where you change it, move the folder along: without it the start"
        " is refused.",
    )
    key_file: Path | None = Field(
        None,
        description="A file with the HMAC keys that seal the lines, 64 hexadecimal digits each, the"
        " newest first, readable by its owner alone. Where it is not given, one is made in the"
        " state folder.",
    )
    keep_days: int = Field(
        400, ge=1, description="Days after which what was written on a day is dropped."
    )


# Types of appointment hardly ever change. What else may be remembered changes at the practice's
# own desk, so the clinic says for how long it may be told as it was.
_REMEMBERED = {APPOINTMENT_TYPE.name: 60.0}
# A free time may be taken at any moment.
_AT_MOST = {SLOT.name: 5.0}


class _Memory(Group):
    url: Counting = Field(
        SecretStr("memory:"),
        description="Where it is remembered: memory:, or for several processes and machines"
        " together redis://user:password@host:6379.",
    )
    entries: int = Field(
        10_000, ge=1, description="Answers that are remembered in memory: at most."
    )
    bytes: int = Field(
        16_777_216, ge=1, description="Bytes that all answers in memory: take at most."
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


def _collector(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme not in {"http", "https"} or not rest or set(rest) & set(" <>\"'\\?#@\r\n\t"):
        raise ValueError("must be a collector's address, such as http://127.0.0.1:4318")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}/{path.rstrip('/') or 'v1/traces'}"


class TracingSettings(Group):
    """Where traces go."""

    endpoint: Annotated[str, AfterValidator(_collector)] | None = Field(
        None,
        description="A collector of OpenTelemetry that takes OTLP over HTTP, such as"
        " http://127.0.0.1:4318; without it there are no traces. It needs the extra `otel`.",
    )
    share: float = Field(
        1.0,
        ge=0,
        le=1,
        description="The share of the traces that is kept, from 0 to 1, whatever partners ask.",
    )
