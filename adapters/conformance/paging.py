# ruff: noqa: S101 - it is made of asserts
"""Pages: every record once, whatever their size, while rows are added; and what a page costs."""

from adapters.base import Adapter, Page
from adapters.conformance.asking import LARGEST_PAGE, Asking
from adapters.conformance.practice import Practice, needs
from adapters.conformance.records import with_ids

ADDED_AT_ONCE = 20
EVERY = 10  # pages


class Paging:
    """What every adapter promises of its pages.

    `many` is how many rows a list gets that is read while others are added; `asked_per_page` how
    many statements or requests a page may cost beside one for each list inside its records.
    `in_parts` names what the practice system hands out only a few at a time, or one by one: it
    may cost more.
    """

    many = 10_000
    asked_per_page = 1
    in_parts: frozenset[str] = frozenset()

    async def test_pages_hold_every_record_once_in_one_order_whatever_their_size(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for resource in with_ids(practice):
            large = await asking.everything(resource)
            assert len({record["id"] for record in large}) == len(large), resource
            assert await asking.everything(resource, limit=173) == large, resource
            small = 1 + len(large) // 40
            assert await asking.everything(resource, limit=small) == large, resource

    async def test_pages_of_one_lose_nothing(self, practice: Practice, adapter: Adapter) -> None:
        asking = Asking(practice, adapter)
        for resource in ("vets", "appointmentTypes"):
            assert await asking.everything(resource, limit=1) == await asking.everything(resource)

    @needs("add_clients")
    async def test_nothing_is_lost_or_told_twice_while_rows_are_added(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        there = await asking.everything("clients")
        await practice.add_clients(self.many, front=False)
        await practice.settle()
        first = [each["id"] for each in await asking.everything("clients")]
        assert len(first) == len(there) + self.many
        second = await self._read_while_added(practice, adapter)
        assert len(set(second)) == len(second)
        known = set(first)
        assert [each for each in second if each in known] == first

    async def _read_while_added(self, practice: Practice, adapter: Adapter) -> list[str]:
        """The ids of all clients; every few pages some are added before and some behind."""
        asking, found, number = Asking(practice, adapter), [], 0
        after: str | None = None
        while number == 0 or after is not None:
            query = asking.query("clients", limit=LARGEST_PAGE, after=after)
            page = await adapter.read_many(query)
            found += [each["id"] for each in page.records]
            after, number = page.after, number + 1
            if number % EVERY == 2:
                await practice.add_clients(ADDED_AT_ONCE, front=True)
                await practice.add_clients(ADDED_AT_ONCE, front=False)
            assert number * LARGEST_PAGE < 3 * self.many + 10_000, "the pages have no end"
        return found

    @needs("asked")
    async def test_a_page_costs_the_same_however_many_records_it_has(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        for resource in set(with_ids(practice)) - self.in_parts:
            await adapter.ping()  # a connection's first words are no page's
            page = await adapter.read_many(asking.query(resource, limit=1))
            small, _ = await self._cost(practice, adapter, resource, 2)
            large, page = await self._cost(practice, adapter, resource, 50)
            lists = {path.split("[].")[0] for path in practice.shapes[resource] if "[]." in path}
            assert large == small, f"{len(page.records)} {resource} cost more than 2"
            assert large <= self.asked_per_page + len(lists), resource

    async def _cost(
        self, practice: Practice, adapter: Adapter, resource: str, limit: int
    ) -> tuple[int, Page]:
        await practice.settle()
        before = await practice.asked()
        page = await adapter.read_many(Asking(practice, adapter).query(resource, limit=limit))
        return await practice.asked() - before, page
