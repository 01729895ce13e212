"""The figures of several processes as those of one node."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from prometheus_client.parser import text_string_to_metric_families

from gateway.observe.metrics import (
    FIGURES,
    LAGS,
    Metrics,
    Series,
    Snapshot,
    exposition,
    lasting,
    merged,
)
from gateway.observe.process import watch_process

LAG = "gateway_loop_lag_seconds"


def told(snapshot: Snapshot) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(exposition(snapshot).decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def process(name: str, calls: int) -> Metrics:
    metrics = Metrics(["get_client"], name)
    for _ in range(calls):
        metrics.count("get_client", 200, 0.003)
        metrics.backend_call("read_one", "clients", "answered", 0.002)
    metrics.ask("gateway_policy_info", lambda: 1, "abcdef012345", "abcdef012345")
    metrics.ask("gateway_policy_stale", lambda: calls % 2)
    metrics.ask("gateway_policy_loaded_timestamp_seconds", lambda: calls)
    metrics.ask("gateway_ready", lambda: calls % 2)
    metrics.ask("gateway_calls_in_flight", lambda: calls)
    watch_process(metrics)
    return metrics


def over_the_wire(snapshot: Snapshot) -> Snapshot:
    return json.decode(json.encode(snapshot), type=dict[str, tuple[Series, ...]])


def test_a_snapshot_survives_json_and_says_what_the_process_itself_says() -> None:
    metrics = process("one", 3)
    snapshot = metrics.snapshot()
    assert over_the_wire(snapshot) == snapshot
    counted = merged([over_the_wire(snapshot)])["gateway_requests_total"]
    assert counted == snapshot["gateway_requests_total"]


def test_each_figure_is_merged_as_it_is_declared() -> None:
    both = told(merged(over_the_wire(process(*each).snapshot()) for each in (("a", 3), ("b", 4))))
    assert both['gateway_requests_total{operation="get_client",status="200"}'] == 7
    assert both['gateway_request_seconds_count{operation="get_client"}'] == 7
    assert both['gateway_request_seconds_bucket{le="0.0025",operation="get_client"}'] == 0
    assert both['gateway_request_seconds_bucket{le="0.005",operation="get_client"}'] == 7
    assert round(both['gateway_request_seconds_sum{operation="get_client"}'], 6) == 0.021
    assert both["gateway_calls_in_flight{}"] == 7
    assert both["gateway_policy_stale{}"] == 1
    assert both["gateway_policy_loaded_timestamp_seconds{}"] == 4
    assert both["gateway_ready{}"] == 0
    assert both['gateway_policy_info{file_hash="abcdef012345",hash="abcdef012345"}'] == 1
    for name in ("a", "b"):
        assert both[f'process_resident_memory_bytes{{process="{name}"}}'] > 1e6


def test_a_process_that_has_ended_stays_in_the_sums_and_nowhere_else() -> None:
    gone, living = process("a", 3), process("b", 4)
    before = merged([gone.snapshot(), living.snapshot()])
    ended = lasting(gone.snapshot())
    after = merged([ended, living.snapshot()])
    for name, figure in FIGURES.items():
        if figure.kind == "histogram" or name.startswith("gateway_requests"):
            assert after.get(name) == before.get(name)
    found = told(after)
    assert found["gateway_calls_in_flight{}"] == 4
    assert found["gateway_ready{}"] == 0
    assert 'process_resident_memory_bytes{process="a"}' not in found
    # and its successor, and the next
    for _ in range(2):
        ended = merged([ended, lasting(process("a", 2).snapshot())])
    found = told(merged([ended, living.snapshot()]))
    assert found['gateway_requests_total{operation="get_client",status="200"}'] == 11


def test_a_figure_of_another_version_is_passed_over() -> None:
    odd = {"gateway_unheard_of_total": (Series((), 3.0),)}
    assert merged([odd]) == {}
    assert lasting(odd) == {}


def test_what_nobody_has_told_is_in_no_sum() -> None:
    assert merged([]) == {}
    assert told({}) == {}


samples = st.builds(
    Series,
    st.just(()),
    st.integers(0, 1000).map(float),
    st.lists(st.integers(0, 9), min_size=len(LAGS) + 1, max_size=len(LAGS) + 1).map(tuple),
)


@given(st.lists(samples, min_size=1, max_size=4))
def test_no_counter_goes_down_whichever_processes_end(parts: list[Series]) -> None:
    living: list[Snapshot] = [{LAG: (each,)} for each in parts]
    ended: Snapshot = {}
    whole = merged(living)
    while living:
        ended = merged([ended, lasting(living.pop())])
        assert merged([ended, *living]) == whole


def test_only_gauges_are_merged_in_another_way_than_as_sums() -> None:
    for name, figure in FIGURES.items():
        if figure.kind in {"counter", "histogram"}:
            assert figure.merge == "sum", name
