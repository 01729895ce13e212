"""A process that serves loads what its settings ask for: what others need is memory for nothing."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Serves over HTTP with JSON for a moment, and prints the modules that it has loaded by then.
SERVES = """
import asyncio, json, os, signal, sys
from pathlib import Path
from gateway.cli.serve import serve_until_stopped
from gateway.settings import load_settings

async def begun(gateway):
    print(json.dumps([*sys.modules]))
    os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(serve_until_stopped(load_settings(Path(sys.argv[1])), begun))
"""
# What only other settings or other commands need.
LEFT_OUT = (
    "adapters.conformance",
    "adapters.doctor",
    "adapters.draft",
    "adapters.sample",
    "adapters.sql",
    "aiocache",
    "alembic",
    "argon2",
    "asyncpg",
    "gateway.admin",
    "gateway.edge",
    "gateway.examination",
    "gateway.inquiries",
    "gateway.limits.redis",
    "gateway.observe.otlp",
    "gateway.state.backup",
    "gateway.state.restore",
    "gateway.store.postgres",
    "jinja2",
    "opentelemetry",
    "redis",
    "rich",
    "sqlalchemy.orm",
)
# The most modules there may be; a library that comes in brings dozens.
MOST = 830


def loaded(folder: Path, panel: str) -> frozenset[str]:
    file = folder / "gateway.yaml"
    backend = {
        "adapter": "rest",
        "url": "http://127.0.0.1:9",
        "mapping": str(ROOT / "examples/json_cloud/mapping.yaml"),
        "user": "gateway",
        "password": "correct horse",
    }
    settings = {
        "listen": "127.0.0.1:0",
        "operations_listen": "127.0.0.1:0",
        "admin_listen": panel,
        "state": str(folder / "state"),
        "shutdown_delay": 0,
        "backend": backend,
    }
    file.write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-c", SERVES, str(file)],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=100,
    )  # fmt: skip
    lists = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(lists) == 1, done.stdout + done.stderr
    return frozenset(json.loads(lists[0]))


def of(names: Iterable[str], modules: Iterable[str]) -> set[str]:
    """The names of which a module is loaded."""
    return {
        name for name in names for each in modules if each == name or each.startswith(f"{name}.")
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    return loaded(tmp_path_factory.mktemp("plain"), "")


def test_a_gateway_over_json_loads_nothing_that_others_need(plain: frozenset[str]) -> None:
    assert of(LEFT_OUT, plain) == set()
    assert len(plain) <= MOST, len(plain)
    for needed in ("adapters.rest.adapter", "gateway.web.front", "sqlalchemy.ext.asyncio.engine"):
        assert needed in plain


def test_a_gateway_with_the_panel_loads_it_before_it_serves(tmp_path: Path) -> None:
    pages = {"gateway.admin", "gateway.inquiries", "jinja2"}
    assert of(pages, loaded(tmp_path, "127.0.0.1:0")) == pages


def test_the_orm_is_there_for_whoever_asks_for_it() -> None:
    script = (
        "import sys, gateway.store.engine as ours, adapters.sql.adapter;"
        "assert 'sqlalchemy.orm' not in sys.modules;"
        "from sqlalchemy.ext.asyncio import AsyncSession;"
        "import sqlalchemy.ext.asyncio as package;"
        "assert 'sqlalchemy.orm' in sys.modules;"
        "assert package.AsyncEngine is ours.AsyncEngine is package.engine.AsyncEngine;"
        "assert not hasattr(package, 'no_such_name')"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, timeout=100)
