"""Declares what an operation is, and the fourteen operations, each once.

Permissions, routes, validation rules and rows of the README are derived from here.
"""

from collections.abc import Iterator, Set
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any, Literal

from gateway.contract import resources
from gateway.contract.access import Permission
from gateway.contract.fields import (
    BOOLEAN,
    DAY,
    INSTANT,
    INTEGER,
    TEXT,
    UUID,
    Field,
    Format,
    Resource,
)

PAGE_DEFAULT = 50
PAGE_LARGEST = 200


class Match(StrEnum):
    """How a filter compares a field with the caller's value."""

    EQUALS = "equals"
    SINCE = "since"
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of the path or the query.

    With `match` and `fields` it is a filter on these fields of the answer's resource. `within`
    names the resource in which the id must exist before anything is listed. `to_come` marks a time
    that the clinic's booking window bounds.
    """

    name: str
    format: Format
    summary: str
    _: KW_ONLY
    where: Literal["path", "query"] = "query"
    required: bool = False
    values: tuple[str, ...] = ()
    match: Match | None = None
    fields: tuple[str, ...] = ()
    within: str | None = None
    shortest: int | None = None
    longest: int | None = None
    least: int | None = None
    most: int | None = None
    to_come: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One call that a partner can make.

    `many` answers a JSON array. So does `paged`, which takes `limit` and `cursor`. `only` are fixed
    conditions as (field, value). `errors` are the statuses beyond those that every operation has.
    `notes` is what a caller must know that no other member says.
    """

    id: str
    summary: str
    path: str
    permission: Permission
    returns: Resource
    _: KW_ONLY
    method: Literal["GET", "POST"] = "GET"
    many: bool = False
    paged: bool = False
    params: tuple[Param, ...] = ()
    only: tuple[tuple[str, bool], ...] = ()
    body: tuple[Field, ...] = ()
    status: int = 200
    errors: tuple[int, ...] = ()
    notes: str = ""

    # whether the call writes into the practice system
    creates: bool = field(init=False)

    def __post_init__(self) -> None:
        if self.permission not in frozenset(Permission):
            raise ValueError(f"{self.id} has no permission: anybody with a key could call it")
        object.__setattr__(self, "creates", self.method == "POST")
        object.__setattr__(self, "many", self.many or self.paged)

    @property
    def query(self) -> tuple[Param, ...]:
        """The parameters of the query, those of paging included."""
        own = tuple(param for param in self.params if param.where == "query")
        return (*own, LIMIT, CURSOR) if self.paged else own


LIMIT = Param(
    "limit",
    INTEGER,
    f"Records a page, {PAGE_DEFAULT} where it is absent; fewer where they are over 1 MiB.",
    least=1,
    most=PAGE_LARGEST,
)
CURSOR = Param(
    "cursor",
    TEXT,
    'Where the next page starts: taken from the `Link` header with `rel="next"`.',
    longest=2_800,
    shortest=1,
)


def _search_in(*fields: str) -> Param:
    return Param(
        "search",
        TEXT,
        f"Words that {' and '.join(fields)} must hold: each the beginning of a word, whatever the"
        " case and, where the practice system can, the accents.",
        match=Match.SEARCH,
        fields=fields,
        shortest=2,
        longest=100,
    )


def _equals(name: str, format_: Format, summary: str, **more: Any) -> Param:
    return Param(name, format_, summary, match=Match.EQUALS, fields=(name,), **more)


UPDATED_SINCE = Param(
    "updatedSince",
    INSTANT,
    "Only records changed at this moment or later.",
    match=Match.SINCE,
    fields=("updatedAt",),
)
CATEGORY = _equals("category", TEXT, "Only items of this category.", shortest=1, longest=100)


def _one(id_: str, path: str, permission: Permission, returns: Resource, noun: str) -> Operation:
    """Returns the operation that reads the record named by the end of the path."""
    name = path.rpartition("{")[2].rstrip("}")
    own = Param(name, UUID, f"Identifier of the {noun}.", where="path", required=True)
    summary = f"One {noun}"
    return Operation(id_, summary, path, permission, returns, params=(own,), errors=(404,))


BASE_PATH = "/api/v1"

CREATE_APPOINTMENT_BODY = (
    Field("clientId", UUID, "Identifier of the owner.", required=True),
    Field("patientId", UUID, "Identifier of the animal.", required=True),
    Field("vetId", UUID, "Desired veterinarian.", required=True),
    Field(
        "scheduledAt",
        INSTANT,
        "Desired start: the startTime of one of the available slots.",
        required=True,
        to_come=True,
    ),
    Field(
        "appointmentTypeId",
        UUID,
        "From the list of appointment types; without it the clinic's default duration.",
    ),
    Field(
        "reason",
        TEXT,
        "Reason for the visit, plain text: newlines, but no other control characters, and none"
        " that are not seen or change the direction of writing (zero-width characters, such as"
        " the joiner in composed emoji; U+2028, U+2029; bidirectional controls).",
        longest=500,
        example="Yearly vaccination",
    ),
    Field("isUrgent", BOOLEAN, "Whether it is urgent.", default=False),
)

