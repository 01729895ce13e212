"""The running gateway of the tests: the real composition root over a copy of the sample clinic."""

import asyncio
import gc
import importlib
import json
import os
import shutil
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import hypothesis
import pytest
import pytest_asyncio

from adapters.base import NotFound, Query
from adapters.sample import MAPPING
from gateway.app import build, utc_now
from gateway.contract.access import AccessLevel, Permission
from gateway.keys.key import Key
from gateway.lifecycle import Gateway
from gateway.settings import BackendSettings, Settings, load_settings
from gateway.store import Store, open_store, postgres
from tests.adapters.clinic import copy_to
from tests.adapters.servers import drop_empty_databases, execute, postgres_database
from tests.partner import ALL, Partner
from tests.secrecy import secrets_at_rest, secrets_in
from tests.world import WORLDS, World

# How many examples `make test` tries of each generated test that names no number of its own.
_SOME = 40


def pytest_configure(config: pytest.Config) -> None:
    """A slow machine is no fault of the code: no generated test has a deadline of its own.

    Unless only what does not take long is run, each tries as many examples as Hypothesis would.
    """
    whole = hypothesis.settings.get_profile("default").max_examples
    hypothesis.settings.register_profile(
        "untimed",
        max_examples=_SOME if config.option.markexpr == "not long" else whole,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays to the end: it is searched for garbage no more.

    A gateway freezes it likewise before it serves.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


# The event loops that a gateway may run in, the one of its image last.
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
with suppress(ImportError):
    LOOPS["uvloop"] = importlib.import_module("uvloop").new_event_loop
if "EVENT_LOOP" in os.environ:  # for those in processes of their own
    os.environ["GATEWAY_EVENT_LOOP"] = os.environ["EVENT_LOOP"]
# Where what an event loop does is seen and little else runs. `make long` runs all of the wire in
# asyncio's loop, too.
_ON_BOTH = (
    "tests/web/test_reader.py",
    *(f"tests/adapters/rest/test_{name}.py" for name in ("client", "reader")),
)
assert all(Path(__file__).parents[1].joinpath(each).is_file() for each in _ON_BOTH)


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Runs a test in the event loop EVENT_LOOP, or else the last; those of _ON_BOTH in all."""
    if item.nodeid.startswith(_ON_BOTH):
        return LOOPS
    name = os.environ.get("EVENT_LOOP", [*LOOPS][-1])
    return {name: LOOPS[name]}


# What takes longest, and mostly waits, begins first: others go on beside it, and none is the last.
_FIRST = ("cluster", "processes", "chaos", "races", "fuzz", "failures", "browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = tuple(f"tests/{folder}/" for folder in _FIRST)
    items.sort(key=lambda item: not item.nodeid.startswith(first))


def pytest_sessionfinish() -> None:
    drop_empty_databases()


# What the reasons of skipped tests name that `scripts/test-servers` starts.
_SERVERS = {
    "TEST_POSTGRES_URL": "PostgreSQL",
    "TEST_MARIADB_URL": "MariaDB",
    "TEST_FIREBIRD_URL": "Firebird",
    "TEST_REDIS_URL": "Redis",
}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for all tests that were skipped: how many, and what to start or install."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.write_line(summed_up([str(each.longrepr[2]) for each in skipped]))


def summed_up(reasons: Sequence[str]) -> str:
    """What to do so that tests skipped for these reasons run."""
    servers = {name for word, name in _SERVERS.items() if any(word in each for each in reasons)}
    others = {
        each.removeprefix("Skipped: ")
        for each in reasons
        if not any(word in each for word in _SERVERS)
    }
    todo = sorted(others)
    if servers:
        todo.insert(0, f'eval "$(scripts/test-servers)" starts {", ".join(sorted(servers))}')
    many = "1 test was" if len(reasons) == 1 else f"{len(reasons)} tests were"
    return f"{many} skipped: {'; '.join(todo)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Where every server is at hand (TEST_SKIPS_FAIL), a test that skips has failed.

    So has one, anywhere, in which a secret was said on stderr or in a log.
    """
    report = yield
    said = "".join(text for name, text in report.sections if "stdout" not in name)
    if secrets_in(said.encode()):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a secret was said on stderr or in a log"
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("TEST_SKIPS_FAIL"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: {report.longrepr[2]}"
    return report


@pytest.fixture(scope="session")
def postgres_tables() -> Iterator[str]:
    """A database with the store's tables, of which each test's own is a copy."""
    with postgres_database() as url:
        asyncio.run(_migrated(url))
        yield url


async def _migrated(place: str) -> None:
    store = open_store(place)
    await store.migrate()
    await store.aclose()


# What a test did to the tables is undone: sequences aside, they are as migrations left them.
_REMEMBER = (
    "CREATE SCHEMA began",
    "DO $$ DECLARE name text; BEGIN"
    " FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP"
    " EXECUTE format('CREATE TABLE began.%1$I AS TABLE public.%1$I', name); END LOOP; END $$",
)
_UNDO = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "SET session_replication_role = replica",
    "DO $$ DECLARE name text; BEGIN"
    " FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'began' LOOP"
    " EXECUTE format('DELETE FROM public.%I', name);"
    " EXECUTE format('INSERT INTO public.%1$I TABLE began.%1$I', name); END LOOP; END $$",
)


@pytest.fixture(scope="module")
def postgres_place(postgres_tables: str) -> Iterator[str]:
    """One database for the tests of a module: to make one takes longer than most of them."""
    template = postgres_tables.rpartition("/")[2]
    with postgres_database(options=f"TEMPLATE {template}") as place:
        execute(place, *_REMEMBER)
        yield place


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits longer for PostgreSQL, so that a machine that pauses for a moment fails no test.

    tests/store/test_postgres.py tries the real bounds.
    """
    for bound in ("STATEMENT", "CONNECT"):
        monkeypatch.setattr(postgres, bound, 30.0)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_place(request: pytest.FixtureRequest, tmp_path: Path, unhurried: None) -> str:
    """Where a test's own store is, on each database that may hold one; its tables are made."""
    if request.param == "sqlite":
        place = f"sqlite:///{tmp_path}/gateway.db"
        asyncio.run(_migrated(place))
        return place
    place = request.getfixturevalue("postgres_place")
    execute(place, *_UNDO)
    return place


@pytest.fixture
async def store(store_place: str) -> AsyncIterator[Store]:
    """An open store of the test's own, on each database that may hold one."""
    opened = open_store(store_place)
    yield opened
    await opened.aclose()


CONFIGURATION = f"""\
listen: 127.0.0.1:0
operations_listen: 127.0.0.1:0
state: .
shutdown_delay: 0
booking:
  horizon: 36500
backend:
  url: sqlite:///clinic.db
  mapping: {MAPPING}
admin_listen: "127.0.0.1:0"
"""


@dataclass(frozen=True)
class Minted:
    """A new key's id, and its secret."""

    id: str
    secret: str


class RunningGateway:
    """A gateway that answers, and what tests do beside calling it."""

    zone = "Europe/Paris"

    def __init__(self, gateway: Gateway, folder: Path, known: Mapping[str, str]) -> None:
        self.gateway = gateway
        self.folder = folder
        self._known = known

    @property
    def base(self) -> str:
        return self.gateway.base

    @property
    def port(self) -> int:
        return self.gateway.port

    @property
    def operations(self) -> str:
        return f"http://127.0.0.1:{self.gateway.system.port}"

    async def mint(
        self,
        *,
        permissions: Iterable[str] = ALL,
        level: str = "FULL",
        scopes: Mapping[str, str] | None = None,
        limit: int = 100_000,
        expires: str | None = None,
        **bounds: Any,
    ) -> Minted:
        """A new key, known at once."""
        key = Key(
            name="A test's partner",
            permissions=frozenset(map(Permission, permissions)),
            level=AccessLevel(level),
            created_at=datetime.now(UTC),
            scopes={name: AccessLevel(each) for name, each in (scopes or {}).items()},
            limit=limit,
            expires_at=None if expires is None else datetime.fromisoformat(expires),
            **bounds,
        )
        secret = await self.gateway.keys.add(key)
        await self.gateway.ring.refresh()
        return Minted(key.id, secret)

    async def revoke(self, key_id: str) -> None:
        """Take a key away, known at once."""
        await self.gateway.keys.revoke(key_id, datetime.now(UTC))
        await self.gateway.ring.refresh()

    async def ids(self) -> Mapping[str, str]:
        """A public id of each resource, of a vet, and of a client who has an animal."""
        return self._known

    def lines(self, name: str) -> list[str]:
        """What stands in a log of the state folder."""
        return (self.folder / name).read_text("utf-8").splitlines()

    def entries(self) -> list[dict[str, Any]]:
        """What the audit on disk holds of this gateway's calls, in their order."""
        files = sorted((self.folder / "audit").glob("*.jsonl"))
        lines = [line for file in files for line in file.read_bytes().splitlines()]
        return [entry for line in lines if "outcome" in (entry := json.loads(line))]


Start = Callable[..., Awaitable[RunningGateway]]


@dataclass(frozen=True)
class Template:
    """A state folder that was begun once, with a clinic, a store and a sealing secret."""

    folder: Path
    ids: Mapping[str, str]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    folder = tmp_path_factory.mktemp("template")
    copy_to(folder, datetime.now(UTC).date())
    (folder / "gateway.yaml").write_text(CONFIGURATION)
    return Template(folder, asyncio.run(_begin(folder)))


async def _begin(folder: Path) -> dict[str, str]:
    gateway = await build(load_settings(folder / "gateway.yaml", {}))
    try:
        return await _some_ids(gateway)
    finally:
        await gateway.aclose()


async def _some_ids(gateway: Gateway) -> dict[str, str]:
    now = datetime.now(UTC)
    found = {}
    for name in ("appointments", "consultations", "invoices", "stock", "appointmentTypes", "vets"):
        page = await gateway.adapter.read_many(Query(resource=name, now=now, limit=1))
        found[name] = page.records[0]["id"]
    patients = await gateway.adapter.read_many(Query(resource="patients", now=now))
    for patient in patients.records:
        if patient["status"] != "ACTIVE":
            continue
        try:
            owner = Query(resource="clients", now=now, id=patient["clientId"])
            await gateway.adapter.read_one(owner)
        except NotFound:
            continue
        return found | {"clients": owner.id, "patients": patient["id"], "vet": found["vets"]}
    raise LookupError("the sample clinic has no client with an animal")


@asynccontextmanager
async def begun(
    template: Template, folder: Path, now: Callable[[], datetime] = utc_now, **changes: Any
) -> AsyncIterator[RunningGateway]:
    """A gateway over a copy of the template, which becomes that folder."""
    shutil.copytree(template.folder, folder)
    loaded = load_settings(folder / "gateway.yaml", {})
    settings = Settings.model_validate(loaded.model_copy(update=changes))
    gateway = await build(settings, now=now)
    try:
        await gateway.start()
        yield RunningGateway(gateway, folder, template.ids)
    finally:
        await gateway.aclose()
    assert secrets_at_rest(folder) == []


@pytest.fixture
async def start_gateway(template: Template, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts gateways, each over its own copy: `await start_gateway(body_timeout=0.1)`."""
    async with AsyncExitStack() as stack:

        async def start(
            name: str = "state", now: Callable[[], datetime] = utc_now, **changes: Any
        ) -> RunningGateway:
            return await stack.enter_async_context(begun(template, tmp_path / name, now, **changes))

        yield start


Begin = Callable[..., Awaitable[Partner]]


@pytest.fixture
async def partner_of(start_gateway: Start, session: aiohttp.ClientSession) -> AsyncIterator[Begin]:
    """A partner of a gateway over a made-up practice system: `await partner_of(World(...))`."""
    begun = []

    async def begin(world: World, **changes: Any) -> Partner:
        name = f"world-{id(world)}"
        begun.append(name)
        WORLDS[name] = world
        backend = {"adapter": "tests.world:WorldAdapter", "url": name, **changes.pop("backend", {})}
        gateway = await start_gateway(name, backend=BackendSettings(**backend), **changes)
        return await Partner(gateway, session, None).with_key()

    yield begin
    for name in begun:
        del WORLDS[name]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
async def running_gateway(start_gateway: Start) -> RunningGateway:
    return await start_gateway()


@pytest.fixture
async def partner(running_gateway: RunningGateway, session: aiohttp.ClientSession) -> Partner:
    """A partner with every permission, at FULL."""
    return await Partner(running_gateway, session, None).with_key()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_gateway(
    template: Template, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningGateway]:
    """One for all tests of a module that leave it as it was, and run in the module's loop."""
    async with begun(template, tmp_path_factory.mktemp("lasting") / "state") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def lasting_partner(lasting_gateway: RunningGateway) -> AsyncIterator[Partner]:
    """A partner of it with every permission, at FULL, and with a key of the test's own."""
    async with aiohttp.ClientSession() as opened:
        yield await Partner(lasting_gateway, opened, None).with_key()
