"""How long the calls took that were made, beside the time that one read may take."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator

from adapters.doctor.rest.case import Case, Step
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.rest.mapping import Call, HoursCall


def speed(case: Case) -> Iterator[Step]:
    """One look at all that was asked."""
    yield Step("calls", "speed", lambda: _speed(case))


async def _speed(case: Case) -> AsyncIterator[Finding]:
    took: dict[str, list[float]] = defaultdict(list)
    for each in case.client.seen:
        took[each.label].append(each.seconds)
    places = {f"{call.method.upper()} {call.path}": place for place, call in _calls(case)}
    slow = [label for label, seconds in took.items() if max(seconds) > case.patience / 2]
    for label in slow:
        slowest = max(took[label])
        verdict = Verdict.FAILED if slowest > case.patience else Verdict.WARNING
        text = f"{label} is slow: backend.timeout is {case.patience:g} s"
        place = places.get(label, ())
        yield case.judged(verdict, "calls", "speed", text, place, seconds=slowest)
    if took and not slow:
        label = max(took, key=lambda each: max(took[each]))
        text = f"{len(case.client.seen):,} calls, the slowest of them {label}"
        yield case.ok("calls", "speed", text, seconds=max(took[label]))


def _calls(case: Case) -> Iterator[tuple[Place, Call]]:
    """The calls that read, with the place of each one's path."""
    mapping = case.parts.mapping
    found: list[tuple[Place, Call | None]] = [
        (("backend", "login"), mapping.backend.login),
        (("booking", "find"), mapping.booking.find),
    ]
    for name, resource in mapping.resources.items():
        found.append((("resources", name, "list"), resource.list_))
        found.append((("resources", name, "one"), resource.one))
    for number, hours in enumerate(mapping.diary.hours):
        if isinstance(hours, HoursCall):
            found.append((("diary", "hours", number), hours))
    for group, sources in (("free", mapping.diary.free), ("busy", mapping.diary.busy)):
        found += [(("diary", group, number), each) for number, each in enumerate(sources)]
    for place, call in found:
        if call is not None:
            yield (*place, call.method), call
