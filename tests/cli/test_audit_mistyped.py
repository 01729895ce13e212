"""`clinic-gateway audit` with an id that nobody has: never answered as if all were clear."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from tests.audit.chains import KEY, OTHER_KEY, entry, machine
from tests.command import clinic_gateway

ONE = "3438a348-750f-85dd-9c36-1b2f5a7c9d10"
OWN = "client/17"


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    """A record with a UUID and one of another shape, each shown to a key that is gone."""
    async with machine(tmp_path) as made:
        (tmp_path / "gateway.yaml").write_text("state: .\n")
        process = await made.begin()
        await process.note(
            entry(made.clock.now(), [ONE]), entry(made.clock.now(), [OWN]),
            entry(made.clock.now(), key=None),
        )  # fmt: skip
        process.killed()
        yield tmp_path


async def asked(folder: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    config = str(folder / "gateway.yaml")
    done = await asyncio.to_thread(clinic_gateway, *words, "--config", config)
    return done.returncode, done.stdout, done.stderr


async def made(folder: Path, name: str) -> str:
    """A new key with that name; its id."""
    words = ("keys", "create", "--permission", "STOCK_READ", "--level", "BASIC", "--json")
    told: str = json.loads((await asked(folder, *words, "--name", name))[1])["id"]
    return told


async def who_read(folder: Path, record: str, *words: str) -> tuple[int, str, str]:
    return await asked(folder, "audit", "who-read", "clients", record, *words)


@pytest.mark.parametrize("words", [(), ("--json",), ("--since", "2020-01-01")])
@pytest.mark.parametrize("record", ["nonsense", ONE[:-1], ONE + "0", "g" + ONE[1:], ""])
async def test_what_is_no_public_id_has_not_been_seen_by_nobody(
    folder: Path, record: str, words: tuple[str, ...]
) -> None:
    assert await who_read(folder, record, *words) == (
        1, "", f"clients {record}: nothing of that id is known, and it is no UUID, as the ids are"
        " that partners are told: clinic-gateway sample clients lists some\n",
    )  # fmt: skip


async def test_an_id_in_upper_case_and_one_of_another_shape_that_was_shown_are_answered(
    folder: Path,
) -> None:
    for record in (ONE, ONE.upper(), OWN):
        code, said, _ = await who_read(folder, record)
        assert (code, "1 key has been shown it" in said) == (0, True)
    code, said, _ = await who_read(folder, OWN, "--until", "2020-01-01")
    assert (code, said) == (0, f"clients {OWN}: no key has been shown it until 2020-01-01\n")
    code, said, _ = await who_read(folder, str(uuid4()))
    assert (code, "no key has been shown it" in said) == (0, True)


@pytest.mark.parametrize("name", ["Insurer", OTHER_KEY, ""])
async def test_a_key_that_nobody_knows_is_not_one_that_is_gone(folder: Path, name: str) -> None:
    assert await asked(folder, "audit", "key", name, "--json") == (
        1, "", f"no key has the id or the name {name}, and the audit knows no such id:"
        " clinic-gateway keys list shows them\n",
    )  # fmt: skip
    code, said, _ = await asked(folder, "audit", "key", KEY)
    assert (code, said.splitlines()[0]) == (0, f"a key that is gone ({KEY})")


async def test_a_key_is_known_by_its_name_where_only_one_has_it(folder: Path) -> None:
    one = await made(folder, "Insurer")
    code, said, _ = await asked(folder, "audit", "key", "Insurer")
    assert (code, said) == (0, f"Insurer ({one})\n  no call\n")
    two = await made(folder, "Insurer")
    code, said, why = await asked(folder, "audit", "key", "Insurer")
    assert (code, said) == (1, "")
    assert why == f"2 keys have the name Insurer; name one by its id: {one}, {two}\n"


async def test_a_key_of_which_nothing_can_be_read_but_its_id_is_not_unknown(folder: Path) -> None:
    one = await made(folder, "Insurer")
    with closing(sqlite3.connect(folder / "gateway.db")) as store, store:
        store.execute("UPDATE keys SET level = 'GODLIKE' WHERE id = ?", (one,))
    code, said, _ = await asked(folder, "audit", "key", one)
    assert (code, said.splitlines()[0]) == (0, f"a key of which the store makes no sense ({one})")
