"""How ids are looked up in the table: seldom, together, and never too early."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import BackendNonsense, BackendUnavailable, NotFound, Query, Record
from adapters.ids import lookups
from adapters.ids.lookups import Lookups
from adapters.ids.table import HashedIds, IdKeeper, NativeIds
from tests.adapters.shelf import Shelf

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
GIVEN = "7b0a4c1e-1f7c-4c5e-9a55-0d9d6a3f9b10"
MIXED = GIVEN.replace("c", "C")
SPELLINGS: tuple[Callable[[str], str], ...] = (
    str.lower,
    str.upper,
    str.title,
    lambda each: f"{{{each}}}",
    lambda each: f"{{{each.upper()}}}",
)
ROWS = [str(UUID(int=number * 0xABCDEF123456789ABCDEF, version=4)) for number in range(1, 5)]


class Worker:
    """A process of the gateway before a practice that knows a row by its own spelling alone."""

    def __init__(self, shelf: Shelf, rows: Sequence[str], *, one_spelling: bool = False) -> None:
        self.ids = NativeIds("clients", shelf, one_spelling=one_spelling)
        self.keeper = IdKeeper({"clients": self.ids}, {"clients": {}})
        self._rows, self._one_spelling, self.asked = rows, one_spelling, 0

    async def lists(self, number: int) -> None:
        await self.keeper.kept(self._shown(number))

    async def _shown(self, number: int) -> str | None:
        return self.ids.shown(self._rows[number])

    async def reads(self, public_id: str) -> Record:
        async def ask() -> Record:
            self.asked += 1
            keys = self.ids.keys(public_id)
            for spelt in keys[:1] if self._one_spelling else keys:
                if spelt in self._rows:
                    return {"id": self.ids.shown(spelt)}
            raise (BackendNonsense if self._one_spelling else NotFound)(public_id)

        return await self.keeper.read(Query(resource="clients", now=NOW, id=public_id), ask)


@given(st.data(), st.booleans())
def test_a_row_that_one_process_has_shown_is_read_by_every_other(
    data: st.DataObject, one_spelling: bool
) -> None:
    """Whatever the spellings are, and whoever lists, reads or begins anew when."""

    async def play() -> None:
        shelf, rows = Shelf(), [data.draw(st.sampled_from(SPELLINGS))(each) for each in ROWS]
        workers = [Worker(shelf, rows, one_spelling=one_spelling) for _ in range(3)]
        shown: set[int] = set()
        steps = st.tuples(
            st.sampled_from(["list", "read", "restart"]), st.integers(0, 2), st.integers(0, 3)
        )
        for what, who, number in data.draw(st.lists(steps, max_size=25)):
            if what == "list":
                await workers[who].lists(number)
                shown.add(number)
            elif what == "restart":
                workers[who] = Worker(shelf, rows, one_spelling=one_spelling)
            elif number in shown:
                assert await workers[who].reads(ROWS[number]) == {"id": ROWS[number]}

    asyncio.run(play())


@pytest.mark.parametrize("spelt", [GIVEN, GIVEN.upper()])
async def test_the_first_read_of_an_id_in_a_usual_spelling_asks_the_table_nothing(
    spelt: str,
) -> None:
    shelf = Shelf()
    await shelf.announce("clients")  # others are spelt oddly
    worker = Worker(shelf, [spelt])
    assert await worker.reads(GIVEN) == {"id": GIVEN}
    assert (shelf.questions, worker.asked) == (0, 1)


async def test_where_nothing_is_spelt_oddly_no_id_is_looked_up_in_the_table() -> None:
    shelf = Shelf()
    worker = Worker(shelf, [])
    for number in range(100):
        with pytest.raises(NotFound):
            await worker.reads(str(UUID(int=number)))
        await worker.ids.learn(str(UUID(int=number)))  # as for a list that is filtered by it
    assert (shelf.questions, worker.asked) == (0, 100)


async def test_an_odd_spelling_is_announced_before_it_is_shown() -> None:
    told: list[str] = []

    class Telling(Shelf):
        async def announce(self, resource: str) -> None:
            told.append(resource)
            await super().announce(resource)

        async def respell(self, resource: str, keys: object) -> None:
            assert told == ["clients"]
            await super().respell(resource, keys)  # type: ignore[arg-type]

    shelf = Telling()
    await Worker(shelf, [MIXED]).lists(0)
    assert shelf.kept == {("clients", GIVEN): json.dumps(MIXED)}


async def test_an_id_that_cannot_be_looked_up_is_not_said_to_be_nobodys() -> None:
    class Down(Shelf):
        async def find(self, resource: str, public_ids: Sequence[str]) -> dict[str, str]:
            raise BackendUnavailable("the store is down")

    shelf = Down()
    await shelf.announce("clients")
    worker = Worker(shelf, [GIVEN])
    assert await worker.reads(GIVEN) == {"id": GIVEN}
    with pytest.raises(BackendUnavailable):
        await worker.reads(ROWS[0])


async def test_many_who_ask_at_once_share_questions() -> None:
    shelf = Shelf()
    ids = HashedIds(b"k" * 32, "stock", shelf)
    shown = [str(ids.shown(f"a rather long code {number}")) for number in range(300)]
    await ids.keep()
    again = HashedIds(b"k" * 32, "stock", shelf)
    shelf.questions = 0
    await asyncio.gather(*map(again.learn, shown))
    assert all(map(again.keys, shown))
    assert shelf.questions <= 2


async def test_who_guesses_ids_causes_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    now, shelf = [0.0], Shelf()
    shelf.kept["stock", GIVEN] = "[1]"
    sleep = asyncio.sleep

    async def slept(seconds: float) -> None:
        now[0] += seconds
        await sleep(0)

    monkeypatch.setattr(lookups.asyncio, "sleep", slept)
    ids = Lookups("stock", shelf, lambda: now[0])
    for number in range(100):
        assert await ids.find(str(UUID(int=number))) is None
    assert now[0] >= 99 * lookups.APART - 1e-6
    begun, now[0] = shelf.questions, now[0] + 1
    for _ in range(100):  # what is found is found at once
        assert await ids.find(GIVEN) == "[1]"
    assert shelf.questions - begun == 100
    assert now[0] < 99 * lookups.APART + 1 + 1e-6


async def test_who_leaves_or_fails_takes_nobody_along() -> None:
    class Slow(Shelf):
        async def find(self, resource: str, public_ids: Sequence[str]) -> dict[str, str]:
            await asyncio.sleep(0.02)
            self.questions += 1
            if self.questions == 1:
                raise BackendUnavailable("the store is down")
            return dict(await super().find(resource, public_ids))

    shelf = Slow()
    shelf.kept["stock", GIVEN] = "[1]"
    ids = Lookups("stock", shelf)
    leaver, stayer = (asyncio.create_task(ids.find(GIVEN)) for _ in range(2))
    await asyncio.sleep(0.01)
    leaver.cancel()
    # too late for the question that is under way, which may be answered from before the id was kept
    later = asyncio.create_task(ids.find(GIVEN))
    with pytest.raises(BackendUnavailable):
        await stayer
    assert await later == "[1]"
