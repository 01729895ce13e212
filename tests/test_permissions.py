"""Every operation with every permission in every state of a key: generated from the tables."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from gateway.contract.access import Permission
from gateway.contract.errors import Forbidden, KeyInvalid, KeyMissing
from gateway.contract.operations import OPERATIONS, Operation
from gateway.keys.secret import mint
from tests.partner import Answer, Partner

SOON = 0.05
VARIES = {"x-request-id", "date"}
EVERY = frozenset(Permission)


class Caller:
    """What is sent for each operation, so that nothing but the key decides."""

    def __init__(self, ids: dict[str, str], draft: dict[str, Any], slots: list[str]) -> None:
        self._ids = ids
        self._draft = draft
        self._slots = slots
        self._day = slots[0][:10]

    def path(self, operation: Operation) -> str:
        resource = "clients" if "{clientId}" in operation.path else operation.returns.name
        path = operation.path.partition("{")[0] + ("" if operation.many else self._ids[resource])
        if "{clientId}" in operation.path:
            path = operation.path.replace("{clientId}", self._ids["clients"])
        known = {"vetId": self._ids["vet"], "date": self._day}
        query = {each.name: known[each.name] for each in operation.query if each.required}
        return path + (f"?{urlencode(query)}" if query else "")

    async def call(self, partner: Partner, operation: Operation, secrets: list[str]) -> Answer:
        body = self._draft | {"scheduledAt": self._slots[0]} if operation.creates else None
        headers = [("X-API-Key", each) for each in secrets]
        path = operation.path if operation.creates else self.path(operation)
        answer = await partner.anonymous().send(operation.method, path, body=body, headers=headers)
        if answer.status == 201:
            del self._slots[0]
        return answer


def states(secret: str, revoked: str, expired: str) -> Iterator[tuple[str, list[str]]]:
    """The headers of a key in each state."""
    yield "good", [secret]
    yield "unknown", [mint()]
    yield "malformed", [secret[:-1]]
    yield "twice", [secret, secret]
    yield "revoked", [revoked]
    yield "expired", [expired]
    yield "none", []


def expected(operation: Operation, granted: frozenset[Permission], state: str) -> tuple[int, str]:
    """Status and message, as the partners are told them."""
    if state == "none":
        return 401, KeyMissing.message
    if state != "good":
        return 401, KeyInvalid.message
    if operation.permission not in granted:
        return 403, Forbidden.message
    return operation.status, ""


def told(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.data["message"] if answer.status >= 400 else ""


async def soon_expired(partner: Partner, granted: frozenset[Permission]) -> str:
    """The secret of a key that is good for a moment more."""
    at = datetime.now(UTC) + timedelta(seconds=SOON)
    return (await partner.with_key(permissions=granted, expires=at.isoformat())).secret


async def free_times(partner: Partner, vet: str) -> list[str]:
    """The first free time of each of the coming days: as many as there are bookings to make."""
    found: list[str] = []
    today = datetime.now(UTC).date()
    for ahead in range(1, 60):
        query = {"vetId": vet, "date": (today + timedelta(days=ahead)).isoformat()}
        free = (await partner.get("/appointments/available-slots", **query)).data
        found += [each["startTime"] for each in free[:1]]
        if len(found) > len(Permission):
            return found
    raise LookupError("too few free days")


async def test_a_key_opens_what_its_permissions_say_in_one_state_alone(partner: Partner) -> None:
    draft = await partner.draft()
    caller = Caller(await partner.ids(), draft, await free_times(partner, draft["vetId"]))
    grants = [frozenset([each]) for each in Permission] + [EVERY - {each} for each in Permission]
    wrong, refusals, made = [], set(), 0
    for granted in grants:
        good, gone = [await partner.with_key(permissions=granted) for _ in range(2)]
        late = await soon_expired(partner, granted)
        await gone.revoke()
        await asyncio.sleep(SOON)
        for operation in OPERATIONS:
            for state, secrets in states(good.secret, gone.secret, late):
                answer = await caller.call(partner, operation, secrets)
                made += 1
                wanted = expected(operation, granted, state)
                if told(answer) != wanted:
                    wrong.append((operation.id, sorted(granted), state, told(answer), wanted))
                if answer.status == 401 and state != "none":
                    kept = {n: v for n, v in answer.headers.items() if n.lower() not in VARIES}
                    refusals.add((answer.text, str(sorted(kept.items()))))
    assert wrong == []
    assert len(refusals) == 1, "unknown, malformed, doubled, revoked and expired must be one"
    assert made == len(OPERATIONS) * len(grants) * 7
