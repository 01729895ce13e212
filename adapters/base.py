"""What the gateway asks of a practice system, and what may go wrong: the shape of every adapter.

An adapter speaks the gateway's words (resources, fields, UUIDs, UTC) on one side and the practice
system's on the other. It knows nothing of keys, levels or policies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as member
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from adapters.documents.problems import Problem

# One record in its JSON form: ids as lower-case UUIDs, times as `2026-03-01T09:00:00Z`, days as
# `2026-03-01`, money as `"45.00"`, lists of objects as lists of dicts. What has no value is None.
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on fields of the record: `match` is `equals`, `since` or `search`.

    The value is in its JSON form (`equals`), an aware datetime (`since`, inclusive) or the
    caller's words (`search`, over all `fields` together).
    """

    match: str
    fields: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Condition:
    """What a field of the record must hold for the record to exist at all; a null never does.

    `test` is `in` or `not in` (the value: a tuple of values in their JSON form), or one of `min`,
    `max` (both inclusive), `above` and `below` (the value: an aware datetime, a datetime.date, or
    a Decimal for numbers, amounts and percentages). A record is judged by the value that it shows,
    exactly: by case, accents and blanks too.
    """

    field: str
    test: str
    value: Any


# Conditions that hold all together; none at all lets every record be.
Only = tuple[Condition, ...]

# The longest `after` of a page, in characters: it goes through the partner, in an address.
LONGEST_AFTER = 2_000

# Appointments that one look is about at most, and how many of them have the time of one read.
WATCHED_AT_ONCE, WATCHED_IN_A_READ = 50, 8


