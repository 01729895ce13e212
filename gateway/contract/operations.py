"""The fourteen operations, each declared once.

A permission, a route, a validation rule, a row in the README: all of them are read off here.
"""

from gateway.contract.access import Permission
from gateway.contract.fields import BOOLEAN, DAY, INSTANT, UUID, Field
from gateway.contract.operation import (
    CATEGORY,
    CURSOR,
    LIMIT,
    PAGE_DEFAULT,
    PAGE_LARGEST,
    UPDATED_SINCE,
    Match,
    Operation,
    Param,
    id_in_path,
    search_in,
)
from gateway.contract.resources import (
    APPOINTMENT,
    APPOINTMENT_TYPE,
    CLIENT,
    CONSULTATION,
    INVOICE,
    PATIENT,
    SLOT,
    STOCK_ITEM,
)

__all__ = [
    "BASE_PATH",
    "CREATE_APPOINTMENT_BODY",
    "CURSOR",
    "LIMIT",
    "OPERATIONS",
    "PAGE_DEFAULT",
    "PAGE_LARGEST",
    "Match",
    "Operation",
    "Param",
]
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
        returns=APPOINTMENT,
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
        method="GET",
        path="/appointments/available-slots",
        permission=Permission.APPOINTMENT_READ,
        returns=SLOT,
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
        method="GET",
        path="/appointments/types",
        permission=Permission.APPOINTMENT_READ,
        returns=APPOINTMENT_TYPE,
        many=True,
    ),
    Operation(
        id="get_appointment",
        summary="One appointment",
        method="GET",
        path="/appointments/{id}",
        permission=Permission.APPOINTMENT_READ,
        returns=APPOINTMENT,
        params=(id_in_path("id", "Identifier of the appointment."),),
        errors=(404,),
    ),
    Operation(
        id="list_clients",
        summary="Clients of the clinic",
        method="GET",
        path="/clients",
        permission=Permission.CLIENT_READ,
        returns=CLIENT,
        many=True,
        paged=True,
        params=(search_in("firstName", "lastName"), UPDATED_SINCE),
    ),
    Operation(
        id="get_client",
        summary="One client",
        method="GET",
        path="/clients/{id}",
        permission=Permission.CLIENT_READ,
        returns=CLIENT,
        params=(id_in_path("id", "Unique identifier of the client."),),
        errors=(404,),
    ),
    Operation(
        id="list_patients",
        summary="Patients of the clinic",
        method="GET",
        path="/patients",
        permission=Permission.PATIENT_READ,
        returns=PATIENT,
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
            search_in("name"),
            UPDATED_SINCE,
        ),
    ),
    Operation(
        id="get_patient",
        summary="One patient",
        method="GET",
        path="/patients/{id}",
        permission=Permission.PATIENT_READ,
        returns=PATIENT,
        params=(id_in_path("id", "Identifier of the patient."),),
        errors=(404,),
    ),
    Operation(
        id="get_consultation",
        summary="One consultation",
        method="GET",
        path="/consultations/{id}",
        permission=Permission.CONSULTATION_READ,
        returns=CONSULTATION,
        params=(id_in_path("id", "Unique identifier of the consultation."),),
        errors=(404,),
    ),
    Operation(
        id="get_invoice",
        summary="One invoice",
        method="GET",
        path="/invoices/{id}",
        permission=Permission.INVOICE_READ,
        returns=INVOICE,
        params=(id_in_path("id", "Identifier of the invoice."),),
        errors=(404,),
    ),
    Operation(
        id="list_client_invoices",
        summary="Invoices of a client",
        method="GET",
        path="/invoices/client/{clientId}",
        permission=Permission.INVOICE_READ,
        returns=INVOICE,
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
                values=INVOICE.at("status").values,
                match=Match.EQUALS,
                fields=("status",),
            ),
        ),
        errors=(404,),
    ),
    Operation(
        id="list_stock",
        summary="Items in stock",
        method="GET",
        path="/stock",
        permission=Permission.STOCK_READ,
        returns=STOCK_ITEM,
        many=True,
        paged=True,
        params=(CATEGORY, search_in("name")),
    ),
    Operation(
        id="get_stock_item",
        summary="One item in stock",
        method="GET",
        path="/stock/{stockId}",
        permission=Permission.STOCK_READ,
        returns=STOCK_ITEM,
        params=(id_in_path("stockId", "Identifier of the stock item."),),
        errors=(404,),
    ),
    Operation(
        id="list_low_stock",
        summary="Items that are running low",
        method="GET",
        path="/stock/low",
        permission=Permission.STOCK_READ,
        returns=STOCK_ITEM,
        many=True,
        paged=True,
        params=(CATEGORY, search_in("name")),
        only=(("isLow", True),),
    ),
)
