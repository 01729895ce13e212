"""What is asked of a practice system under measurement: its calls, each on another record."""

import itertools
import random
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from adapters.base import Adapter, Draft, Filter, Page, Query, Record

PAGE = 50
SOME = 80  # so many records of a kind are asked for in turn
FEW = 3
BACK = 12  # days; also the small practice has appointments since
AHEAD = 26
Ask = Callable[[], Awaitable[Any]]


class Call(NamedTuple):
    """One kind of call; `bound` says whether a big practice may take twice as long at the most.

    `look` comes before each call, and is not measured.
    """

    name: str
    ask: Ask
    bound: bool = True
    look: Ask | None = None


class Asked:
    """One practice and the records of it that are asked for; `learn` comes first."""

    def __init__(self, adapter: Adapter, now: datetime) -> None:
        self._adapter = adapter
        self._now = now
        self._ids: dict[str, list[str]] = {}
        self._middle: dict[str, str | None] = {}
        self._owned: list[tuple[str, str]] = []
        self._words: list[str] = []
        self._animals: Iterator[tuple[str, str]] = iter(())
        self._days: Iterator[tuple[str, int]] = iter(())
        self._draft: Draft

    async def learn(self) -> None:
        """Records from everywhere in the practice, and where its lists have their middle."""
        chance = random.Random(1)  # noqa: S311 - nothing to guess
        clients = await self._walk("clients")
        patients = await self._walk("patients")
        stock = await self._walk("stock")
        self._words = [each["lastName"] for each in _some(clients, chance) if each["lastName"]]
        here = {each["id"] for each in clients}
        alive = (each for each in patients if each["status"] != "DECEASED")
        owned = [each for each in alive if each["clientId"] in here]
        self._owned = [(each["clientId"], each["id"]) for each in _some(owned, chance)]
        for name, records in (("clients", clients), ("patients", patients), ("stock", stock)):
            self._ids[name] = _some([each["id"] for each in records], chance)
        for name in ("vets", "appointmentTypes"):
            self._ids[name] = _ids(await self._many(name))
        await self._learn_histories(chance)
        self._animals = itertools.cycle(self._owned)
        self._days = itertools.cycle(itertools.product(self._ids["vets"][:4], range(1, AHEAD)))

    async def _learn_histories(self, chance: random.Random) -> None:
        """Appointments, consultations and invoices: found from their patients and clients."""
        visits: list[str] = []
        for patient in self._ids["patients"]:
            visits += _ids(await self._many("appointments", patientId=patient))
        self._ids["appointments"] = _some(visits, chance)
        held: list[str] = []
        for visit in chance.sample(visits, len(visits)):
            held += _ids(await self._many("consultations", appointmentId=visit))
            if len(held) >= SOME:
                break
        self._ids["consultations"] = held
        pages = {
            client: _ids(await self._many("invoices", clientId=client)) for client, _ in self._owned
        }
        self._ids["invoices"] = _some([each for page in pages.values() for each in page], chance)
        payers = [client for client, page in pages.items() if len(page) > FEW]
        self._ids["payers"] = payers
        # too many to walk through; a place in one client's list is one in the whole list too
        page = await self._many("invoices", limit=len(pages[payers[0]]) // 2, clientId=payers[0])
        self._middle["invoices"] = page.after

    def calls(self) -> Sequence[Call]:
        """All kinds of calls, in the order in which they are shown."""
        singles = ("clients", "patients", "appointments", "consultations", "invoices", "stock")
        return (
            *(Call(f"one of {name}", self._one(name)) for name in singles),
            *(
                Call(f"{PAGE} of {name}, {where}", self._page(name, after))
                for name in ("clients", "patients", "invoices")
                for where, after in (("the first", None), ("the middle", self._middle[name]))
            ),
            Call(f"{PAGE} of stock", self._page("stock", None)),
            Call(f"{PAGE} of low stock", self._low()),
            Call("appointment types", self._page("appointmentTypes", None)),
            Call("a client's patients", self._owned_patients()),
            Call(f"{FEW} of a client's invoices", self._invoices(FEW)),
            Call("a busy day's slots", self._slots()),
            Call("a booking", self._book, look=self._look),
            Call("a booking looked up", self._look_up, bound=False),
            Call(f"{FEW} bookings looked over", self._look_over(), bound=False),
            Call("a client's invoices, all", self._invoices(PAGE), bound=False),
            Call("clients changed this month", self._changed(30), bound=False),
            Call("clients changed today", self._changed(1), bound=False),
            Call("search of clients", self._search(self._words), bound=False),
            Call("search that finds nobody", self._search(["nobody"]), bound=False),
        )

    async def _many(self, resource: str, limit: int = PAGE, **equals: Any) -> Page:
        filters = tuple(Filter("equals", (name,), value) for name, value in equals.items())
        query = Query(resource=resource, now=self._now, filters=filters, limit=limit)
        return await self._adapter.read_many(query)

    async def _walk(self, resource: str) -> list[Record]:
        """The whole list; on the way its middle is noted."""
        records: list[Record] = []
        places: list[str | None] = []
        after = None
        while after is not None or not places:
            places.append(after)
            page = await self._adapter.read_many(
                Query(resource=resource, now=self._now, limit=PAGE, after=after)
            )
            records += page.records
            after = page.after
        self._middle[resource] = places[len(places) // 2]
        return records

    def _one(self, resource: str) -> Ask:
        turn = itertools.cycle(self._ids[resource])
        return lambda: self._adapter.read_one(
            Query(resource=resource, now=self._now, id=next(turn))
        )

    def _page(self, resource: str, after: str | None) -> Ask:
        query = Query(resource=resource, now=self._now, limit=PAGE, after=after)
        return lambda: self._adapter.read_many(query)

    def _low(self) -> Ask:
        return lambda: self._many("stock", isLow=True)

    def _owned_patients(self) -> Ask:
        turn = itertools.cycle(self._owned)
        return lambda: self._many("patients", clientId=next(turn)[0])

    def _invoices(self, limit: int) -> Ask:
        """As the gateway asks: the client must exist, and has all of the invoices."""
        turn = itertools.cycle(self._ids["payers"])

        def ask() -> Awaitable[Any]:
            client = next(turn)
            return self._adapter.read_many(
                Query(
                    resource="invoices",
                    now=self._now,
                    filters=(Filter("equals", ("clientId",), client),),
                    within=("clients", client),
                    limit=limit,
                )
            )

        return ask

    def _changed(self, days: int) -> Ask:
        since = Filter("since", ("updatedAt",), self._now - timedelta(days=days))
        query = Query(resource="clients", now=self._now, filters=(since,), limit=PAGE)
        return lambda: self._adapter.read_many(query)

    def _search(self, wanted: Sequence[str]) -> Ask:
        turn = itertools.cycle(wanted)

        def ask() -> Awaitable[Any]:
            words = Filter("search", ("firstName", "lastName"), next(turn))
            query = Query(resource="clients", now=self._now, filters=(words,), limit=PAGE)
            return self._adapter.read_many(query)

        return ask

    def _slots(self) -> Ask:
        """Days that are over, as they looked to those who still had them before them."""
        before = self._now - timedelta(days=BACK)
        days = [before.date() + timedelta(days=each) for each in range(2, 10)]
        busy = [day for day in days if day.isoweekday() <= 5]
        kinds = self._ids["appointmentTypes"]
        turn = itertools.cycle(itertools.product(self._ids["vets"][:4], busy, kinds[:2]))

        def ask() -> Awaitable[Any]:
            vet, day, kind = next(turn)
            values = {"vetId": vet, "date": day, "appointmentTypeId": kind}
            return self._adapter.read_many(Query(resource="slots", now=before, values=values))

        return ask

    async def _look(self) -> None:
        """Find the free time that the next booking takes, as its partner would."""
        while True:
            vet, ahead = next(self._days)
            day = self._now.date() + timedelta(days=ahead)
            kind = self._ids["appointmentTypes"][0]
            values = {"vetId": vet, "date": day, "appointmentTypeId": kind}
            query = Query(resource="slots", now=self._now, values=values)
            found = (await self._adapter.read_many(query)).records
            if found:
                client, patient = next(self._animals)
                self._draft = Draft(
                    client_id=client,
                    patient_id=patient,
                    vet_id=vet,
                    scheduled_at=datetime.fromisoformat(found[0]["startTime"]),
                    appointment_type_id=kind,
                    reason=None,
                    is_urgent=False,
                    now=datetime.now(UTC),
                    reference=secrets.token_hex(8),
                )
                return

    def _book(self) -> Awaitable[Any]:
        """The booking that was prepared; it stays."""
        return self._adapter.create_appointment(self._draft)

    def _look_up(self) -> Awaitable[Any]:
        """As after an end that nobody knows."""
        return self._adapter.find_appointments(self._draft, self._draft.now)

    def _look_over(self) -> Ask:
        """As the check now and then, whether the desk wrote over ours."""
        turn = itertools.cycle(self._ids["appointments"])
        return lambda: self._adapter.find_overwritten([next(turn) for _ in range(FEW)])


def _ids(page: Page) -> list[str]:
    return [each["id"] for each in page.records]


def _some(records: Sequence[Any], chance: random.Random) -> list[Any]:
    return chance.sample(records, min(SOME, len(records)))
