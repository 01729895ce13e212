"""What a level hides leaves no trace: not in bodies, headers, order, cursors or statuses.

Two clinics differ only in what the level hides; the same key gets the same bytes from both, for
every operation. Membership in low stock, free slots and 409 is the permission's own answer, so the
two clinics agree on these.
"""

import copy
import re
import sqlite3
from collections.abc import Set as AbstractSet
from contextlib import closing
from datetime import UTC, datetime
from random import Random

import aiohttp
import pytest

from adapters.base import Page, Record
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import CLIENT, GOVERNED, RESOURCES
from gateway.keys.key import Key
from gateway.limits.base import MemoryLimiter
from gateway.policy.reading.document import load_policy
from gateway.settings import shipped_policy
from tests.conftest import Begin, RunningGateway, Start
from tests.partner import Answer, Partner, forget_bookings
from tests.world import SOME_ID, World, record_of

NEVER_MAPPED = [
    "UPDATE CONSULTATIONS SET NOTES_INTERNES = 'INTERNE: autre chose'",
    "UPDATE RDV SET NUM_RDV = NUM_RDV || 'x'",
    "UPDATE COORDONNEES SET VALEUR = '01 99 00 00 00' WHERE TYPE = 'X'",
    "UPDATE PERSONNES SET CIVILITE = 'X' WHERE GENRE_PERS <> 'V'",
]
FULL_ONLY = [
    *NEVER_MAPPED,
    "UPDATE RDV SET MOTIF = 'secret ' || ID_RDV",
    "UPDATE PERSONNES SET ADRESSE1 = 'ailleurs', ADRESSE2 = NULL, VILLE = 'Nulle Part'",
    "UPDATE CHAMPS_SUPPL SET VALEUR = '250269000000000' WHERE CHAMP = 'PUCE'",
    "DELETE FROM CHAMPS_SUPPL WHERE CHAMP = 'ALERTES'",
    "UPDATE CONSULTATIONS SET RESUME = CAST(X'E9' AS TEXT), DIAGNOSTIC = 'x',"
    " CONSIGNES = CONSIGNES || '!'",
    "UPDATE LIGNES_FACT SET LIBELLE = 'autre', LIEN = ''",
    "UPDATE REGLEMENTS SET MODE = 'ES'",
    "UPDATE ARTICLES SET EMPLACEMENT = 'Z9', PRIX_ACHAT = '0,01'",
    "UPDATE LOTS SET NUM_LOT = 'L' || ID_LOT",
    "UPDATE PERSONNES SET NOM = 'AUTRE', RAISON_SOC = 'AUTRE' WHERE GENRE_PERS = 'F'",
]
STANDARD_TOO = [
    *FULL_ONLY,
    "UPDATE RDV SET D_FIN = D_DEBUT, URGENT = 'O', DT_SAISIE = '2020-01-01 10:00:00'"
    " WHERE D_DEBUT < datetime('now', '-2 days')",
    "UPDATE COORDONNEES SET VALEUR = 'autre' || ID_COORD || '@example.org' WHERE TYPE = 'M'",
    "UPDATE COORDONNEES SET VALEUR = CAST(X'30E931' AS TEXT) WHERE TYPE = 'T'",
    "UPDATE PERSONNES SET DT_CREATION = '2001-01-01 00:00:00', DT_MODIF = 'nonsense'",
    "UPDATE ANIMAUX SET RACE = 'X', SEXE = 'M', STERILISE = NULL, DT_NAISSANCE = '0000-00-00',"
    " DT_CREATION = NULL, DT_MODIF = NULL",
    "UPDATE CHAMPS_SUPPL SET VALEUR = '1' WHERE CHAMP IN ('ROBE', 'POIDS')",
    "UPDATE CONSULTATIONS SET D_DEBUT = NULL, D_VALID = NULL, DT_CREATION = 'nonsense'",
    "UPDATE FACTURES SET D_EMISSION = NULL, D_ECHEANCE = 'x', DEVISE = 'CHF', TOTAL_HT = '1,00',"
    " TOTAL_TVA = '1,00', TOTAL_TTC = '2,00', DT_CREATION = NULL",
    "UPDATE LIGNES_FACT SET QTE = '9', PU_HT = 'x', TAUX_TVA = '', TOTAL_HT = '3,00'",
    "UPDATE REGLEMENTS SET MONTANT = '1,00', D_REGL = NULL",
    "UPDATE ARTICLES SET REFERENCE = 'R', UNITE = 'U', PRIX_VENTE = '9,99', DT_MODIF = NULL",
    "UPDATE LOTS SET D_PEREMPTION = '2031-01-01', QTE = CAST(REPLACE(QTE, ',', '.') * 2 AS TEXT)",
    "UPDATE CHAMPS_SUPPL SET VALEUR = CAST(VALEUR * 2 AS TEXT) WHERE CHAMP = 'SEUIL'",
]
SINCE = "GET /clients?updatedSince=2020-01-01T00:00:00Z"
HIDDEN = {
    AccessLevel.BASIC: STANDARD_TOO,
    AccessLevel.STANDARD: FULL_ONLY,
    AccessLevel.FULL: NEVER_MAPPED,
}


