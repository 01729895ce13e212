"""Declares the resources, field by field, in the order in which answers carry them."""

from gateway.contract.fields import (
    BOOLEAN,
    COLOR,
    DAY,
    EMAIL,
    INSTANT,
    INTEGER,
    MONEY,
    NUMBER,
    PERCENT,
    UUID,
    Field,
    Resource,
)

ID = Field("id", UUID, "Identifier.")

APPOINTMENT = Resource(
    name="appointments",
    title="Appointment",
    summary="A visit in the clinic's diary.",
    fields=(
        ID,
        Field("clientId", UUID, refers="clients", summary="The animal's owner."),
        Field("patientId", UUID, refers="patients", summary="The animal concerned."),
        Field("appointmentTypeId", UUID, refers="appointmentTypes"),
        Field("vetId", UUID, refers="vets", summary="The assigned veterinarian."),
        Field(
            "status",
            values=(
                *("SCHEDULED", "CONFIRMED", "ARRIVED", "IN_PROGRESS"),
                *("COMPLETED", "CANCELLED", "NO_SHOW"),
            ),
            summary="A new appointment is SCHEDULED.",
        ),
        Field("displayStatus", summary="The status as a label for people."),
        Field("scheduledAt", INSTANT, "Planned start."),
        Field("endTime", INSTANT, "Planned end."),
        Field("isUrgent", BOOLEAN),
        Field("createdAt", INSTANT),
        Field("reason", summary="Reason for the visit."),
    ),
)

CLIENT = Resource(
    name="clients",
    title="Client",
    class_name="ClientRecord",
    summary="An owner of one or more animals.",
    fields=(
        ID,
        Field("firstName"),
        Field("lastName", summary="The family name, or the name of a company."),
        Field("phone", personal=True),
        Field("email", EMAIL, personal=True),
        Field("createdAt", INSTANT),
        Field("updatedAt", INSTANT),
        Field("address", personal=True),
    ),
)

PATIENT = Resource(
    name="patients",
    title="Patient",
    summary="An animal registered in the clinic.",
    fields=(
        ID,
        Field("clientId", UUID, refers="clients", summary="The present owner."),
        Field("name"),
        Field("species"),
        Field("status", values=("ACTIVE", "DECEASED", "INACTIVE")),
        Field("breed"),
        Field("sex", values=("MALE", "FEMALE", "UNKNOWN")),
        Field("neutered", BOOLEAN),
        Field("birthDate", DAY),
        Field("color", summary="Colour of the coat."),
        Field("weightKg", NUMBER, "Weight in kilograms."),
        Field("createdAt", INSTANT),
        Field("updatedAt", INSTANT),
        Field("microchip", personal=True),
        Field("alerts", many=True, summary="Warnings for those who handle the animal."),
    ),
)

CONSULTATION = Resource(
    name="consultations",
    title="Consultation",
    summary="The report of a veterinary consultation.",
    fields=(
        ID,
        Field("appointmentId", UUID, refers="appointments"),
        Field("patientId", UUID, refers="patients"),
        Field("vetId", UUID, refers="vets"),
        Field("status", values=("IN_PROGRESS", "VALIDATED")),
        Field("importance", values=("ROUTINE", "IMPORTANT", "CRITICAL")),
        Field("startedAt", INSTANT),
        Field("validatedAt", INSTANT),
        Field("createdAt", INSTANT),
        Field("ownerSummary", summary="Summary meant for the owner."),
        Field("ownerDiagnosis", summary="Simplified diagnosis for the owner."),
        Field("ownerInstructions", summary="Follow-up instructions for the owner."),
    ),
)

INVOICE = Resource(
    name="invoices",
    title="Invoice",
    summary="An invoice with its lines and payments; amounts in the invoice's currency.",
    fields=(
        ID,
        Field("number"),
        Field("clientId", UUID, refers="clients", summary="Who pays."),
        Field("status", values=("DRAFT", "ISSUED", "PARTIALLY_PAID", "PAID", "CANCELLED")),
        Field(
            "lines",
            title="Line",
            fields=(
                ID,
                Field("unitPrice", MONEY),
                Field("quantity", NUMBER),
                Field("taxRate", PERCENT),
                Field("total", MONEY),
                Field("description"),
                Field("patientId", UUID, refers="patients"),
            ),
        ),
        Field("issuedAt", INSTANT),
        Field("dueAt", DAY),
        Field("currency", summary="ISO 4217 code."),
        Field("subtotal", MONEY, "Without tax."),
        Field("taxTotal", MONEY),
        Field("total", MONEY, "With tax."),
        Field("amountPaid", MONEY),
        Field("balance", MONEY, "What is left to pay."),
        Field("createdAt", INSTANT),
        Field(
            "payments",
            title="Payment",
            fields=(Field("paidAt", INSTANT), Field("amount", MONEY), Field("method")),
        ),
    ),
)

STOCK_ITEM = Resource(
    name="stock",
    title="StockItem",
    summary="An item of the inventory.",
    fields=(
        ID,
        Field("name"),
        Field("category"),
        Field("isLow", BOOLEAN, "quantity <= reorderThreshold."),
        Field("reference"),
        Field("unit"),
        Field("quantity", NUMBER),
        Field("reorderThreshold", NUMBER),
        Field("expiresAt", DAY),
        Field("updatedAt", INSTANT),
        Field("salePrice", MONEY),
        Field("location", personal=True),
        Field("batchNumber"),
        Field("supplier"),
        Field("purchasePrice", MONEY),
    ),
)

APPOINTMENT_TYPE = Resource(
    name="appointmentTypes",
    title="AppointmentType",
    summary="A kind of visit and how long it takes.",
    governed=False,
    fields=(ID, Field("name"), Field("durationMinutes", INTEGER), Field("color", COLOR)),
)

SLOT = Resource(
    name="slots",
    title="Slot",
    summary="A time that can be booked; it spans the duration of the requested type.",
    governed=False,
    fields=(Field("startTime", INSTANT), Field("endTime", INSTANT)),
)

VET = Resource(
    name="vets",
    title="Vet",
    summary="The directory of veterinarians: no operation shows it, the command line does.",
    governed=False,
    fields=(ID, Field("name")),
)

RESOURCES = (
    APPOINTMENT,
    CLIENT,
    PATIENT,
    CONSULTATION,
    INVOICE,
    STOCK_ITEM,
    APPOINTMENT_TYPE,
    SLOT,
    VET,
)
GOVERNED = tuple(resource for resource in RESOURCES if resource.governed)
