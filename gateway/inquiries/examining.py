"""What an examination of the configured practice system finds."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from adapters.base import Adapter, Report, Trouble
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Finding
from gateway.backend import bare_adapter_of, check_configured, check_serves
from gateway.examination import examined, problems
from gateway.sealing import sealing_secret
from gateway.settings import Settings
from gateway.store import Store


async def examine(
    settings: Settings, store: Store, examination: Examination
) -> AsyncGenerator[Finding, None]:
    """Each finding as it is found; the store has been migrated. StartRefused, StoreError."""
    troubles: list[Trouble] = []
    try:
        async with bare_adapter(settings, store, troubles.append) as adapter:
            patience = settings.backend.timeout
            looked = examined(adapter, examination, patience=patience, troubles=troubles)
            async for each in looked:
                yield each
    except DocumentErrors as error:
        for each in problems(error.problems):
            yield each


@asynccontextmanager
async def bare_adapter(settings: Settings, store: Store, report: Report) -> AsyncIterator[Adapter]:
    """The configured adapter with nothing around it, which would hide what it does."""
    check_configured(settings)
    secret = await sealing_secret(settings, store)
    adapter = bare_adapter_of(settings, secret, report, store)
    try:
        check_serves(adapter, settings)
        yield adapter
    finally:
        await adapter.aclose()
