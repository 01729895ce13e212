"""The interface of every adapter: what the gateway asks of a practice system, and what may fail.

An adapter speaks the gateway's words (resources, fields, UUIDs, UTC) on one side and the practice
system's on the other. It knows nothing of keys, levels or policies.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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


class Formed(list[Any]):
    """Records that are known to be in the form of the contract, value by value.

    `form` has the paths of what each of them holds, in the order of the contract. Nobody changes
    them: what is changed is put into a plain list.
    """

    __slots__ = ("form",)

    def __init__(self, records: Iterable[Any], form: tuple[str, ...]) -> None:
        super().__init__(records)
        self.form = form


class FormedRecord(Record):
    """One such record."""

    __slots__ = ("form",)

    def __init__(self, record: Record, form: tuple[str, ...]) -> None:
        super().__init__(record)
        self.form = form


# The longest `after` of a page, in characters: it passes through the partner, in an address.
LONGEST_AFTER = 2_000
# Appointments in one look at most, and how many of them may take the time of one read.
WATCHED_AT_ONCE, WATCHED_IN_A_READ = 50, 8


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on fields of the record: `match` is `equals`, `since` or `search`.

    The value is in its JSON form (`equals`), an aware datetime (`since`, inclusive) or the caller's
    words (`search`, over all `fields` together).
    """

    match: str
    fields: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Condition:
    """What a field must hold for the record to exist at all; null never does.

    `test` is `in` or `not in` (the value: a tuple of values in their JSON form), or one of `min`,
    `max` (both inclusive), `above` and `below` (the value: an aware datetime, a datetime.date, or a
    Decimal for numbers, amounts and percentages). The value that the record shows is compared
    exactly, with case, accents and blanks.
    """

    field: str
    test: str
    value: Any


# Conditions that must all hold; with none every record exists.
Only = tuple[Condition, ...]


