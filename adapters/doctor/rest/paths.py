"""Whether each path of the mapping leads to something in what the backend gives."""

from collections.abc import AsyncIterator, Iterator

from adapters.doctor.rest.case import Case, Step, records
from adapters.examination import Finding
from adapters.rest.unfilled import written_paths


def paths(case: Case) -> Iterator[Step]:
    """One look at all of them."""
    yield Step("mapping", "paths", lambda: _paths(case))


async def _paths(case: Case) -> AsyncIterator[Finding]:
    count, bad = 0, 0
    for name, raws in case.raws.items():
        for each in written_paths(name, case.parts.mapping.resources[name], raws):
            count += 1
            for text in each.complaints():
                bad += 1
                yield case.warning("mapping", each.subject, text, each.place)
    if not bad:
        many = records(sum(map(len, case.raws.values())))
        yield case.ok("mapping", "paths", f"all {count} paths lead somewhere in {many}")
