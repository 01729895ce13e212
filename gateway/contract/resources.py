"""The resources, field by field, in the order in which answers carry them."""

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

ID = Field(name="id", format=UUID, summary="Identifier.")

APPOINTMENT = Resource(
    name="appointments",
    title="Appointment",
    summary="A visit in the clinic's diary.",
    fields=(
        ID,
        Field(name="clientId", format=UUID, refers="clients", summary="The animal's owner."),
        Field(name="patientId", format=UUID, refers="patients", summary="The animal concerned."),
        Field(name="appointmentTypeId", format=UUID, refers="appointmentTypes"),
        Field(name="vetId", format=UUID, refers="vets", summary="The assigned veterinarian."),
        Field(
            name="status",
            values=(
                "SCHEDULED",
                "CONFIRMED",
                "ARRIVED",
                "IN_PROGRESS",
                "COMPLETED",
                "CANCELLED",
                "NO_SHOW",
            ),
            summary="A new appointment is SCHEDULED.",
        ),
        Field(name="displayStatus", summary="The status as a label for people."),
        Field(name="scheduledAt", format=INSTANT, summary="Planned start."),
        Field(name="endTime", format=INSTANT, summary="Planned end."),
        Field(name="isUrgent", format=BOOLEAN),
        Field(name="createdAt", format=INSTANT),
        Field(name="reason", summary="Reason for the visit."),
    ),
)

CLIENT = Resource(
    name="clients",
    title="Client",
    class_name="ClientRecord",
    summary="An owner of one or more animals.",
    fields=(
        ID,
        Field(name="firstName"),
        Field(name="lastName", summary="The family name, or the name of a company."),
        Field(name="phone", personal=True),
        Field(name="email", format=EMAIL, personal=True),
        Field(name="createdAt", format=INSTANT),
        Field(name="updatedAt", format=INSTANT),
        Field(name="address", personal=True),
    ),
)

PATIENT = Resource(
    name="patients",
    title="Patient",
    summary="An animal registered in the clinic.",
    fields=(
        ID,
        Field(name="clientId", format=UUID, refers="clients", summary="The present owner."),
        Field(name="name"),
        Field(name="species"),
        Field(name="status", values=("ACTIVE", "DECEASED", "INACTIVE")),
        Field(name="breed"),
        Field(name="sex", values=("MALE", "FEMALE", "UNKNOWN")),
        Field(name="neutered", format=BOOLEAN),
        Field(name="birthDate", format=DAY),
        Field(name="color", summary="Colour of the coat."),
        Field(name="weightKg", format=NUMBER, summary="Weight in kilograms."),
        Field(name="createdAt", format=INSTANT),
        Field(name="updatedAt", format=INSTANT),
        Field(name="microchip", personal=True),
        Field(name="alerts", many=True, summary="Warnings for those who handle the animal."),
    ),
)

CONSULTATION = Resource(
    name="consultations",
    title="Consultation",
    summary="The report of a veterinary consultation.",
    fields=(
        ID,
        Field(name="appointmentId", format=UUID, refers="appointments"),
        Field(name="patientId", format=UUID, refers="patients"),
        Field(name="vetId", format=UUID, refers="vets"),
        Field(name="status", values=("IN_PROGRESS", "VALIDATED")),
        Field(name="importance", values=("ROUTINE", "IMPORTANT", "CRITICAL")),
        Field(name="startedAt", format=INSTANT),
        Field(name="validatedAt", format=INSTANT),
        Field(name="createdAt", format=INSTANT),
        Field(name="ownerSummary", summary="Summary meant for the owner."),
        Field(name="ownerDiagnosis", summary="Simplified diagnosis for the owner."),
        Field(name="ownerInstructions", summary="Follow-up instructions for the owner."),
    ),
)

INVOICE = Resource(
    name="invoices",
    title="Invoice",
    summary="An invoice with its lines and payments; amounts in the invoice's currency.",
    fields=(
        ID,
        Field(name="number"),
        Field(name="clientId", format=UUID, refers="clients", summary="Who pays."),
        Field(name="status", values=("DRAFT", "ISSUED", "PARTIALLY_PAID", "PAID", "CANCELLED")),
        Field(
            name="lines",
            title="Line",
            fields=(
                ID,
                Field(name="unitPrice", format=MONEY),
                Field(name="quantity", format=NUMBER),
                Field(name="taxRate", format=PERCENT),
                Field(name="total", format=MONEY),
                Field(name="description"),
                Field(name="patientId", format=UUID, refers="patients"),
            ),
        ),
        Field(name="issuedAt", format=INSTANT),
        Field(name="dueAt", format=DAY),
        Field(name="currency", summary="ISO 4217 code."),
        Field(name="subtotal", format=MONEY, summary="Without tax."),
        Field(name="taxTotal", format=MONEY),
        Field(name="total", format=MONEY, summary="With tax."),
        Field(name="amountPaid", format=MONEY),
        Field(name="balance", format=MONEY, summary="What is left to pay."),
        Field(name="createdAt", format=INSTANT),
        Field(
            name="payments",
            title="Payment",
            fields=(
                Field(name="paidAt", format=INSTANT),
                Field(name="amount", format=MONEY),
                Field(name="method"),
            ),
        ),
    ),
)

STOCK_ITEM = Resource(
    name="stock",
    title="StockItem",
    summary="An item of the inventory.",
    fields=(
        ID,
        Field(name="name"),
        Field(name="category"),
        Field(name="isLow", format=BOOLEAN, summary="quantity <= reorderThreshold."),
        Field(name="reference"),
        Field(name="unit"),
        Field(name="quantity", format=NUMBER),
        Field(name="reorderThreshold", format=NUMBER),
        Field(name="expiresAt", format=DAY),
        Field(name="updatedAt", format=INSTANT),
        Field(name="salePrice", format=MONEY),
        Field(name="location", personal=True),
        Field(name="batchNumber"),
        Field(name="supplier"),
        Field(name="purchasePrice", format=MONEY),
    ),
)

APPOINTMENT_TYPE = Resource(
    name="appointmentTypes",
    title="AppointmentType",
    summary="A kind of visit and how long it takes.",
    governed=False,
    fields=(
        ID,
        Field(name="name"),
        Field(name="durationMinutes", format=INTEGER),
        Field(name="color", format=COLOR),
    ),
)

SLOT = Resource(
    name="slots",
    title="Slot",
    summary="A time that can be booked; it spans the duration of the requested type.",
    governed=False,
    fields=(
        Field(name="startTime", format=INSTANT),
        Field(name="endTime", format=INSTANT),
    ),
)

VET = Resource(
    name="vets",
    title="Vet",
    summary="The directory of veterinarians: no operation shows it, the command line does.",
    governed=False,
    fields=(ID, Field(name="name")),
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