class Query(Struct, frozen=True, kw_only=True):
    """A read of one record by its public id, or of a page of records.

    Records outside `only` do not exist: they are in no page, are not found by their ids, and are
    not counted in `skipped`. Reading one runs the same statements as an id that names nothing.
    `within` is a (resource, id) that must exist first, among the records that meet `within_only`.
    `values` are the parameters that are no filters (free slots: vetId, date as datetime.date,
    appointmentTypeId). `after` is the `after` of the page before. `now` is the moment that counts
    as the present. `fields` names what the asker looks at, such as `phone` or `lines[].total`, or
    is None for everything; what it does not name may be left out, but for the `id`.
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
    fields: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Records in a stable order; `after` is None on the last page.

    `after` is the adapter's own text (ASCII, at most LONGEST_AFTER characters), which the gateway
    encrypts for its way through the partner. `skipped` counts rows without a usable id. Rows with a
    blank key have no place in the order, and are all counted with the first page.
    """

    records: list[Record]
    after: str | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An appointment that is to be made; ids are public, times are aware and in UTC.

    `reference` (up to 16 letters and digits, or none) names the attempt: a practice system that
    keeps it can tell this booking from every other. `only` says which `clients` and `patients`
    exist for the partner who books; any other is NotFound.
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
        """The wanted values, by the names of the appointment's fields."""
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

    `overwritten` are those that still block, and over which something else has been written.
    `unreadable` are those that are there and cannot be read. One that the desk has removed is
    neither.
    """

    overwritten: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()


class Adapter(Protocol):
    """A practice system as the gateway sees it.

    `resources` are the resources that it answers, free times (`slots`) among them; `filterable`
    says by which fields it can filter each of them, and `books` whether it makes appointments. What
    it does not answer, the gateway does not offer. Every method raises AdapterErrors and nothing
    else that a caller should expect.

    `excludes` is whether bookings and look-ups for one vet, from all processes, wait for one
    another in the practice system itself. Where they do not, the gateway lets only one booking at a
    time through for a vet and a time. It then believes a look-up that finds nothing of another
    process's attempt only once that has ended `settle` seconds ago.

    `default_length` is how long an appointment without a type takes its vet; None where that is not
    known beforehand.
    """

    @property
    def resources(self) -> frozenset[str]: ...

    @property
    def filterable(self) -> Mapping[str, frozenset[str]]: ...

    @property
    def books(self) -> bool: ...

    @property
    def excludes(self) -> bool: ...

    @property
    def settle(self) -> float: ...

    @property
    def default_length(self) -> timedelta | None: ...

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        """Returns why queries cannot leave out what these conditions do; none where they can.

        Each problem is at the field's place in the mapping, or where it should stand. This is asked
        at the start and whenever the policy changes, and asks nothing of the practice system. No
        query has conditions that it refuses.
        """

    async def read_one(self, query: Query) -> Record:
        """Returns the record with `query.id`. Raises NotFound where there is none."""

    async def read_many(self, query: Query) -> Page:
        """Returns a page of records; for the resource `slots` all free times of the day."""

    async def create_appointment(self, draft: Draft) -> Record:
        """Books, and returns the whole new record.

        Raises SlotTaken, NotFound, PatientDeceased, Rejected or OutcomeUnknown.
        """

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """Returns the appointments that an attempt made at `since` may have left, oldest first.

        An empty answer means that it certainly left nothing.
        """

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        """Returns what became of these appointments, by public id.

        A minute after every look it is asked about all coming ones again, WATCHED_AT_ONCE in a
        call. It may take the time of one read for every WATCHED_IN_A_READ of them. Its cost should
        grow with their vets and days, and not with each appointment.
        """

    async def check(self) -> Sequence[Problem]:
        """Returns warnings; raises DocumentErrors with what the practice system lacks.

        Warnings are what only the records that were looked at say. They keep no gateway from
        starting, since other records may differ.
        """

    async def ping(self) -> None:
        """Raises where the practice system does not answer at all."""

    async def aclose(self) -> None:
        """Closes every connection."""


class IdTable(Protocol):
    """A table of which key of the practice system an id stands for; keys are texts of JSON."""

    async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keeps public id -> key; ids that are known already are left as they are."""

    async def respell(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keeps public id -> key, in the place of what was kept."""

    async def find(self, resource: str, public_ids: Sequence[str]) -> Mapping[str, str]:
        """Returns public id -> key, of those that are known."""

    async def announce(self, resource: str) -> None:
        """Tells all processes that ids of the resource are about to be kept, until all know."""

    async def may_hold(self, resource: str) -> bool:
        """Returns whether any may be kept; False is certain for a resource that is announced."""


class BookedTimes(Protocol):
    """A table of when appointments begin and end that the practice system's clock cannot tell.

    In the night in which clocks go back, a wall clock shows one hour twice.
    """

    async def remember(self, appointment: str, begins: datetime, ends: datetime) -> None:
        """Keeps the time of a booked appointment, by public id; a known one is left as it is."""

    async def find(self, appointments: Sequence[str]) -> Mapping[str, tuple[datetime, datetime]]:
        """Returns when they begin and end, by public id, of those that are known."""


class AdapterError(Exception):
    """What an adapter may raise. The text is for the clinic's log, never for a partner."""


class NotFound(AdapterError):
    """The record, or one that the request names, does not exist."""


class SlotTaken(AdapterError):
    """The time is not one of the free slots."""


class Rejected(AdapterError):
    """The practice system refused the booking for a reason other than the time."""


class PatientDeceased(AdapterError):
    """The draft names an animal that the practice system has as deceased."""


class BackendUnavailable(AdapterError):
    """The practice system cannot be reached, or is too busy; nothing was done.

    `retry_after` is the seconds for which it will not be asked again; 0 where it may be asked at
    once.
    """

    retry_after = 0.0


class LeftAlone(BackendUnavailable):
    """The practice system failed too often in a row, and was not asked."""

    def __init__(self, text: str, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class BackendTimeout(AdapterError):
    """A read did not end in time."""


class BackendNonsense(AdapterError):
    """The practice system's answer cannot be used."""


class OutcomeUnknown(AdapterError):
    """A booking was sent, and its outcome is not known."""


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
class CopyNews:
    """The files of a practice system could not be copied anew, or, without `why`, can be again.

    `age` is that of the copy that serves, in seconds; None where there is none.
    """

    source: str
    age: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRules:
    """How an adapter keeps a copy of files that it cannot ask.

    The copy lies in `folder`; without one, it is removed with the adapter. It is compared with the
    files every `refresh` seconds, and no longer serves once it was last found to be as they are
    more than `stale_after` seconds ago. A call waits `waits` seconds for the first copy, or until
    it is made. `heard` is told, on the event loop, when copying begins to fail, and when it does so
    no more. `watched` is given what tells how many seconds ago the copy was last as the files are.
    """

    folder: Path | None = None
    refresh: float = 60.0
    stale_after: float = 3600.0
    waits: float | None = None
    heard: Callable[[CopyNews], None] = lambda news: None
    watched: Callable[[Callable[[], float]], None] = lambda age: None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterOptions:
    """All that an adapter is made of.

    `secret` (32 bytes) seals ids. `report` is called for each trouble. `timeout` bounds one read,
    and `booking_timeout` one booking, in seconds. `ids` keeps what hashed ids stand for; without it
    none leads back to its key. `times` keeps when appointments are in an hour that comes twice;
    without it they are read as in the first of the two. `credentials` are those of `user`,
    `password` and `token` that were given, for a practice system that asks for them. The gateway
    has at most `in_flight` calls under way at once, and the adapter is to have no more connections
    than these need; what one call asks at once counts too. `copy` is for an adapter that reads a
    copy of files.
    """

    url: str = member(repr=False)
    mapping: Path | None
    secret: bytes = member(repr=False)
    shapes: Shapes
    report: Report
    timeout: float = 3.0
    booking_timeout: float = 10.0
    in_flight: int = 20
    ids: IdTable | None = None
    times: BookedTimes | None = None
    credentials: Mapping[str, str] = member(default_factory=dict, repr=False)
    copy: CopyRules = member(default_factory=CopyRules)
