"""A record outside the conditions does not exist for the key: not in lists, alone, or by traces.

Two clinics differ only in records that the policy leaves out: one has them, the other does not.
The same key gets the same bytes from both.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.base import NotFound, Page, Query
from adapters.documents.problems import DocumentErrors
from adapters.sample import MAPPING
from gateway.app import build
from gateway.contract.access import AccessLevel, Permission
from gateway.contract.resources import CLIENT, PATIENT
from gateway.keys.key import Key
from gateway.limits.base import MemoryLimiter
from gateway.settings import load_settings
from tests.conftest import Begin, RunningGateway, Start
from tests.partner import Answer, Partner
from tests.policies import TEXT
from tests.world import OTHER_ID, SOME_ID, World, record_of

# Of each resource: the condition, and what takes the records outside it out of the practice.
HIDDEN = {
    "appointments": (
        "{status: {not: [CANCELLED, NO_SHOW]}}",
        "DELETE FROM RDV WHERE COALESCE(STATUT, 'P') NOT IN ('P', 'C', 'R', 'E', 'T')",
    ),
    "clients": (
        "{lastName: {not: [NAME]}}",
        "UPDATE PERSONNES SET ACTIF = 'N' WHERE COALESCE(NULLIF(TRIM(NOM), ''), TRIM(RAISON_SOC),"
        " '') IN ('NAME', '')",
    ),
    "patients": (
        "{status: [ACTIVE]}",
        "UPDATE ANIMAUX SET SUPPRIME = 1 WHERE COALESCE(DT_DECES, '0000-00-00') <> '0000-00-00'"
        " OR ACTIF IS NOT 'O'",
    ),
    "consultations": (
        "{status: [VALIDATED]}",
        "UPDATE CONSULTATIONS SET SUPPRIME = 1 WHERE ETAT IS NOT 'V'",
    ),
    "invoices": ("{status: PAID}", "DELETE FROM FACTURES WHERE ETAT IS NOT 'S'"),
    "stock": ("{isLow: false}", ""),
}
LISTS = ("/clients", "/patients", "/stock")
MISSING = "00000000-0000-8000-8000-000000000000"


def policy(folder: Path, conditions: Mapping[str, str]) -> Path:
    """A policy with conditions for all levels."""
    text = TEXT
    for resource, condition in conditions.items():
        assert f"\n{resource}:\n" in text
        text = text.replace(f"\n{resource}:\n", f"\n{resource}:\n  only: {condition}\n")
    file = folder / "policies.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def change(gateway: RunningGateway, statement: str) -> None:
    with closing(sqlite3.connect(gateway.folder / "clinic.db")) as connection, connection:
        assert connection.execute(statement).rowcount > 0


async def all_of(gateway: RunningGateway, resource: str) -> list[dict[str, Any]]:
    """Every record that the practice system has of what can be listed."""
    found: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        query = Query(resource=resource, now=datetime.now(UTC), limit=200, after=after)
        page: Page = await gateway.gateway.adapter.read_many(query)
        found += page.records
        after = page.after
        if after is None:
            return found


async def asked(partner: Partner, resource: str, paths: list[str]) -> list[tuple[str, Answer]]:
    """All pages of a list, then each path."""
    found = []

    async def ask(path: str) -> Answer:
        answer = await partner.send("GET", path, headers={"X-Request-Id": "always-the-same"})
        found.append((path, answer))
        return answer

    link: str | None = f"/{resource}?limit=40" if f"/{resource}" in LISTS else None
    while link:
        after = (await ask(link)).headers.get("Link")
        link = after and after[1:].partition(">")[0].partition("/api/v1")[2]
    for path in paths:
        await ask(path)
    return found


def comparable(answer: Answer, port: int) -> tuple[int, dict[str, str], str]:
    headers = {name: value for name, value in answer.headers.items() if name != "Date"}
    return (
        answer.status,
        {name: value.replace(f"127.0.0.1:{port}", "here") for name, value in headers.items()},
        answer.text,
    )


@pytest.mark.parametrize("resource", [name for name, (_, gone) in HIDDEN.items() if gone])
async def test_two_clinics_that_differ_in_hidden_records_give_the_same_bytes(
    start_gateway: Start, tmp_path: Path, resource: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gateway.assembly.answering.open_limiter", lambda *_, **__: MemoryLimiter(lambda: 0.0)
    )
    present = datetime.now(UTC)
    whole = await start_gateway("whole")
    records = await all_of(whole, resource) if f"/{resource}" in LISTS else []
    name = next((each["lastName"] for each in records if each.get("lastName")), "")
    condition, gone = (each.replace("NAME", name) for each in HIDDEN[resource])
    file = policy(tmp_path, {resource: condition})
    ours = await start_gateway("ours", now=lambda: present, policy=file)
    theirs = await start_gateway("theirs", now=lambda: present, policy=file)
    change(theirs, gone)
    left = {each["id"] for each in await all_of(theirs, resource)}
    hidden = [each["id"] for each in await all_of(ours, resource) if each["id"] not in left]
    assert hidden
    assert left
    paths = [f"/{resource}/{each}" for each in (*hidden[:3], *sorted(left)[:3], MISSING)]
    if resource == "clients":
        paths += [f"/invoices/client/{each}" for each in (*hidden[:2], min(left), MISSING)]
        paths += [f"/patients?clientId={each}" for each in (*hidden[:2], MISSING)]
        paths += [f"/clients?search={name}", f"/clients?search={name}&limit=1"]
    if resource == "patients":
        owner = (await all_of(ours, "patients"))[0]["clientId"]
        paths += [f"/patients?clientId={owner}", "/patients?search=ma&limit=3"]
    if resource == "invoices":
        client = (await all_of(whole, "clients"))[0]["id"]
        paths += [f"/invoices/client/{client}?limit=1", f"/invoices/client/{client}?status=DRAFT"]
    answers = []
    key = Key(
        name="A partner",
        permissions=frozenset(Permission),
        level=AccessLevel.FULL,
        created_at=datetime.now(UTC),
        limit=1_000,
    )
    for gateway in (ours, theirs):
        secret = await gateway.gateway.keys.add(key)
        await gateway.gateway.ring.refresh()
        async with aiohttp.ClientSession() as session:
            partner = Partner(gateway, session, secret, key.id)
            found = await asked(partner, resource, paths)
            answers.append([(path, comparable(each, gateway.port)) for path, each in found])
    for mine, other in zip(*answers, strict=True):
        assert mine == other
    statuses = {path: answer[0] for path, answer in answers[0]}
    assert {statuses[f"/{resource}/{each}"] for each in hidden[:3]} == {404}
    assert {statuses[f"/{resource}/{each}"] for each in sorted(left)[:3]} == {200}


async def test_a_booking_that_names_a_hidden_client_or_patient_is_404_and_books_nothing(
    start_gateway: Start, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    plain = await start_gateway("plain")
    draft = await (await Partner(plain, session, None).with_key()).draft()
    client = Query(resource="clients", now=datetime.now(UTC), id=str(draft["clientId"]))
    name = (await plain.gateway.adapter.read_one(client))["lastName"]
    rows = {
        "clients": f'{{BASIC: {{lastName: {{not: ["{name}"]}}}}}}',
        "patients": f"{{STANDARD: {{id: {{not: [{draft['patientId']}]}}}},"
        f" BASIC: {{id: {{not: [{draft['patientId']}]}}}}}}",
    }
    hiding = await start_gateway("hiding", policy=policy(tmp_path, rows))
    for scopes, status in (
        ({"clients": "BASIC"}, 404),
        ({"patients": "STANDARD"}, 404),
        ({"clients": "BASIC", "patients": "BASIC"}, 404),
        ({}, 201),
    ):
        partner = await Partner(hiding, session, None).with_key(level="FULL", scopes=scopes)
        answer = await partner.send("POST", "/appointments", body=draft)
        assert answer.status == status, scopes
        if status == 404:
            assert answer.data == {"message": "Resource not found"}
            missing = await partner.send(
                "POST", "/appointments", body=draft | {"clientId": MISSING}
            )
            assert missing.text == answer.text


async def test_a_booking_is_shown_to_who_made_it_whatever_the_conditions(
    start_gateway: Start, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    file = policy(tmp_path, {"appointments": "{status: [COMPLETED]}"})
    gateway = await start_gateway(policy=file)
    partner = await Partner(gateway, session, None).with_key()
    draft = await partner.draft()
    headers = {"Idempotency-Key": "once"}
    first = await partner.send("POST", "/appointments", body=draft, headers=headers)
    assert (first.status, first.data["status"]) == (201, "SCHEDULED")
    assert (await partner.get(f"/appointments/{first.data['id']}")).status == 404
    again = await partner.send("POST", "/appointments", body=draft, headers=headers)
    assert (again.status, again.text) == (201, first.text)


async def test_an_adapter_that_does_not_heed_the_conditions_still_shows_nothing_outside(
    partner_of: Begin, tmp_path: Path
) -> None:
    hidden = record_of(PATIENT) | {"status": "DECEASED", "id": OTHER_ID}
    shown = record_of(PATIENT)
    world = World(
        one=lambda query: hidden if query.id == OTHER_ID else shown,
        many=lambda query: Page(records=[hidden, shown, hidden]),
    )
    file = policy(tmp_path, {"patients": "{status: [ACTIVE]}"})
    partner = await partner_of(world, policy=file)
    assert (await partner.get(f"/patients/{OTHER_ID}")).status == 404
    assert (await partner.get(f"/patients/{SOME_ID}")).status == 200
    listed = await partner.get("/patients")
    assert [each["id"] for each in listed.data] == [SOME_ID]
    assert "X-Skipped-Records" not in listed.headers


async def test_a_filter_by_a_hidden_client_asks_what_one_by_a_missing_client_asks(
    partner_of: Begin, tmp_path: Path
) -> None:
    def one(query: Query) -> dict[str, Any]:
        raise NotFound

    world = World(one=one)
    file = policy(tmp_path, {"clients": "{lastName: {not: [Martin]}}"})
    partner = await partner_of(world, policy=file)
    for client in (SOME_ID, OTHER_ID):
        world.asked.clear()
        answer = await partner.get("/patients", clientId=client)
        assert (answer.status, answer.data) == (200, [])
        [query] = world.asked
        assert (query.resource, query.id) == (CLIENT.name, client)
        assert [each.field for each in query.only] == ["lastName"]


async def test_a_start_is_refused_where_the_mapping_cannot_leave_records_out(
    start_gateway: Start, template: Any, tmp_path: Path
) -> None:
    text = TEXT.replace("\nconsultations:\n", "\nconsultations:\n  only: {status: [VALIDATED]}\n")
    file = tmp_path / "policies.yaml"
    file.write_text(text, encoding="utf-8")
    lines = MAPPING.read_text(encoding="utf-8").splitlines()
    [line] = [each for each in lines if "source: c.ETAT" in each]
    lacking = tmp_path / "lacking.yaml"
    lacking.write_text("\n".join(each for each in lines if each is not line) + "\n")
    settings = load_settings(template.folder / "gateway.yaml", {})
    changed = settings.model_copy(
        update={
            "policy": file,
            "state": tmp_path / "other",
            "backend": settings.backend.model_copy(update={"mapping": lacking}),
        }
    )
    with pytest.raises(DocumentErrors) as refused:
        await build(changed)
    [problem] = refused.value.problems
    assert problem.file == str(lacking)
    assert "consultations.status" in problem.text
