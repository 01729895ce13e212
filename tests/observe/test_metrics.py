from prometheus_client.parser import text_string_to_metric_families

from adapters.base import Trouble
from gateway.observe.metrics import Metrics


def figures(metrics: Metrics) -> dict[str, float]:
    """Each sample as `name{label="value",...}`."""
    found = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_calls_are_counted_by_operation_and_status_and_timed() -> None:
    metrics = Metrics(["get_client", "list_stock"])
    metrics.count("get_client", 200, 0.001)
    metrics.count("get_client", 404, 0.3)
    metrics.count("get_client", 200, 99.0)
    found = figures(metrics)
    assert found['gateway_requests_total{operation="get_client",status="200"}'] == 2
    assert found['gateway_requests_total{operation="get_client",status="404"}'] == 1
    assert found['gateway_request_seconds_count{operation="get_client"}'] == 3
    assert found['gateway_request_seconds_bucket{le="0.001",operation="get_client"}'] == 1
    assert found['gateway_request_seconds_bucket{le="0.5",operation="get_client"}'] == 2
    assert found['gateway_request_seconds_bucket{le="+Inf",operation="get_client"}'] == 3
    assert round(found['gateway_request_seconds_sum{operation="get_client"}'], 3) == 99.301


def test_no_name_from_outside_becomes_a_label() -> None:
    metrics = Metrics(["get_client"])
    for name in ("", "nonsense", "other"):
        metrics.count(name, 404, 0.1)
    found = figures(metrics)
    assert found['gateway_requests_total{operation="other",status="404"}'] == 3
    assert "nonsense" not in metrics.text().decode()


def test_the_rest_is_counted_too() -> None:
    metrics = Metrics([])
    metrics.refused_key("KeyInvalid")
    metrics.denied()
    metrics.trouble(Trouble("unknown code", "patients", "status", "id"))
    metrics.policy("abcdef012345", "012345abcdef")
    metrics.keys_loaded(lambda: 7)
    found = figures(metrics)
    assert found['gateway_authentication_failures_total{reason="KeyInvalid"}'] == 1
    assert found["gateway_limit_denials_total{}"] == 1
    assert found["gateway_keys_loaded{}"] == 7
    assert found['gateway_policy_info{file_hash="012345abcdef",hash="abcdef012345"}'] == 1
    labels = 'field="status",kind="unknown code",resource="patients"'
    assert found[f"gateway_unusable_values_total{{{labels}}}"] == 1


def test_no_series_is_told_but_those_that_are_listed() -> None:
    metrics = Metrics(["get_client"])
    metrics.count("get_client", 200, 0.1)
    metrics.refused_key("KeyInvalid")
    metrics.denied()
    metrics.lines_lost(3)
    metrics.usage_lost(2)
    metrics.trouble(Trouble("unknown code", "patients", "status", "id"))
    metrics.keys_loaded(lambda: 7)
    metrics.backend_call("read_one", "clients", "answered")
    metrics.breaker(lambda: "closed")
    assert {name.partition("{")[0] for name in figures(metrics)} == {
        "gateway_requests_total",
        "gateway_request_seconds_bucket",
        "gateway_request_seconds_count",
        "gateway_request_seconds_sum",
        "gateway_authentication_failures_total",
        "gateway_limit_denials_total",
        "gateway_limiter_local_total",
        "gateway_log_lines_lost_total",
        "gateway_usage_lost_total",
        "gateway_unusable_values_total",
        "gateway_policy_info",
        "gateway_policy_loaded_timestamp_seconds",
        "gateway_policy_stale",
        "gateway_keys_loaded",
        "gateway_backend_calls_total",
        "gateway_backend_breaker",
    }
