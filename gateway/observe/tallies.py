"""What every call adds to, in plain numbers.

Prometheus' own counters and histograms lock for each call what only the event loop's thread ever
touches; these are made into samples when they are read.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable

from gateway.observe.figures import CALLS
from gateway.observe.merged import Labels, Sample

OTHER = "other"
# The resource that an operation answers with, and how many of its fields a level does not see.
Hidden = Callable[[str, str], tuple[str, int]]
# So many views are told apart before they are summed up: a policy that changes makes new ones.
MOST_VIEWS = 500


class Tally:
    """Calls of one kind, and how long they took."""

    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.count, self.seconds = 0, 0.0
        self.buckets = [0] * (len(CALLS) + 1)

    def add(self, other: "Tally") -> None:
        """Those of another one too."""
        self.seconds += other.seconds
        self.buckets = [a + b for a, b in zip(self.buckets, other.buckets, strict=True)]

    def sample(self, *labels: str) -> Sample:
        """As a histogram's series."""
        return Sample(labels, self.seconds, tuple(self.buckets))


class Calls:
    """Counts the answered calls."""

    def __init__(self, operations: Iterable[str]) -> None:
        self._operations = frozenset(operations)
        self._tallies: dict[tuple[str, int], Tally] = {}
        # the same, also by the names that are none of an operation
        self._by_any_name: dict[tuple[str, int], Tally] = {}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """One answered call; a name that is no operation is counted as `other`."""
        tally = self._by_any_name.get((operation, status))
        if tally is None:
            name = operation if operation in self._operations else OTHER
            tally = self._tallies.setdefault((name, status), Tally())
            self._by_any_name[operation, status] = tally
        tally.count += 1
        tally.seconds += seconds
        tally.buckets[bisect_left(CALLS, seconds)] += 1

    def requests(self) -> dict[Labels, float]:
        """By operation and status."""
        return {(name, str(status)): each.count for (name, status), each in self._tallies.items()}

    def latency(self) -> list[Sample]:
        """By operation."""
        whole: dict[str, Tally] = {}
        for (name, _), tally in self._tallies.items():
            whole.setdefault(name, Tally()).add(tally)
        return [total.sample(name) for name, total in whole.items()]


class BackendCalls:
    """Counts what the practice system was asked."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, str, str], Tally] = {}

    def count(self, verb: str, resource: str, outcome: str, seconds: float | None) -> None:
        """One call; `outcome` is `answered`, or what it was instead; no seconds: not asked."""
        tally = self._tallies.get((verb, resource, outcome))
        if tally is None:
            tally = self._tallies[verb, resource, outcome] = Tally()
        tally.count += 1
        if seconds is not None:
            tally.seconds += seconds
            tally.buckets[bisect_left(CALLS, seconds)] += 1

    def calls(self) -> dict[Labels, float]:
        """By verb, resource and outcome."""
        return {call: tally.count for call, tally in self._tallies.items()}

    def latency(self) -> list[Sample]:
        """By verb and resource."""
        whole: dict[tuple[str, str], Tally] = {}
        for (verb, resource, _), tally in self._tallies.items():
            whole.setdefault((verb, resource), Tally()).add(tally)
        return [total.sample(*call) for call, total in whole.items()]


class Shown:
    """Counts the records in answers, and from these what was withheld.

    How many fields a view hides is asked once for each view, not for each answer.
    """

    def __init__(self) -> None:
        self.hidden: Hidden = lambda operation, level: (operation, 0)
        # (operation, level, policy) -> [resource, fields that are hidden, records shown]
        self._views: dict[tuple[str, str, str | None], tuple[str, int, list[int]]] = {}
        self._records: dict[Labels, int] = {}
        self._fields: dict[Labels, int] = {}

    def count(self, operation: str, level: str, policy: str | None, records: int) -> None:
        """Records that one answer showed."""
        view = self._views.get((operation, level, policy))
        if view is None:
            if len(self._views) >= MOST_VIEWS:
                self._sum_up()
            view = (*self.hidden(operation, level), [0])
            self._views[operation, level, policy] = view
        view[2][0] += records

    def records(self) -> dict[Labels, float]:
        """By resource and level."""
        self._sum_up()
        return {labels: float(count) for labels, count in self._records.items()}

    def fields(self) -> dict[Labels, float]:
        """The same of the fields that were withheld."""
        self._sum_up()
        return {labels: float(count) for labels, count in self._fields.items()}

    def _sum_up(self) -> None:
        for (_, level, _), (resource, fields, count) in self._views.items():
            labels = (resource, str(level))
            self._records[labels] = self._records.get(labels, 0) + count[0]
            self._fields[labels] = self._fields.get(labels, 0) + count[0] * fields
        self._views.clear()
