"""What public ids are made of: sealed keys, hashed ones that are kept in a table, native ones."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from adapters.base import BackendUnavailable, Query
from adapters.ids.seal import SealedIds
from adapters.ids.table import AT_ONCE, HashedIds, IdKeeper, NativeIds
from adapters.values.convert import Unreadable, by_value
from tests.adapters.shelf import Shelf

SECRET = b"k" * 32
SEALED = SealedIds(SECRET, "clients")
NATIVE = NativeIds()
GIVEN = "7b0a4c1e-1f7c-4c5e-9a55-0d9d6a3f9b10"
MIXED = GIVEN.replace("c", "C")


@pytest.mark.parametrize("raw", [12, "12", "12 "])
def test_a_number_has_one_id_however_it_is_kept(raw: object) -> None:
    public_id = SEALED.shown(raw)
    assert public_id == SEALED.shown(12)
    assert public_id is not None
    assert SEALED.keys(public_id) == (12, "12")


@pytest.mark.parametrize(("raw", "key"), [("CAT-01", "CAT-01"), ("007", "007"), ("Ä ", "Ä")])
def test_a_short_text_is_its_own_key(raw: str, key: str) -> None:
    public_id = SEALED.shown(raw)
    assert public_id is not None
    assert SEALED.keys(public_id) == (key,)
    assert SEALED.shown("7") != SEALED.shown("007")


@pytest.mark.parametrize("raw", [None, "", "   "])
def test_no_key_has_no_id(raw: object) -> None:
    assert SEALED.shown(raw) is None


@pytest.mark.parametrize("raw", ["longer than 8", 1 << 64, 2.5, True])
def test_what_cannot_be_sealed_is_unreadable(raw: object) -> None:
    with pytest.raises(Unreadable):
        SEALED.shown(raw)


def test_a_uuid_of_the_practices_own_passes_in_its_canonical_form() -> None:
    assert NATIVE.shown(f"{{{GIVEN.upper()}}}") == GIVEN
    with pytest.raises(Unreadable):
        NATIVE.shown("no uuid")


@pytest.mark.parametrize("spelt", [GIVEN, GIVEN.upper(), MIXED, f"{{{GIVEN}}}"])
def test_a_uuid_is_looked_for_as_it_was_met_first_and_in_either_case(spelt: str) -> None:
    ids = NativeIds()
    assert ids.keys(GIVEN) == (GIVEN, GIVEN.upper())
    ids.shown(spelt)
    assert ids.keys(GIVEN) == tuple(dict.fromkeys((spelt, GIVEN, GIVEN.upper())))


@pytest.mark.parametrize(
    ("spelt", "needs"), [(GIVEN, 0), (GIVEN.upper(), 0), (MIXED, 1), (f"{{{GIVEN}}}", 1)]
)
async def test_only_a_uuid_in_another_spelling_than_these_needs_the_table(
    spelt: str, needs: int
) -> None:
    shelf = Shelf()
    ids = NativeIds("clients", shelf)
    ids.shown(spelt)
    await ids.keep()
    assert len(shelf.kept) == needs
    again = NativeIds("clients", shelf)
    await again.learn(GIVEN)
    assert spelt in again.keys(GIVEN)


def test_what_refers_to_a_row_never_hides_how_the_row_itself_is_spelt() -> None:
    ids = NativeIds("clients", Shelf())
    own = f"{{{GIVEN}}}"
    assert ids.shown(own) == ids.referred(MIXED) == GIVEN
    assert ids.keys(GIVEN) == (own, GIVEN, GIVEN.upper())


async def test_a_reference_is_believed_until_the_row_itself_is_known() -> None:
    shelf = Shelf()
    one, other = NativeIds("clients", shelf), NativeIds("clients", shelf)
    one.referred(MIXED)
    assert one.keys(GIVEN)[0] == MIXED
    own = f"{{{GIVEN}}}"
    other.shown(own)
    await other.keep()
    await one.keep()  # which leaves what another worker knows for certain
    assert shelf.kept["clients", GIVEN] == json.dumps(own)
    assert one.keys(GIVEN)[0] == own


async def test_an_id_that_was_asked_for_too_early_is_looked_up_again() -> None:
    shelf = Shelf()
    one, other = NativeIds("clients", shelf), NativeIds("clients", shelf)
    await one.learn(GIVEN)
    assert MIXED not in one.keys(GIVEN)
    other.shown(MIXED)
    await other.keep()
    await one.learn(GIVEN)
    assert one.keys(GIVEN)[0] == MIXED


@pytest.mark.parametrize("later", [f"{{{GIVEN}}}", GIVEN, GIVEN.upper()])
async def test_a_row_that_is_spelt_anew_is_found_so_after_a_restart(later: str) -> None:
    shelf = Shelf()
    for spelt in (MIXED, later):
        ids = NativeIds("clients", shelf)
        await ids.learn(GIVEN)
        assert ids.shown(spelt) == GIVEN
        await ids.keep()
        again = NativeIds("clients", shelf)
        await again.learn(GIVEN)
        assert again.keys(GIVEN)[0] == spelt


@pytest.mark.parametrize("spelt", [GIVEN, GIVEN.upper(), MIXED, f"{{{GIVEN}}}"])
@pytest.mark.parametrize("only_referred", [False, True])
async def test_where_one_spelling_is_asked_for_it_is_the_row_s_own_after_a_restart_too(
    spelt: str, only_referred: bool
) -> None:
    shelf = Shelf()
    ids = NativeIds("clients", shelf, one_spelling=True)
    (ids.referred if only_referred else ids.shown)(spelt)
    await ids.keep()
    again = NativeIds("clients", shelf, one_spelling=True)
    await again.learn(GIVEN)
    assert again.keys(GIVEN)[0] == spelt


def test_a_long_number_is_not_rounded_to_another_one() -> None:
    one, other = (Decimal(f"1234567890123456789012345678.{each}") for each in ("15", "25"))
    assert (by_value(one), by_value(other)) == (one, other)
    hashed = HashedIds(SECRET, "clients", None)
    assert hashed.shown(one) != hashed.shown(other)


async def test_many_answers_at_once_write_what_waits_only_once() -> None:
    class Slow(Shelf):
        async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
            await asyncio.sleep(0)
            await super().remember(resource, keys)

    shelf = Slow()
    ids = HashedIds(SECRET, "clients", shelf)
    for number in range(3 * AT_ONCE):
        ids.shown(f"code {number}")
    await asyncio.gather(*(ids.keep() for _ in range(5)))
    assert (shelf.writes, len(shelf.kept)) == (3, 3 * AT_ONCE)


async def test_while_the_table_cannot_be_written_no_more_wait_for_it_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Down(Shelf):
        down = True

        async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
            assert len(keys) <= AT_ONCE
            if self.down:
                raise BackendUnavailable("the store is down")
            await super().remember(resource, keys)

    monkeypatch.setattr("adapters.ids.table.MOST_WAITING", 2 * AT_ONCE + 1)
    shelf = Down()
    ids = HashedIds(SECRET, "stock", shelf)
    keeper = IdKeeper({"stock": ids}, {})
    query = Query(resource="stock", now=datetime.now(UTC))
    await keeper.learn_query(query)
    shown = [ids.shown(f"code {number}") for number in range(2 * AT_ONCE + 1)]
    with pytest.raises(Unreadable):
        ids.shown("one too many")
    assert ids.shown("code 0") == shown[0]
    with pytest.raises(BackendUnavailable):  # and nothing is asked of the practice system
        await keeper.learn_query(query)
    shelf.down = False
    await keeper.learn_query(query)
    assert {public_id for _, public_id in shelf.kept} == set(shown)
    assert ids.shown("one too many") is not None


async def test_a_code_with_places_has_one_id_however_many_places_its_column_has() -> None:
    hashed = HashedIds(SECRET, "clients", Shelf())
    for ids in (SEALED, hashed):
        assert ids.shown(Decimal("12.00")) == ids.shown(12) == ids.shown(12.0)
        assert ids.shown(Decimal("12.50")) == ids.shown(Decimal("12.5")) != ids.shown(12)
        # a text is a code: as such 12 and 12.00 are two
        assert ids.shown("12.00") != ids.shown("12")


@pytest.mark.parametrize("raw", ["a rather long code", ("Lyon", 12), ("Lyon", "12", 3)])
async def test_a_hashed_id_leads_back_to_its_key_after_a_restart(raw: object) -> None:
    shelf = Shelf()
    ids = HashedIds(SECRET, "stock", shelf)
    public_id = ids.shown(raw)
    assert public_id is not None
    assert UUID(public_id).version == 8
    await ids.keep()
    again = HashedIds(SECRET, "stock", shelf)
    assert again.keys(public_id) == ()
    await again.learn(public_id)
    assert again.keys(public_id) == (raw,)
    assert again.shown(raw) == public_id
    await again.keep()
    assert shelf.writes == 1


async def test_hashed_ids_differ_by_resource_by_secret_and_by_how_a_key_is_parted() -> None:
    made = {
        HashedIds(SECRET, "stock", None).shown(("a", "bc")),
        HashedIds(SECRET, "stock", None).shown(("ab", "c")),
        HashedIds(SECRET, "stock", None).shown(("ab", 1)),
        HashedIds(SECRET, "clients", None).shown(("ab", "c")),
        HashedIds(b"l" * 32, "stock", None).shown(("ab", "c")),
    }
    assert len(made) == 5
    number, text = (HashedIds(SECRET, "stock", None).shown(("ab", each)) for each in (1, "1"))
    assert number == text
    assert HashedIds(SECRET, "stock", None).shown(("ab", None)) is None


def test_a_number_that_was_rounded_is_nobodys_key() -> None:
    # two numbers of JSON, beyond 64 bits, that read as the same one
    raw = float("18446744073709551617")
    for ids in (SEALED, HashedIds(SECRET, "clients", None)):
        with pytest.raises(Unreadable):
            ids.shown(raw)


async def test_an_id_that_could_not_be_kept_is_kept_the_next_time() -> None:
    class Full(Shelf):
        async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
            if not self.writes:
                self.writes += 1
                raise OSError("full")
            await super().remember(resource, keys)

    shelf = Full()
    ids = HashedIds(SECRET, "stock", shelf)
    public_id = ids.shown("a rather long code")
    with pytest.raises(OSError, match="full"):
        await ids.keep()
    assert not shelf.kept
    await ids.keep()
    assert ("stock", public_id) in shelf.kept


async def test_a_foreign_id_is_nobodys() -> None:
    ids = HashedIds(SECRET, "stock", Shelf())
    await ids.learn(GIVEN)
    assert ids.keys(GIVEN) == ()
    assert SEALED.keys(GIVEN) == ()
