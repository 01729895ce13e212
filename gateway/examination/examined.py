"""Examines an adapter: by its own means where it has some, and by every operation."""

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial

from adapters.base import Adapter, Trouble
from adapters.doctor import examiner_of
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Finding, Verdict
from gateway.examination.findings import count, finding, problems, said
from gateway.examination.rounds import Rounds


async def examined(
    adapter: Adapter,
    examination: Examination,
    *,
    patience: float,
    troubles: Sequence[Trouble] = (),
) -> AsyncIterator[Finding]:
    """All findings, those of the adapter's own first; `patience` is what one read may take.

    `troubles` are those that the adapter reports meanwhile: told of one that has no findings of
    its own.
    """
    rounds = Rounds(adapter, examination.now, patience)
    answers = await rounds.connection()
    yield answers
    if answers.verdict is Verdict.FAILED:
        return
    examine = examiner_of(adapter)
    async for each in (examine or partial(_checked, adapter))(examination):
        yield each
    async for each in rounds.findings():
        yield each
    if examine is None:
        for each in _reported(troubles):
            yield each


async def _checked(adapter: Adapter, examination: Examination) -> AsyncIterator[Finding]:
    """What is asked of an adapter that cannot be examined."""
    try:
        for each in problems(await adapter.check() or (), Verdict.WARNING):
            yield each
        yield finding("mapping", "names", Verdict.OK, "it has all that the mapping names")
    except DocumentErrors as error:
        for each in problems(error.problems):
            yield each
    except Exception as error:  # noqa: BLE001 - a clinic's own adapter may raise anything
        yield finding("mapping", "names", Verdict.FAILED, said(error))
    if examination.booking:
        text = "no booking was tried: this adapter has no way to undo one"
        yield finding("booking", "rehearsal", Verdict.WARNING, text)


def _reported(troubles: Sequence[Trouble]) -> Iterator[Finding]:
    """Values that could not be used, by their fields."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for each in troubles:
        where = (each.resource, each.field, each.kind)
        found.setdefault(where, {})[each.record] = None
    for (resource, field_, kind), records in found.items():
        text = f"{count(list(records))} with what cannot be used: {kind}"
        ids = [each for each in records if each]
        yield finding("values", f"{resource}.{field_}", Verdict.WARNING, text, ids)
