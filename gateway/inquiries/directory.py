"""Public ids that no operation lists: of the veterinarians, and of all that has some."""

from datetime import datetime

from adapters.base import Adapter, Query, Record
from gateway.contract.operations import PAGE_LARGEST

# So many pages are read at most, whatever an adapter says of a next one.
PAGES_MOST = 100


async def first(adapter: Adapter, resource: str, most: int, now: datetime) -> list[Record]:
    """Up to `most` records, from at most PAGES_MOST pages. AdapterError."""
    found: list[Record] = []
    after = None
    for _ in range(PAGES_MOST):
        limit = min(most - len(found), PAGE_LARGEST)
        page = await adapter.read_many(Query(resource=resource, now=now, limit=limit, after=after))
        found += page.records
        after = page.after
        if after is None or len(found) >= most:
            break
    return found[:most]
