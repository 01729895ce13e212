"""What the README says in tables is what the code says: compared, row by row."""

import re
from pathlib import Path

import pytest

from gateway.cli import COMMANDS
from gateway.contract import errors
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.errors import GatewayError
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import GOVERNED
from gateway.observe.metrics import Metrics
from gateway.policy.document import load_policy
from gateway.settings import BackendSettings, Settings, names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def operations() -> list[str]:
    return [
        f"| {each.method} | {each.path} | {each.permission} | {each.summary} |"
        for each in OPERATIONS
    ]


def levels() -> list[str]:
    policy = load_policy(ROOT / "policies.yaml", lambda trouble: None)
    rows = []
    for resource in GOVERNED:
        cells = [
            " ".join(
                f"`{path}`" for path in resource.paths if opens(policy, resource.name, path, at)
            )
            for at in LEVELS
        ]
        rows.append(f"| {resource.name} | {' | '.join(cells)} |")
    return rows


def opens(policy: object, resource: str, path: str, level: AccessLevel) -> bool:
    return policy.opens[resource][path] is level  # type: ignore[attr-defined]


def statuses() -> list[str]:
    found: dict[int, list[str]] = {}
    for kind in descendants(GatewayError):
        message = getattr(kind, "message", "")
        if message:
            found.setdefault(kind.status, []).append(f"`{message}`")
    found[400] = [
        "`Invalid request: ` and the first problem",
        "`Idempotency-Key was used with another request`",
    ]
    return [f"| {status} | {'; '.join(found[status])} |" for status in sorted(found)]


def settings() -> list[str]:
    return [f"| `{name}` | {default(name)} | {summary} |" for name, summary in names()]


def default(name: str) -> str:
    """A setting's default, where it is plain; the meaning says what else it is."""
    group, _, member = name.rpartition(".")
    info = (BackendSettings if group else Settings).model_fields[member]
    plain = info.default if isinstance(info.default, str | int | float | Path) else None
    return "" if plain is None else f"`{plain:g}`" if isinstance(plain, float) else f"`{plain}`"


def metrics() -> list[str]:
    figures = Metrics([])
    figures.keys_loaded(lambda: 0)
    rows = []
    for family in figures.registry.collect():
        labels = " ".join(f"`{label}`" for label in LABELS[family.name])
        name = family.name + ("_total" if family.type == "counter" else "")
        name += "_info" if family.type == "info" else ""
        rows.append(f"| `{name}` | {labels} | {family.documentation} |")
    return rows


# A family without samples does not tell its labels; tests/observe hold them.
LABELS = {
    "gateway_requests": ("operation", "status"),
    "gateway_request_seconds": ("operation",),
    "gateway_authentication_failures": ("reason",),
    "gateway_limit_denials": (),
    "gateway_unusable_values": ("kind", "resource", "field"),
    "gateway_log_lines_lost": (),
    "gateway_policy": ("hash",),
    "gateway_keys_loaded": (),
}


def descendants(kind: type[GatewayError]) -> list[type[GatewayError]]:
    return [each for child in kind.__subclasses__() for each in (child, *descendants(child))]


TABLES = {
    "operations": operations,
    "levels": levels,
    "errors": statuses,
    "settings": settings,
    "metrics": metrics,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_readme_says_what_the_code_says(name: str) -> None:
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", README, re.DOTALL)
    assert found is not None
    rows = found[1].splitlines()[2:]
    assert rows == TABLES[name](), "\n".join(TABLES[name]())


def test_the_readme_names_every_command() -> None:
    for command in COMMANDS:
        assert f"`{command}`" in README or f"clinic-gateway {command}" in README


def test_the_readme_names_every_error_class_by_its_text() -> None:
    assert errors.TimeSlotConflict.message in README


def test_the_folders_that_the_readme_shows_are_there() -> None:
    plan = README.partition("## Carry it on")[2]
    for name in re.findall(r"^\| `([a-z/.]+)`", plan, re.MULTILINE):
        assert (ROOT / name).exists(), name