OPERATIONS = (
    Operation(
        "create_appointment",
        "Book an appointment",
        "/appointments",
        Permission.APPOINTMENT_CREATE,
        resources.APPOINTMENT,
        method="POST",
        body=CREATE_APPOINTMENT_BODY,
        status=201,
        errors=(404, 408, 409, 413, 415),
        notes=(
            "A 404 says that one of the ids names nothing, or that the animal is not this"
            " client's. A 409 says that the time is not one of the available slots: taken, off the"
            " clinic's grid, outside working hours, or with a veterinarian who is absent. While"
            " nobody knows whether another booking got that time, it is 503. For an animal that has"
            " died it is 400."
        ),
    ),
    Operation(
        "list_available_slots",
        "Free times of a veterinarian on a day",
        "/appointments/available-slots",
        Permission.APPOINTMENT_READ,
        resources.SLOT,
        many=True,
        params=(
            Param("vetId", UUID, "The veterinarian.", required=True),
            Param("date", DAY, "The clinic's local day.", required=True, to_come=True),
            Param(
                "appointmentTypeId",
                UUID,
                "The type of visit; without it the clinic's default duration.",
            ),
        ),
        errors=(404,),
        notes="No operation lists the veterinarians: the clinic hands their ids over.",
    ),
    Operation(
        "list_appointment_types",
        "Types of appointment",
        "/appointments/types",
        Permission.APPOINTMENT_READ,
        resources.APPOINTMENT_TYPE,
        many=True,
    ),
    _one(
        "get_appointment",
        "/appointments/{id}",
        Permission.APPOINTMENT_READ,
        resources.APPOINTMENT,
        "appointment",
    ),
    Operation(
        "list_clients",
        "Clients of the clinic",
        "/clients",
        Permission.CLIENT_READ,
        resources.CLIENT,
        paged=True,
        params=(_search_in("firstName", "lastName"), UPDATED_SINCE),
    ),
    _one("get_client", "/clients/{id}", Permission.CLIENT_READ, resources.CLIENT, "client"),
    Operation(
        "list_patients",
        "Patients of the clinic",
        "/patients",
        Permission.PATIENT_READ,
        resources.PATIENT,
        paged=True,
        params=(
            _equals("clientId", UUID, "Only animals of this owner."),
            _search_in("name"),
            UPDATED_SINCE,
        ),
    ),
    _one("get_patient", "/patients/{id}", Permission.PATIENT_READ, resources.PATIENT, "patient"),
    _one(
        "get_consultation",
        "/consultations/{id}",
        Permission.CONSULTATION_READ,
        resources.CONSULTATION,
        "consultation",
    ),
    _one("get_invoice", "/invoices/{id}", Permission.INVOICE_READ, resources.INVOICE, "invoice"),
    Operation(
        "list_client_invoices",
        "Invoices of a client",
        "/invoices/client/{clientId}",
        Permission.INVOICE_READ,
        resources.INVOICE,
        paged=True,
        params=(
            _equals(
                "clientId",
                UUID,
                "The client whose invoices are returned.",
                where="path",
                required=True,
                within="clients",
            ),
            _equals(
                "status",
                TEXT,
                "Only invoices in this state.",
                values=resources.INVOICE.at("status").values,
            ),
        ),
        errors=(404,),
    ),
    Operation(
        "list_stock",
        "Items in stock",
        "/stock",
        Permission.STOCK_READ,
        resources.STOCK_ITEM,
        paged=True,
        params=(CATEGORY, _search_in("name")),
    ),
    _one(
        "get_stock_item",
        "/stock/{stockId}",
        Permission.STOCK_READ,
        resources.STOCK_ITEM,
        "item in stock",
    ),
    Operation(
        "list_low_stock",
        "Items that are running low",
        "/stock/low",
        Permission.STOCK_READ,
        resources.STOCK_ITEM,
        paged=True,
        params=(CATEGORY, _search_in("name")),
        only=(("isLow", True),),
    ),
)


def offered(have: Set[str], *, books: bool) -> Iterator[Operation]:
    """Yields the operations that a practice system can answer, which has these resources."""
    for operation in OPERATIONS:
        needed = {operation.returns.name, *(param.within for param in operation.params)} - {None}
        if needed <= have and (books or not operation.creates):
            yield operation


def left_out(have: Set[str], *, books: bool) -> list[str]:
    """Returns what a practice system has nothing of, in the words of a mapping."""
    names = [known.name for known in resources.RESOURCES if known.name not in have]
    parts = ["diary" if name == "slots" else name for name in names]
    return parts if books else [*parts, "booking"]
