"""Every operation is run on real rows, also of an adapter that has no findings of its own."""

from pathlib import Path
from typing import Any

from adapters.base import Query, Record, Trouble
from adapters.examination import UNREHEARSED, Examination, Finding, Verdict
from adapters.sql.adapter import SqlAdapter
from gateway.contract.operations import OPERATIONS
from gateway.examination import examined
from tests.adapters.clinic import NOW, connect, copy_to


class Plain:
    """A clinic's own adapter: the sample's, without `examine`, and with what a test changes."""

    def __init__(self, inner: SqlAdapter, **changed: Any) -> None:
        self._inner = inner
        self._changed = changed

    def __getattr__(self, name: str) -> Any:
        if name == "examine":
            raise AttributeError(name)
        return self._changed.get(name) or getattr(self._inner, name)


async def looked_at(folder: Path, booking: bool = False, **changed: Any) -> list[Finding]:
    troubles: list[Trouble] = []
    inner = connect(copy_to(folder), troubles)
    adapter: Any = Plain(inner, **changed)
    looked = Examination(now=NOW, booking=booking)
    try:
        made = examined(adapter, looked, patience=60.0, troubles=troubles)
        return [each async for each in made]
    finally:
        await inner.aclose()


async def test_every_operation_that_reads_is_run_and_timed(tmp_path: Path) -> None:
    found = await looked_at(tmp_path)
    run = {each.subject: each for each in found if each.check == "operations"}
    assert set(run) == {each.id for each in OPERATIONS if not each.creates}
    assert all(each.verdict is Verdict.OK and each.seconds for each in run.values())


async def test_a_booking_that_cannot_be_undone_is_not_made(tmp_path: Path) -> None:
    [only] = [each for each in await looked_at(tmp_path, booking=True) if each.check == "booking"]
    assert (only.verdict, only.code) == (Verdict.WARNING, UNREHEARSED)
    assert "no way to undo" in only.text


async def test_a_fault_in_an_adapter_is_told_by_its_kind_alone(tmp_path: Path) -> None:
    async def broken(_: Query) -> Record:
        raise KeyError("Sesame")

    found = await looked_at(tmp_path, read_one=broken)
    [one] = [each for each in found if each.subject == "get_client"]
    assert (one.verdict, one.text) == (Verdict.FAILED, "the adapter itself fails: KeyError")
    assert "Sesame" not in repr(found)


async def test_a_fault_while_it_is_asked_whether_it_answers_is_told_so_too(tmp_path: Path) -> None:
    async def broken() -> None:
        raise KeyError("Sesame")

    for verb, check in (("ping", "connection"), ("check", "mapping")):
        found = await looked_at(tmp_path, **{verb: broken})
        [one] = [each for each in found if each.check == check]
        assert one.verdict is Verdict.FAILED
        assert one.text.endswith("the adapter itself fails: KeyError")
        assert "Sesame" not in repr(found)


async def test_ids_that_lead_to_another_record_fail(tmp_path: Path) -> None:
    async def other(query: Query) -> Record:
        return {"id": query.id}

    found = await looked_at(tmp_path, read_one=other)
    [ids] = [each for each in found if (each.check, each.subject) == ("ids", "clients")]
    assert ids.verdict is Verdict.FAILED
    assert "20 of 20 records are others" in ids.text
    assert len(ids.ids) == 3


async def test_what_an_adapter_reports_is_counted(tmp_path: Path) -> None:
    troubles = [Trouble("unknown code", "patients", "sex", each) for each in ("a", "b", "b")]
    inner = connect(copy_to(tmp_path))
    adapter: Any = Plain(inner)
    made = examined(adapter, Examination(now=NOW), patience=60.0, troubles=troubles)
    found = [each async for each in made if each.check == "values"]
    await inner.aclose()
    [only] = found
    assert (only.subject, only.text) == (
        "patients.sex",
        "2 records with what cannot be used: unknown code",
    )
    assert only.ids == ("a", "b")
