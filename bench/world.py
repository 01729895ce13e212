"""What the servers under measurement need: configurations, states, keys, a sample clinic."""

import asyncio
import socket
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from adapters.base import Query
from adapters.sample import MAPPING, create
from bench.ready import ID
from gateway.backend import open_backend
from gateway.contract.access import AccessLevel, Permission
from gateway.keys.key import Key
from gateway.keys.secret import digest
from gateway.keys.store import KeyStore
from gateway.policy.policy import Policy
from gateway.policy.reading.document import load_policy
from gateway.settings import load_settings, shipped_policy
from gateway.store import open_store
from gateway.store.tables import keys, secrets

CONFIGS = ("ready", "many", "masked", "sample")
MANY = 100_000
NO_LIMIT = 1_000_000_000


# Clients as FULL sees them: four masks and a row condition.
MASKED = """\
clients:
  only: {firstName: {not: [Nobody]}}
  BASIC: [id, firstName]
  STANDARD: [createdAt, updatedAt]
  FULL: [{lastName: initial, phone: last(2), email: domain, address: city}]
  never: [lastName, phone, email, address]
"""


def bench_key() -> Key:
    """A key that may do and see all, without end."""
    return Key(
        name="bench",
        permissions=frozenset(Permission),
        level=AccessLevel.FULL,
        limit=NO_LIMIT,
        created_at=datetime.now(UTC),
    )


def masked_policy() -> str:
    """The shipped policy with that part for clients."""
    text = shipped_policy().read_text(encoding="utf-8")
    before, _, rest = text.partition("clients:\n")
    return before + MASKED + rest[rest.index("\npatients:") :]


class World:
    """One folder with a state and a configuration per server."""

    def __init__(self, folder: Path, names: Sequence[str] = CONFIGS) -> None:
        self._folder = folder
        self._ports: dict[str, int] = {}
        self._secrets: dict[str, str] = {}
        self._client = ""
        create(folder / "clinic.db", today=date.today())  # noqa: DTZ011 - the sample's own day
        for name in names:
            self._configure(name)

    def config(self, name: str) -> tuple[Path, int]:
        """The configuration file of a server, and its port; made where it is not there yet."""
        if name not in self._ports:
            self._configure(name)
        return self._folder / f"{name}.yaml", self._ports[name]

    def secret(self, name: str) -> str:
        """A key's secret; the bare handler looks at none."""
        return self._secrets.get(name, "vk_" + "A" * 48)

    def client_path(self, name: str) -> str:
        """The path of one client that the server knows."""
        return f"/api/v1/clients/{self._client if name == 'sample' else ID}"

    def policy(self, name: str = "ready") -> Policy:
        """The policy of a server."""
        own = self._folder / f"{name}-policies.yaml"
        return load_policy(own if own.exists() else shipped_policy(), lambda trouble: None)

    def free_port(self) -> int:
        """A port that nobody listens on just now."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            return port

    def _configure(self, name: str) -> None:
        port, operations = self.free_port(), self.free_port()
        self._ports[name] = port
        backend = f"  url: sqlite:///clinic.db\n  mapping: {MAPPING}\n"
        if name != "sample":
            backend = "  adapter: bench.ready:ReadyAdapter\n"
        (self._folder / f"{name}.yaml").write_text(
            f"listen: 127.0.0.1:{port}\noperations_listen: 127.0.0.1:{operations}\n"
            "admin_listen: 127.0.0.1:0\n"
            f"state: state-{name}\nshutdown_delay: 0\nbackend:\n{backend}"
        )
        if name == "masked":
            with (self._folder / f"{name}.yaml").open("a") as config:
                config.write("policy: masked-policies.yaml\n")
            (self._folder / "masked-policies.yaml").write_text(masked_policy(), encoding="utf-8")
        (self._folder / f"state-{name}").mkdir(mode=0o700)
        asyncio.run(self._fill(name))

    async def _fill(self, name: str) -> None:
        """A key with every permission; for `many` a hundred thousand others beside it."""
        store = open_store(f"sqlite:///{self._folder}/state-{name}/gateway.db")
        await store.migrate()
        key = bench_key()
        self._secrets[name] = await KeyStore(store).add(key)
        if name == "many":
            await self._add_many(store, key.id)
        if name == "sample":
            await self._learn_client(store)
        await store.aclose()

    async def _add_many(self, store: Any, model: str) -> None:
        async with store.begin() as connection:
            row = (await connection.execute(keys.select().where(keys.c.id == model))).one()
            numbers = range(MANY)
            rows: list[dict[str, Any]] = [
                {**row._asdict(), "id": f"many-{number}"} for number in numbers
            ]
            await connection.execute(keys.insert(), rows)
            held = [
                {
                    "digest": digest(f"many-{number}"),
                    "key_id": f"many-{number}",
                    "hint": "vk_many",
                    "created_at": row.created_at,
                }
                for number in numbers
            ]
            await connection.execute(secrets.insert(), held)

    async def _learn_client(self, store: Any) -> None:
        settings = load_settings(self._folder / "sample.yaml")
        adapter, _ = await open_backend(settings, store, lambda trouble: None)
        query = Query(resource="clients", now=datetime.now(UTC), limit=1)
        self._client = (await adapter.read_many(query)).records[0]["id"]
        await adapter.aclose()
