"""Around each call: the ids that it names are looked up, those of its answer are kept."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import TypeVar

from adapters.base import AdapterError, Draft, Only, OutcomeUnknown, Query, Shapes
from adapters.ids.tabled import HashedIds, NativeIds

T = TypeVar("T")

# Which resource the fields of a draft, and of the question for free slots, name by id.
REFERS = {
    "clientId": "clients",
    "patientId": "patients",
    "vetId": "vets",
    "appointmentTypeId": "appointmentTypes",
}


class IdKeeper:
    """Looks ids up in the table before a call that names them, and keeps those of its answer.

    `tabled` are the ids of the resources whose ids need it; without any nothing is done.
    """

    def __init__(self, tabled: Mapping[str, HashedIds | NativeIds], shapes: Shapes) -> None:
        self._tabled = tabled
        self._shapes = shapes

    async def learn_query(self, query: Query) -> None:
        """Look up what a query names; first of all make room for the ids of its answer."""
        await self._learn(self._named(query))

    async def learn_draft(self, draft: Draft) -> None:
        """Look up what a draft names; first of all make room for the ids of the booking."""
        await self._learn((refers, draft.asked[name]) for name, refers in REFERS.items())

    async def learn_all(self, resource: str, public_ids: Iterable[str]) -> None:
        """Look up ids of one resource."""
        await self._learn((resource, each) for each in public_ids)

    async def kept(self, answer: Awaitable[T], *, is_booking: bool = False) -> T:
        """The answer, once all its ids that need to be are kept.

        OutcomeUnknown where they cannot be, and it tells of a booking that was written.
        """
        given = await answer
        try:
            for ids in self._tabled.values():
                await ids.keep()
        except AdapterError as error:
            if is_booking:
                raise OutcomeUnknown("it was booked, and its id could not be kept") from error
            raise
        return given

    async def _learn(self, named: Iterable[tuple[str, str | None]]) -> None:
        if not self._tabled:
            return
        for ids in self._tabled.values():
            await ids.make_room()
        for resource, public_id in named:
            if resource in self._tabled and public_id is not None:
                await self._tabled[resource].learn(public_id)

    def _named(self, query: Query) -> Iterator[tuple[str, str | None]]:
        """The ids that the query names, its conditions too: they must be known to be found."""
        shapes = self._shapes.get(query.resource, {})
        if query.id:
            yield query.resource, query.id
        for each in query.filters:
            if each.match == "equals" and (refers := shapes[each.fields[0]].refers):
                yield refers, each.value
        yield from self._meant(query.resource, query.only)
        if query.within is not None:
            yield query.within
            yield from self._meant(query.within[0], query.within_only)
        for name, resource in REFERS.items():
            yield resource, query.values.get(name)

    def _meant(self, resource: str, only: Only) -> Iterator[tuple[str, str]]:
        for each in only:
            refers = self._shapes[resource][each.field].refers
            if target := resource if each.field == "id" else refers:
                yield from ((target, public_id) for public_id in each.value)
