"""The running gateway of the tests: the real composition root over a copy of the sample clinic."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import hypothesis
import pytest

from adapters.base import NotFound, Query
from adapters.sample import MAPPING
from gateway.app import build, utc_now
from gateway.contract.access import AccessLevel, Permission
from gateway.keys.store import new_key
from gateway.serving import Gateway
from gateway.settings import BackendSettings, Settings, load_settings
from tests.adapters.clinic import copy_to
from tests.partner import ALL, Partner
from tests.world import WORLDS, World

# A slow machine is no fault of the code: no generated test has a deadline of its own.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Where every server is at hand (TEST_SKIPS_FAIL), a test that skips has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("TEST_SKIPS_FAIL"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: {report.longrepr[2]}"
    return report


CONFIGURATION = f"""\
listen: 127.0.0.1:0
operations_listen: 127.0.0.1:0
state: .
shutdown_delay: 0
backend:
  url: sqlite:///clinic.db
  mapping: {MAPPING}
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
        return f"http://127.0.0.1:{self.gateway.operations_port}"

    async def mint(
        self,
        *,
        permissions: Iterable[str] = ALL,
        level: str = "FULL",
        scopes: Mapping[str, str] | None = None,
        limit: int | None = 100_000,
        expires: str | None = None,
    ) -> Minted:
        """A new key, known at once."""
        key = new_key(
            name="A test's partner",
            permissions=map(Permission, permissions),
            level=AccessLevel(level),
            now=datetime.now(UTC),
            scopes={name: AccessLevel(each) for name, each in (scopes or {}).items()},
            limit=limit,
            expires_at=None if expires is None else datetime.fromisoformat(expires),
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
