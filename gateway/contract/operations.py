"""The fourteen operations, each declared once, and what an operation is.

A permission, a route, a validation rule, a row in the README: all of them are read off here.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of the path or the query.

    With `match` and `fields` it is a filter on these fields of the answer's resource. `within`
    names the resource in which the id must exist before anything is listed. `to_come` marks a time
    that the clinic's booking window bounds.
    """

    name: str
    summary: str
    format: Format = TEXT
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call that a partner can make.

    `many` answers a JSON array; `paged` arrays take `limit` and `cursor`. `only` are fixed
    conditions as (field, value). `errors` are the statuses beyond those that every operation has.
    `notes` is what a caller must know that no other member says.
    """

    id: str
    summary: str
    path: str
    permission: Permission
    returns: Resource
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

    @property
    def path_params(self) -> tuple[Param, ...]:
        return tuple(param for param in self.params if param.where == "path")

    @property
    def query(self) -> tuple[Param, ...]:
        """The parameters of the query, those of paging included."""
        own = tuple(param for param in self.params if param.where == "query")
        return (*own, LIMIT, CURSOR) if self.paged else own


LIMIT = Param(
    name="limit",
    summary=f"Records a page, {PAGE_DEFAULT} where it is absent; fewer where they are over 1 MiB.",
    format=INTEGER,
    least=1,
    most=PAGE_LARGEST,
)
CURSOR = Param(
    name="cursor",
    summary='Where the next page starts: taken from the `Link` header with `rel="next"`.',
    longest=2_800,
    shortest=1,
)


def _id_in_path(name: str, summary: str) -> tuple[Param, ...]:
    return (Param(name=name, summary=summary, format=UUID, where="path", required=True),)


def _search_in(*fields: str) -> Param:
    return Param(
        name="search",
        summary=(
            f"Words that {' and '.join(fields)} must hold: each the beginning of a word,"
            " whatever the case and, where the practice system can, the accents."
        ),
        match=Match.SEARCH,
        fields=fields,
        shortest=2,
        longest=100,
    )


UPDATED_SINCE = Param(
    name="updatedSince",
    summary="Only records changed at this moment or later.",
    format=INSTANT,
    match=Match.SINCE,
    fields=("updatedAt",),
)
CATEGORY = Param(
    name="category",
    summary="Only items of this category.",
    match=Match.EQUALS,
    fields=("category",),
    shortest=1,
    longest=100,
)


BASE_PATH = "/api/v1"

CREATE_APPOINTMENT_BODY = (
    Field(name="clientId", format=UUID, required=True, summary="Identifier of the owner."),
    Field(name="patientId", format=UUID, required=True, summary="Identifier of the animal."),
    Field(name="vetId", format=UUID, required=True, summary="Desired veterinarian."),
    Field(
        name="scheduledAt",
        format=INSTANT,
        required=True,
        summary="Desired start: the startTime of one of the available slots.",
        to_come=True,
    ),
    Field(
        name="appointmentTypeId",
        format=UUID,
        summary="From the list of appointment types; without it the clinic's default duration.",
    ),
    Field(
        name="reason",
        longest=500,
        summary=(
            "Reason for the visit, plain text: newlines, but no other control characters, and none"
            " that are not seen or change the direction of writing (zero-width characters, such as"
            " the joiner in composed emoji; U+2028, U+2029; bidirectional controls)."
        ),
        example="Yearly vaccination",
    ),
    Field(name="isUrgent", format=BOOLEAN, default=False, summary="Whether it is urgent."),
)

OPERATIONS = (
    Operation(
        id="create_appointment",
        summary="Book an appointment",
        method="POST",
        path="/appointments",
        permission=Permission.APPOINTMENT_CREATE,
        returns=resources.APPOINTMENT,
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
        id="list_available_slots",
        summary="Free times of a veterinarian on a day",
        path="/appointments/available-slots",
        permission=Permission.APPOINTMENT_READ,
        returns=resources.SLOT,
        many=True,
        params=(
            Param(name="vetId", summary="The veterinarian.", format=UUID, required=True),
            Param(
                name="date",
                summary="The clinic's local day.",
                format=DAY,
                required=True,
                to_come=True,
            ),
            Param(
                name="appointmentTypeId",
                summary="The type of visit; without it the clinic's default duration.",
                format=UUID,
            ),
        ),
        errors=(404,),
        notes="No operation lists the veterinarians: the clinic hands their ids over.",
    ),
    Operation(
        id="list_appointment_types",
        summary="Types of appointment",
        path="/appointments/types",
        permission=Permission.APPOINTMENT_READ,
        returns=resources.APPOINTMENT_TYPE,
        many=True,
    ),
    Operation(
        id="get_appointment",
        summary="One appointment",
        path="/appointments/{id}",
        permission=Permission.APPOINTMENT_READ,
        returns=resources.APPOINTMENT,
        params=_id_in_path("id", "Identifier of the appointment."),
        errors=(404,),
    ),
    Operation(
        id="list_clients",
        summary="Clients of the clinic",
        path="/clients",
        permission=Permission.CLIENT_READ,
        returns=resources.CLIENT,
        many=True,
        paged=True,
        params=(_search_in("firstName", "lastName"), UPDATED_SINCE),
    ),
    Operation(
        id="get_client",
        summary="One client",
        path="/clients/{id}",
        permission=Permission.CLIENT_READ,
        returns=resources.CLIENT,
        params=_id_in_path("id", "Unique identifier of the client."),
        errors=(404,),
    ),
    Operation(
        id="list_patients",
        summary="Patients of the clinic",
        path="/patients",
        permission=Permission.PATIENT_READ,
        returns=resources.PATIENT,
        many=True,
        paged=True,
        params=(
            Param(
                name="clientId",
                summary="Only animals of this owner.",
                format=UUID,
                match=Match.EQUALS,
                fields=("clientId",),
            ),
            _search_in("name"),
            UPDATED_SINCE,
        ),
    ),
    Operation(
        id="get_patient",
        summary="One patient",
        path="/patients/{id}",
        permission=Permission.PATIENT_READ,
        returns=resources.PATIENT,
        params=_id_in_path("id", "Identifier of the patient."),
        errors=(404,),
    ),
    Operation(
        id="get_consultation",
        summary="One consultation",
        path="/consultations/{id}",
        permission=Permission.CONSULTATION_READ,
        returns=resources.CONSULTATION,
        params=_id_in_path("id", "Unique identifier of the consultation."),
        errors=(404,),
    ),
    Operation(
        id="get_invoice",
        summary="One invoice",
        path="/invoices/{id}",
        permission=Permission.INVOICE_READ,
        returns=resources.INVOICE,
        params=_id_in_path("id", "Identifier of the invoice."),
        errors=(404,),
    ),
    Operation(
        id="list_client_invoices",
        summary="Invoices of a client",
        path="/invoices/client/{clientId}",
        permission=Permission.INVOICE_READ,
        returns=resources.INVOICE,
        many=True,
        paged=True,
        params=(
            Param(
                name="clientId",
                summary="The client whose invoices are returned.",
                format=UUID,
                where="path",
                required=True,
                match=Match.EQUALS,
                fields=("clientId",),
                within="clients",
            ),
            Param(
                name="status",
                summary="Only invoices in this state.",
                values=resources.INVOICE.at("status").values,
                match=Match.EQUALS,
                fields=("status",),
            ),
        ),
        errors=(404,),
    ),
    Operation(
        id="list_stock",
        summary="Items in stock",
        path="/stock",
        permission=Permission.STOCK_READ,
        returns=resources.STOCK_ITEM,
        many=True,
        paged=True,
        params=(CATEGORY, _search_in("name")),
    ),
    Operation(
        id="get_stock_item",
        summary="One item in stock",
        path="/stock/{stockId}",
        permission=Permission.STOCK_READ,
        returns=resources.STOCK_ITEM,
        params=_id_in_path("stockId", "Identifier of the stock item."),
        errors=(404,),
    ),
    Operation(
        id="list_low_stock",
        summary="Items that are running low",
        path="/stock/low",
        permission=Permission.STOCK_READ,
        returns=resources.STOCK_ITEM,
        many=True,
        paged=True,
        params=(CATEGORY, _search_in("name")),
        only=(("isLow", True),),
    ),
)
