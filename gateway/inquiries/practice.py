"""Examines the configured practice system, and reads its first records."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import datetime

from adapters.base import Adapter, Page, Query, Record, Report, Trouble
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Finding
from gateway.backend import bare_adapter_of, check_configured, check_serves, options_of
from gateway.contract.operations import PAGE_LARGEST
from gateway.examination import examined, half_examined
from gateway.sealing import sealing_secret
from gateway.settings import Settings
from gateway.store import Store

# The most pages that are read, whatever an adapter says of a next one.
PAGES_MOST = 100


async def examine(
    settings: Settings, store: Store, examination: Examination
) -> AsyncGenerator[Finding, None]:
    """Yields each finding as it is found; the store has been migrated. StartRefused, StoreError."""
    troubles: list[Trouble] = []
    try:
        async with bare_adapter(settings, store, troubles.append) as adapter:
            patience = settings.backend.timeout
            findings = examined(adapter, examination, patience=patience, troubles=troubles)
            async for finding in findings:
                yield finding
    except DocumentErrors as error:
        options = options_of(settings, bytes(32), troubles.append)
        async for finding in half_examined(error, settings.backend.adapter, options):
            yield finding


@asynccontextmanager
async def bare_adapter(settings: Settings, store: Store, report: Report) -> AsyncIterator[Adapter]:
    """Yields the configured adapter without wrappers, which would hide what it does."""
    check_configured(settings)
    secret = await sealing_secret(settings, store)
    async with aclosing(await bare_adapter_of(settings, secret, report, store)) as adapter:
        check_serves(adapter, settings)
        yield adapter


async def first(adapter: Adapter, resource: str, most: int, now: datetime) -> list[Record]:
    """Returns up to `most` records, from at most PAGES_MOST pages. Raises AdapterError.

    There are none of a resource that the practice system leaves out.
    """
    return (await some(adapter, resource, most, now)).records


async def some(
    adapter: Adapter, resource: str, most: int, now: datetime, after: str | None = None
) -> Page:
    """Returns the same from behind a place, and the place behind them, as one page."""
    records: list[Record] = []
    if resource not in adapter.resources:
        return Page(records=records)
    for _ in range(PAGES_MOST):
        limit = min(most - len(records), PAGE_LARGEST)
        page = await adapter.read_many(Query(resource=resource, now=now, limit=limit, after=after))
        records += page.records
        after = page.after
        if after is None or len(records) >= most:
            break
    return Page(records=records[:most], after=after)
