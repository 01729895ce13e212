"""What is compared: how each target is started, where it answers, and what it lacks."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import NamedTuple

from bench.peers.farm import LOAD_CORE, Address, Farm, free_port
from bench.peers.installed import BUILD, HERE, lua_modules, nginx
from gateway.contract.access import AccessLevel, Permission
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.store import open_store

SMALL_LIMIT = 5


class Keys(NamedTuple):
    """The secrets of three keys at STANDARD: for clients, not for clients, with a small limit."""

    key: str = "vk_peers"
    unpermitted: str = "vk_unpermitted"
    small: str = "vk_small"


@dataclass(frozen=True, kw_only=True)
class Target:
    """One row of the tables; `works` is False for what answers without doing the work."""

    name: str
    addresses: Mapping[str, Address]  # by what it remembers: "uncached", "cached"
    keys: Keys = Keys()  # noqa: RUF009 - it cannot be changed
    works: bool = True


DIRECT, BARE = "the backend, asked directly", "bare aiohttp + uvloop"
NGINX, NGINX_WHOLE = "nginx + Lua", "nginx + Lua, whole records cached"
FASTIFY, GATEWAY = "Fastify + undici", "the gateway"
LACKS = {
    BARE: "all of the work",
    NGINX: "keys kept as digests, with an expiry and a level per resource; bookings and the other"
    " resources; mappings; a policy that changes while it runs; audit, metrics and access log; a"
    " deadline and a breaker",
    NGINX_WHOLE: "the same",
    FASTIFY: "the same; a bound on its cache",
    GATEWAY: "",
}


def start_backend(farm: Farm) -> Target:
    """Returns the backend as a target of its own, beside the load."""
    address = farm.module("backend", LOAD_CORE)
    return Target(name=DIRECT, addresses={"uncached": address}, works=False)


def start_bare(farm: Farm, backend: int) -> Iterator[Target]:
    """Starts the reference, which asks no backend."""
    address = farm.module("bare")
    yield Target(name=BARE, addresses={"uncached": address, "cached": address}, works=False)


def start_nginx(farm: Farm, backend: int) -> Iterator[Target]:
    """Starts one nginx for both of its rows."""
    port = free_port()
    address = farm.start("nginx", port, nginx_words(farm.folder, port, backend))
    yield Target(name=NGINX, addresses=_prefixed(address))
    yield Target(name=NGINX_WHOLE, addresses={"cached": address._replace(prefix="/whole")})


def nginx_words(folder: Path, port: int, backend: int) -> list[str]:
    """Writes the configuration for this machine into the folder; returns the command for it."""
    shipped = Template((HERE / "nginx.conf").read_text())
    config = folder / "nginx.conf"
    config.write_text(
        shipped.safe_substitute(modules=lua_modules(), folder=folder, port=port, backend=backend)
    )
    return [str(nginx()), "-p", str(folder), "-e", "stderr", "-c", str(config)]


def start_fastify(farm: Farm, backend: int) -> Iterator[Target]:
    """Starts the script where its modules are."""
    script, port = shutil.copy(HERE / "fastify.mjs", BUILD), free_port()
    words = [str(shutil.which("node")), str(script), str(port), str(backend)]
    yield Target(name=FASTIFY, addresses=_prefixed(farm.start("fastify", port, words)))


def _prefixed(address: Address) -> Mapping[str, Address]:
    return {name: address._replace(prefix=f"/{name}") for name in ("uncached", "cached")}


# One process, with bounds that 64 connections of one key and address do not reach.
_CONFIGURATION = """\
listen: 127.0.0.1:{port}
operations_listen: 127.0.0.1:{operations}
admin_listen: ""
state: state-{name}
shutdown_delay: 0
in_flight: 500
in_flight_per_key: 500
connections_per_address: 500
backend: {{adapter: rest, url: "http://127.0.0.1:{backend}", mapping: {mapping}, in_flight: 128}}
cache: {{get_client: {seconds}, list_clients: {seconds}, bytes: 67108864}}
"""


def start_gateway(farm: Farm, backend: int) -> Iterator[Target]:
    """Starts it twice, without a cache and with one for an hour; both know the same keys."""
    (farm.folder / "state-uncached").mkdir(mode=0o700)
    keys = asyncio.run(_make_keys(farm.folder / "state-uncached" / "gateway.db"))
    shutil.copytree(farm.folder / "state-uncached", farm.folder / "state-cached")
    addresses = {name: _one_gateway(farm, backend, name) for name in ("uncached", "cached")}
    yield Target(name=GATEWAY, addresses=addresses, keys=keys)


async def _make_keys(place: Path) -> Keys:
    store = open_store(place)
    await store.migrate()
    secrets = []
    for permission, limit in (
        (Permission.CLIENT_READ, 1_000_000_000),
        (Permission.STOCK_READ, 1_000_000_000),
        (Permission.CLIENT_READ, SMALL_LIMIT),
    ):
        key = Key(
            name=f"{permission}, {limit} in an hour",
            permissions=frozenset([permission]),
            level=AccessLevel.STANDARD,
            limit=limit,
            created_at=datetime.now(UTC),
        )
        secrets.append(await KeyStore(store).add(key))
    await store.aclose()
    return Keys(*secrets)


def _one_gateway(farm: Farm, backend: int, name: str) -> Address:
    port, config = free_port(), farm.folder / f"{name}.yaml"
    text = _CONFIGURATION.format(
        name=name,
        port=port,
        operations=free_port(),
        backend=backend,
        mapping=HERE / "mapping.yaml",
        seconds=3600 if name == "cached" else 0,
    )
    config.write_text(text)
    words = [sys.executable, "-m", "gateway", "--config", str(config), "serve"]
    return farm.start(f"gateway-{name}", port, words)._replace(prefix="/api/v1")


# How each is started, by what must be installed for it.
STARTS: Mapping[str, Callable[[Farm, int], Iterator[Target]]] = {
    "aiohttp": start_bare,
    "nginx": start_nginx,
    "Fastify": start_fastify,
    "gateway": start_gateway,
}


def start_all(farm: Farm, backend: int, without: Collection[str]) -> tuple[list[Target], list[str]]:
    """Returns the targets for which nothing is missing, and why others did not start."""
    targets: list[Target] = []
    faults: list[str] = []
    for needed, start in STARTS.items():
        try:
            targets += start(farm, backend) if needed not in without else ()
        except RuntimeError as error:
            faults.append(str(error))
    return targets, faults
