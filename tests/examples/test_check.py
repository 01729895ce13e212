"""`clinic-gateway backend check` finds nothing in the examples that would fail a partner."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
from click.testing import CliRunner

from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import ZONE
from examples.json_cloud.records import made as made_records
from examples.launch import Example
from examples.mariadb_eav.__main__ import EXAMPLE as MARIADB
from examples.postgres_slots.__main__ import EXAMPLE as POSTGRES
from gateway.cli import main
from tests.adapters.rest.cloud import FOLDER, listening
from tests.examples.clinic import made

pytestmark = pytest.mark.long


@pytest.mark.parametrize(("example", "kind"), [(MARIADB, "mysql"), (POSTGRES, "postgresql")])
def test_an_example_is_green_and_a_booking_is_rehearsed(
    example: Example, kind: str, tmp_path: Path
) -> None:
    with made(example, kind, tmp_path / "state") as clinic:
        configuration = str(clinic.folder / "gateway.yaml")
        command = ["backend", "check", "--booking", "--json", "--config", configuration]
        result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each for each in found if each["verdict"] == "failed"] == []
    rehearsed = [each["text"] for each in found if each["subject"] == "rehearsal"]
    assert len([each for each in rehearsed if each.endswith("rehearsed and undone")]) > 10


@contextmanager
def cloud_elsewhere() -> Iterator[str]:
    """The address of the example's cloud, which runs beside the command."""
    urls: Queue[str] = Queue()
    loop, done = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with listening(Cloud(made_records(datetime.now(ZONE).date()))) as url:
            urls.put(url)
            await done.wait()

    thread = Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield urls.get(timeout=10)
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(timeout=10)
        loop.close()


def test_the_cloud_is_green_and_says_that_its_rehearsal_was_dry(tmp_path: Path) -> None:
    with cloud_elsewhere() as url:
        command = ["backend", "check", "--booking", "--json"]
        command += ["--config", str(FOLDER / "gateway.yaml")]
        environment = {"GATEWAY_BACKEND_URL": url, "GATEWAY_STATE": str(tmp_path)}
        result = CliRunner().invoke(main, command, env=environment)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each for each in found if each["verdict"] == "failed"] == []
    dry, *rehearsed = [each for each in found if each["subject"] == "rehearsal"]
    assert "dry: reads alone were sent" in dry["text"]
    assert len(rehearsed) > 10
    assert {each["check"] for each in found} >= {"login", "calls", "pages", "filters", "operations"}
