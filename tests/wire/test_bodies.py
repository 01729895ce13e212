"""Whatever a booking's body is, it is taken or refused, and no answer repeats it."""

from uuid import uuid4

import pytest

from adapters.base import Draft, Record
from gateway.contract.resources import APPOINTMENT
from tests.conftest import Begin
from tests.partner import Answer, Partner
from tests.wire.bodies import EITHER, MUST_ACCEPT, MUST_REJECT, WORD
from tests.world import World, record_of


@pytest.fixture
async def booker(partner_of: Begin) -> Partner:
    """A partner of a practice whose every time is free, and which says back nothing it was told."""

    def create(draft: Draft) -> Record:
        return record_of(APPOINTMENT) | {"id": str(uuid4())}

    return await partner_of(World(create=create))


async def answers(booker: Partner, bodies: dict[str, bytes]) -> dict[str, Answer]:
    headers = {"Content-Type": "application/json"}
    found = {}
    for name, body in bodies.items():
        found[name] = await booker.send("POST", "/appointments", body=body, headers=headers)
        assert WORD not in found[name].text, name
        assert WORD not in str(found[name].headers), name
    return found


def others(found: dict[str, Answer], *statuses: int) -> dict[str, str]:
    return {name: each.text for name, each in found.items() if each.status not in statuses}


async def test_what_is_json_and_a_booking_is_booked(booker: Partner) -> None:
    found = await answers(booker, MUST_ACCEPT)
    assert {
        name: (each.status, each.text) for name, each in found.items() if each.status != 201
    } == {}


async def test_what_is_not_is_refused_with_all_that_is_wrong(booker: Partner) -> None:
    found = await answers(booker, MUST_REJECT)
    assert {
        name: (each.status, each.text) for name, each in found.items() if each.status != 400
    } == {}
    for each in found.values():
        problem = each.data["errors"][0]
        assert each.data["message"].startswith("Invalid request: ")
        assert set(problem) == {"field", "problem"}
        assert len(each.text) < 4_000


async def test_what_readers_differ_about_is_never_a_fault(booker: Partner) -> None:
    found = await answers(booker, EITHER)
    assert others(found, 201, 400) == {}
