"""An adapter that returns ready records: what is left is the cost of our own road."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from adapters.base import AdapterOptions, Draft, Only, Page, Query, Record, Rejected, Watched
from adapters.documents.problems import Problem

ID = "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"
TIME = "2026-03-01T09:00:00Z"
# One client of about one kilobyte, as JSON.
CLIENT: Record = {
    "id": ID,
    "firstName": "Éléonore",
    "lastName": "Châtelain",
    "phone": "01 99 00 12 34",
    "email": "eleonore.chatelain@example.org",
    "createdAt": TIME,
    "updatedAt": TIME,
    "address": "12 rue des Tilleuls, " + "Bâtiment B, escalier 3, " * 32 + "96140 Clairfontelle",
}


class ReadyAdapter:
    """Answers every read with the same client, by the id that is asked for, at once."""

    books, excludes, settle, default_length = True, True, 0.0, None

    def __init__(self, options: AdapterOptions) -> None:
        self.resources = frozenset(options.shapes)
        self.filterable: Mapping[str, frozenset[str]] = {
            name: frozenset(fields) for name, fields in options.shapes.items()
        }

        self._made: dict[str | None, Record] = {}

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        return ()

    async def read_one(self, query: Query) -> Record:
        record = self._made.get(query.id)
        if record is None:
            record = self._made[query.id] = {**CLIENT, "id": query.id}
        return record

    async def read_many(self, query: Query) -> Page:
        return Page(records=[CLIENT] * query.limit)

    async def create_appointment(self, draft: Draft) -> Record:
        raise Rejected(f"nothing is booked here: {draft.patient_id}")

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return ()

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        return Watched()

    async def check(self) -> Sequence[Problem]:
        return ()

    async def ping(self) -> None:
        return None

    async def aclose(self) -> None:
        return None
