"""A partner in the tests: calls the running gateway with its key, and knows some ids."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import aiohttp
from multidict import CIMultiDict

from gateway.store.tables import bookings
from tests.secrecy import secrets_in

ALL = (
    "PATIENT_READ",
    "CLIENT_READ",
    "APPOINTMENT_READ",
    "APPOINTMENT_CREATE",
    "CONSULTATION_READ",
    "INVOICE_READ",
    "STOCK_READ",
)


@dataclass(frozen=True)
class Answer:
    """One answer, read whole."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)


class Partner:
    """Calls one gateway with one key; makes other keys for the same gateway.

    `gateway` is the running gateway of `tests/conftest.py`: it has `base` (the address up to
    /api/v1), `zone`, and mints and revokes keys in the store as the command line does.
    """

    def __init__(
        self, gateway: Any, session: aiohttp.ClientSession, secret: str | None, key_id: str = ""
    ) -> None:
        self.gateway = gateway
        self.secret = secret or ""
        self._session = session
        self._key_id = key_id

    async def with_key(
        self,
        *,
        permissions: Any = ALL,
        level: str = "FULL",
        scopes: Mapping[str, str] | None = None,
        limit: int | None = 100_000,
        expires: str | None = None,
        **bounds: Any,
    ) -> "Partner":
        """The same partner with a new key."""
        made = await self.gateway.mint(
            permissions=permissions,
            level=level,
            scopes=scopes or {},
            limit=limit,
            expires=expires,
            **bounds,
        )
        return Partner(self.gateway, self._session, made.secret, made.id)

    async def revoke(self) -> None:
        """Take this partner's key away."""
        await self.gateway.revoke(self._key_id)

    def anonymous(self) -> "Partner":
        """Without a key."""
        return Partner(self.gateway, self._session, None)

    def as_key(self, secret: str) -> "Partner":
        """With that header value, whatever it is."""
        other = Partner(self.gateway, self._session, secret)
        other._forced = True  # type: ignore[attr-defined]
        return other

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """One call; a body goes as JSON, bytes as they are; pairs are headers that come twice."""
        sent: CIMultiDict[str] = CIMultiDict(headers or {})
        if self.secret or getattr(self, "_forced", False):
            sent.setdefault("X-API-Key", self.secret)
        data = body
        if body is not None and not isinstance(body, bytes):
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        async with self._session.request(
            method, self.gateway.base + path, data=data, headers=sent, params=params
        ) as response:
            answer = Answer(response.status, response.headers, await response.text())
        assert not secrets_in(f"{answer.text}{answer.headers}".encode("utf-8", "replace"))
        return answer

    async def get(self, path: str, **params: str) -> Answer:
        """GET with query parameters."""
        return await self.send("GET", path, params=params or None)

    async def post(self, path: str, body: Any, **headers: str) -> Answer:
        """POST as JSON; `Idempotency_Key="k"` becomes the header Idempotency-Key."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.send("POST", path, body=body, headers=named)

    def local_day(self, moment: str) -> str:
        """The clinic's day of a moment."""
        return (
            datetime.fromisoformat(moment).astimezone(ZoneInfo("Europe/Paris")).date().isoformat()
        )

    async def ids(self) -> dict[str, str]:
        """One public id per resource, and that of a vet."""
        return await self.gateway.ids()

    async def draft(self, kind: str | None = None) -> dict[str, Any]:
        """A booking that fits: a present client's animal and a free time."""
        ids = await self.ids()
        draft = {"clientId": ids["clients"], "patientId": ids["patients"], "vetId": ids["vet"]}
        if kind is not None:
            draft["appointmentTypeId"] = kind
        day = datetime.now(ZoneInfo("Europe/Paris")).date()
        for ahead in range(1, 21):
            query = {"vetId": ids["vet"], "date": (day + timedelta(days=ahead)).isoformat()}
            if kind is not None:
                query["appointmentTypeId"] = kind
            free = (await self.get("/appointments/available-slots", **query)).data
            if free:
                return draft | {"scheduledAt": free[0]["startTime"]}
        raise LookupError("no free time in three weeks")


async def forget_bookings(partner: Partner) -> None:
    """The practice may say of the next booking too what it said of those before."""
    async with partner.gateway.gateway.store.begin() as connection:
        await connection.execute(bookings.delete())
