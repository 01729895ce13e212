"""Books with the client that was generated from the document."""

import os
from datetime import date
from uuid import UUID, uuid4

import httpx
from clinic_client import AuthenticatedClient
from clinic_client.api.appointments import (
    create_appointment,
    list_appointment_types,
    list_available_slots,
)
from clinic_client.models import Appointment, CreateAppointmentRequest, Error, InvalidRequest

clinic = AuthenticatedClient(
    base_url=os.environ["BASE"],
    token=os.environ["KEY"],
    auth_header_name="X-API-Key",
    prefix="",
    timeout=httpx.Timeout(30),
)
vet, day = UUID(os.environ["VET"]), date.fromisoformat(os.environ["DAY"])

types = list_appointment_types.sync(client=clinic)
if not isinstance(types, list):
    raise SystemExit(f"no types: {types}")
slots = list_available_slots.sync(
    client=clinic, vet_id=vet, date=day, appointment_type_id=types[0].id
)
start = slots[0].start_time if isinstance(slots, list) and slots else None
if start is None:
    raise SystemExit(f"no free time: {slots}")

wanted = CreateAppointmentRequest(
    client_id=UUID(os.environ["CLIENT"]),
    patient_id=UUID(os.environ["PATIENT"]),
    vet_id=vet,
    appointment_type_id=types[0].id,
    scheduled_at=start,
)
key = str(uuid4())
booked = create_appointment.sync(client=clinic, body=wanted, idempotency_key=key)
match booked:
    case Appointment():
        print("booked", booked.id, booked.status)
    case InvalidRequest():
        print("refused:", [f"{each.field} {each.problem}" for each in booked.errors])
    case Error():
        print("refused:", booked.message)
