"""What the generated client makes of an appointment read again, a repetition, and refusals."""

import json
from importlib import import_module
from pkgutil import walk_packages
from uuid import uuid4

import clinic_client
from attrs import evolve
from booking import booked, clinic, key, wanted
from clinic_client.api.appointments import create_appointment, get_appointment
from clinic_client.api.clients import get_client
from clinic_client.api.patients import list_patients
from clinic_client.models import (
    Appointment,
    AppointmentStatus,
    ClientRecord,
    Error,
    InvalidRequest,
)

for each in walk_packages(clinic_client.__path__, "clinic_client."):
    import_module(each.name)

assert isinstance(booked, Appointment)
reread = get_appointment.sync(booked.id, client=clinic)
assert isinstance(reread, Appointment)
assert reread.status is AppointmentStatus.SCHEDULED

owner = get_client.sync(wanted.client_id, client=clinic)
assert isinstance(owner, ClientRecord)
animals = list_patients.sync(client=clinic, client_id=owner.id, limit=200)
assert isinstance(animals, list)

again = create_appointment.sync_detailed(client=clinic, body=wanted, idempotency_key=key)
taken = create_appointment.sync_detailed(client=clinic, body=wanted, idempotency_key=str(uuid4()))
assert isinstance(taken.parsed, Error)
unknown = get_appointment.sync_detailed(uuid4(), client=clinic)
assert isinstance(unknown.parsed, Error)
other = evolve(wanted, reason="x" * 501)
wrong = create_appointment.sync_detailed(client=clinic, body=other, idempotency_key=str(uuid4()))
assert isinstance(wrong.parsed, InvalidRequest)

print(
    json.dumps(
        {
            "same": booked == reread == again.parsed,
            "replayed": again.headers["Idempotent-Replayed"],
            "conflict": [taken.status_code, taken.parsed.message],
            "notFound": [unknown.status_code, unknown.parsed.message],
            "wrong": [wrong.status_code, [each.field for each in wrong.parsed.errors]],
            "animal": wanted.patient_id in {each.id for each in animals},
        }
    )
)
