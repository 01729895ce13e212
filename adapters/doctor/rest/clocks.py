"""The backend's clock beside this machine's, and times that have not come yet."""

from collections.abc import AsyncIterator, Iterator
from functools import partial

from adapters.doctor.clocks import WRITTEN, beside, future
from adapters.doctor.rest.case import Case, Step
from adapters.examination import Finding


def clocks(case: Case) -> Iterator[Step]:
    """One look at the server's clock, and one at each resource's newest times."""
    yield Step("clock", "server", lambda: _server(case))
    for name, reader in case.parts.readers.items():
        for field in WRITTEN:
            if name in case.samples and field in reader.maker.fields.by_name:
                yield Step("clock", f"{name}.{field}", partial(_future, case, name, field))


async def _server(case: Case) -> AsyncIterator[Finding]:
    told = [each.apart for each in case.client.seen if each.apart is not None]
    if told:
        yield beside(case, told[-1], "")
    else:
        yield case.ok("clock", "server", "the backend does not say what time it has")


async def _future(case: Case, name: str, field: str) -> AsyncIterator[Finding]:
    parts = case.parts
    converter = parts.readers[name].maker.fields.by_name[field].converter
    zone, now = parts.tools.values.converters.zone, case.examination.now
    for each in future(case, (name, field), case.samples[name], converter, zone, now):
        yield each
