"""An hour of traffic, read off figures that only ever rise."""

from bisect import bisect_left
from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.inquiries.traffic import (
    KINDS,
    Latency,
    Samples,
    gauge,
    kind_of,
    latency,
    slowest_first,
    total,
)
from gateway.observe.metrics import CALLS, Series, Snapshot

STATUSES = ("200", "201", "400", "401", "403", "404", "409", "429", "500", "503")
counts = st.dictionaries(st.sampled_from(STATUSES), st.integers(0, 50), max_size=4)


def snapshot(calls: Counter[str], seconds: tuple[int, ...] = ()) -> Snapshot:
    """What a gateway tells that has answered these."""
    return {
        "gateway_requests_total": tuple(
            Series(("get_client", status), float(count)) for status, count in calls.items()
        ),
        "gateway_request_seconds": (Series(("get_client",), 0.0, seconds),) if seconds else (),
        "gateway_backend_calls_total": (
            Series(("read_one", "clients", "answered"), float(calls["200"])),
        ),
    }


def by_kind(calls: Counter[str]) -> dict[str, int]:
    found = dict.fromkeys(KINDS, 0)
    for status, count in calls.items():
        found[kind_of(status)] += count
    return found


@given(
    before=counts,
    steps=st.lists(st.tuples(st.floats(0.5, 90), counts), min_size=1, max_size=30),
    offset=st.floats(0, 59.9),
)
def test_minutes_have_every_call_once_in_the_minute_in_which_it_was_seen(
    before: dict[str, int], steps: list[tuple[float, dict[str, int]]], offset: float
) -> None:
    samples, calls, at = Samples(kept=1e6), Counter(before), 1000.0
    samples.add(at, snapshot(calls))
    seen = []
    for seconds, more in steps:
        began, at = at, at + seconds
        calls.update(more)
        samples.add(at, snapshot(calls))
        seen.append((began, at, by_kind(Counter(more))))
    starts = [1000.0 + offset + 60 * number for number in range(-1, 50)]
    minutes = [samples.minute(start) for start in starts]
    watched = [start for start, each in zip(starts, minutes, strict=True) if each is not None]
    assert watched == [start for start in starts if 1000.0 - 60 < start < at]
    for start, minute in zip(starts, minutes, strict=True):
        if minute is None:
            continue
        for kind in KINDS:
            inside = sum(n[kind] for a, b, n in seen if start <= a and b <= start + 60)
            around = sum(n[kind] for a, b, n in seen if a < start + 60 and b > start)
            assert inside <= minute[kind] <= around
    told = [each for each in minutes if each is not None]
    assert {kind: sum(each[kind] for each in told) for kind in KINDS} == {
        kind: sum(n[kind] for _, _, n in seen) for kind in KINDS
    }


@given(steps=st.lists(counts, min_size=1, max_size=30))
def test_the_last_minutes_are_the_difference_to_what_had_been_counted_before(
    steps: list[dict[str, int]],
) -> None:
    samples, calls = Samples(), Counter({"200": 7})
    samples.add(0.0, snapshot(calls))
    for number, more in enumerate(steps, 1):
        calls.update(more)
        samples.add(10.0 * number, snapshot(calls))
    last = samples.last(50.0)
    assert last is not None
    recent: Counter[str] = Counter()
    for more in steps[-5:]:
        recent.update(more)
    assert last.kinds == by_kind(recent)
    assert last.at == 10.0 * min(5, len(steps))
    assert last.outcomes == {"answered": recent["200"]}


def test_a_count_that_begins_anew_is_not_taken_back() -> None:
    samples = Samples()
    for number, count in enumerate((100, 130, 5, 9)):
        samples.add(60.0 * number, snapshot(Counter({"200": count})))
    told = [samples.minute(start) for start in (0.0, 60.0, 120.0)]
    assert [each and each["answered"] for each in told] == [30, 5, 4]


def test_what_was_counted_before_anybody_looked_is_left_out() -> None:
    samples = Samples()
    assert samples.last(60.0) is None
    assert samples.minute(0.0) is None
    samples.add(0.0, snapshot(Counter({"200": 1_000_000}), (0,) * 13 + (5,)))
    last = samples.last(60.0)
    assert last is not None
    assert sum(last.kinds.values()) == 0
    assert slowest_first(last.operations, 0.95) == []
    assert samples.minute(0.0) is None, "nothing of it is seen so far"


def test_samples_are_kept_for_an_hour_and_no_longer() -> None:
    samples = Samples()
    for number in range(1000):
        samples.add(10.0 * number, snapshot(Counter({"200": number})))
    assert len(samples) == 373
    assert samples.minute(9990.0 - 3600) == dict.fromkeys(KINDS, 0) | {"answered": 6}


@given(
    seconds=st.lists(st.floats(0, 30), min_size=1, max_size=200),
    share=st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]),
)
def test_a_latency_lies_between_the_limits_between_which_it_was(
    seconds: list[float], share: float
) -> None:
    buckets = [0] * (len(CALLS) + 1)
    for each in seconds:
        buckets[bisect_left(CALLS, each)] += 1
    true = sorted(seconds)[max(0, ceil(share * len(seconds) - 1e-9) - 1)]
    place = bisect_left(CALLS, true)
    found = latency(tuple(buckets), share)
    assert found is not None
    if place == 0:
        assert found == Latency(CALLS[0], -1)
    elif place == len(CALLS):
        assert found == Latency(CALLS[-1], 1)
    else:
        assert found.side == 0
        assert CALLS[place - 1] <= found.seconds <= CALLS[place]


def test_a_latency_of_nothing_is_none() -> None:
    assert latency((0,) * 14, 0.95) is None


def test_a_share_is_found_between_two_limits() -> None:
    assert latency((0, 10, 10), 0.5, (1.0, 2.0)) == Latency(2.0)
    assert latency((0, 10, 10), 0.25, (1.0, 2.0)) == Latency(1.5)
    assert latency((10, 0, 10), 0.51, (1.0, 2.0)) == Latency(2.0, 1)


def test_the_slowest_come_first() -> None:
    slow, fast, slowest = (0, 0, 4), (4, 0, 0), (0, 0, 0, 4)
    padded = {
        name: (*given, *(0,) * (14 - len(given)))
        for name, given in {"slow": slow, "fast": fast, "slowest": slowest, "none": ()}.items()
    }
    assert slowest_first(padded, 0.95) == ["slowest", "slow", "fast"]
    assert sum(total(padded.values())) == 12


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("200", "answered"),
        ("201", "answered"),
        ("304", "answered"),
        ("400", "refused"),
        ("401", "unauthorized"),
        ("403", "forbidden"),
        ("404", "missing"),
        ("409", "refused"),
        ("429", "limited"),
        ("500", "failed"),
        ("503", "failed"),
    ],
)
def test_every_status_is_of_one_kind(status: str, kind: str) -> None:
    assert kind_of(status) == kind


def test_a_gauge_is_told_by_its_labels() -> None:
    figures: Snapshot = {
        "gateway_ledger_bookings": (Series(("unknown",), 2.0), Series(("done",), 5.0))
    }
    assert gauge(figures, "gateway_ledger_bookings", "unknown") == 2.0
    assert gauge(figures, "gateway_ledger_bookings", "sent") == 0.0
    assert gauge(figures, "gateway_backend_breaker") == 0.0
