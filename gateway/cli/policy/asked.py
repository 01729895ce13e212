"""What a question is about: a key of the gateway's store, a record of the practice system."""

import asyncio
from pathlib import Path

from adapters.base import NotFound, Query, Record, Report
from gateway.cli.keys import one_named
from gateway.cli.options import fail
from gateway.contract.fields import Resource
from gateway.keys.key import Key
from gateway.state import opened_if_begun


def key_named(config: Path | None, name: str) -> Key:
    """The key with that id, or the only one with that name; else the end of the command."""
    return one_named(asyncio.run(_keys(config)), name)


async def _keys(config: Path | None) -> list[Key]:
    from gateway.keys.store import KeyStore
    from gateway.settings import check_own_place, load_settings

    check_own_place(config)
    async with opened_if_begun(load_settings(config)) as store:
        return [key for key, _ in (await KeyStore(store).list()).keys] if store else []


def record_named(config: Path | None, resource: Resource, record_id: str, report: Report) -> Record:
    """The whole record of the practice system; else the end of the command.

    `report` hears of each of its values that partners cannot be shown.
    """
    try:
        return asyncio.run(_record(config, resource.name, record_id, report))
    except NotFound:
        fail(
            f"{resource.name} has no record {record_id}; `clinic-gateway sample {resource.name}`"
            " lists some"
        )


async def _record(config: Path | None, resource: str, record_id: str, report: Report) -> Record:
    from gateway.app import utc_now
    from gateway.cli.backend import practice_system
    from gateway.settings import load_settings

    async with practice_system(load_settings(config), report) as adapter:
        return await adapter.read_one(Query(resource=resource, now=utc_now(), id=record_id))
