from prometheus_client.parser import text_string_to_metric_families

from gateway.observe.metrics import Metrics, exposition


def figures(metrics: Metrics) -> dict[str, float]:
    """Each sample as `name{label="value",...}`."""
    found = {}
    for family in text_string_to_metric_families(exposition(metrics.snapshot()).decode()):
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
    assert "nonsense" not in exposition(metrics.snapshot()).decode()


def test_the_rest_is_counted_too() -> None:
    metrics = Metrics([])
    metrics.add("gateway_authentication_failures_total", 1, "KeyInvalid")
    metrics.add("gateway_limit_denials_total")
    metrics.add("gateway_unusable_values_total", 1, "unknown code", "patients", "status")
    metrics.ask("gateway_policy_info", lambda: 1, "abcdef012345", "012345abcdef")
    metrics.ask("gateway_keys_loaded", lambda: 7)
    found = figures(metrics)
    assert found['gateway_authentication_failures_total{reason="KeyInvalid"}'] == 1
    assert found["gateway_limit_denials_total{}"] == 1
    assert found["gateway_keys_loaded{}"] == 7
    assert found['gateway_policy_info{file_hash="012345abcdef",hash="abcdef012345"}'] == 1
    labels = 'field="status",kind="unknown code",resource="patients"'
    assert found[f"gateway_unusable_values_total{{{labels}}}"] == 1
