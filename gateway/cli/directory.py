"""`clinic-gateway vets` and `sample`: public ids that no operation lists, to hand out or try."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from adapters.base import Adapter, Page, Query
from gateway.app import utc_now
from gateway.backend import check_configured, open_backend
from gateway.cli.options import config_option, json_option
from gateway.cli.words import OneOf
from gateway.contract.operations import PAGE_LARGEST
from gateway.contract.resources import RESOURCES
from gateway.settings import Settings, load_settings
from gateway.state import open_own_store

WITH_IDS = [each.name for each in RESOURCES if "id" in each.paths]


@click.command()
@config_option
@json_option
def vets(config: Path | None, as_json: bool) -> None:
    """List the veterinarians with their public ids."""
    page = asyncio.run(_read(load_settings(config), "vets", PAGE_LARGEST))
    found = [{"id": each["id"], "name": each.get("name")} for each in page.records]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        click.echo(f"{each['id']}  {each['name'] or ''}")


@click.command()
@click.argument("resource", type=OneOf("RESOURCE", WITH_IDS), metavar="RESOURCE")
@click.option("--limit", type=click.IntRange(1, PAGE_LARGEST), default=10, show_default=True)
@config_option
@json_option
def sample(resource: str, limit: int, config: Path | None, as_json: bool) -> None:
    """List some public ids of a resource, to try a connection.

    RESOURCE is appointments, clients, patients, consultations, invoices, stock, appointmentTypes
    or vets.
    """
    page = asyncio.run(_read(load_settings(config), resource, limit))
    found = [each["id"] for each in page.records]
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(found))


async def _read(settings: Settings, resource: str, limit: int) -> Page:
    async with practice_system(settings) as adapter:
        return await adapter.read_many(Query(resource=resource, now=utc_now(), limit=limit))


@asynccontextmanager
async def practice_system(settings: Settings) -> AsyncIterator[Adapter]:
    """The configured adapter, without a gateway around it."""
    check_configured(settings)
    store = open_own_store(settings)
    try:
        await store.migrate()
        adapter, _ = await open_backend(settings, store, lambda trouble: None)
        try:
            yield adapter
        finally:
            await adapter.aclose()
    finally:
        await store.aclose()
