"""What a storm blows over: a practice system of one of three kinds, and the gateway's own store."""

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from adapters.base import Adapter, AdapterOptions, Report
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import PASSWORD, USER
from gateway.backend import shapes
from tests.adapters.rest.cloud import CREDENTIALS, MAPPING
from tests.adapters.servers import postgres_database
from tests.chaos.cloud import work
from tests.chaos.history import WHOLE, Row
from tests.command import Forked
from tests.races.practice import SECRET, Practice, practice


class Ground(Protocol):
    """One practice system; `store` is the gateway's own, None for the one in its folder."""

    store: str | None
    backend: Mapping[str, str]

    @property
    def mapping(self) -> str: ...

    def open(self, folder: Path) -> Adapter: ...

    async def left(self) -> tuple[list[Row], int]: ...


class Diary:
    """A practice on a database."""

    def __init__(self, practice: Practice, store: str | None = None) -> None:
        self._practice = practice
        self.store = store
        self.backend = {"url": practice.url}

    @property
    def mapping(self) -> str:
        """The text of its mapping."""
        return self._practice.mapping

    def open(self, folder: Path) -> Adapter:
        """An adapter over it."""
        return self._practice.open(folder)

    async def left(self) -> tuple[list[Row], int]:
        """The appointments that partners made, and how many rows belong to none."""
        run = self._practice.run
        appointments = await run(
            "SELECT id, note, vet, starts, ends FROM appointment WHERE source = 'gateway'"
            " AND state <> 'GONE'"
        )
        attended = [number for (number,) in await run("SELECT appointment FROM attendance")]
        noted = [number for (number,) in await run("SELECT appointment FROM journal")]
        old = {1}
        known = {number for number, *_ in appointments} | old
        rows = [
            Row(
                note=note, vet=vet, start=_moment(starts), end=_moment(ends),
                parts=(attended.count(number), noted.count(number)),
            )
            for number, note, vet, starts, ends in appointments
        ]  # fmt: skip
        return rows, sum(number not in known for number in [*attended, *noted])


class CloudGround:
    """A cloud in a process of its own, which locks nothing and forbids nothing."""

    store = None
    mapping = MAPPING.read_text()

    def __init__(self, url: str) -> None:
        self._url = url
        self.backend = {"url": url, "adapter": "rest", "user": USER, "password": PASSWORD}

    def open(self, folder: Path) -> Adapter:
        """An adapter over it."""
        file = folder / "practice.yaml"
        file.write_text(self.mapping)
        report: Report = lambda trouble: None  # noqa: E731 - troubles are other tests' matter
        return RestAdapter(
            AdapterOptions(
                url=self._url, mapping=file, secret=bytes.fromhex(SECRET), shapes=shapes(),
                report=report, credentials=CREDENTIALS,
            )
        )  # fmt: skip

    async def left(self) -> tuple[list[Row], int]:
        """The visits; each is one row."""
        told = {"name": USER, "password": PASSWORD}
        token = _asked(f"{self._url}/session", told, {"Content-Type": "application/json"})["token"]
        visits = _asked(f"{self._url}/visits", None, {"Authorization": f"Token {token}"})["visits"]
        rows = [
            Row(
                note=each["note"], vet=int(each["vet"]["uuid"][-1]),
                start=_moment(each["starts_at"]), end=_moment(each["ends_at"]), parts=WHOLE,
            )
            for each in visits
        ]  # fmt: skip
        return rows, 0


@contextmanager
def sqlite(folder: Path) -> Iterator[Ground]:
    """Both the practice and the gateway's store in files."""
    with practice("sqlite", folder) as made:
        yield Diary(made)


@contextmanager
def postgresql(folder: Path) -> Iterator[Ground]:
    """Both on a server; skips the test where none is given."""
    with practice("postgresql", folder) as made, postgres_database() as store:
        yield Diary(made, store)


@contextmanager
def cloud(folder: Path) -> Iterator[Ground]:
    """A practice in JSON over HTTP."""
    with Forked(work) as process:
        try:
            yield CloudGround(process.stdout.readline().strip())
        finally:
            process.terminate()


GROUNDS = {"sqlite": sqlite, "postgresql": postgresql, "json": cloud}


def _moment(raw: Any) -> datetime:
    return raw if isinstance(raw, datetime) else datetime.fromisoformat(raw)


def _asked(url: str, body: Any, headers: dict[str, str]) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as answer:
        return json.load(answer)