class Query(Struct, frozen=True, kw_only=True):
    """A read: of one record by its public id, or of a page of records.

    Records outside `only` do not exist: neither in pages, nor alone, nor in `skipped`; what is run
    is what is run for an id that names nothing. `within` is a (resource, id) that must exist first,
    among the records that `within_only` lets be. `values` are those parameters that are no filters
    (free slots: vetId, date as datetime.date, appointmentTypeId). `after` is the `after` of the
    page before. `now` is the moment that counts as the present.
    """

    resource: str
    now: datetime
    id: str = ""
    filters: tuple[Filter, ...] = ()
    only: Only = ()
    within: tuple[str, str] | None = None
    within_only: Only = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    limit: int = 50
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Records in a stable order; `after` is None on the last page.

    `after` is the adapter's own text (ASCII, at most LONGEST_AFTER characters); the gateway
    encrypts it on its way through the partner. `skipped` counts rows that had no usable id; rows
    whose key is blank are all counted with the first page, as they have no place among the others.
    """

    records: list[Record]
    after: str | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An appointment that is to be made; ids are public, times are aware and in UTC.

    `reference` (up to 16 letters and digits, or none) names the attempt: a practice system that
    keeps it can tell this booking from every other. `only` says which records of a resource exist
    for who books (`clients`, `patients`): another one is NotFound, as one that is not there.
    """

    client_id: str
    patient_id: str
    vet_id: str
    scheduled_at: datetime
    appointment_type_id: str | None = None
    reason: str | None = None
    is_urgent: bool = False
    now: datetime
    reference: str = ""
    only: Mapping[str, Only] = member(default_factory=dict)

    @property
    def asked(self) -> dict[str, Any]:
        """What the appointment is to be, by the names of its fields."""
        return {
            "clientId": self.client_id,
            "patientId": self.patient_id,
            "vetId": self.vet_id,
            "appointmentTypeId": self.appointment_type_id,
            "scheduledAt": self.scheduled_at,
            "reason": self.reason,
            "isUrgent": self.is_urgent,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What became of booked appointments, by public id.

    `overwritten` are those that still block, and over which something else was written since;
    `unreadable` those that are there and cannot be read, so that nobody can tell. One that the
    desk has removed is neither.
    """

    overwritten: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()


class Adapter(Protocol):
    """A practice system as the gateway sees it.

    `resources` are the resources that it answers; `filterable` says for each which fields it can
    filter by. Every verb raises AdapterErrors and nothing else that the caller should expect.

    `excludes` is whether bookings and look-ups for one vet, whichever process asks for them, wait
    for one another in the practice system itself. Where they do not, the gateway lets only one
    booking at a time through for a vet and a time, and believes a look-up that finds nothing of
    another process's attempt only when that has ended `settle` seconds ago.

    `default_length` is how long an appointment without a type takes its vet; None where that is not
    known beforehand.
    """

    @property
    def resources(self) -> frozenset[str]: ...

    @property
    def filterable(self) -> Mapping[str, frozenset[str]]: ...

    @property
    def excludes(self) -> bool: ...

    @property
    def settle(self) -> float: ...

    @property
    def default_length(self) -> timedelta | None: ...

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        """Why its queries cannot leave out what these conditions do; none where they can.

        Each at the field's place in the mapping, or where it should stand. Asked at the start and
        whenever the clinic's policy changes, before anything is read: it asks nothing of the
        practice system. No query has conditions that it refuses.
        """

    async def read_one(self, query: Query) -> Record:
        """The record with `query.id`; NotFound where there is none."""

    async def read_many(self, query: Query) -> Page:
        """A page of records; for the resource `slots` all free times of the day."""

    async def create_appointment(self, draft: Draft) -> Record:
        """Book; the whole new record.

        SlotTaken, NotFound, PatientDeceased, Rejected, or OutcomeUnknown.
        """

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """The appointments that an attempt made at `since` may have left behind, oldest first.

        None at all means that it certainly left nothing.
        """

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        """What became of these appointments, by public id.

        A minute after every look all coming ones are asked about again, WATCHED_AT_ONCE in a call.
        It may take the time of one read for every WATCHED_IN_A_READ of them; what it costs should
        grow with the vets and days that they are of, and not with each.
        """

    async def check(self) -> Sequence[Problem]:
        """Whether the practice system has all that is asked of it; DocumentErrors with what not.

        Returned are warnings: what only the records that were looked at say. They keep no gateway
        from starting, since other records may differ.
        """

    async def ping(self) -> None:
        """Whether the practice system answers at all; raises where it does not."""

    async def aclose(self) -> None:
        """Let go of every connection."""


class IdTable(Protocol):
    """Keeps which key of the practice system an id stands for; keys are texts of JSON."""

    async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keep public id -> key; those that are known already are left as they are."""

    async def respell(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keep public id -> key, in the place of what was kept."""

    async def find(self, resource: str, public_ids: Sequence[str]) -> Mapping[str, str]:
        """Public id -> key, of those that are known."""


class BookedTimes(Protocol):
    """Keeps when appointments begin and end that the practice system's clock cannot tell.

    In the night in which clocks go back a clock on the wall shows an hour twice.
    """

    async def remember(self, appointment: str, begins: datetime, ends: datetime) -> None:
        """Keep the time of a booked appointment, by public id; what is known already stays."""

    async def find(self, appointments: Sequence[str]) -> Mapping[str, tuple[datetime, datetime]]:
        """When they begin and end, by public id, of those that are known."""


class AdapterError(Exception):
    """What an adapter may raise. The text is for the clinic's log, never for a partner."""


class NotFound(AdapterError):
    """The record, or one that the request names, does not exist."""


class SlotTaken(AdapterError):
    """The wanted time is not one of the free slots."""


class Rejected(AdapterError):
    """The practice system refused the booking for a reason other than the time."""


class PatientDeceased(AdapterError):
    """The draft names an animal that the practice system has as deceased."""


class BackendUnavailable(AdapterError):
    """The practice system cannot be reached, or is too busy; nothing was done.

    `retry_after` are the seconds before which it is not asked again, 0 where nothing keeps it from
    being asked at once.
    """

    retry_after = 0.0


class LeftAlone(BackendUnavailable):
    """It failed too often in a row, so that it was not asked."""

    def __init__(self, text: str, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class BackendTimeout(AdapterError):
    """A read did not end in time."""


class BackendNonsense(AdapterError):
    """The practice system's answer can't be used."""


class OutcomeUnknown(AdapterError):
    """A booking was sent and its fate is not known."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A value or row of the practice system that could not be used; it carries no value.

    `kind` is `unknown code`, `unreadable`, `no id` or `doubled row`; `record` the public id, where
    there is one.
    """

    kind: str
    resource: str
    field: str
    record: str


Report = Callable[[Trouble], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShape:
    """What a mapping must know of a field: its format's name, its allowed values, its target."""

    format: str
    values: tuple[str, ...] = ()
    refers: str | None = None
    many: bool = False


# resource name -> field path (`phone`, `lines[].total`) -> shape
Shapes = Mapping[str, Mapping[str, FieldShape]]


def inside(shapes: Mapping[str, FieldShape], prefix: str = "") -> dict[str, FieldShape]:
    """Returns the fields of a record, or with a prefix such as `lines[].` of a list inside it."""
    bare = {path.removeprefix(prefix): path for path in shapes if path.startswith(prefix)}
    return {name: shapes[path] for name, path in bare.items() if "[]" not in name}


def lists_in(shapes: Mapping[str, FieldShape]) -> tuple[str, ...]:
    """Returns the names of the lists inside a record."""
    return tuple(dict.fromkeys(path.split("[].")[0] for path in shapes if "[]." in path))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterOptions:
    """All that an adapter is made of.

    `secret` (32 bytes) seals ids. `report` is called for each trouble. `timeout` bounds one read
    in seconds, `booking_timeout` one booking. `ids` keeps what hashed ids stand for; without it
    none leads back to its key. `times` keeps when appointments are whose hour comes twice; without
    it they are read as in the first of the two. `credentials` are what was given of `user`,
    `password` and `token`, for a practice system that asks who we are.
    """

    url: str = member(repr=False)
    mapping: Path | None
    secret: bytes = member(repr=False)
    shapes: Shapes
    report: Report
    timeout: float = 3.0
    booking_timeout: float = 10.0
    ids: IdTable | None = None
    times: BookedTimes | None = None
    credentials: Mapping[str, str] = member(default_factory=dict, repr=False)
