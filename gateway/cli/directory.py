"""`clinic-gateway vets` and `sample`: public ids that no operation lists, to hand out or try."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from adapters.base import Adapter, Record, Report
from gateway.app import utc_now
from gateway.backend import check_configured, open_backend
from gateway.cli.options import config_option, json_option
from gateway.cli.words import OneOf
from gateway.contract.operations import PAGE_LARGEST
from gateway.contract.resources import RESOURCES
from gateway.inquiries.practice import PAGES_MOST, first
from gateway.settings import Settings, load_settings
from gateway.state import opened

WITH_IDS = [each.name for each in RESOURCES if "id" in each.paths]


@click.command()
@config_option
@json_option
def vets(config: Path | None, as_json: bool) -> None:
    """List the veterinarians with their public ids."""
    records = asyncio.run(_read(load_settings(config), "vets", PAGES_MOST * PAGE_LARGEST))
    found = [{"id": each["id"], "name": each.get("name")} for each in records]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        click.echo(f"{each['name'] or ''}  {each['id']}")


@click.command()
@click.argument("resource", type=OneOf("RESOURCE", WITH_IDS), metavar="RESOURCE")
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_LARGEST),
    default=10,
    show_default=True,
    help=f"How many, at most {PAGE_LARGEST}.",
)
@config_option
@json_option
def sample(resource: str, limit: int, config: Path | None, as_json: bool) -> None:
    """List some public ids of a resource, to try a connection.

    RESOURCE is appointments, clients, patients, consultations, invoices, stock, appointmentTypes
    or vets.
    """
    records = asyncio.run(_read(load_settings(config), resource, limit))
    found = [each["id"] for each in records]
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(found))


async def _read(settings: Settings, resource: str, most: int) -> list[Record]:
    """The first records of a resource, of as many pages as it takes."""
    async with practice_system(settings) as adapter:
        return await first(adapter, resource, most, utc_now())


@asynccontextmanager
async def practice_system(
    settings: Settings, report: Report = lambda trouble: None
) -> AsyncIterator[Adapter]:
    """The configured adapter, without a gateway around it; `report` hears of unusable values.

    DocumentErrors where its mapping names what the practice system does not have.
    """
    check_configured(settings)
    async with opened(settings) as store:
        adapter, _ = await open_backend(settings, store, report)
        try:
            await adapter.check()
            yield adapter
        finally:
            await adapter.aclose()
