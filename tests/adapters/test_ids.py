"""What public ids are made of: sealed keys, hashed ones that are kept in a table, native ones."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from adapters.convert import Unreadable
from adapters.ids import HashedIds, NativeIds, SealedIds
from adapters.seal import Sealer
from tests.adapters.shelf import Shelf

SECRET = b"k" * 32
SEALED = SealedIds(Sealer(SECRET, "clients"))
NATIVE = NativeIds()
GIVEN = "7b0a4c1e-1f7c-4c5e-9a55-0d9d6a3f9b10"


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
    assert NATIVE.keys(GIVEN) == (GIVEN,)
    with pytest.raises(Unreadable):
        NATIVE.shown("no uuid")


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