def change(gateway: RunningGateway, statements: list[str]) -> None:
    with closing(sqlite3.connect(gateway.folder / "clinic.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


async def asked(partner: Partner, draft: dict[str, object]) -> list[tuple[str, Answer]]:
    """Every operation once or more, the pages behind the first included."""
    ids = await partner.ids()
    headers = {"X-Request-Id": "always-the-same"}
    found = []

    async def ask(method: str, path: str, **more: object) -> Answer:
        answer = await partner.send(method, path, headers=headers, **more)  # type: ignore[arg-type]
        found.append((f"{method} {path}", answer))
        return answer

    for path in (
        "/clients",
        "/patients",
        "/stock",
        "/stock/low",
        f"/invoices/client/{ids['clients']}",
    ):
        link: str | None = f"{path}?limit=60"
        while link:
            answer = await ask("GET", link)
            after = answer.headers.get("Link")
            link = after and after[1:].partition(">")[0].partition("/api/v1")[2]
    for name in ("appointments", "clients", "patients", "consultations", "invoices", "stock"):
        await ask("GET", f"/{name}/{ids[name]}")
    await ask("GET", "/appointments/types")
    await ask("GET", "/clients?search=fr")
    await ask("GET", "/stock?category=FOOD")
    await ask("GET", f"/patients?clientId={ids['clients']}")
    await ask(*SINCE.split())
    await ask("GET", f"/invoices/client/{ids['clients']}?status=PAID")
    await ask("GET", f"/appointments/available-slots?vetId={ids['vet']}&date=2030-01-07")
    made = await ask("POST", "/appointments", body=draft)
    await ask("GET", f"/appointments/{made.data['id']}")
    await ask("POST", "/appointments", body=draft)
    headers["Idempotency-Key"] = "the-same-each-time"
    for _ in range(2):
        await ask("POST", "/appointments", body=draft)
    return found


def comparable(answer: Answer) -> tuple[int, dict[str, str], str]:
    headers = {name: value for name, value in answer.headers.items() if name != "Date"}
    return answer.status, headers, answer.text


@pytest.mark.parametrize("level", LEVELS)
async def test_two_clinics_that_differ_in_hidden_fields_give_the_same_bytes(
    start_gateway: Start, level: AccessLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gateway.assembly.answering.open_limiter", lambda *_, **__: MemoryLimiter(lambda: 0.0)
    )
    present = datetime.now(UTC)
    ours = await start_gateway("ours", now=lambda: present)
    theirs = await start_gateway("theirs", now=lambda: present)
    change(theirs, HIDDEN[level])
    key = Key(
        name="A partner",
        permissions=frozenset(Permission),
        level=level,
        created_at=datetime.now(UTC),
        limit=1_000,
    )
    answers = []
    draft: dict[str, object] = {}
    for gateway in (ours, theirs):
        secret = await gateway.gateway.keys.add(key)
        await gateway.gateway.ring.refresh()
        async with aiohttp.ClientSession() as session:
            partner = Partner(gateway, session, secret, key.id)
            full = await partner.with_key()
            draft = draft or await full.draft()
            wish = draft | ({"reason": f"{gateway.folder.name}"} if level != "FULL" else {})
            answers.append(await asked(partner, wish))
    refused = [name for name, answer in answers[0] if answer.status == 400]
    assert refused == (
        [] if level != "BASIC" else ["GET /clients?updatedSince=2020-01-01T00:00:00Z"]
    )
    assert {answer.status for _, answer in answers[0]} >= {200, 201, 409}
    for (name, first), (_, second) in zip(*answers, strict=True):
        expected = comparable(first)
        found = comparable(second)
        host = f"127.0.0.1:{theirs.port}", f"127.0.0.1:{ours.port}"
        assert (found[0], {n: v.replace(*host) for n, v in found[1].items()}, found[2]) == (
            expected
        ), name
    assert len({name.split("?")[0] for name, _ in answers[0]}) >= len(OPERATIONS)


def twisted(
    record: Record, resource: Resource, visible: AbstractSet[str], chance: Random
) -> Record:
    """The record with anything at all in the fields that are not visible."""
    made = copy.deepcopy(record)
    for path in resource.paths:
        name, _, inner = path.partition("[].")
        if path in visible:
            continue
        if not inner:
            made[name] = chance.choice(ANYTHING)
        elif not any(each.startswith(f"{name}[].") for each in visible):
            made[name] = chance.choice([None, [], "x", [{}, {}], [{inner: "y"}] * 3])
        else:
            for item in made[name]:
                item[inner] = chance.choice(ANYTHING)
    return made


ANYTHING = [None, "", "x", "\ud800", 0, -1.5, float("inf"), True, [], {}, [None], b"x", SOME_ID]


@pytest.mark.parametrize("level", LEVELS)
async def test_nothing_that_a_level_hides_changes_a_byte_of_any_answer(
    partner_of: Begin, level: AccessLevel
) -> None:
    policy = load_policy(shipped_policy(), lambda trouble: None)
    chance = Random(level)
    # at FULL the shipped policy hides nothing: there all answers are of one and the same record
    records = {each.name: record_of(each) for each in RESOURCES}
    shown = dict(records)

    def change() -> None:
        for resource in GOVERNED:
            visible = policy.redactor(resource.name, level).visible
            shown[resource.name] = twisted(records[resource.name], resource, visible, chance)

    world = World(
        one=lambda query: shown[query.resource],
        many=lambda query: Page(records=[shown[query.resource]] * 3, after="7", skipped=1),
        create=lambda draft: shown["appointments"],
    )
    whole = await partner_of(world)
    partner = await whole.with_key(level=level, limit=10_000)
    wish = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID}
    wish |= {"scheduledAt": "2099-01-01T09:00:00Z"}
    again = {"X-Request-Id": "always-the-same"}
    first: dict[str, object] = {}
    for turn in range(25):
        for operation in OPERATIONS:
            path = re.sub(r"\{\w+\}", SOME_ID, operation.path)
            if "types" in path or "slots" in path:
                continue  # these are whole at every level
            answer = await partner.send(
                operation.method, path, headers=again,
                body=wish if operation.creates else None,
            )  # fmt: skip
            if operation.creates:
                await forget_bookings(partner)
            status, headers, text = comparable(answer)
            left_out = ("X-RateLimit-Remaining", "X-RateLimit-Reset")
            told = (status, {n: v for n, v in headers.items() if n not in left_out}, text)
            assert status == operation.status
            assert first.setdefault(operation.id, told) == told, (turn, operation.id)
        change()


def test_each_level_sees_what_the_one_before_it_sees_and_more() -> None:
    policy = load_policy(shipped_policy(), lambda trouble: None)
    for resource in policy.rules:
        basic, standard, full = (policy.redactor(resource, level).visible for level in LEVELS)
        assert basic < standard < full


@pytest.mark.parametrize("path", ["/clients", f"/clients/{SOME_ID}"])
@pytest.mark.parametrize("level", LEVELS)
async def test_where_the_redaction_itself_fails_nothing_of_the_record_goes_out(
    partner_of: Begin, path: str, level: AccessLevel
) -> None:
    def fails(value: object) -> bytes:
        raise RuntimeError("06 12 34 56 78")

    owner = record_of(CLIENT) | {"phone": "06 12 34 56 78", "lastName": "Martin"}
    partner = await partner_of(
        World(one=lambda query: owner, many=lambda query: Page(records=[owner]))
    )
    redactor = partner.gateway.gateway.keeper.policy().redactor("clients", level)
    redactor._encode = fails
    answer = await (await partner.with_key(level=level)).get(path)
    assert (answer.status, answer.data) == (500, {"message": "Internal server error"})
    assert not any("Martin" in value or "06 12" in value for value in answer.headers.values())


def test_an_operation_without_a_permission_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="list_all has no permission"):
        Operation(
            id="list_all",
            summary="Everything",
            method="GET",
            path="/all",
            permission=None,  # type: ignore[arg-type]
            returns=CLIENT,
        )
    with pytest.raises(TypeError):
        Operation(id="x", summary="x", method="GET", path="/x", returns=CLIENT)  # type: ignore[call-arg]


def test_no_record_carries_fields_of_another_resource_that_its_own_level_does_not_govern() -> None:
    """What belongs to another resource is named by its id alone, and read there, at its level."""
    objects = {
        (resource.name, field.name): {inner.name for inner in field.fields}
        for resource in GOVERNED
        for field in resource.fields
        if field.fields
    }
    others = {
        resource.name: {field.name for field in resource.fields} - {"id"} for resource in GOVERNED
    }
    assert objects.keys() == {("invoices", "lines"), ("invoices", "payments")}
    for (owner, _), members in objects.items():
        for name, fields in others.items():
            assert name == owner or len(members & fields) <= 1
