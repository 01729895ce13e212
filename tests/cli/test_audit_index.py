"""`clinic-gateway audit index`, and what the questions say of an index that lacks something."""

import asyncio
import json
import subprocess
from pathlib import Path
from uuid import uuid4

from sqlalchemy import delete, text

from gateway.audit.index import Index
from gateway.store import open_store
from gateway.store.tables import audit_reads
from tests.adapters.servers import postgres_database
from tests.audit.chains import KEY, Machine, entry, machine
from tests.command import clinic_gateway

ONE = str(uuid4())
LOST = "the index has lost what it had of 2026-11-20: run `clinic-gateway audit index --anew`\n"


async def asked(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    config = str(folder / "gateway.yaml")
    return await asyncio.to_thread(clinic_gateway, "audit", *words, "--config", config)


async def noted(made: Machine) -> list[Path]:
    """One chain of two days, and its files."""
    (made.folder / "gateway.yaml").write_text("state: .\n")
    process = await made.begin()
    for _ in range(2):
        await process.note(*(entry(made.clock.now(), [ONE]) for _ in range(5)))
        made.clock.pass_(days=1)
    process.killed()
    return process.files()


async def test_an_index_that_was_deleted_answers_nothing_until_it_is_made_anew(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        await noted(made)
        first = await asked(tmp_path, "who-read", "clients", ONE, "--json")
        assert json.loads(first.stdout)["complete"] is True
        assert json.loads(first.stdout)["notes"] == []
        async with made.store.begin() as connection:
            await connection.execute(delete(audit_reads))
        for words in (("who-read", "clients", ONE), ("key", "x"), ("index",)):
            done = await asked(tmp_path, *words)
            assert (done.returncode, done.stdout, done.stderr) == (1, "", LOST)
        anew = await asked(tmp_path, "index", "--anew")
        # the command's own chain, which has its deed, is four lines of them
        assert (anew.returncode, anew.stdout) == (0, "16 lines taken in; every day adds up\n")
        nothing_new = await asked(tmp_path, "index")
        assert nothing_new.stdout == "0 lines taken in; every day adds up\n"
        again = await asked(tmp_path, "who-read", "clients", ONE, "--json")
        assert again.stdout == first.stdout


async def test_a_row_that_is_gone_is_found_and_lines_that_are_gone_are_told(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        files = await noted(made)
        await Index(made.store, made.audit).catch_up()
        async with made.store.begin() as connection:
            await connection.execute(text("UPDATE audit_reads SET times = times - 1"))
        done = await asked(tmp_path, "index")
        assert (done.returncode, done.stdout) == (1, "0 lines taken in\n")
        assert done.stderr == (
            "the index has not all that it took in of 2026-11-20 and 1 days more:"
            " run `clinic-gateway audit index --anew`\n"
        )
        files[-1].unlink()
        done = await asked(tmp_path, "index", "--anew", "--json")
        told = json.loads(done.stdout)
        assert (done.returncode, told["lines"], told["complete"]) == (1, 10, False)
        said = (await asked(tmp_path, "who-read", "clients", ONE)).stdout
        assert "get_client at FULL: 5 times" in said
        assert said.endswith(
            "note: the index lacks 6 lines that were written after 2026-11-20T09:00:00Z, and so"
            " does the folder: run `clinic-gateway audit verify`\n"
        )
        assert said.count("note: ") == 1
        for words in (("key", KEY), ("key", "x"), ("who-read", "clients", "x")):
            done = await asked(tmp_path, *words)
            assert "note: the index lacks 6 lines" in (done.stderr if "x" in words else done.stdout)


async def test_only_anew_is_for_all_machines(tmp_path: Path) -> None:
    done = await asked(tmp_path, "index", "--all-machines")
    assert done.returncode == 2
    assert "--all-machines goes with --anew" in done.stderr


async def test_what_other_machines_took_in_is_forgotten_only_where_that_is_wanted(
    tmp_path: Path, postgres_tables: str
) -> None:
    template = postgres_tables.rpartition("/")[2]
    with postgres_database(options=f"TEMPLATE {template}") as place:
        store = open_store(place)
        one, other = Machine(tmp_path / "one", store), Machine(tmp_path / "other", store)
        for each in (one, other):
            each.folder.mkdir()
            await noted(each)
            (each.folder / "gateway.yaml").write_text(f"state: .\nstore: {place}\n")
        assert (await asked(other.folder, "index")).returncode == 0
        refused = await asked(one.folder, "index", "--anew")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("other machines have lines in the index too (host):")
        assert list(await Index(store, other.audit).progress()) != []
        done = await asked(one.folder, "index", "--anew", "--all-machines")
        assert done.returncode == 0, done
        assert done.stdout == (
            "16 lines taken in; every day adds up\n"
            "note: the index lacks 12 lines that were written after 2026-11-20T09:00:00Z on another"
            " machine (host): its gateway takes them in within a minute; where none runs, run"
            " `clinic-gateway audit index` there\n"
        )
        assert (
            await asked(other.folder, "index")
        ).stdout == "12 lines taken in; every day adds up\n"
        said = (await asked(one.folder, "who-read", "clients", ONE)).stdout
        assert "get_client at FULL: 20 times" in said
        assert "note: " not in said
        await store.aclose()
